//! Request traces and spans as real Dynamo's exporter sends them, and what nobody should send.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::Method;
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs};
use prost::Message as _;
use radixscope_tests::http::{Http, HttpResponse};
use radixscope_tests::paths;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{raw, wait};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");
/// When the recorded requests were received, routed and ended: Unix time in milliseconds, nanoseconds, and both.
const RECORDED: [Recorded; 2] = [
    Recorded {
        version: "1.6.1",
        request: "1a06484d-75fe-450f-8715-fdaba508e0fa",
        trace: "ffebd37af653197ab67f40ca44fdc9fb",
        worker: "7668682501501432326",
        received_ms: 1_795_745_996_989,
        ended_ms: 1_795_745_997_515,
        span_ns: [1_795_745_996_995_829_486, 1_795_745_997_515_839_053, 1_795_745_997_515_866_845],
    },
    Recorded {
        version: "1.7.0.dev20261026",
        request: "42324763-69f6-401e-a595-e8e6c7c49342",
        trace: "5bf3074e0da2e655ea96af2fa3e9971b",
        worker: "7668682501501431816",
        received_ms: 1_795_745_997_439,
        ended_ms: 1_795_745_997_963,
        span_ns: [1_795_745_997_444_646_830, 1_795_745_997_963_456_910, 1_795_745_997_963_481_857],
    },
];

struct Recorded {
    version: &'static str,
    request: &'static str,
    trace: &'static str,
    worker: &'static str,
    received_ms: u64,
    ended_ms: u64,
    /// Start of the span, the event that ends the request, end of the span.
    span_ns: [u64; 3],
}

impl Recorded {
    /// A body as if its request had ended at `now_ms`.
    fn body(&self, name: &str, now_ms: u64) -> Vec<u8> {
        let folder = paths::fixture("otlp").join(self.version);
        let mut body = std::fs::read(folder.join(name)).expect("the fixture");
        let later_ms = now_ms - self.ended_ms;
        for ms in [self.received_ms, self.ended_ms] {
            // Unix time has thirteen digits until 2286.
            replace(&mut body, ms.to_string().as_bytes(), (ms + later_ms).to_string().as_bytes());
        }
        for ns in self.span_ns {
            replace(&mut body, &ns.to_le_bytes(), &(ns + later_ms * 1_000_000).to_le_bytes());
        }
        body
    }
}

fn replace(body: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> =
        (0..=body.len() - from.len()).filter(|&at| body[at..].starts_with(from)).collect();
    for at in places {
        body[at..at + to.len()].copy_from_slice(to);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("written");
    encoder.finish().expect("finished")
}

fn now_ms() -> u64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since_1970.expect("after 1970").as_millis() as u64
}

fn source(cluster: &Value) -> Value {
    let sources = cluster["sources"].as_array().expect("sources");
    sources.iter().find(|of| of["kind"] == "otlp").expect("a source").clone()
}

/// Waits until the state of the source has these words.
async fn until(server: &Radixscope, words: &str) -> Value {
    let look = |cluster: &Value| {
        let source = source(cluster);
        let has = source["detail"].as_str().is_some_and(|detail| detail.contains(words));
        wait::expect(has && source["state"] == "live", || source.to_string())
    };
    source(&server.until_cluster(words, look).await)
}

struct Scene {
    server: Radixscope,
    port: u16,
}

impl Scene {
    async fn new(more: &[&str]) -> Self {
        let args = [&["serve", "--otlp", "127.0.0.1:0"], more].concat();
        let server = Radixscope::start(args).await;
        let source = until(&server, "nothing received yet").await;
        assert_eq!(source["name"], "otlp/127.0.0.1:0");
        let detail = source["detail"].as_str().expect("text");
        let port = detail.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(':').next());
        let port = port.and_then(|port| port.parse().ok()).expect("a port");
        Self { server, port }
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> HttpResponse {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        Http::default().send(Method::POST, &url, headers, body).await.expect("a response")
    }
}

#[tokio::test]
async fn what_dynamo_exports_makes_decisions_with_their_traces_and_counts_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.jsonl");
    std::fs::write(&file, b"").expect("written");
    let template = "http://traces.example/{trace_id}";
    let args = ["--request-trace", file.to_str().expect("a plain path"), "--trace-url", template];
    let scene = Scene::new(&args).await;
    let now = now_ms();
    for recorded in &RECORDED {
        // Twice: exporters send again what they had no response to.
        for _ in 0..2 {
            let trace = recorded.body("request-trace.pb", now);
            let response =
                scene.post("/v1/logs", &[PROTOBUF, ("content-encoding", "gzip")], gzip(&trace)).await;
            assert_eq!((response.status, response.body.len()), (200, 0));
            let spans = recorded.body("route-span.pb", now);
            assert_eq!(scene.post("/v1/traces", &[PROTOBUF], spans).await.status, 200);
            assert_eq!(
                scene.post("/v1/logs", &[PROTOBUF], recorded.body("other-log.pb", now)).await.status,
                200
            );
        }
        // And once more in a file, as with DYN_REQUEST_TRACE_SINKS=file,otel.
        let trace = String::from_utf8_lossy(&recorded.body("request-trace.pb", now)).into_owned();
        let (from, to) = (trace.find("{\"schema\"").expect("JSON"), trace.rfind('}').expect("JSON"));
        let line = format!("{{\"timestamp\":1,\"event\":{}}}\n", &trace[from..=to]);
        let mut file = std::fs::OpenOptions::new().append(true).open(&file).expect("there");
        file.write_all(line.as_bytes()).expect("written");
    }
    let source = until(&scene.server, "4 request traces and 4 routed requests read, ").await;
    assert_eq!(source["received"], 8, "{source}");
    let look = |cluster: &Value| {
        let sources = cluster["sources"].as_array().expect("sources");
        let file = sources.iter().find(|of| of["kind"] == "request_traces").expect("a source");
        wait::expect(file["received"] == 2 && file["rejected"] == serde_json::json!([]), || file.to_string())
    };
    scene.server.until_cluster("both requests in the file", look).await;

    let decisions = scene.server.json("/api/v1/decisions?limit=100").await;
    let decisions = decisions["decisions"].as_array().expect("decisions").clone();
    assert_eq!(decisions.len(), RECORDED.len());
    for recorded in &RECORDED {
        let of = decisions.iter().find(|of| of["request_id"] == recorded.request).expect("a decision");
        assert_eq!(of["trace_id"], recorded.trace);
        assert_eq!(of["trace_url"], format!("http://traces.example/{}", recorded.trace));
        assert!(of.to_string().contains(recorded.worker), "{of}");
        assert_eq!((&of["isl_tokens"], &of["progress"]["output_tokens"]), (&3795.into(), &34.into()));
        assert_eq!(of["progress"]["cached_tokens"], 0);
    }
}

#[tokio::test]
async fn what_nobody_should_send_is_refused_in_words_and_harms_nothing() {
    let scene = Scene::new(&[]).await;
    let bomb = gzip(&vec![0; 256 * 1024 * 1024]);
    let garbage = b"\x0a\xff\xff\xff\xff\x0fgarbage".to_vec();
    let zipped = [PROTOBUF, ("content-encoding", "gzip")];
    for (headers, body, status, words) in [
        (&[PROTOBUF][..], garbage, 400, "as many bytes as the field's length says"),
        (&zipped, bomb, 413, "once decompressed"),
        (&zipped, b"no gzip".to_vec(), 400, "no gzip"),
        (
            &[("content-type", "application/json")],
            b"{}".to_vec(),
            415,
            "is not read; send application/x-protobuf",
        ),
        (&[PROTOBUF], vec![0; 9 * 1024 * 1024], 413, "at most 8388608 bytes"),
    ] {
        let response = scene.post("/v1/logs", headers, body).await;
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert!(response.status == status && text.contains(words), "{}: {text}", response.status);
        until(&scene.server, words).await;
    }
    let huge = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 1073741824\r\n\r\n";
    let response = raw::ask(scene.port, huge).await;
    assert!(response.status == 413 && response.text.contains("too large"), "{response:?}");
    let response = raw::ask(scene.port, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(response.text.contains("OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"), "{response:?}");
    until(&scene.server, "Refused: 7 requests and 0 records; the last of 127.0.0.1: gRPC is not served here")
        .await;

    // Bodies that do not come hold all places; the next sender is asked to send again, and is served once they are free.
    let slow = huge.replace("1073741824", "1000");
    let mut held = Vec::new();
    wait::until("a request is asked for once more", async || {
        // One more each time: one that comes while this test's own request is read is refused, and holds no place.
        let mut socket = raw::connect(scene.port).await;
        socket.write_all(slow.as_bytes()).await.expect("sent");
        held.push(socket);
        let response = scene.post("/v1/logs", &[PROTOBUF], Vec::new()).await;
        wait::expect(response.status == 503 && response.header("retry-after") == "2", || {
            response.status.to_string()
        })
    })
    .await;
    drop(held);
    wait::until("places are free again", async || {
        let response = scene.post("/v1/logs", &[PROTOBUF], Vec::new()).await;
        wait::expect(response.status == 200, || response.status.to_string())
    })
    .await;
    let cluster = scene.server.cluster().await;
    assert_eq!(source(&cluster)["received"], 0);
    let (now, recorded) = (now_ms(), &RECORDED[0]);
    assert_eq!(scene.post("/v1/logs", &[PROTOBUF], recorded.body("request-trace.pb", now)).await.status, 200);
    until(&scene.server, "1 request trace and 0 routed requests read").await;
}

/// What a collector received, with the token of each request.
type Received = Arc<Mutex<Vec<(Option<String>, ExportLogsServiceRequest)>>>;

/// What it answers, one after the other.
type Answers = Arc<Mutex<VecDeque<(u16, Vec<u8>)>>>;

/// A collector that answers so the first times, then accepts everything.
async fn collector(answers: &[(u16, Vec<u8>)]) -> (SocketAddr, Received) {
    let received = Received::default();
    let answers = Answers::new(Mutex::new(answers.to_vec().into()));
    let state = (answers, Arc::clone(&received));
    let take = async |State(state): State<(Answers, Received)>, headers: HeaderMap, body: Bytes| {
        assert_eq!(headers["content-type"], "application/x-protobuf");
        let token = headers.get("authorization").map(|value| value.to_str().expect("text").to_owned());
        let request = ExportLogsServiceRequest::decode(body).expect("log records");
        state.1.lock().expect("no panic").push((token, request));
        let (status, body) = state.0.lock().expect("no panic").pop_front().unwrap_or((200, Vec::new()));
        (StatusCode::from_u16(status).expect("a status"), body)
    };
    let app = axum::Router::new().route("/v1/logs", axum::routing::post(take)).with_state(state);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(axum::serve(listener, app).into_future());
    (address, received)
}

fn records(request: &ExportLogsServiceRequest) -> Vec<LogRecord> {
    let of_resource =
        |of: &ResourceLogs| of.scope_logs.iter().flat_map(|of| of.log_records.clone()).collect::<Vec<_>>();
    request.resource_logs.iter().flat_map(of_resource).collect()
}

fn attribute(record: &LogRecord, name: &str) -> Option<AnyValue> {
    record.attributes.iter().find(|of| of.key == name).and_then(|of| of.value.clone()?.value)
}

/// Waits until the state of the export has these words.
async fn until_export(server: &Radixscope, state: &str, words: &str) {
    let look = |cluster: &Value| {
        let sources = cluster["sources"].as_array().expect("sources");
        let export = sources.iter().find(|of| of["kind"] == "otlp_export").expect("an export");
        let has = export["detail"].as_str().is_some_and(|detail| detail.contains(words));
        wait::expect(has && export["state"] == state, || export.to_string())
    };
    server.until_cluster(words, look).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_are_sent_to_a_collector_once_each_and_again_when_it_was_away() {
    let (address, received) = collector(&[(503, Vec::new())]).await;
    let to = format!("http://{address}");
    let headers = ["--otlp-export-headers", "authorization=Bearer of-the-collector"];
    let scene = Scene::new(&[&["--otlp-export", &to][..], &headers].concat()).await;
    let now = now_ms();
    for recorded in &RECORDED {
        let trace = recorded.body("request-trace.pb", now);
        assert_eq!(scene.post("/v1/logs", &[PROTOBUF], trace).await.status, 200);
        assert_eq!(
            scene.post("/v1/traces", &[PROTOBUF], recorded.body("route-span.pb", now)).await.status,
            200
        );
    }
    until_export(&scene.server, "live", "Decisions sent: 2.").await;
    let received = received.lock().expect("no panic").clone();
    assert!(received.iter().all(|(token, _)| token.as_deref() == Some("Bearer of-the-collector")));
    // The first request was not accepted, so its records came again; nothing else came twice.
    let accepted: Vec<LogRecord> = received[1..].iter().flat_map(|(_, request)| records(request)).collect();
    assert_eq!(accepted.len(), RECORDED.len(), "{accepted:?}");
    assert!(records(&received[0].1).iter().all(|record| accepted.contains(record)));
    for recorded in &RECORDED {
        let has_id = |record: &&LogRecord| {
            attribute(record, "radixscope.request_id")
                == Some(AnyValue::StringValue(recorded.request.to_owned()))
        };
        let record = accepted.iter().find(has_id).expect("a record");
        let trace: String = record.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((trace.as_str(), record.event_name.as_str()), (recorded.trace, "radixscope.decision"));
        assert_eq!(attribute(record, "radixscope.isl_tokens"), Some(AnyValue::IntValue(3_795)));
        let worker = recorded.worker.parse().expect("an id");
        assert_eq!(attribute(record, "radixscope.worker_id"), Some(AnyValue::IntValue(worker)));
        assert_eq!(attribute(record, "radixscope.client_ttft_ms"), None, "unknown is left out");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_collector_refuses_is_counted_and_not_sent_again() {
    let partial = ExportLogsServiceResponse {
        partial_success: Some(ExportLogsPartialSuccess {
            rejected_log_records: 1,
            error_message: "full".to_owned(),
        }),
    };
    let (address, received) =
        collector(&[(401, Vec::new()), (200, partial.encode_to_vec()), (400, Vec::new())]).await;
    let scene = Scene::new(&["--otlp-export", &format!("{address}/v1/logs")]).await;
    let post = async |recorded: &Recorded| {
        let trace = recorded.body("request-trace.pb", now_ms());
        assert_eq!(scene.post("/v1/logs", &[PROTOBUF], trace).await.status, 200);
    };
    post(&RECORDED[0]).await;
    until_export(&scene.server, "refused", "401 Unauthorized: set --otlp-export-headers").await;
    until_export(&scene.server, "live", "Decisions sent: 0. Refused by the collector: 1.").await;
    post(&RECORDED[1]).await;
    until_export(&scene.server, "live", "Decisions sent: 0. Refused by the collector: 2.").await;
    assert_eq!(received.lock().expect("no panic").len(), 3);
}
