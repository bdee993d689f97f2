//! The page in its bundles: the first hands over to the full one without losing anything, says so when it cannot, and
//! the worker beside them answers.

use radixscope_app::worker::{Answer, Job, Outcome, Request};
use radixscope_model::frame::Frame;
use radixscope_state::cluster::Cluster;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::metrics;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::replay::replayed;
use radixscope_tests::wait;
use serde_json::json;

const CAPTURE: &str = "0.9.1-healthy";
/// What only the full bundle shows.
const LEDGER: &str = "document.getElementById('decisions-title')?.innerText === 'Ledger'";
const OVERVIEW: &str = "!!document.querySelector('[data-testid=tree-panel]')";

/// Waits until the page is in the full bundle, live, and where the server is.
async fn is_handed_over(page: &Page, server: &Radixscope) {
    page.until_true("the ledger is open", LEDGER).await;
    page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
    page.agrees_with(server).await;
    assert_eq!(page.eval("document.querySelectorAll('.page').length").await, 1, "and the first is gone");
}

/// Parts of snapshots that came over a socket.
fn snapshot_parts(frames: &[Vec<u8>]) -> usize {
    frames.iter().filter(|frame| matches!(Frame::decode(frame), Ok(Frame::Snapshot { .. }))).count()
}

/// Waits until `n` viewers are connected; how many ever were.
async fn viewers(server: &Radixscope, n: f64) -> f64 {
    wait::until("so many viewers are connected", async || {
        let samples = metrics::parse(server.try_get("/metrics").await?.text())?;
        let now = metrics::value(&samples, "radixscope_viewers", &[]);
        wait::expect(now == Some(n), || format!("{now:?}"))?;
        metrics::value(&samples, "radixscope_viewers_connected_total", &[])
            .ok_or_else(|| "no count".to_owned())
    })
    .await
}

#[tokio::test]
async fn an_address_of_a_full_panel_opens_it_without_a_flash_of_the_overview() {
    let (_nats, server, cluster) = replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        let watch = "new MutationObserver(() => { if (document.querySelector('[data-testid=tree-panel]')) window.flashed = true; })
            .observe(document, {subtree: true, childList: true});";
        page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": watch})).await;
        page.open_at(&server, "/?view=decisions&theme=dark", &cluster).await;
        is_handed_over(page, &server).await;
        assert_eq!(page.eval("window.flashed ?? false").await, false);
        assert_eq!(page.address().await.query(), Some("view=decisions&theme=dark"));
        let sockets = page.sockets().await;
        assert_eq!(sockets.len(), 1, "the first bundle asked for no state");
        assert!(snapshot_parts(&sockets[0].1) > 0);
    })
    .await;
}

#[tokio::test]
async fn a_full_panel_opened_by_link_takes_the_state_along_and_back_leads_to_the_overview() {
    let (_nats, server, cluster) = replayed(CAPTURE, &["--base-path", "/tools/radix"]).await;
    with_page(async |page| {
        page.open_at(&server, "/?kiosk=0&theme=dark", &cluster).await;
        let before = viewers(&server, 1.0).await;
        page.click("nav-decisions").await;
        is_handed_over(page, &server).await;
        page.until_true("the heading has the focus", "document.activeElement.id === 'decisions-title'").await;
        assert_eq!(page.address().await.query(), Some("view=decisions&theme=dark"));
        assert_eq!(
            page.attribute("nav [aria-current=page]", "data-testid").await.as_deref(),
            Some("nav-decisions")
        );

        assert_eq!(viewers(&server, 1.0).await, before + 1.0, "one socket ended, one began");
        let sockets = page.sockets().await;
        let [(_, first), (url, second)] = &sockets[..] else { panic!("{} sockets", sockets.len()) };
        assert!(snapshot_parts(first) > 0 && url.contains("after=") && url.contains("epoch="), "{url}");
        assert!(!second.is_empty() && snapshot_parts(second) == 0, "it went on where the first was");

        page.eval("history.back()").await;
        page.until_true("Back shows the overview", OVERVIEW).await;
        page.until_true("and focuses it", "document.activeElement.id === 'panels'").await;
        assert_eq!(page.address().await.query(), Some("kiosk=0&theme=dark"), "the entry is as it was");
        page.eval("history.forward()").await;
        page.until_true("Forward shows the ledger", LEDGER).await;
        page.press("t").await;
        page.until_true("a key does its work once", "document.documentElement.dataset.theme === 'light'")
            .await;
        assert_eq!(page.address().await.query(), Some("view=decisions&theme=light"));
        assert_eq!(page.sockets().await.len(), 0, "whatever is shown, the full bundle stays");
    })
    .await;
}

#[tokio::test]
async fn a_full_panel_opened_by_key_takes_the_state_along_while_much_happens() {
    let server = Radixscope::start(["demo", "--warm-up", "30"]).await;
    with_page(async |page| {
        page.open(&server.url("/?view=rates")).await;
        page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
        page.until_true(
            "the full bundle is fetched ahead",
            "performance.getEntriesByType('resource').some(e => e.name.endsWith('/full_bg.wasm'))",
        )
        .await;
        page.press("v").await;
        page.until_true("the ledger is open", LEDGER).await;
        let verified = async || page.text("verified").await.unwrap_or_default();
        let first = page
            .until("a comparison was taken along", async |_| {
                let text = verified().await;
                wait::expect(text.contains("seq"), || text.clone()).map(|()| text)
            })
            .await;
        page.until("the next comparison is equal too", async |_| {
            let text = verified().await;
            wait::expect(text != first && text.starts_with("verified"), || text)
        })
        .await;
        for notice in ["notice-digest", "notice-behind", "notice-unreadable", "notice-opening"] {
            assert_eq!(page.text(notice).await, None);
        }
        let sockets = page.sockets().await;
        assert_eq!(sockets.len(), 2);
        assert_eq!(snapshot_parts(&sockets[1].1), 0);
    })
    .await;
}

#[tokio::test]
async fn what_another_version_hands_over_is_left_and_the_state_fetched() {
    let (_nats, server, cluster) = replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        page.open_at(&server, "/", &cluster).await;
        page.eval("(give => window.radixscopeHandOver = () => { give(); return [new Uint8Array([99, 1, 2])]; })(window.radixscopeHandOver) && 1").await;
        page.click("nav-decisions").await;
        is_handed_over(page, &server).await;
        let sockets = page.sockets().await;
        assert!(!sockets[1].0.contains("after=") && snapshot_parts(&sockets[1].1) > 0, "{}", sockets[1].0);
    })
    .await;
}

#[tokio::test]
async fn a_full_bundle_that_does_not_load_is_told_and_can_be_tried_again() {
    let (_nats, server, cluster) = replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        for file in ["full-loader.js", "full.js", "full_bg.wasm"] {
            page.devtools("Network.setBlockedURLs", json!({"urls": [format!("*/{file}*")]})).await;
            page.open_at(&server, "/", &cluster).await;
            page.expect_complaints(); // the browser itself reports what it could not fetch
            page.click("nav-decisions").await;
            let told = async |page: &Page| {
                page.text("notice-not-opened").await.ok_or_else(|| "no notice".to_owned())
            };
            let notice = page.until("it says so", told).await;
            assert!(notice.contains("Decisions could not be opened"), "{notice}");
            assert_eq!(page.eval(OVERVIEW).await, true, "what was there stays");
            assert_eq!(page.attribute("body", "data-connection").await.as_deref(), Some("live"));
            page.screenshot("full-not-loaded").await;
            page.eval("history.back()").await;
            page.until("Back takes the notice away", async |page| {
                wait::expect(page.text("notice-not-opened").await.is_none(), || "still there".to_owned())
            })
            .await;
            page.click("nav-decisions").await;
            page.until("it is told again", told).await;
            page.devtools("Network.setBlockedURLs", json!({"urls": []})).await;
            page.click("retry").await;
            is_handed_over(page, &server).await;
        }
    })
    .await;
}

#[tokio::test]
async fn in_a_narrow_window_the_panels_are_in_a_menu() {
    let (_nats, server, cluster) = replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        page.size(400, 800).await;
        page.open_at(&server, "/", &cluster).await;
        let is_open = "document.getElementById('nav').checkVisibility()";
        assert_eq!(page.eval(is_open).await, false);
        assert_eq!(page.text("menu").await.as_deref(), Some("Overview"));
        page.click("menu").await;
        page.until_true("the menu opens", is_open).await;
        page.screenshot("menu").await;
        page.click("nav-workers").await;
        page.until_true("the menu closes", &format!("!{is_open}")).await;
        assert_eq!(page.text("menu").await.as_deref(), Some("Workers"));
        assert_eq!(page.address().await.query(), Some("view=workers"));
    })
    .await;
}

/// Sends requests to a worker of the page's own and gives what it answers, until as many have ended.
async fn asked(page: &Page, requests: &[Vec<u8>]) -> Vec<Answer> {
    let script = "window.answers = [];
        const worker = new Worker(new URL('worker_loader.js', document.baseURI), {type: 'module'});
        worker.onmessage = event => {
            if (answers.length === 0) for (const bytes of requests) worker.postMessage(new Uint8Array(bytes));
            answers.push([...event.data]);
        };";
    page.eval(&format!("(requests => {{ {script} }})({})", json!(requests))).await;
    page.until("every request is answered", async |page| {
        let answers: Vec<Vec<u8>> = serde_json::from_value(page.eval("answers").await).expect("bytes");
        let answers: Vec<Answer> =
            answers.iter().map(|bytes| postcard::from_bytes(bytes).expect("an answer")).collect();
        let ended =
            answers.iter().filter(|a| matches!(a, Answer::Done { .. } | Answer::Failed { .. })).count();
        wait::expect(ended == requests.len(), || format!("{answers:?}")).map(|()| answers)
    })
    .await
}

#[tokio::test]
async fn the_worker_counts_a_digest_and_tells_its_progress() {
    let server = Radixscope::start(["demo", "--warm-up", "0"]).await;
    let mut parts = Vec::new();
    Cluster::default().snapshot(|part| parts.push(part)).expect("an empty state is encoded");
    let total = u32::try_from(parts.len()).expect("few parts");
    let encoded = |id, job| postcard::to_allocvec(&Request { id, job }).expect("encoded into memory");
    let requests = [
        encoded(1, Job::Digest { parts: parts.clone() }),
        vec![255; 4],
        encoded(2, Job::Digest { parts: vec![parts[0].clone()] }),
    ];
    with_page(async |page| {
        page.open(&server.url("/")).await;
        let answers = asked(page, &requests).await;
        let progress = (1..=total).map(|done| Answer::Progress { id: 1, done, total });
        let outcome = Outcome::Digest(Cluster::default().digest());
        let expected: Vec<Answer> =
            [Answer::Ready].into_iter().chain(progress).chain([Answer::Done { id: 1, outcome }]).collect();
        assert_eq!(answers[..expected.len()], expected);
        let failed = |id| answers.iter().any(|a| matches!(a, Answer::Failed { id: of, .. } if *of == id));
        assert!(failed(0) && failed(2), "{answers:?}");
    })
    .await;
}
