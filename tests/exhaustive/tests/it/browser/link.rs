//! The page and its link to the server: cut, stalled, restarted, of another version, below a path, in a frame.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::Capture;
use radixscope_tests::nats::Nats;
use radixscope_tests::pages::Site;
use radixscope_tests::panels::link::{nothing_is_current, until_live};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{replay, wait};
use serde_json::Value;

#[tokio::test]
async fn without_its_source_the_figures_of_the_source_are_of_its_last_message() {
    let mut nats = Nats::start().await;
    let capture = Capture::load("0.9.1-log-jsonl-info");
    let (retained, _) = capture.split_by_stream();
    let jetstream = nats.jetstream().await;
    replay::create_streams(&jetstream, &retained).await;
    replay::publish_retained(&jetstream, &retained).await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    server.until_quiet(retained.len() as u64).await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        page.agrees_with(&server).await;
        until_live(page).await;
        nats.stop();
        nothing_is_current(page, "events").await;
        let notice = page.text("notice-source").await.unwrap_or_default();
        assert!(notice.contains("Figures from it are as of "), "{notice}");
        page.screenshot("source-down").await;
        nats.start_again().await;
        page.until_true("it is current again", "document.querySelector('.page').dataset.old === ''").await;
    })
    .await;
}

#[tokio::test]
async fn a_silent_server_makes_the_picture_stale_and_nothing_worse() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        until_live(page).await;
        server.process().pause();
        page.until("it says that the picture is stale", async |page| {
            page.text("notice-stale").await.ok_or_else(|| "no notice".to_owned())
        })
        .await;
        page.until("it says so at its top", async |page| {
            let connection = page.text("connection").await;
            wait::expect(connection.as_deref() == Some("Stale"), || format!("{connection:?}"))
        })
        .await;
        server.process().resume();
        until_live(page).await;
        page.until_true("its notice is gone", "!document.querySelector('[data-testid=notice-stale]')").await;
    })
    .await;
}

#[tokio::test]
async fn trouble_of_the_source_is_reported_on_the_page() {
    let mut nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        until_live(page).await;
        nats.stop();
        let notice = page
            .until("it names the source", async |page| {
                page.text("notice-source").await.ok_or_else(|| "no notice".to_owned())
            })
            .await;
        assert!(notice.contains("not connected"), "{notice}");
        nats.start_again().await;
        page.until("the notice goes", async |page| {
            let notice = page.text("notice-source").await;
            wait::expect(notice.is_none(), || format!("{notice:?}"))
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_busy_page_proves_again_and_again_that_it_is_right() {
    let server = Radixscope::start(["demo", "--warm-up", "30"]).await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        until_live(page).await;
        let verified = async || {
            let text = page.text("verified").await.unwrap_or_default();
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            digits.parse::<u64>().map_err(|_| text)
        };
        let first = page.until("a comparison is shown", async |_| verified().await).await;
        page.until("a later one follows", async |_| {
            let now = verified().await?;
            wait::expect(now > first, || format!("{now}"))
        })
        .await;
        for notice in ["notice-digest", "notice-behind", "notice-unreadable"] {
            assert_eq!(page.text(notice).await, None);
        }
    })
    .await;
}

#[tokio::test]
async fn below_a_base_path_the_page_finds_its_files_and_its_socket() {
    let server = Radixscope::start(["demo", "--warm-up", "0", "--base-path", "/tools/radix/"]).await;
    with_page(async |page| {
        for path in ["/", ""] {
            page.open(&server.url(path)).await;
            until_live(page).await;
        }
        let below = format!("127.0.0.1:{}/tools/radix", server.port());
        for request in page.requests().await {
            assert!(request.contains(&below) || request.starts_with("data:"), "asked for {request}");
        }
    })
    .await;
}

#[tokio::test]
async fn in_a_frame_of_another_origin_it_lives_if_allowed() {
    // The framing site has to exist before the server can be configured with it, and it has to name the server: so the frame
    // is put in by script.
    let site = Site::of_page("<!doctype html><link rel=icon href='data:,'><body></body>").await;
    let allowed = format!("'self' {}", site.origin());
    let server = Radixscope::start(["demo", "--warm-up", "0", "--frame-ancestors", &allowed]).await;
    with_page(async |page| {
        put_into_frame(page, &site, &server).await;
        page.enter_frame().await;
        until_live(page).await;
        page.screenshot("framed").await;
    })
    .await;
}

#[tokio::test]
async fn in_a_frame_of_another_origin_it_does_not_show_unless_allowed() {
    let site = Site::of_page("<!doctype html><link rel=icon href='data:,'><body></body>").await;
    let server = Radixscope::start(["demo", "--warm-up", "0"]).await;
    with_page(async |page| {
        page.expect_complaints();
        put_into_frame(page, &site, &server).await;
        page.until("the browser says why", async |page| {
            let complaints = page.complaints().await;
            let is_said = complaints.iter().any(|c| c.contains("frame-ancestors"));
            wait::expect(is_said, || format!("{complaints:?}"))
        })
        .await;
        page.enter_frame().await;
        assert_eq!(page.eval("document.body?.dataset.connection").await, Value::Null);
    })
    .await;
}

async fn put_into_frame(page: &Page, site: &Site, server: &Radixscope) {
    page.open(&site.url()).await;
    let url = server.url("/");
    page.eval(&format!("document.body.innerHTML = '<iframe width=1200 height=680 src=\"{url}\"></iframe>'"))
        .await;
}
