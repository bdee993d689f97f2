//! The changes panel: two moments compared, by default the present and the middle of what is retained.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

/// By how much a page is behind the server: a batch, or the time between two when nothing happens.
const BEHIND_MS: u64 = 1_500;

#[tokio::test]
async fn it_opens_with_the_present_against_the_middle_of_what_is_retained() {
    let server = Radixscope::start(["demo", "--warm-up", "60"]).await;
    server.until_source_is("live").await;
    let first = wait::until("a moment is retained", async || {
        let history = server.json("/history?after_ms=0").await;
        let from = history["kept"]["from_ms"].as_u64().filter(|&from| from > 0);
        from.ok_or_else(|| history["kept"].to_string())
    })
    .await;
    let server_ms = async || server.cluster().await["at_ms"].as_u64().expect("a time");
    let opened_ms = server_ms().await - BEHIND_MS;
    with_page(async |page| {
        page.open(&server.url("/?view=changes")).await;
        page.until("changes are in a sentence", async |page| {
            let sentence = page.text("changes-sentence").await.unwrap_or_default();
            wait::expect(sentence.starts_with("Between ") && sentence.contains(" and now, "), || sentence)
        })
        .await;
        let marked = async |page: &Page| {
            let url = page.address().await;
            url.query_pairs().find(|(name, _)| name == "a").map(|(_, at)| at.into_owned())
        };
        // Less than five minutes are retained: the middle of that. What the page calls now was between the two times.
        let is_in_the_middle = async |at: Option<String>, since: u64| {
            let until = server_ms().await;
            let at: u64 = at.and_then(|at| at.parse().ok()).expect("a moment is marked");
            let middle = |now: u64| first + now.saturating_sub(first) / 2;
            assert!(
                (middle(since)..=middle(until)).contains(&at),
                "{at}, retained from {first}, now {since} to {until}"
            );
        };
        is_in_the_middle(marked(page).await, opened_ms).await;
        page.click("mark-clear").await;
        page.until("it is not marked again", async |page| {
            page.text("changes-empty").await.ok_or_else(|| "still".to_owned())
        })
        .await;
        let cleared_ms = server_ms().await - BEHIND_MS;
        page.click("changes-five-minutes").await;
        page.until_true("it can be again", "!!document.querySelector('[data-testid=changes-sentence]')")
            .await;
        is_in_the_middle(marked(page).await, cleared_ms).await;
    })
    .await;
}
