//! What exporters send, and what nobody should. Bodies of Dynamo 1.6.1 where they are genuine.

use std::io::Write as _;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{StatusCode, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower::ServiceExt as _;

use radixscope_intake::Payload;
use radixscope_model::id::Millis;

use super::*;
use crate::hub::{LoneInbox, QueueLimits};

const TRACE: &[u8] = include_bytes!("../../../../tests/fixtures/otlp/1.6.1/request-trace.pb");
const SPANS: &[u8] = include_bytes!("../../../../tests/fixtures/otlp/1.6.1/route-span.pb");
const OTHER: &[u8] = include_bytes!("../../../../tests/fixtures/otlp/1.6.1/other-log.pb");
const PROTOBUF: &str = "application/x-protobuf";
/// When the recorded request ended.
const ENDED: Millis = Millis(1_795_745_997_515);

struct Scene {
    receiver: Receiver,
    inbox: LoneInbox,
}

impl Scene {
    fn new() -> Self {
        Self::with(1_000, Millis(0))
    }

    fn with(messages: usize, since: Millis) -> Self {
        let (to, inbox) = LoneInbox::new(QueueLimits { messages, bytes: 64 * 1024 * 1024 });
        Self { receiver: Receiver::since(to, since).unwrap(), inbox }
    }

    async fn post(
        &self,
        path: &str,
        headers: &[(header::HeaderName, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::post(path).body(body.into()).unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        Answer::of(routes(self.receiver.clone()).oneshot(request).await.unwrap()).await
    }

    async fn send(&self, path: &str, body: impl Into<Body>) -> Answer {
        self.post(path, &[(header::CONTENT_TYPE, PROTOBUF)], body).await
    }

    fn detail(&self) -> String {
        self.receiver.detail(([127, 0, 0, 1], 4318).into())
    }
}

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    kind: String,
    retry_after: Option<String>,
    body: Bytes,
}

impl Answer {
    async fn of(response: Response) -> Self {
        let text = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (kind, retry_after) = (text(header::CONTENT_TYPE).unwrap_or_default(), text(header::RETRY_AFTER));
        let status = response.status();
        Self { status, kind, retry_after, body: to_bytes(response.into_body(), 1 << 20).await.unwrap() }
    }

    /// That the request was refused, for a reason with these words.
    fn is_refusal(&self, status: StatusCode, words: &str) {
        let body = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{body}");
        assert!(body.contains(words), "{body}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn traces_and_routed_requests_are_handed_over_and_everything_else_is_counted() {
    let mut scene = Scene::new();
    assert_eq!(scene.detail(), "Listening for OTLP at 127.0.0.1:4318: nothing received yet.");
    let answer = scene.send("/v1/logs", TRACE).await;
    assert_eq!((answer.status, &*answer.kind, answer.body.len()), (StatusCode::OK, PROTOBUF, 0));
    let zipped = [(header::CONTENT_TYPE, PROTOBUF), (header::CONTENT_ENCODING, "gzip")];
    assert_eq!(scene.post("/v1/traces", &zipped, gzip(SPANS)).await.status, StatusCode::OK);
    assert_eq!(scene.send("/v1/logs", OTHER).await.status, StatusCode::OK);
    assert_eq!(scene.send("/v1/metrics", OTHER).await.status, StatusCode::OK);

    let (Payload::Nats { subject, message }, _) = scene.inbox.payload().await else { panic!("a trace") };
    assert_eq!(*subject, radixscope_dynamo::subject::parse("dynamo.request_trace.v1").unwrap());
    assert!(message.starts_with(br#"{"schema":"dynamo.request.trace.v1","event_type":"request_end""#));
    let (Payload::RouteSpan(span), _) = scene.inbox.payload().await else { panic!("a span") };
    assert_eq!(span.done.request_id, "1a06484d-75fe-450f-8715-fdaba508e0fa");
    let counts = "1 request trace and 1 routed request read, ";
    let others = SPANS_NOT_READ + 2;
    assert!(
        scene.detail().ends_with(&format!("{counts}{others} other records not read.")),
        "{}",
        scene.detail()
    );
}

/// Spans of other kinds in the recorded body.
const SPANS_NOT_READ: usize = 16;

#[tokio::test]
async fn what_ended_long_before_the_start_is_left_out() {
    let scene = Scene::with(10, Millis(ENDED.0 + 1));
    scene.send("/v1/logs", TRACE).await;
    scene.send("/v1/traces", SPANS).await;
    let detail = scene.detail();
    assert!(detail.contains("0 request traces and 0 routed requests read"), "{detail}");
    assert!(detail.ends_with("; 2 that ended more than 10 min before the start left out."), "{detail}");
}

#[tokio::test]
async fn a_record_that_is_not_understood_is_refused_and_the_sender_is_told() {
    let scene = Scene::new();
    // The attribute with the JSON has another name.
    let at = TRACE.windows(9).position(|bytes| bytes == b"\x07payload\x12").unwrap();
    let mut renamed = TRACE.to_vec();
    renamed[at + 1] = b'P';
    let answer = scene.send("/v1/logs", renamed).await;
    assert_eq!(answer.status, StatusCode::OK);
    let expected = radixscope_dynamo::otlp::partial_success(1, "OTLP: payload: is missing (byte 0)");
    assert_eq!(answer.body, expected);
    let refused = "Refused: 0 requests and 1 record; the last (OTLP: payload: is missing (byte 0)).";
    assert!(scene.detail().ends_with(refused), "{}", scene.detail());
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_in_words_and_counted() {
    let scene = Scene::new();
    let kind = |kind| (header::CONTENT_TYPE, kind);
    let media = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    let large = StatusCode::PAYLOAD_TOO_LARGE;
    let bad = StatusCode::BAD_REQUEST;
    let logs = "/v1/logs";
    let json = scene.post(logs, &[kind("application/json; charset=utf-8")], "{}").await;
    json.is_refusal(media, "\"application/json\" is not read; send application/x-protobuf");
    scene.post(logs, &[], "{}").await.is_refusal(media, "the content type is missing");
    scene.post(logs, &[kind("application/grpc")], "").await.is_refusal(media, "gRPC is not served here");
    let zstd = [kind(PROTOBUF), (header::CONTENT_ENCODING, "zstd")];
    scene.post(logs, &zstd, TRACE).await.is_refusal(media, "\"zstd\" is not read; send gzip or none");
    let huge = [kind(PROTOBUF), (header::CONTENT_LENGTH, "1073741824")];
    scene.post(logs, &huge, "x").await.is_refusal(large, "at most 8388608 bytes are read");
    let endless =
        Body::from_stream(stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[0; 65_536]))));
    scene.send(logs, endless).await.is_refusal(large, "at most 8388608 bytes are read");
    let zipped = [kind(PROTOBUF), (header::CONTENT_ENCODING, "gzip")];
    let bomb = gzip(&vec![0; 64 * 1024 * 1024]);
    assert!(bomb.len() < 1024 * 1024, "{}", bomb.len());
    scene.post(logs, &zipped, bomb).await.is_refusal(large, "16777216 bytes are read once decompressed");
    scene.post(logs, &zipped, TRACE).await.is_refusal(bad, "the body is no gzip");
    let cut = scene.send(logs, &TRACE[..100]).await;
    cut.is_refusal(bad, "OTLP: expected as many bytes as the field's length says");
    // The status of Google's calls: INVALID_ARGUMENT, and the reason.
    assert_eq!((&*cut.kind, &cut.body[..2]), (PROTOBUF, &[8, 3][..]));
    scene.send("/v1/profiles", TRACE).await.is_refusal(StatusCode::NOT_FOUND, "/v1/logs, /v1/traces");
    let get = routes(scene.receiver.clone()).oneshot(Request::get(logs).body(Body::empty()).unwrap()).await;
    Answer::of(get.unwrap()).await.is_refusal(StatusCode::NOT_FOUND, "by POST");
    let detail = scene.detail();
    assert!(
        detail.contains("nothing received yet. Refused: 11 requests and 0 records; the last"),
        "{detail}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_given_up() {
    let scene = Scene::new();
    let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    scene.send("/v1/logs", never).await.is_refusal(StatusCode::REQUEST_TIMEOUT, "did not arrive within 20 s");
}

#[tokio::test(start_paused = true)]
async fn more_requests_at_a_time_than_the_limit_are_to_be_sent_again() {
    let scene = Scene::new();
    let never = || Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let (a, b, c, d, one_more) = tokio::join!(
        scene.send("/v1/logs", never()),
        scene.send("/v1/logs", never()),
        scene.send("/v1/logs", never()),
        scene.send("/v1/logs", never()),
        scene.send("/v1/logs", TRACE),
    );
    one_more.is_refusal(StatusCode::SERVICE_UNAVAILABLE, "4 requests are being read; send it again");
    assert_eq!(one_more.retry_after.as_deref(), Some("2"));
    for slow in [a, b, c, d] {
        slow.is_refusal(StatusCode::REQUEST_TIMEOUT, "did not arrive");
    }
    assert_eq!(scene.send("/v1/logs", TRACE).await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn while_the_hub_is_behind_exporters_are_asked_to_send_again() {
    let mut scene = Scene::with(2, Millis(0));
    assert_eq!(scene.send("/v1/logs", TRACE).await.status, StatusCode::OK);
    let answer = scene.send("/v1/logs", TRACE).await;
    answer.is_refusal(StatusCode::SERVICE_UNAVAILABLE, "Radixscope is behind");
    assert_eq!(answer.retry_after.as_deref(), Some("2"));
    scene.inbox.payload().await;
    assert_eq!(scene.send("/v1/logs", TRACE).await.status, StatusCode::OK);
    assert!(scene.detail().contains("2 request traces"), "{}", scene.detail());
}

#[tokio::test]
async fn a_client_of_grpc_is_told_what_to_set_and_others_are_served_beside_it() {
    let (to, mut inbox) = LoneInbox::new(QueueLimits { messages: 100, bytes: 1 << 20 });
    let (stop, shutdown) = watch::channel(false);
    let source = OtlpSource::new(([127, 0, 0, 1], 0).into());
    assert_eq!(source.name(), "otlp/127.0.0.1:0");
    let running = tokio::spawn(source.run(to, shutdown));
    let (state, detail) = inbox.state().await;
    assert_eq!(state, LinkState::Live);
    let port: u16 = detail.split("127.0.0.1:").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();

    let mut grpc = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    // The preface, and empty settings.
    grpc.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut frames = Vec::new();
    grpc.read_to_end(&mut frames).await.unwrap();
    assert_eq!(frames[..9], [0, 0, 0, 4, 0, 0, 0, 0, 0], "settings");
    let (head, text) = frames[9..].split_at(17);
    assert_eq!((head[3], &head[13..]), (7, &[0, 0, 0, 0xd][..]), "GOAWAY, HTTP_1_1_REQUIRED");
    assert!(text.starts_with(b"gRPC is not served here: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"));
    let (_, detail) = inbox.state().await;
    assert!(detail.contains("Refused: 1 request and 0 records; the last of 127.0.0.1: gRPC"), "{detail}");

    let mut plain = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let head = format!(
        "POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTOBUF}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    );
    plain.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    plain.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    stop.send(true).unwrap();
    running.await.unwrap();
}

#[tokio::test]
async fn an_address_that_is_taken_is_said_to_be() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let (to, mut inbox) = LoneInbox::new(QueueLimits { messages: 100, bytes: 1 << 20 });
    let (_stop, shutdown) = watch::channel(false);
    let running = tokio::spawn(OtlpSource::new(address).run(to, shutdown));
    let (state, detail) = inbox.state().await;
    assert_eq!(state, LinkState::Refused);
    assert!(
        detail.starts_with(&format!("Cannot listen for OTLP at {address}: Address already in use")),
        "{detail}"
    );
    running.abort();
}
