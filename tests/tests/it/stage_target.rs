//! `radixscope stage` against a frontend that answers and logs as a recorded one did: nothing is sent unconfirmed, no more than was said, and
//! what is measured stands with the decisions.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use radixscope_tests::browser::with_page;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;
use tokio::net::TcpListener;

const ANSWER: &str = include_str!("../../fixtures/chat/1.6.1/whole.sse");
/// What a frontend logs of one request, with the ids of that request.
const LOG: &str = include_str!("../../fixtures/aiperf/0.13.0/frontend.log");
const CLIENT_ID: &str = "8f0a6e03-3f30-4d8b-98bc-4262136832c8";
const ROUTED_ID: &str = "2e06a316-17e6-4b83-94e8-464b85ae270b";
const HTTP_ID: &str = "823ab71a-8d96-4b12-a3c2-53cf31431ad5";

/// A frontend, and the ids of the requests that it received.
#[derive(Clone)]
struct Frontend {
    log: Arc<Mutex<File>>,
    received: Arc<Mutex<Vec<String>>>,
}

impl Frontend {
    async fn start(folder: &Path) -> (Self, SocketAddr, PathBuf) {
        let path = folder.join("frontend.log");
        let log = OpenOptions::new().create(true).append(true).open(&path).expect("a file");
        let this = Self { log: Arc::new(Mutex::new(log)), received: Arc::default() };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let at = listener.local_addr().expect("bound");
        let routes = Router::new().route("/v1/chat/completions", post(answer)).with_state(this.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (this, at, path)
    }

    fn received(&self) -> usize {
        self.received.lock().expect("whole").len()
    }
}

async fn answer(State(frontend): State<Frontend>, request: Request) -> impl IntoResponse {
    let (head, body) = request.into_parts();
    // A server that answers before it has read everything ends the connection.
    to_bytes(body, 1 << 20).await.expect("whole");
    let id = head.headers["x-request-id"].to_str().expect("text").to_owned();
    let number = {
        let mut received = frontend.received.lock().expect("whole");
        received.push(id.clone());
        received.len()
    };
    let now = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
    let routed = format!("{}{number:012x}", &ROUTED_ID[..24]);
    let http = format!("{}{number:012x}", &HTTP_ID[..24]);
    let lines = LOG.lines().filter(|line| line.contains(CLIENT_ID)).map(|line| {
        let rest = line.split_once(' ').expect("a time first").1;
        format!("{now} {rest}\n").replace(CLIENT_ID, &id).replace(ROUTED_ID, &routed).replace(HTTP_ID, &http)
    });
    let lines: String = lines.collect();
    frontend.log.lock().expect("whole").write_all(lines.as_bytes()).expect("written");
    ([(CONTENT_TYPE, "text/event-stream")], ANSWER)
}

fn load(sources: &[Value]) -> &Value {
    sources.iter().find(|source| source["kind"] == "stage_load").expect("load is a source")
}

#[tokio::test]
async fn what_stage_measures_stands_with_the_decisions_and_no_more_is_sent_than_was_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (frontend, at, log) = Frontend::start(folder.path()).await;
    let (target, log) = (format!("http://{at}"), format!("frontend={}", log.display()));
    let given = ["stage", "--target", &target, "--model", "models/tiny-llama", "--logs", &log, "--yes"];
    let mut server =
        Radixscope::start(given.iter().chain(&["--max-requests", "40", "--concurrency", "4"])).await;
    wait::until("all are sent and joined", async || {
        let joined = server.json("/api/v1/latency").await["client_results"]["joined"].clone();
        let cluster = server.cluster().await;
        let load = load(cluster["sources"].as_array().expect("a list")).clone();
        wait::expect(joined == 40 && load["state"] == "ended", || format!("{joined} {load}"))
    })
    .await;
    assert_eq!(frontend.received(), 40);
    let cluster = server.cluster().await;
    let said = load(cluster["sources"].as_array().expect("a list"));
    assert_eq!(said["name"], format!("stage/{target}"));
    let detail = said["detail"].as_str().expect("text");
    let expected = "All requests are sent. 40 of at most 40 requests sent, 40 answered; 920 prompt tokens, 200 output tokens.";
    assert_eq!(detail, expected);

    let decisions = server.json("/api/v1/decisions?limit=100").await;
    let decisions = decisions["decisions"].as_array().expect("decisions");
    assert_eq!(decisions.len(), 40);
    for decision in decisions {
        let client = &decision["client"];
        assert!(client["ttft_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{client}");
        assert_eq!((&client["outcome"], &client["output_tokens"]), (&"success".into(), &5.into()));
    }
    let latency = server.json("/api/v1/latency").await;
    assert_eq!(latency["ttft"]["client"]["count"], 40, "{}", latency["ttft"]["client"]);
    // The announcement stands before everything else.
    assert!(
        server.process().lines()[0].starts_with("radixscope stage sends requests"),
        "{:?}",
        server.process().lines()
    );
    server.process().terminate();
    assert!(server.process_mut().ended().await.success());
    assert_eq!(frontend.received(), 40);
}

#[tokio::test]
async fn nothing_is_sent_that_is_not_confirmed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (frontend, at, _) = Frontend::start(folder.path()).await;
    let target = at.to_string();
    let output = tokio::task::spawn_blocking(move || {
        Radixscope::run(&[
            "stage",
            "--target",
            &target,
            "--model",
            "models/tiny-llama",
            "--listen",
            "127.0.0.1:0",
        ])
    });
    let output = output.await.expect("run");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{said}");
    let endpoint = format!("http://{at}/v1/chat/completions");
    for words in
        [&*endpoint, "at most 1,000 requests", "at most 10m", "prompt tokens", "nothing was sent", "--yes"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(frontend.received(), 0);
}

#[tokio::test]
async fn users_and_pause_of_a_real_endpoint_are_steered_and_nothing_of_it_is_offered_to_break() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_frontend, at, _) = Frontend::start(folder.path()).await;
    let target = format!("http://{at}");
    // Each user rests longer than the test takes.
    let given = ["stage", "--target", &target, "--model", "models/tiny-llama", "--think-time", "1h", "--yes"];
    let server = Radixscope::start(given.iter().chain(&["--concurrency", "2"])).await;
    let steer = async |change: &str| server.post("/api/v1/stage", change, &[]).await;
    let refused = steer(r#"{"break":"kill-worker"}"#).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    with_page(async |page| {
        page.open(&server.url("/?tour=9")).await;
        page.until("the tour has no step that breaks something", async |page| {
            let now = page.text("tour-number").await.unwrap_or_default();
            wait::expect(now == "5 of 5", || now.clone())
        })
        .await;
        assert_eq!((page.text("tour-act").await, page.text("stage-break").await), (None, None));
        let concurrency = steer(r#"{"concurrency":5}"#).await.json();
        assert_eq!(
            (&concurrency["driver"], &concurrency["concurrency"]["value"]),
            (&"load".into(), &5.into())
        );
        page.until_true(
            "the bar shows the users",
            "document.querySelector('[data-testid=stage-users]')?.value === '5'",
        )
        .await;
        page.click("stage-pause").await;
        page.until("the server is told", async |_| {
            let report = server.json("/api/v1/stage").await;
            wait::expect(report["paused"] == true, || report.to_string())
        })
        .await;
    })
    .await;
}
