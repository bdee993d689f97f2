//! Panels that are parts of the page's program: fetched when they are wanted and not before, kept, and asked for again where
//! they did not come.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::paused_demo;
use serde_json::json;

/// Panels with a part of their own, and that part's name.
const PARTS: [(&str, &str); 10] = [
    ("findings", "findings"),
    ("latency", "latency"),
    ("memory", "memory"),
    ("tree", "tree"),
    ("decisions", "decisions"),
    ("reuse", "reuse"),
    ("whatif", "whatif"),
    ("counterfactual", "counterfactual"),
    ("compare", "compare"),
    ("changes", "changes"),
];

/// Names of the parts that were fetched, in order, without their digests; what several share is `shared`.
async fn fetched(page: &Page) -> Vec<String> {
    let names = page
        .eval(
            "performance.getEntriesByType('resource').map(e => new URL(e.name).pathname.split('/').pop())
                .filter(name => /^(split_|shared-)/.test(name)).map(name => name.replace(/^split_/, '').split('-')[0])",
        )
        .await;
    serde_json::from_value(names).expect("names")
}

fn is_fetched(part: &str) -> String {
    format!(
        "performance.getEntriesByType('resource').some(e => e.name.includes('/split_{part}-') && e.responseEnd > 0)"
    )
}

#[tokio::test]
async fn the_first_view_loads_the_parts_of_its_tree_and_chart_and_each_panel_its_own_once() {
    let server = paused_demo(&["--warm-up", "60", "--base-path", "/tools/radix"]).await;
    with_page(async |page| {
        page.open(&server.url("/?theme=light")).await;
        page.until_true("the first view", "!!document.querySelector('[data-testid=worker]')").await;
        page.until_true("its chart", "!!document.querySelector('[data-testid=rates-chart]')").await;
        page.until_true("its tree", "!!document.querySelector('[data-testid=tree]')").await;
        let mut first = fetched(page).await;
        first.sort();
        assert_eq!(first, ["overview_tree", "rates", "shared"], "nothing else is fetched before it is wanted");
        for (panel, part) in PARTS {
            page.click(&format!("nav-{panel}")).await;
            let shown = format!(
                "document.querySelector('.page').dataset.view === '{panel}' && !!document.getElementById('{panel}-title')
                    && !document.querySelector('.part')"
            );
            page.until_true(&format!("{panel} is shown"), &shown).await;
            page.until_true(
                "its heading has the focus",
                &format!("document.activeElement.id === '{panel}-title'"),
            )
            .await;
            assert_eq!(fetched(page).await.iter().filter(|name| *name == part).count(), 1, "{part}");
        }
        let before = fetched(page).await;
        page.click("nav-memory").await;
        page.until_true("memory again", "!!document.getElementById('memory-title') && !document.querySelector('.part')").await;
        assert_eq!(fetched(page).await, before, "nothing is fetched twice");
        assert_eq!(before.iter().filter(|name| *name == "shared").count(), 1);
    })
    .await;
}

/// There a panel's heading is in the document some frames after the address has it, and its part comes later still.
#[tokio::test]
async fn on_a_slow_machine_a_panel_that_is_opened_has_the_focus_too() {
    let server = paused_demo(&["--warm-up", "60", "--base-path", "/tools/radix"]).await;
    with_page(async |page| {
        page.open(&server.url("/?theme=light")).await;
        page.until_true("the first view", "!!document.querySelector('[data-testid=worker]')").await;
        page.devtools("Emulation.setCPUThrottlingRate", json!({"rate": 6})).await;
        for (panel, _) in PARTS {
            page.click(&format!("nav-{panel}")).await;
            let has_focus = format!("document.activeElement.id === '{panel}-title'");
            page.until_true(&format!("the heading of {panel} has the focus"), &has_focus).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_part_is_fetched_when_the_pointer_or_the_focus_is_on_its_link() {
    let server = paused_demo(&["--warm-up", "60", "--base-path", "/tools/radix"]).await;
    with_page(async |page| {
        page.open(&server.url("/?theme=light")).await;
        page.until_true("the first view", "!!document.querySelector('[data-testid=worker]')").await;
        let (x, y) = page.centre("[data-testid=nav-compare]").await;
        page.hover(x, y).await;
        page.until_true("hovered", &is_fetched("compare")).await;
        page.eval("document.querySelector('[data-testid=nav-memory]').focus()").await;
        page.until_true("focused", &is_fetched("memory")).await;
        assert_eq!(page.address().await.query(), Some("theme=light"), "and not opened");
    })
    .await;
}
