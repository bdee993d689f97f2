//! The page and its pictures in frames of other sites, with an access token over HTTP.

use radixscope_tests::browser::{Page, with_page_and};
use radixscope_tests::pages::Site;
use radixscope_tests::panels::embed::{STRICT, TOKEN, abroad, frame, image, until_live};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::json;

async fn until_it_says(page: &Page, expected: &str) {
    page.until(expected, async |page| {
        let shown = page.eval("document.body?.innerText").await;
        wait::expect(shown.as_str().is_some_and(|text| text.contains(expected)), || shown.to_string())
    })
    .await;
}

#[tokio::test]
async fn over_http_a_token_opens_frames_of_the_same_site_and_pictures_everywhere() {
    let server = demo_with_token().await;
    let site = Site::of_page("<!doctype html><title>A dashboard</title><body></body>").await;
    with_page_and(&STRICT, async |page| {
        page.expect_complaints();
        let path = format!("/?view=workers&chrome=0&token={TOKEN}");
        // A file that does not come is shown as missing, not waited for.
        page.devtools("Network.enable", json!({})).await;
        page.devtools("Network.setBlockedURLs", json!({"urls": ["*/page-*.js"]})).await;
        page.open(&server.url(&path)).await;
        until_it_says(page, "program was not loaded").await;
        page.devtools("Network.setBlockedURLs", json!({"urls": []})).await;
        frame(page, &site, "", &abroad(&server, "http", &path)).await;
        until_it_says(page, "A token is needed").await;
        // A frame without an origin sends no cookie with the program's files.
        frame(page, &site, "sandbox=\"allow-scripts\"", &server.url(&path)).await;
        until_it_says(page, "allow-same-origin").await;
        for attributes in ["", "sandbox=\"allow-scripts allow-same-origin\""] {
            frame(page, &site, attributes, &server.url(&path)).await;
            until_live(page, "another port of the same site").await;
        }
        let picture = |query: &str| abroad(&server, "http", &format!("/panel/tree.svg?width=420{query}"));
        assert_eq!(image(page, &site, &picture(&format!("&token={TOKEN}"))).await, 420);
        // what is missing stands in a picture too.
        assert_eq!(image(page, &site, &picture("")).await, 420);
    })
    .await;
    let bare = server.get_with("/panel/tree.svg", &[("accept", "image/svg+xml,image/*")]).await;
    assert_eq!((bare.status, bare.header("content-type")), (401, "image/svg+xml"));
    assert!(bare.text().contains("an access token is needed"), "{}", bare.text());
}

async fn demo_with_token() -> Radixscope {
    let flags = ["--access-token", TOKEN];
    let args = ["demo", "--warm-up", "60", "--speed", "0.000001", "--frame-ancestors", "*"];
    Radixscope::start(args.iter().chain(&flags).copied()).await
}
