//! Stores of discovery that send more than anybody can hold, over real sockets: an etcd and an API server of Kubernetes, each
//! with nothing registered until [`Endless::begin`]. And what a server pays for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State as Shared;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::{Stream, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{oneshot, watch};

use crate::http::Http;
use crate::radixscope::Radixscope;
use crate::wait;

/// Length of a page of etcd, before Base64.
const PAGE_BYTES: usize = 40_000_000;
/// Length of a value: one that is read.
const VALUE_BYTES: usize = 20_000;
/// Changes of a line of a watch.
const CHANGES: u64 = 200;
/// Objects of a page of Kubernetes.
const OBJECTS: u64 = 100;
/// Keys of the entries.
const CARDS: &str = "v1/mdc/dynamo/backend/generate/";
/// Time between two questions for health.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// What is sent without end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flood {
    /// etcd's pages, of 40 MB each.
    Pages,
    /// etcd's changes, of a kind that was not requested.
    OtherKinds,
    /// etcd's changes, of model cards.
    Cards,
    /// One page of Kubernetes.
    List,
    /// Kubernetes' pages.
    Lists,
}

/// See the module.
pub struct Endless {
    flood: Flood,
    at: SocketAddr,
    begun: watch::Sender<bool>,
    sends: Arc<Sends>,
}

struct Sends {
    flood: Flood,
    begun: watch::Receiver<bool>,
    /// Changes that were sent.
    changes: AtomicU64,
}

impl Endless {
    /// Starts it with nothing registered.
    pub async fn start(flood: Flood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        let (begun, receiver) = watch::channel(false);
        let sends = Arc::new(Sends { flood, begun: receiver, changes: AtomicU64::new(0) });
        let router = Router::new().fallback(respond).with_state(Arc::clone(&sends));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { flood, at, begun, sends }
    }

    /// What `--discovery` takes.
    pub fn url(&self) -> String {
        match self.flood {
            Flood::Pages | Flood::OtherKinds | Flood::Cards => format!("etcd://{}", self.at),
            Flood::List | Flood::Lists => format!("kubernetes:ns@http://{}", self.at),
        }
    }

    /// Waits until so many changes were sent.
    pub async fn until_sent(&self, changes: u64) {
        wait::until("so many changes are taken", async || {
            let sent = self.sends.changes.load(Ordering::Relaxed);
            wait::expect(sent >= changes, || format!("{sent} so far"))
        })
        .await;
    }

    /// From now on it sends, and all watches end.
    pub fn begin(&self) {
        self.begun.send_replace(true);
    }
}

async fn respond(Shared(sends): Shared<Arc<Sends>>, uri: Uri, body: Bytes) -> Response {
    let begun = *sends.begun.borrow();
    match uri.path() {
        "/v3/kv/range" => range(&sends, begun, &body),
        "/v3/watch" => changes(&sends, begun),
        path if path.ends_with("/dynamoworkermetadatas") || path.ends_with("/endpointslices") => {
            let query: Vec<(String, String)> =
                url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
                    .into_owned()
                    .collect();
            let of = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
            match of("watch") {
                // What it kept is no longer known, so that everything is listed anew.
                Some(_) if begun => {
                    (StatusCode::GONE, r#"{"kind":"Status","code":410,"message":"too old"}"#).into_response()
                }
                Some(_) => quiet(&sends, begun, None),
                None => objects(&sends, begun, path.ends_with("slices"), of("continue")),
            }
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Nothing more, until it begins; then the end.
fn quiet(sends: &Sends, has_begun: bool, first: Option<Value>) -> Response {
    let mut begun = sends.begun.clone();
    let first = first.map(|line| Ok::<_, std::io::Error>(format!("{line}\n")));
    let then = stream::once(async move {
        let ends = async { has_begun || begun.wait_for(|begun| *begun).await.is_err() };
        if ends.await {
            std::future::pending::<()>().await;
        }
        Err(std::io::Error::other("it begins"))
    });
    body(stream::StreamExt::chain(stream::iter(first), then))
}

fn body(of: impl Stream<Item = std::io::Result<String>> + Send + 'static) -> Response {
    Body::from_stream(of).into_response()
}

fn encoded(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

fn decoded(text: &Value) -> String {
    let bytes = BASE64_STANDARD.decode(text.as_str().unwrap_or_default()).expect("a key in Base64");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn card(n: u64) -> String {
    json!({"type": "Model", "namespace": "dynamo", "component": "backend", "endpoint": "generate", "instance_id": 1,
        "card_json": {"display_name": "m", "user_data": "x".repeat(VALUE_BYTES - 200)}, "n": n})
    .to_string()
}

fn range(sends: &Sends, begun: bool, body: &[u8]) -> Response {
    let question: Value = serde_json::from_slice(body).expect("JSON");
    let (from, to) = (decoded(&question["key"]), decoded(&question["range_end"]));
    let is_asked = begun && sends.flood == Flood::Pages && to.as_str() > CARDS && from.as_str() < "v1/mdc0";
    let head = r#"{"header":{"revision":"7"}"#;
    if question["count_only"] == true || !is_asked {
        let count = if is_asked { "1000000000" } else { "0" };
        return format!(r#"{head},"count":"{count}"}}"#).into_response();
    }
    let after = from.strip_prefix(CARDS).and_then(|key| u64::from_str_radix(key.get(..12)?, 16).ok());
    let first = after.map_or(0, |after| after + 1);
    let last = first + (PAGE_BYTES / VALUE_BYTES) as u64;
    let value = encoded(&card(0));
    let kvs = (first..last).map(move |n| {
        let (key, comma) = (encoded(&format!("{CARDS}{n:012x}")), if n == first { "" } else { "," });
        format!(r#"{comma}{{"key":"{key}","create_revision":"5","mod_revision":"5","version":"1","value":"{value}"}}"#)
    });
    let all = [format!(r#"{head},"kvs":["#)].into_iter().chain(kvs);
    let all = all.chain([r#"],"more":true,"count":"1000000000"}"#.to_owned()]);
    self::body(stream::iter(all.map(Ok)))
}

fn changes(sends: &Arc<Sends>, begun: bool) -> Response {
    let prefix = match sends.flood {
        Flood::OtherKinds => format!("v1/zz/{}/", "long/name/".repeat(40)),
        Flood::Cards => CARDS.to_owned(),
        _ => String::new(),
    };
    if !begun || prefix.is_empty() {
        return quiet(sends, begun, Some(json!({"result": {"created": true}})));
    }
    let value = encoded(
        r#"{"type":"Model","namespace":"dynamo","component":"backend","instance_id":1,"card_json":{}}"#,
    );
    let sends = Arc::clone(sends);
    let line = move |line: u64| {
        sends.changes.fetch_add(CHANGES, Ordering::Relaxed);
        let event = |n: u64| {
            let n = line * CHANGES + n;
            let key = encoded(&format!("{prefix}{n:012x}"));
            format!(
                r#"{{"kv":{{"key":"{key}","create_revision":"{n}","mod_revision":"{n}","version":"1","value":"{value}"}}}}"#
            )
        };
        let events: Vec<String> = (0..CHANGES).map(event).collect();
        Ok(format!("{{\"result\":{{\"events\":[{}]}}}}\n", events.join(",")))
    };
    body(stream::iter((1..).map(line)))
}

fn objects(sends: &Sends, begun: bool, of_slices: bool, after: Option<&str>) -> Response {
    let first = after.and_then(|after| after.parse().ok()).unwrap_or(0u64);
    let (last, next) = match (begun, sends.flood) {
        (false, _) => (0, String::new()),
        (true, Flood::List) => (u64::MAX, String::new()),
        (true, _) => (first + OBJECTS, (first + OBJECTS).to_string()),
    };
    let object = move |n: u64| {
        let comma = if n == first { "" } else { "," };
        let metadata = json!({"name": format!("w{n:012}"), "uid": "u", "resourceVersion": "7"});
        let object = if of_slices {
            let ready = |pod: u64| {
                let name = format!("w{:012}", n * OBJECTS + pod);
                json!({"conditions": {"ready": true}, "targetRef": {"kind": "Pod", "name": name, "uid": "u"}})
            };
            json!({"metadata": metadata, "endpoints": (0..OBJECTS).map(ready).collect::<Vec<_>>()})
        } else {
            let value: Value = serde_json::from_str(&card(n)).expect("JSON");
            let cards = json!({format!("dynamo/backend/generate/{n:012x}"): value});
            json!({"metadata": metadata, "spec": {"data": {"model_cards": cards}}})
        };
        Ok(format!("{comma}{object}"))
    };
    let around = json!({"resourceVersion": "7", "continue": next});
    let head = format!(r#"{{"kind":"List","metadata":{around},"items":["#);
    let items = (first..last).map(object);
    body(stream::iter([Ok(head)].into_iter().chain(items).chain([Ok("]}".to_owned())])))
}

/// What a server paid.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Most memory beyond what it had before, in MB.
    pub grown_mb: f64,
    /// Slowest answer of `/healthz`.
    pub slowest_health: Duration,
    /// The same of a server to which nothing happens: what the machine itself costs meanwhile.
    pub slowest_idle: Duration,
}

/// Measures a server while something happens to it.
pub async fn cost<T>(server: &Radixscope, happens: impl Future<Output = T>) -> (T, Cost) {
    let idle = Radixscope::start(["serve", "--otlp", "127.0.0.1:0"]).await;
    let before = server.process().rss_bytes();
    let (until, ended) = oneshot::channel();
    let urls = [server, &idle].map(|of| of.url("/healthz"));
    // On a thread and a runtime of its own: this one is busy with what happens.
    let asking = tokio::task::spawn_blocking(|| {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(slowest_health(urls, ended))
    });
    let happened = happens.await;
    // It may have ended because there was no answer.
    let _ = until.send(());
    let [slowest_health, slowest_idle] = asking.await.expect("it answers");
    // The most that was ever in use: what happened may be over.
    let grown_mb = server.process().peak_rss_bytes().saturating_sub(before) as f64 / 1e6;
    (happened, Cost { grown_mb, slowest_health, slowest_idle })
}

/// Asks both again and again; their slowest answers.
async fn slowest_health(urls: [String; 2], mut ended: oneshot::Receiver<()>) -> [Duration; 2] {
    let http = Http::default();
    let mut slowest = [Duration::ZERO; 2];
    while let Err(TryRecvError::Empty) = ended.try_recv() {
        for (url, slowest) in urls.iter().zip(&mut slowest) {
            let since = Instant::now();
            let health = wait::within("it answers", http.get(url)).await;
            assert_eq!(health.expect("a response").status, 200);
            *slowest = since.elapsed().max(*slowest);
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
    slowest
}
