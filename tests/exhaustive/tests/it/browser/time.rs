//! Going back in time by a person's means: the moment that is shown is the one that there was, by its digest; every panel is
//! of it; the present goes on beside it and is there at once.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::time::{agrees_on_the_past, is_live, open, remove, store, until_nodes};
use radixscope_tests::scripted_workers::ScriptedWorkers;
use radixscope_tests::wait;
use serde_json::json;

/// Chooses from a list.
async fn choose(page: &Page, id: &str, value: &str) {
    let set =
        format!("s => {{ s.value = '{value}'; s.dispatchEvent(new Event('change', {{bubbles: true}})); }}");
    page.eval(&format!("({set})(document.querySelector('[data-testid={id}]'))")).await;
}

#[tokio::test]
async fn a_moment_requested_by_address_outlives_one_that_comes_to_stand_meanwhile() {
    let mut stage = ScriptedWorkers::start().await;
    let few = store(&mut stage, 1_000..1_100, 100).await;
    let many = store(&mut stage, 2_000..2_060, 160).await;
    with_page(async |page| {
        open(page, &stage.server, &format!("/#t={many}")).await;
        until_nodes(page, 160).await;
        agrees_on_the_past(page, &stage.server).await;
        // The address is changed, and the browser says so later.
        page.eval(&format!(
            "(document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: 'ArrowLeft', bubbles: true}})),
              history.replaceState(null, '', location.pathname + location.search + '#t={few}'))"
        ))
        .await;
        let stands = "document.querySelector('nav a').hash === `#t=${document.body.dataset.at}`
                      && document.body.dataset.at !== ";
        page.until_true("the other moment stands", &format!("{stands} '{many}'")).await;
        assert_eq!(page.address().await.fragment(), Some(format!("t={few}").as_str()));
        page.eval("dispatchEvent(new HashChangeEvent('hashchange'))").await;
        until_nodes(page, 100).await;
        assert_eq!(agrees_on_the_past(page, &stage.server).await, few);
    })
    .await;
}

#[tokio::test]
async fn it_plays_on_and_ends_live() {
    let mut stage = ScriptedWorkers::start().await;
    let few = store(&mut stage, 1_000..1_100, 100).await;
    store(&mut stage, 2_000..2_060, 160).await;
    with_page(async |page| {
        open(page, &stage.server, &format!("/#t={few}")).await;
        until_nodes(page, 100).await;
        agrees_on_the_past(page, &stage.server).await;
        // Every state that it shows until the end.
        page.eval(
            "(() => { window.nodes = new Set(); window.moments = new Set();
              const look = () => {
                nodes.add(document.querySelector('[data-testid=nodes]').innerText);
                moments.add(document.body.dataset.moment);
                requestAnimationFrame(look);
              };
              look(); })()",
        )
        .await;
        choose(page, "timeline-speed", "16").await;
        page.click("timeline-play").await;
        is_live(page, &stage.server).await;
        let seen = page.eval("[[...nodes], [...moments]]").await;
        assert_eq!(seen, json!([["100", "160"], ["paused", "replay", "live"]]));
    })
    .await;
}

#[tokio::test]
async fn the_selected_workers_blocks_are_stepped_to() {
    let mut stage = ScriptedWorkers::start().await;
    store(&mut stage, 1_000..1_100, 100).await;
    store(&mut stage, 2_000..2_060, 160).await;
    remove(&mut stage, 1_050..1_100, 110).await;
    with_page(async |page| {
        open(page, &stage.server, "/").await;
        page.agrees_with(&stage.server).await;
        choose(page, "timeline-step", "2").await;
        page.click("timeline-back").await;
        page.until("it says what is missing", async |page| {
            let announced = page.text("timeline-fault").await.unwrap_or_default();
            wait::expect(announced.contains("Select a worker first"), || announced)
        })
        .await;
        page.press("1").await;
        for nodes in [110, 160, 100] {
            page.click("timeline-back").await;
            until_nodes(page, nodes).await;
            agrees_on_the_past(page, &stage.server).await;
        }
        page.click("timeline-forward").await;
        until_nodes(page, 160).await;
    })
    .await;
}

#[tokio::test]
async fn a_time_that_is_not_retained_is_refused_with_a_reason() {
    let mut stage = ScriptedWorkers::start().await;
    store(&mut stage, 1_000..1_100, 100).await;
    with_page(async |page| {
        let announced = async |page: &Page, wanted: &str| {
            page.until("it is shown", async |page| {
                let announced = page.text("timeline-fault").await.unwrap_or_default();
                wait::expect(announced.contains(wanted), || announced)
            })
            .await;
        };
        open(page, &stage.server, "/#t=1000").await;
        announced(page, "no longer retained: the first that is retained is shown").await;
        agrees_on_the_past(page, &stage.server).await;
        open(page, &stage.server, "/?view=tree#t=soon").await;
        announced(page, "t=soon in the address is invalid").await;
        assert_eq!(page.attribute("body", "data-moment").await.as_deref(), Some("live"));
    })
    .await;
}
