//! What every browser must show: the page opens, it follows the server's state record by record, and each view has its
//! figures. `cargo xtask test browsers` runs this in Firefox and in WebKit too.

use radixscope_panels::url::Panel;
use radixscope_tests::browser::with_page;
use radixscope_tests::figures::number;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

/// Records that a page has folded before its state is compared: browsers compile what runs often once more, and better.
const RECORDS: u64 = 60_000;
/// Digits of a figure, or a text in its place, in every view.
const FILLED: &str = "document.querySelector('#panels').innerText.replace(/\\s+/g, ' ').length > 40 \
    && !document.querySelector('[data-testid$=-wait]')";

#[tokio::test]
async fn every_view_opens_with_its_figures_in_both_themes() {
    let server = Radixscope::standing("aggregated").await;
    with_page(async |page| {
        let cluster = server.cluster().await;
        for theme in ["light", "dark"] {
            for panel in Panel::ALL {
                let view = panel.as_str();
                page.open_at(&server, &format!("/?view={view}&theme={theme}"), &cluster).await;
                page.until_true(&format!("{view} has figures"), FILLED).await;
                let figures = "/[0-9]/.test(document.querySelector('#panels').innerText)";
                page.until_true(&format!("{view} has figures"), figures).await;
            }
            page.open_at(&server, &format!("/?theme={theme}"), &cluster).await;
            page.until("the tree is drawn", async |page| {
                let colours = page.colours("#tree canvas.picture").await;
                wait::expect(colours > 4, || format!("{colours} colours"))
            })
            .await;
            page.screenshot(&format!("{}-{theme}", page.engine().as_str())).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_page_stays_equal_to_the_server_over_many_records() {
    let server = Radixscope::start(["demo", "--speed", "40"]).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
        let from = number(&server.cluster().await, "seq");
        let goal = from + RECORDS;
        page.until("the page has compared its state far on", async |page| {
            let at = page.attribute("body", "data-digest-seq").await;
            let at: u64 = at.and_then(|at| at.parse().ok()).unwrap_or(0);
            let notice = page.text("notice-digest").await;
            assert_eq!(notice, None, "the states differ");
            wait::expect(at >= goal, || format!("at {at} of {goal}"))
        })
        .await;
    })
    .await;
}
