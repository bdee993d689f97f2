//! The harness's browser: it sees, clicks and types as a person does, and nothing of it outlives its test.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use radixscope_tests::browser::{with_page, with_page_and};
use radixscope_tests::http::Http;
use radixscope_tests::pages::Site;
use radixscope_tests::wait;
use serde_json::Value;

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

/// A page that complains.
const FAULTY: &str = "<link rel=icon href='data:,'><script>console.error('out of order')</script>";

#[tokio::test]
async fn a_complaint_of_the_page_fails_the_test_and_its_tab_is_closed_all_the_same() {
    let site = Site::of_page(FAULTY).await;
    let mut targets = String::new();
    let failed = AssertUnwindSafe(with_page(async |page| {
        page.open(&site.url()).await;
        targets = format!("http://{}/json/list", page.debugger());
        assert!(open_pages(&targets).await.contains(&site.url()));
    }))
    .catch_unwind()
    .await;
    let failure = failed.expect_err("it complained");
    let failure = failure.downcast_ref::<String>().expect("a text");
    assert!(failure.contains("the page complained") && failure.contains("out of order"), "{failure}");
    wait::until("its tab is closed", async || {
        let pages = open_pages(&targets).await;
        wait::expect(!pages.contains(&site.url()), || format!("{pages:?}"))
    })
    .await;
}

/// Addresses of the pages of a browser; none if it has ended.
async fn open_pages(targets: &str) -> Vec<String> {
    let Ok(response) = Http::default().get(targets).await else { return Vec::new() };
    let targets = response.json();
    let urls = targets.as_array().expect("a list").iter().map(|target| target["url"].as_str());
    urls.map(|url| url.expect("an address").to_owned()).collect()
}

#[tokio::test]
async fn a_browser_of_a_tests_own_ends_with_it_also_when_it_fails() {
    let site = Site::of_page(FAULTY).await;
    let mut browser = 0;
    let failed = AssertUnwindSafe(with_page_and(&[], async |page| {
        page.open(&site.url()).await;
        browser = page.browser_id().expect("it is the test's own");
        assert!(std::path::Path::new(&format!("/proc/{browser}")).exists());
    }))
    .catch_unwind()
    .await;
    assert!(failed.is_err());
    let gone = async || {
        let stat = std::fs::read_to_string(format!("/proc/{browser}/stat")).unwrap_or_default();
        wait::expect(stat.is_empty() || stat.contains(") Z "), || stat)
    };
    wait::until("the browser has ended", gone).await;
}

#[tokio::test]
async fn each_test_has_storage_of_its_own() {
    let site = Site::of_page(PAGE).await;
    for _ in 0..2 {
        with_page(async |page| {
            page.open(&site.url()).await;
            assert_eq!(page.eval("localStorage.getItem('seen')").await, Value::Null);
            page.eval("localStorage.setItem('seen', 'yes')").await;
            page.reload().await;
            assert_eq!(page.eval("localStorage.getItem('seen')").await, "yes");
        })
        .await;
    }
}

#[tokio::test]
async fn requests_of_frames_and_workers_are_seen_too() {
    let other = Site::of_page("from another site").await;
    let asked = [other.url() + "frame", other.url() + "worker"];
    // At another name it is another site, whose frames have a process of their own.
    let frame = asked[0].replace("127.0.0.1", "localhost");
    let script = format!("fetch('{}', {{mode: 'no-cors'}}).then(() => postMessage('done'))", asked[1]);
    let site = Site::of_page(&format!(
        "<!doctype html><link rel=icon href='data:,'><iframe src='{frame}'></iframe><script>
         new Worker(URL.createObjectURL(new Blob([{}]))).onmessage = () => document.title = 'done'</script>",
        Value::from(script)
    ))
    .await;
    with_page(async |page| {
        page.open(&site.url()).await;
        page.until_true("the worker is done", "document.title === 'done'").await;
        let requests = page.requests().await;
        assert!(requests.contains(&frame) && requests.contains(&asked[1]), "{requests:?}");
        page.enter_frame().await;
        page.until_true("it is in the frame", "document.body.innerText === 'from another site'").await;
    })
    .await;
}
