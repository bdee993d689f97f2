//! A recording in the place of a server: dropped on the page, or inside a report that asks no server.

use std::path::Path;

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::player::{Recorded, shows, shows_every_moment, shows_the_server};
use radixscope_tests::panels::says;
use radixscope_tests::radixscope::Radixscope;
use serde_json::json;
use url::form_urlencoded;

#[tokio::test]
async fn a_dropped_recording_is_shown_in_the_place_of_the_server() {
    let recorded = Recorded::start().await;
    with_page(async |page| {
        page.open(&recorded.server.url("/")).await;
        shows_the_server(page).await;
        page.drop_file(&recorded.path, "#panels").await;
        says(page, "notice-file", "Showing the recording incident.mcap").await;
        shows_every_moment(page, &recorded).await;
        // What only a server knows is not asked of the one that is not shown.
        page.requests().await;
        page.eval("document.querySelector('[data-testid=nav-counterfactual]').click()").await;
        says(page, "notice-file", "no request goes to a server").await;
        let asked = page.requests().await;
        assert!(!asked.iter().any(|url| url.contains("/api/") || url.contains("/history")), "{asked:?}");
        page.click("close-file").await;
        page.until_true("it is live", "document.body.dataset.moment === 'live'").await;
        shows_the_server(page).await;
        says(page, "connection", "Live").await;
        assert_eq!(page.text("notice-file").await, None);
        assert_eq!(page.complaints().await, Vec::<String>::new());
    })
    .await;
}

/// Takes the network away, as for a file that was sent to somebody.
async fn go_offline(page: &Page) {
    page.devtools("Network.enable", json!({})).await;
    let offline = json!({"offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
    page.devtools("Network.emulateNetworkConditions", offline).await;
    page.requests().await;
}

/// The page asked for nothing but this file, and complained about nothing.
async fn asked_for_itself_alone(page: &Page, url: &str) {
    let asked = page.requests().await;
    let is_own = |asked: &String| {
        asked.starts_with(url) || ["blob:", "data:", "about:"].iter().any(|own| asked.starts_with(own))
    };
    assert!(asked.iter().all(is_own), "{asked:?}");
    assert_eq!(page.complaints().await, Vec::<String>::new());
}

fn text_of(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}

#[tokio::test]
async fn a_page_with_its_recording_inside_asks_nobody() {
    let recorded = Recorded::start().await;
    let (from, to) = (text_of(&recorded.path), text_of(&recorded.folder.path().join("report.html")));
    let done = Radixscope::run(&["export", &from, "--html", &to]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let [_, moment, _] = recorded.moments();
    with_page(async |page| {
        go_offline(page).await;
        let url = format!("file://{to}");
        page.open(&url).await;
        shows_every_moment(page, &recorded).await;
        page.open("about:blank").await;
        page.open(&format!("{url}#t={}", moment.0)).await;
        shows(page, &recorded, Some(moment)).await;
        asked_for_itself_alone(page, &url).await;
    })
    .await;
}

#[tokio::test]
async fn a_saved_page_opens_with_what_was_shown_and_asks_nobody() {
    let recorded = Recorded::start().await;
    let [_, moment, _] = recorded.moments();
    let view = format!("?view=workers#t={}", moment.0);
    let view: String = form_urlencoded::byte_serialize(view.as_bytes()).collect();
    let streamed = recorded.server.get(&format!("/api/v1/report?view={view}")).await;
    assert_eq!(streamed.status, 200);
    let saved = recorded.folder.path().join("saved.html");
    std::fs::write(&saved, streamed.text()).expect("it is written");
    let wrong = recorded.server.get("/api/v1/report?view=%3F%22%3E").await;
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    with_page(async |page| {
        go_offline(page).await;
        let url = format!("file://{}", text_of(&saved));
        page.open(&url).await;
        shows(page, &recorded, Some(moment)).await;
        assert_eq!(page.eval("location.search").await, "?view=workers");
        asked_for_itself_alone(page, &url).await;
    })
    .await;
}
