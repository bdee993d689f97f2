//! Going back in time by keys and by mouse: the moment shown is the one that there was, by its digest.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::time::{agrees_on_the_past, is_live, open, remove, store, until_nodes};
use radixscope_tests::scripted_workers::ScriptedWorkers;
use radixscope_tests::wait;

/// Where a moment lies on the timeline, in the window.
async fn place(page: &Page, at: u64) -> (f64, f64) {
    let (x, y, width, height) = page.rectangle("[data-testid=timeline-field]").await;
    let bound = async |name| {
        let text = page.attribute("[data-testid=timeline-field]", name).await.expect("a bound");
        text.parse::<f64>().expect("a number")
    };
    let (from, until) = (bound("aria-valuemin").await, bound("aria-valuemax").await);
    (x + width * (at as f64 - from) / (until - from), y + height / 3.0)
}

#[tokio::test]
async fn keys_lead_back_and_to_live_and_nothing_is_lost_meanwhile() {
    let mut stage = ScriptedWorkers::start().await;
    store(&mut stage, 1_000..1_100, 100).await;
    store(&mut stage, 2_000..2_060, 160).await;
    with_page(async |page| {
        open(page, &stage.server, "/").await;
        page.agrees_with(&stage.server).await;
        until_nodes(page, 160).await;
        page.press(" ").await;
        let paused = agrees_on_the_past(page, &stage.server).await;
        let shown_text = page.text("connection").await.unwrap_or_default();
        assert!(shown_text.starts_with("Paused at ") && shown_text.contains(", "), "{shown_text}");
        remove(&mut stage, 1_050..1_100, 110).await;
        until_nodes(page, 160).await;
        page.until("back by keys to before the second prompt", async |page| {
            page.press("ArrowLeft").await;
            agrees_on_the_past(page, &stage.server).await;
            let text = page.text("nodes").await.unwrap_or_default();
            wait::expect(text == "100", || text)
        })
        .await;
        let earlier = agrees_on_the_past(page, &stage.server).await;
        assert!(earlier < paused && (paused - earlier) % 1_000 == 0, "{earlier}, {paused}");
        page.press("l").await;
        until_nodes(page, 110).await;
        is_live(page, &stage.server).await;
    })
    .await;
}

#[tokio::test]
async fn the_mouse_scrubs_and_a_second_tab_shows_the_same_moment() {
    let mut stage = ScriptedWorkers::start().await;
    let few = store(&mut stage, 1_000..1_100, 100).await;
    let many = store(&mut stage, 2_000..2_060, 160).await;
    let less = remove(&mut stage, 1_050..1_100, 110).await;
    with_page(async |page| {
        open(page, &stage.server, "/").await;
        // Nothing moves under the pointer.
        let (x, y, width, height) = page.rectangle("[data-testid=timeline-field]").await;
        page.hover(x + width / 2.0, y + height / 2.0).await;
        let places = [place(page, less).await, place(page, many).await, place(page, few).await];
        page.drag(&places).await;
        until_nodes(page, 100).await;
        let at = agrees_on_the_past(page, &stage.server).await;
        assert!(at.abs_diff(few) < 500, "{at} is not under the pointer, {few}");
        let digest = page.attribute("body", "data-digest").await;
        // Whoever holds the pointer still sees its moment too.
        let (held, (x, y)) = (place(page, less).await, place(page, many).await);
        page.press_at(x, y).await;
        page.hover(held.0, held.1).await;
        let asked = "document.querySelector('[data-testid=timeline-field]').ariaValueNow";
        page.until_true("the moment itself is shown", &format!("document.body.dataset.at === {asked}")).await;
        until_nodes(page, 110).await;
        agrees_on_the_past(page, &stage.server).await;
        page.release().await;
        page.click_at(x, y).await;
        until_nodes(page, 160).await;
        agrees_on_the_past(page, &stage.server).await;
        // Another view, so that it is loaded anew.
        page.open(&stage.server.url(&format!("/?view=workers#t={at}"))).await;
        assert_eq!(agrees_on_the_past(page, &stage.server).await, at);
        assert_eq!(page.attribute("body", "data-digest").await, digest);
        assert_eq!(page.texts("[data-testid=worker] [data-testid=held]").await, ["100"]);
        page.click("timeline-live").await;
        is_live(page, &stage.server).await;
    })
    .await;
}
