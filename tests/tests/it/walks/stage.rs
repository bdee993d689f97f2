//! The demo controls: users and router are steered by keys, the demo is paused and started again.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::stage::{open, until_stage};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::json;

async fn focus(page: &Page, id: &str) {
    page.eval(&format!("document.querySelector('[data-testid={id}]').focus()")).await;
}

#[tokio::test]
async fn users_and_router_are_steered_by_keys_and_the_page_learns_it_as_of_any_frontend() {
    let server = Radixscope::steered_demo(&[]).await;
    with_page(async |page| {
        page.size(1920, 1080).await;
        open(page, &server, "/?theme=light").await;
        focus(page, "stage-slider").await;
        for _ in 0..5 {
            page.press("ArrowRight").await;
        }
        until_stage(&server, "the slider is at 125", "/concurrency/value", json!(125)).await;
        page.until("the bar says so", async |page| {
            let news = page.text("stage-news").await.unwrap_or_default();
            wait::expect(news.ends_with("→ 125"), || news.clone())
        })
        .await;
        assert_eq!(
            page.address().await.query(),
            Some("theme=light"),
            "arrow keys of a slider move nothing else"
        );
        focus(page, "stage-kv").await;
        page.press("ArrowRight").await;
        until_stage(&server, "the router takes turns", "/router/mode", json!("round-robin")).await;
        page.until_true(
            "the choice shows it",
            "document.querySelector('[data-testid=stage-round-robin]').checked",
        )
        .await;
        // By its log and its metrics, as of any frontend: what it ran with before is over, and it is another process.
        wait::until("the cluster shows a frontend that restarted", async || {
            let cluster = server.cluster().await;
            let left = cluster["router_settings"]
                .as_array()
                .is_some_and(|all| all.iter().all(|of| !of["left_ms"].is_null()));
            let restarts = cluster["processes"].to_string();
            wait::expect(left, || format!("{} {restarts:.300}", cluster["router_settings"]))
        })
        .await;
        page.press("ArrowLeft").await;
        until_stage(&server, "KV-aware again", "/router/mode", json!("kv")).await;
        focus(page, "stage-weight").await;
        page.eval(
            "(() => { const field = document.querySelector('[data-testid=stage-weight]'); field.value = '2.5';
                field.dispatchEvent(new Event('change', {bubbles: true})); })()",
        )
        .await;
        until_stage(&server, "the weight is 2.5", "/router/overlap_score_weight/value", json!(2.5)).await;
        wait::until("the log of the frontend tells the new weight", async || {
            let settings = server.cluster().await["router_settings"].to_string();
            wait::expect(settings.contains("2.5"), || settings.clone())
        })
        .await;
        // What cannot be is refused in words, and the field falls back. The browser logs the status.
        page.expect_complaints();
        page.eval(
            "(() => { const field = document.querySelector('[data-testid=stage-weight]'); field.value = '99';
                field.dispatchEvent(new Event('change', {bubbles: true})); })()",
        )
        .await;
        page.until("it is refused in words", async |page| {
            let news = page.text("stage-news").await.unwrap_or_default();
            wait::expect(news == "overlap_score_weight is 99; it must be 0 to 10", || news.clone())
        })
        .await;
        page.until_true(
            "the field falls back",
            "document.querySelector('[data-testid=stage-weight]').value === '2.5'",
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn it_pauses_restarts_with_a_seed_and_folds() {
    let server = Radixscope::steered_demo(&[]).await;
    with_page(async |page| {
        page.size(1920, 1080).await;
        open(page, &server, "/").await;
        page.click("stage-pause").await;
        until_stage(&server, "it is paused", "/paused", json!(true)).await;
        page.click("stage-pause").await;
        until_stage(&server, "it runs", "/paused", json!(false)).await;
        page.click("stage-restart").await;
        page.eval(
            "(() => { const field = document.querySelector('[data-testid=stage-seed]'); field.value = '18446744073709551615';
                field.dispatchEvent(new Event('input', {bubbles: true})); })()",
        )
        .await;
        page.click("stage-restart-now").await;
        until_stage(&server, "it restarted with a seed of 64 bits", "/seed", json!("18446744073709551615")).await;
        // While it runs, page and server are at the same record only by chance.
        page.click("stage-pause").await;
        until_stage(&server, "it is paused again", "/paused", json!(true)).await;
        page.agrees_with(&server).await;
        page.click("stage-fold").await;
        page.until("folded it says what is steered", async |page| {
            let text = page.text("stage-summary").await.unwrap_or_default();
            wait::expect(text.starts_with("120 users · KV-aware"), || text.clone())
        })
        .await;
        assert_eq!(page.address().await.query(), Some("stage=0"));
    })
    .await;
}
