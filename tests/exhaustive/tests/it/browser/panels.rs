//! One page, many panels: another panel keeps state, socket and address, the browser's history leads back, and what only
//! some panels need is fetched when they do.

use radixscope_app::worker::{Job, JobOutcome, WorkerRequest, WorkerResponse};
use radixscope_panels::url::Panel;
use radixscope_state::cluster::Cluster;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::decisions::{LEDGER, is_in_the_ledger};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::replay::replayed;
use radixscope_tests::wait;
use serde_json::json;

const CAPTURE: &str = "0.9.1-healthy";
const OVERVIEW: &str = "!!document.querySelector('[data-testid=tree-panel]')";

/// Names of the programs that the page itself has fetched, without their hashes; its own parts are left out.
async fn programs(page: &Page) -> Vec<String> {
    let fetched = page
        .eval(
            "[...new Set(performance.getEntriesByType('resource').map(e => new URL(e.name).pathname.split('/').pop())
                .filter(name => name.endsWith('_bg.wasm')).map(name => name.split(/[-_]/)[0]))]",
        )
        .await;
    serde_json::from_value(fetched).expect("names")
}

#[tokio::test]
async fn a_panel_opened_by_link_keeps_state_and_socket_and_back_leads_to_the_overview() {
    let (_nats, server, cluster) = replayed(CAPTURE, &["--base-path", "/tools/radix"]).await;
    with_page(async |page| {
        page.open_at(&server, "/?kiosk=0&theme=dark", &cluster).await;
        page.click("nav-decisions").await;
        is_in_the_ledger(page, &server).await;
        page.until_true("the heading has the focus", "document.activeElement.id === 'decisions-title'").await;
        assert_eq!(page.address().await.query(), Some("view=decisions&theme=dark"));
        assert_eq!(
            page.attribute("nav [aria-current=page]", "data-testid").await.as_deref(),
            Some("nav-decisions")
        );

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
        assert_eq!(page.sockets().await.len(), 1, "whatever is shown, the socket stays");
    })
    .await;
}

#[tokio::test]
async fn a_panel_opened_by_key_goes_on_with_the_state_while_much_happens() {
    let server = Radixscope::start(["demo", "--warm-up", "30"]).await;
    with_page(async |page| {
        page.open(&server.url("/?view=rates")).await;
        page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
        let verified = async || page.text("verified").await.unwrap_or_default();
        let first = page
            .until("a comparison was made", async |_| {
                let text = verified().await;
                wait::expect(text.starts_with("verified"), || text.clone()).map(|()| text)
            })
            .await;
        page.press("v").await;
        page.until_true("the ledger is open", LEDGER).await;
        page.until("the next comparison is equal too", async |_| {
            let text = verified().await;
            wait::expect(text != first && text.starts_with("verified"), || text)
        })
        .await;
        for notice in ["notice-digest", "notice-behind", "notice-unreadable"] {
            assert_eq!(page.text(notice).await, None);
        }
        assert_eq!(page.sockets().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_worker_is_started_when_a_panel_needs_it() {
    let server = Radixscope::start(["demo", "--warm-up", "60"]).await;
    with_page(async |page| {
        let watch = "window.started = [];
            window.Worker = class extends Worker { constructor(url, how) { super(url, how); started.push(String(url)); } };";
        page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": watch})).await;
        page.open(&server.url("/")).await;
        page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
        page.until_true(
            "the chart is there",
            "document.querySelector('[data-testid=rates-chart]')?.dataset.ready === 'true'",
        )
        .await;
        assert_eq!(programs(page).await, ["page"], "neither worker nor tokenizer");
        assert_eq!(page.eval("started").await, json!([]));
        page.click("nav-counterfactual").await;
        page.until_true("the worker is started", "started.some(url => url.endsWith('worker_loader.js'))").await;
        assert_eq!(programs(page).await, ["page"], "no second program for the page");
    })
    .await;
}

/// Sends requests to a worker of the page's own and gives what it answers, until as many have ended.
async fn asked(page: &Page, requests: &[Vec<u8>]) -> Vec<WorkerResponse> {
    let script = "window.answers = [];
        const worker = new Worker(new URL('worker_loader.js', document.baseURI), {type: 'module'});
        worker.onmessage = event => {
            if (answers.length === 0) for (const bytes of requests) worker.postMessage(new Uint8Array(bytes));
            answers.push([...event.data]);
        };";
    page.eval(&format!("(requests => {{ {script} }})({})", json!(requests))).await;
    page.until("every request is answered", async |page| {
        let answers: Vec<Vec<u8>> = serde_json::from_value(page.eval("answers").await).expect("bytes");
        let answers: Vec<WorkerResponse> =
            answers.iter().map(|bytes| postcard::from_bytes(bytes).expect("a response")).collect();
        let ended = answers
            .iter()
            .filter(|a| matches!(a, WorkerResponse::Done { .. } | WorkerResponse::Failed { .. }))
            .count();
        wait::expect(ended == requests.len(), || format!("{answers:?}")).map(|()| answers)
    })
    .await
}

#[tokio::test]
async fn the_worker_counts_a_digest_and_reports_its_progress() {
    let server = Radixscope::start(["demo", "--warm-up", "0"]).await;
    let mut parts = Vec::new();
    Cluster::default().snapshot(|part| parts.push(part)).expect("an empty state is encoded");
    let total = u32::try_from(parts.len()).expect("few parts");
    let encoded = |id, job| postcard::to_allocvec(&WorkerRequest { id, job }).expect("encoded into memory");
    let requests = [
        encoded(1, Job::Digest { parts: parts.clone() }),
        vec![255; 4],
        encoded(2, Job::Digest { parts: vec![parts[0].clone()] }),
    ];
    with_page(async |page| {
        page.open(&server.url("/")).await;
        let answers = asked(page, &requests).await;
        let progress = (1..=total).map(|done| WorkerResponse::Progress { id: 1, done, total });
        let outcome = JobOutcome::Digest(Cluster::default().digest());
        let expected: Vec<WorkerResponse> = [WorkerResponse::Ready]
            .into_iter()
            .chain(progress)
            .chain([WorkerResponse::Done { id: 1, outcome }])
            .collect();
        assert_eq!(answers[..expected.len()], expected);
        let failed =
            |id| answers.iter().any(|a| matches!(a, WorkerResponse::Failed { id: of, .. } if *of == id));
        assert!(failed(0) && failed(2), "{answers:?}");
    })
    .await;
}

#[tokio::test]
async fn panels_scroll_inside_and_the_page_itself_does_not() {
    let server = Radixscope::standing("aggregated").await;
    with_page(async |page| {
        page.size(1280, 720).await;
        for panel in Panel::ALL {
            page.open(&server.url(&format!("/?view={}", panel.as_str()))).await;
            page.until_true("the panel is there", "!!document.querySelector('section.panel h2')").await;
            page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
            let beyond = "(e => e.scrollHeight - e.clientHeight)(document.documentElement)";
            assert_eq!(page.eval(beyond).await, 0, "{panel:?} is taller than the window by so many pixels");
        }
    })
    .await;
}
