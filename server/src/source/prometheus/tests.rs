//! A source against a real HTTP server that behaves, and misbehaves, as servers do.

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::StreamExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use radixscope_insight::check::Checks;
use radixscope_model::record::{Counter, ProcessRole, RejectReason, SourceKind, Topic};

use super::*;
use crate::hub::{Hub, HubConfig, QueueLimits, Started, View};

const WORKER: &str = "7668682361666917894";

/// How the server behaves now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// A frontend that has answered so many requests and knows so many workers.
    Frontend {
        requests: u32,
        workers: usize,
    },
    /// A frontend that answers 503 at /health.
    Unready,
    /// A frontend whose metrics list its workers.
    Lists,
    /// The same, compressed.
    Zipped,
    /// A worker: no list.
    Worker,
    /// 401 without the right token.
    Locked,
    NotFound,
    Moved,
    Slow,
    Huge,
    HugeZipped,
    BreaksOff,
    Page,
    /// Metrics of which a line is bad.
    Garbled,
    /// A frontend of 1.7, whose router has this scale.
    Policy {
        scale: u32,
    },
    /// The same with a response that is not understood.
    PolicyGarbled,
    /// The same with one that is larger than any.
    PolicyHuge,
}

/// The requested paths and the mode.
#[derive(Clone)]
struct Stub {
    mode: Arc<Mutex<Mode>>,
    requests: Arc<Mutex<Vec<String>>>,
}

fn metrics(requests: u32) -> String {
    format!(
        "dynamo_component_uptime_seconds 5\n\
         dynamo_frontend_requests_total{{model=\"m\",status=\"success\"}} {requests}\n"
    )
}

/// As 1.7.0.dev20261026 answers, of one router.
fn policy(scale: u32) -> String {
    format!(
        r#"{{"routers":[{{"router_id":"0739924f-5e0c-4d19-bf58-c8a1a1bdf6eb","model":"m","namespace":"dynamo",
        "component":"backend","endpoint":"generate","worker_type":"aggregated","configuration":{{"revision":{},
        "parameters":{{"overlap_score_credit":1.0,"overlap_score_credit_decay":0.0,"prefill_load_scale":{scale}.0,
        "decode_active_request_weight":0.0,"host_cache_hit_weight":0.75,"disk_cache_hit_weight":0.25,
        "shared_cache_multiplier":0.0,"router_temperature":0.0}}}}}}]}}"#,
        scale - 1
    )
}

fn zipped(text: &[u8]) -> Body {
    let mut zip = GzEncoder::new(Vec::new(), Compression::fast());
    zip.write_all(text).unwrap();
    Body::from(zip.finish().unwrap())
}

async fn response(State(stub): State<Stub>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    stub.requests.lock().unwrap().push(path.clone());
    let mode = *stub.mode.lock().unwrap();
    let ok = |body: Body| Response::new(body);
    let status = |status: StatusCode| {
        let mut response = Response::new(Body::from("no"));
        *response.status_mut() = status;
        response
    };
    if path == "/health" {
        return match mode {
            Mode::Frontend { workers, .. } => {
                let worker = format!(
                    "{{\"component\":\"backend\",\"endpoint\":\"generate\",\"namespace\":\"dynamo\",\"instance_id\":{WORKER}}}"
                );
                let list = vec![worker; workers].join(",");
                ok(Body::from(format!("{{\"status\":\"healthy\",\"instances\":[{list}]}}")))
            }
            Mode::Unready => status(StatusCode::SERVICE_UNAVAILABLE),
            Mode::Worker => ok(Body::from("{\"status\":\"ready\",\"endpoints\":{\"generate\":\"ready\"}}")),
            _ => status(StatusCode::NOT_FOUND),
        };
    }
    if path == "/router_policy" {
        return match mode {
            Mode::Policy { scale } => ok(Body::from(policy(scale))),
            Mode::PolicyGarbled => ok(Body::from("{\"routers\":[{\"model\":\"m\"}]}")),
            Mode::PolicyHuge => ok(Body::from(vec![b' '; 9 * 1024 * 1024])),
            _ => status(StatusCode::NOT_FOUND),
        };
    }
    match mode {
        Mode::Policy { .. } | Mode::PolicyGarbled | Mode::PolicyHuge => ok(Body::from(metrics(1))),
        Mode::Frontend { requests, .. } => ok(Body::from(metrics(requests))),
        Mode::Unready => ok(Body::from(metrics(1))),
        Mode::Lists => ok(Body::from(format!(
            "{}dynamo_frontend_router_worker_state{{router_worker_id=\"{WORKER}\",state=\"available\",reason=\"none\"}} 1\n",
            metrics(1)
        ))),
        Mode::Worker => ok(Body::from("dynamo_component_requests_total{dynamo_endpoint=\"generate\"} 1\n")),
        Mode::Zipped => {
            let mut response = ok(zipped(metrics(7).as_bytes()));
            response.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
            response
        }
        Mode::Locked => match bearer(request.headers()) {
            Some("let me in") => ok(Body::from(metrics(1))),
            _ => status(StatusCode::UNAUTHORIZED),
        },
        Mode::NotFound => status(StatusCode::NOT_FOUND),
        Mode::Moved => {
            let mut response = status(StatusCode::MOVED_PERMANENTLY);
            response.headers_mut().insert("location", "/elsewhere".parse().unwrap());
            response
        }
        Mode::Slow => std::future::pending().await,
        Mode::Huge => ok(Body::from(vec![b'#'; 9 * 1024 * 1024])),
        Mode::HugeZipped => {
            let mut response = ok(zipped(&vec![b'#'; 64 * 1024 * 1024]));
            response.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
            response
        }
        Mode::BreaksOff => {
            // What is sent before the pause reaches the client.
            let cut = async {
                tokio::task::yield_now().await;
                Err(std::io::Error::other("cut"))
            };
            let begun = futures_util::stream::once(async { Ok(Bytes::from(metrics(1))) });
            let mut response = ok(Body::from_stream(begun.chain(futures_util::stream::once(cut))));
            response.headers_mut().insert("content-length", "100000".parse().unwrap());
            response
        }
        Mode::Page => ok(Body::from("<!doctype html>\n<title>Hello</title>\n")),
        Mode::Garbled => ok(Body::from(format!("{}dynamo_frontend_output_tokens_total lots\n", metrics(3)))),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")
}

struct Scene {
    hub: Hub,
    stub: Stub,
    port: u16,
    server: Option<JoinHandle<()>>,
    _shutdown: watch::Sender<bool>,
}

impl Scene {
    async fn start(mode: Mode, token: Option<&str>) -> Self {
        let (shutdown, stopped) = watch::channel(false);
        let stub = Stub { mode: Arc::new(Mutex::new(mode)), requests: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let options = Prometheus {
            prometheus: vec![format!("fe=127.0.0.1:{port}").parse().unwrap()],
            prometheus_interval: Duration::from_millis(5),
            prometheus_timeout: Duration::from_millis(if mode == Mode::Slow { 50 } else { 20_000 }),
            prometheus_token: token.map(|token| token.to_owned().into()),
            prometheus_tls_ca: None,
        };
        let queue = QueueLimits { messages: 100, bytes: 1 << 24 };
        let config = HubConfig {
            max_nodes: 1_000,
            queue,
            log_bytes: 1 << 20,
            history: crate::hub::HistoryLimits {
                max_age: std::time::Duration::from_secs(900),
                max_bytes: 1 << 26,
            },
            tree_dumps: radixscope_intake::TreeDumps::Off,
            verify_every_ms: None,
        };
        let source = PrometheusSource::all(options).unwrap().pop().unwrap();
        let named = [(source.name().to_owned(), SourceKind::Prometheus)];
        let Started { hub, sources, .. } = Hub::start(config, Checks::default(), &named, stopped.clone());
        tokio::spawn(source.run(sources.into_iter().next().unwrap(), stopped));
        let mut scene = Self { hub, stub, port, server: None, _shutdown: shutdown };
        scene.serve(listener);
        scene
    }

    fn serve(&mut self, listener: TcpListener) {
        let router = Router::new().fallback(response).with_state(self.stub.clone());
        self.server = Some(tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }));
    }

    fn mode(&self, mode: Mode) {
        *self.stub.mode.lock().unwrap() = mode;
    }

    fn requests(&self, path: &str) -> usize {
        self.stub.requests.lock().unwrap().iter().filter(|requests| *requests == path).count()
    }

    /// Waits until the state is as expected.
    async fn until<T: Send + 'static>(
        &self,
        what: &str,
        read: impl Fn(&mut View<'_>) -> Option<T> + Clone + Send + 'static,
    ) -> T {
        let wait = async {
            loop {
                if let Some(found) = self.hub.read(read.clone()).await.unwrap() {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(Duration::from_secs(60), wait).await {
            Ok(found) => found,
            Err(_) => {
                let sources = self.hub.read(|view| format!("{:?}", view.cluster.sources())).await;
                panic!("never {what}: {sources:?}")
            }
        }
    }

    /// Waits for a state whose words hold `word`, and gives all of its words.
    async fn reaches(&self, state: LinkState, word: &'static str) -> String {
        self.until(word, move |view| {
            let source = &view.cluster.sources()[0];
            (source.state == state && source.detail.contains(word)).then(|| source.detail.clone())
        })
        .await
    }

    async fn counts(&self, counter: Counter, value: f64) {
        self.until("counted", move |view| {
            let process = view.cluster.processes().first()?;
            (process.counter_value(counter) == Some(value)).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_frontend_is_scraped_and_its_workers_are_known() {
    let scene = Scene::start(Mode::Frontend { requests: 3, workers: 1 }, None).await;
    scene.counts(Counter::RequestsOk, 3.0).await;
    scene.reaches(LinkState::Live, "and its list of workers").await;
    let (name, role) = scene
        .until("known", |view| view.cluster.processes().first().map(|known| (known.name.clone(), known.role)))
        .await;
    assert_eq!((name.as_str(), role), ("fe", ProcessRole::Frontend));
    let id =
        scene.until("a worker", |view| view.cluster.workers().iter().next().map(|worker| worker.id)).await;
    assert_eq!((id.id.0.to_string().as_str(), id.dp_rank), (WORKER, 0));
    scene.mode(Mode::Frontend { requests: 9, workers: 1 });
    scene.counts(Counter::RequestsOk, 9.0).await;
}

#[tokio::test]
async fn a_compressed_response_is_the_same_response() {
    let scene = Scene::start(Mode::Zipped, None).await;
    scene.counts(Counter::RequestsOk, 7.0).await;
}

#[tokio::test]
async fn only_a_frontend_is_queried_for_its_list_whatever_else_serves_one() {
    for (mode, requests) in [(Mode::Worker, 0), (Mode::Lists, 1), (Mode::Unready, 1)] {
        let scene = Scene::start(mode, None).await;
        scene.reaches(LinkState::Live, "Scraping").await;
        scene.until("scraped", |view| (view.cluster.sources()[0].received > 3).then_some(())).await;
        assert_eq!(scene.requests("/health"), requests, "{mode:?}: the next time is seconds away");
    }
}

#[test]
fn a_frontend_that_is_not_ready_is_queried_less_and_less() {
    let waits: Vec<u64> = (0..6).map(|unready| list_wait(unready).as_secs()).collect();
    assert_eq!(waits, [10, 20, 40, 60, 60, 60]);
}

#[tokio::test]
async fn a_token_is_requested_and_used() {
    let without = Scene::start(Mode::Locked, None).await;
    let detail = without.reaches(LinkState::Refused, "401").await;
    assert!(detail.contains("Set a token with --prometheus-token"), "{detail}");
    let wrong = Scene::start(Mode::Locked, Some("hidden!")).await;
    let detail = wrong.reaches(LinkState::Refused, "rejects the token").await;
    assert!(!detail.contains("hidden!"), "{detail}");
    let right = Scene::start(Mode::Locked, Some("let me in")).await;
    right.counts(Counter::RequestsOk, 1.0).await;
}

#[tokio::test]
async fn failures_are_described_with_what_to_do() {
    for (mode, state, detail) in [
        (Mode::NotFound, LinkState::Refused, "does not exist (404)"),
        (Mode::Moved, LinkState::Refused, "redirects to \"/elsewhere\""),
        (Mode::Slow, LinkState::Connecting, "did not respond within 0.05 s"),
        (Mode::Huge, LinkState::Refused, "larger than 8 MiB"),
        (Mode::HugeZipped, LinkState::Refused, "larger than 8 MiB"),
        (Mode::BreaksOff, LinkState::Connecting, "ended early"),
        (Mode::Page, LinkState::Refused, "does not return Prometheus metrics"),
    ] {
        let scene = Scene::start(mode, None).await;
        let sources = scene.reaches(state, detail).await;
        assert!(sources.contains("Retrying in"), "{sources}");
        assert_eq!(scene.hub.read(|view| view.cluster.sources()[0].received).await.unwrap(), 0, "{mode:?}");
    }
}

#[tokio::test]
async fn a_bad_line_is_counted_and_costs_no_other() {
    let scene = Scene::start(Mode::Garbled, None).await;
    scene.counts(Counter::RequestsOk, 3.0).await;
    let (topic, reason) = scene
        .until("counted", |view| {
            view.cluster.sources()[0].rejected.first().map(|rejected| (rejected.topic, rejected.reason))
        })
        .await;
    assert_eq!((topic, reason), (Topic::Metrics, RejectReason::Malformed));
}

#[tokio::test]
async fn a_process_that_comes_back_is_scraped_again_and_counts_as_restarted() {
    let mut scene = Scene::start(Mode::Frontend { requests: 5, workers: 1 }, None).await;
    scene.counts(Counter::RequestsOk, 5.0).await;
    // Open connections remain until the mode closes them; new ones are refused.
    scene.server.take().unwrap().abort();
    scene.mode(Mode::BreaksOff);
    scene.reaches(LinkState::Connecting, "Nothing listens at").await;
    scene.mode(Mode::Frontend { requests: 2, workers: 1 });
    let listener = TcpListener::bind(("127.0.0.1", scene.port)).await.unwrap();
    scene.serve(listener);
    scene.reaches(LinkState::Live, "Scraping").await;
    // What two runs counted is added up.
    scene.counts(Counter::RequestsOk, 7.0).await;
    let restarts = scene.hub.read(|view| view.cluster.processes()[0].restarts).await.unwrap();
    assert_eq!(restarts, 1);
    assert!(scene.hub.read(|view| view.cluster.workers()[0].departure.is_none()).await.unwrap());
}

#[test]
fn waits_grow_to_ten_seconds_and_never_below_the_interval() {
    let two = Duration::from_secs(2);
    let waits: Vec<u64> = (0..6).map(|failures| wait_after(two, failures).as_secs()).collect();
    assert_eq!(waits, [2, 4, 8, 10, 10, 10]);
    assert_eq!(wait_after(Duration::from_secs(30), 50).as_secs(), 30);
}

#[tokio::test]
async fn what_routers_run_with_is_read_from_their_frontend() {
    let scene = Scene::start(Mode::Policy { scale: 1 }, None).await;
    scene.reaches(LinkState::Live, "and its router policy").await;
    let (frontend, scale) = scene
        .until("read", |view| {
            let [known] = view.cluster.settings() else { return None };
            Some((known.of.reporter.clone(), known.latest.numbers.prefill_load_scale))
        })
        .await;
    assert_eq!((frontend.as_str(), scale), ("fe", Some(1.0)));
}

#[tokio::test]
async fn a_version_without_router_policy_is_no_error() {
    let scene = Scene::start(Mode::Frontend { requests: 3, workers: 1 }, None).await;
    scene.until("scraped", |view| (view.cluster.sources()[0].received > 3).then_some(())).await;
    scene.reaches(LinkState::Live, "Scraping").await;
    assert_eq!(scene.requests("/router_policy"), 1, "a frontend logs an error for each");
    let (rejected, settings) =
        scene.hub.read(|view| (view.cluster.rejected_total(), view.cluster.settings().len())).await.unwrap();
    assert_eq!((rejected, settings), (0, 0));
}

#[tokio::test]
async fn a_router_policy_that_is_not_understood_is_counted() {
    let scene = Scene::start(Mode::PolicyGarbled, None).await;
    let (topic, reason) = scene
        .until("counted", |view| {
            view.cluster.sources()[0].rejected.first().map(|rejected| (rejected.topic, rejected.reason))
        })
        .await;
    assert_eq!((topic, reason), (Topic::RouterPolicy, RejectReason::MissingField));
    let huge = Scene::start(Mode::PolicyHuge, None).await;
    huge.until("scraped", |view| (view.cluster.sources()[0].received > 3).then_some(())).await;
    assert!(huge.hub.read(|view| view.cluster.settings().is_empty()).await.unwrap());
}
