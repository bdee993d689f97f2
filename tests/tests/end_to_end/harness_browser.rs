//! The harness's browser: it sees, clicks and types as a person does, and never outlives its test.

use futures_util::FutureExt;
use radixscope_tests::browser::with_page;
use radixscope_tests::pages::Site;
use std::panic::AssertUnwindSafe;

const PAGE: &str = "<!doctype html><link rel=icon href='data:,'><title>t</title>\
    <button data-testid=b onclick='this.innerText += 1'>n</button><input data-testid=i>\
    <canvas width=2 height=1></canvas><script>addEventListener('mousemove', e => document.title = e.clientX);\
    addEventListener('keydown', e => document.body.dataset.key = e.key)</script>";

#[tokio::test]
async fn it_sees_clicks_hovers_and_types() {
    let site = Site::of_page(PAGE).await;
    with_page(async |page| {
        page.open(&site.url()).await;
        page.click("b").await;
        assert_eq!(page.text("b").await.as_deref(), Some("n1"));
        page.click("i").await;
        page.press("x").await;
        assert_eq!(page.eval("document.querySelector('input').value").await, "x");
        page.press("ArrowDown").await;
        assert_eq!(page.eval("document.body.dataset.key").await, "ArrowDown");
        page.hover(321.0, 50.0).await;
        assert_eq!(page.eval("document.title").await, "321");
        assert_eq!(page.colours("canvas").await, 1);
        assert_eq!(page.eval("[innerWidth, innerHeight]").await, serde_json::json!([1280, 720]));
        page.prefer(&[("prefers-color-scheme", "light")]).await;
        assert_eq!(page.eval("matchMedia('(prefers-color-scheme: light)').matches").await, true);
        assert!(page.requests().await.contains(&site.url()));
    })
    .await;
}

#[tokio::test]
async fn a_complaint_of_the_page_fails_the_test_and_the_browser_ends_all_the_same() {
    let site =
        Site::of_page("<link rel=icon href='data:,'><script>console.error('out of order')</script>").await;
    let mut browser = 0;
    let failed = AssertUnwindSafe(with_page(async |page| {
        page.open(&site.url()).await;
        browser = page.browser_id().expect("the driver says which process it started");
        assert!(std::path::Path::new(&format!("/proc/{browser}")).exists());
    }))
    .catch_unwind()
    .await;
    assert!(failed.is_err());
    let gone = async || {
        let stat = std::fs::read_to_string(format!("/proc/{browser}/stat")).unwrap_or_default();
        radixscope_tests::wait::expect(stat.is_empty() || stat.contains(") Z "), || stat)
    };
    radixscope_tests::wait::until("the browser has ended", gone).await;
}
