//! The connection of the page: without its server nothing is shown as current, and with it again the page goes on.

use radixscope_tests::browser::with_page;
use radixscope_tests::capture::Capture;
use radixscope_tests::nats::Nats;
use radixscope_tests::pages::Site;
use radixscope_tests::panels::link::{nothing_is_current, until_live};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{replay, wait};

#[tokio::test]
async fn a_killed_server_is_noticed_and_a_restarted_one_taken_up_again() {
    let nats = Nats::start().await;
    let capture = Capture::load("0.9.1-log-jsonl-info");
    let (retained, _) = capture.split_by_stream();
    let jetstream = nats.jetstream().await;
    replay::create_streams(&jetstream, &retained).await;
    replay::publish_retained(&jetstream, &retained).await;
    let mut server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    server.until_quiet(retained.len() as u64).await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        page.agrees_with(&server).await;
        let held = page.blocks_of_workers(&server).await;
        page.expect_complaints(); // the browser itself reports the refused connections

        server.kill();
        let notice = page
            .until("it says that there is no connection", async |page| {
                page.text("notice-reconnecting").await.ok_or_else(|| "no notice".to_owned())
            })
            .await;
        assert!(notice.contains("last known state"), "{notice}");
        // Between attempts; during one the page is connecting.
        page.until_true(
            "it waits for the next attempt",
            "document.body.dataset.connection === 'reconnecting'",
        )
        .await;
        assert_eq!(page.texts("[data-testid=held]").await, held, "what was known stays in sight");
        page.screenshot("server-gone").await;

        server.start_again().await;
        server.until_ready().await;
        server.until_quiet(retained.len() as u64).await;
        page.agrees_with(&server).await;
        until_live(page).await;
        page.until_true("its notice is gone", "!document.querySelector('[data-testid=notice-reconnecting]')")
            .await;
        assert_eq!(page.blocks_of_workers(&server).await, held, "history brings the same back");
    })
    .await;
}

#[tokio::test]
async fn without_a_server_nothing_is_shown_as_current_and_ages_count_on() {
    let mut server = Radixscope::start(["demo", "--warm-up", "60"]).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        until_live(page).await;
        let rate = "/[0-9]/.test(document.querySelector('[data-testid=stored-rate-all]')?.innerText ?? '')";
        page.until_true("rates are there", rate).await;
        assert_eq!(page.attribute(".page", "data-old").await.as_deref(), Some(""));
        let top = "document.getElementById('panels').getBoundingClientRect().top";
        let before = page.eval(top).await;
        page.screenshot("connected").await;
        let picked = async |sign: &str| {
            let row = format!("!!document.querySelector('.worker.picked.{sign}')");
            page.until_true("the worker stays picked out", &row).await;
        };
        page.press("1").await;
        picked("active").await;
        page.expect_complaints(); // the browser itself reports the refused connections
        server.kill();
        nothing_is_current(page, "all").await;
        picked("unknown").await;
        page.until("it says since when, and as of when", async |page| {
            let notice = page.text("notice-reconnecting").await.unwrap_or_default();
            wait::expect(notice.contains(" since ") && notice.contains("as of "), || notice.clone())
        })
        .await;
        assert_eq!(page.eval(top).await, before, "the notice moves nothing");
        for theme in ["dark", "light"] {
            page.until_true("the theme is there", &format!(
                "document.documentElement.dataset.theme === '{theme}' || (document.querySelector('[data-testid=theme]').click(), false)"
            )).await;
            page.screenshot(&format!("disconnected-{theme}")).await;
        }
        page.until("ages count on by the page's own clock", async |page| {
            let age = page.texts(".worker .c-age").await.concat();
            wait::expect(age.contains(" s") && !age.contains("now"), || age.clone())
        })
        .await;
        server.start_again().await;
        until_live(page).await;
        page.until_true("it is current again", "document.querySelector('.page').dataset.old === ''").await;
    })
    .await;
}

#[tokio::test]
async fn a_server_of_another_version_asks_for_a_reload() {
    let server = Radixscope::start(["demo", "--warm-up", "0"]).await;
    let of_version =
        async |version: u8| Site::with_other_socket(server.port(), vec![vec![version, 0, 0, 0]]).await;
    // An old page meets a new server, and a new page an old server.
    let sites = [(99, of_version(99).await), (1, of_version(1).await)];
    with_page(async |page| {
        for (version, site) in &sites {
            page.open(&site.url()).await;
            let text = page
                .until("it says so", async |page| {
                    page.text("incompatible").await.ok_or_else(|| "nothing".to_owned())
                })
                .await;
            let theirs = format!("speaks protocol version {version},");
            assert!(text.contains(&theirs) && text.contains("Load the page again"), "{text}");
        }
        page.screenshot("other-version").await;
    })
    .await;
}
