//! The source against workers that do what real ones do, and what they should not.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::callback::{ExpectedConnection, Origin};
use super::*;
use crate::hub::{LoneInbox, QueueLimits};
use fake_worker::{Acknowledge, Call, FakeWorker, Script, last_item, part, prologue, whole, whole_json};
use radixscope_dynamo::request_plane::{Codec, QueryEndpoint, RequestTransport};
use radixscope_intake::command::NamedBy;
use radixscope_model::record::LinkState;

#[path = "../../../../tests/src/fake_worker.rs"]
#[allow(dead_code, unreachable_pub, reason = "the end-to-end tests use the rest")]
mod fake_worker;

const ASKED: Worker = Worker::new(7, 0);
const ENDPOINT: &str = "worker_kv_query_source_1f";
/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

fn client_with(callback: Option<CallbackAddress>) -> QueryClient {
    let gate = Gate::of_this_machine();
    QueryClient::new(Callback::new(callback, Arc::clone(&gate)), None, gate)
}

fn client() -> QueryClient {
    client_with(None)
}

fn query(port: u16, codec: Codec) -> TreeQuery {
    let transport = RequestTransport::Tcp {
        address: format!("127.0.0.1:{port}"),
        path: format!("7/dynamo/backend/{ENDPOINT}"),
    };
    let endpoint = QueryEndpoint {
        worker: ASKED,
        is_rank_known: true,
        namespace: "dynamo".to_owned(),
        component: "backend".to_owned(),
        endpoint: ENDPOINT.to_owned(),
        transport,
        codec,
        publisher_id: None,
    };
    let named_by = NamedBy::Entry { key: "v1/instances/dynamo/backend/q/7".into(), lease: None };
    TreeQuery { id: 1, endpoint, named_by, publishes_at: Vec::new(), start_event_id: None }
}

/// A tree of so many blocks, in JSON.
fn tree(blocks: u64) -> Value {
    let run: Vec<Value> = (1..=blocks).map(|hash| json!({"block_hash": hash, "tokens_hash": hash})).collect();
    let stored = json!({"stored": {"parent_hash": null, "blocks": run}});
    let event = json!({"worker_id": ASKED.id.0, "event": {"event_id": 0, "dp_rank": 0, "data": stored}});
    json!({"TreeDump": {"events": [event], "last_event_id": 40, "reset_scope": "all"}})
}

fn blocks(response: &TreeResponse) -> usize {
    match response {
        TreeResponse::TreeDump { events, last_event_id: Some(40) } => events.blocks.len(),
        other => panic!("{other:?}"),
    }
}

async fn query_worker(client: &QueryClient, worker: &FakeWorker) -> Result<TreeResponse, QueryFailed> {
    timeout(LONG, client.query(&query(worker.port(), Codec::Json))).await.expect("it ends").0
}

async fn failure(script: Script) -> QueryFailed {
    let worker = FakeWorker::start(move |_| script.clone()).await;
    query_worker(&client(), &worker).await.expect_err("no response")
}

#[derive(serde::Deserialize)]
struct Exchange {
    worker_id: u64,
    codec: String,
    path: Option<String>,
    start: Option<u64>,
    frames: Vec<Frame>,
}

#[derive(serde::Deserialize)]
struct Frame {
    what: String,
    p: String,
}

#[tokio::test]
async fn recorded_responses_come_over_real_sockets_byte_for_byte() {
    let recorded = include_str!("../../../../core/dynamo/tests/fixtures/tree_queries.jsonl");
    let mut queries = 0;
    for line in recorded.lines() {
        let exchange: Exchange = serde_json::from_str(line).unwrap();
        let Some(path) = exchange.path else { continue };
        let wanted = ["prologue", "data", "control"];
        let frames = exchange.frames.iter().filter(|frame| wanted.contains(&frame.what.as_str()));
        let response: Vec<u8> = frames.flat_map(|frame| BASE64_STANDARD.decode(&frame.p).unwrap()).collect();
        let size = response.len();
        let worker = FakeWorker::start(move |_| Script::response(response.clone())).await;
        let codec = if exchange.codec == "json" { Codec::Json } else { Codec::MsgPack };
        let mut query = query(worker.port(), codec);
        query.endpoint.worker = Worker::new(exchange.worker_id, 0);
        query.endpoint.endpoint = path.rsplit('/').next().unwrap().to_owned();
        query.start_event_id = exchange.start;
        query.endpoint.transport =
            RequestTransport::Tcp { address: format!("127.0.0.1:{}", worker.port()), path: path.clone() };
        let (response, size_bytes) = client().query(&query).await;
        match response.unwrap() {
            TreeResponse::TooNew { newest_available } => assert!(newest_available > 1_000),
            TreeResponse::Events { events, last_event_id } => {
                let ids: Vec<u64> = events.events.iter().map(|event| event.event_id).collect();
                assert_eq!(ids.first(), exchange.start.as_ref(), "{path}");
                assert!(last_event_id.is_none_or(|last| ids.last() == Some(&last)), "{path}");
            }
            other => panic!("{path}: {other:?}"),
        }
        assert!(size_bytes <= size && size_bytes > size - 30, "{size_bytes} of {size}");
        let calls = worker.calls();
        assert_eq!((calls.len(), &calls[0].path), (1, &path));
        assert_eq!(calls[0].is_msgpack(), codec == Codec::MsgPack);
        queries += 1;
    }
    assert_eq!(queries, 4);
}

#[tokio::test]
async fn a_response_may_come_before_the_acknowledgement_or_without_one() {
    for acknowledge in [Acknowledge::Accept, Acknowledge::Late, Acknowledge::Never] {
        let script = Script::response(whole_json(&tree(3))).acknowledged(acknowledge);
        let worker = FakeWorker::start(move |_| script.clone()).await;
        assert_eq!(blocks(&query_worker(&client(), &worker).await.unwrap()), 3);
    }
}

#[tokio::test]
async fn a_query_names_the_worker_the_start_and_where_to_call() {
    let worker =
        FakeWorker::start(|_| Script::response(whole_json(&json!({"TooNew": {"newest_available": 4}}))))
            .await;
    let mut query = query(worker.port(), Codec::Json);
    (query.start_event_id, query.endpoint.worker) = (Some(u64::MAX), Worker::new(u64::MAX - 1, 3));
    query.endpoint.transport = RequestTransport::Tcp {
        address: format!("127.0.0.1:{}", worker.port()),
        path: format!("fffffffffffffffe/{ENDPOINT}"),
    };
    assert_eq!(client().query(&query).await.0.unwrap(), TreeResponse::TooNew { newest_available: 4 });
    let call = worker.calls().remove(0);
    let queries = call.query();
    assert_eq!(queries["start_event_id"], u64::MAX);
    assert_eq!((&queries["worker_id"], &queries["dp_rank"]), (&json!(u64::MAX - 1), &json!(3)));
    assert!(call.callback().starts_with("127.0.0.1:"));
    assert_eq!(call.subject().len(), 32);
}

#[tokio::test]
async fn a_worker_that_does_not_understand_the_codec_is_queried_in_the_other() {
    let worker = FakeWorker::start(|call: &Call| match call.is_msgpack() {
        true => Script::silence(),
        false => Script::response(whole_json(&tree(2))),
    })
    .await;
    let response = client().query(&query(worker.port(), Codec::MsgPack)).await.0;
    assert_eq!(blocks(&response.unwrap()), 2);
    let codecs: Vec<bool> = worker.calls().iter().map(Call::is_msgpack).collect();
    assert_eq!(codecs, [true, false]);
}

#[tokio::test]
async fn silence_after_the_acknowledgement_is_named_within_five_seconds_with_what_to_open() {
    let started = Instant::now();
    let worker = FakeWorker::start(|_| Script::silence()).await;
    let failed = query_worker(&client(), &worker).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(failed.why, QueryFault::NoCallback);
    let calls = worker.calls();
    assert_eq!(calls.len(), 2, "once in either codec");
    let (host, port) = calls[1].callback().rsplit_once(':').unwrap();
    for expected_text in [format!("open port {port} from the workers to {host}"), "--callback".to_owned()] {
        assert!(failed.detail.contains(&expected_text), "{}", failed.detail);
    }
    assert!(!failed.detail.contains("from this process either"), "we reach ourselves: {}", failed.detail);
}

#[tokio::test]
async fn a_callback_that_nobody_reaches_is_reported_to_workers_and_as_text() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let address: CallbackAddress = format!("192.0.2.1:{port}").parse().unwrap();
    let client = client_with(Some(address));
    let worker = FakeWorker::start(|_| Script::silence()).await;
    let failed = query_worker(&client, &worker).await.unwrap_err();
    assert_eq!(worker.calls()[0].callback(), format!("192.0.2.1:{port}"));
    assert!(
        failed.detail.contains(&format!("open port {port} from the workers to 192.0.2.1")),
        "{}",
        failed.detail
    );
    assert!(failed.detail.contains("from this process either"), "{}", failed.detail);
}

#[tokio::test]
async fn a_named_callback_is_listened_on_and_answered_on() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let client = client_with(Some(format!("localhost:{port}").parse().unwrap()));
    client.callback.prepare().await.unwrap();
    let worker = FakeWorker::start(|_| Script::response(whole_json(&tree(2)))).await;
    for _ in 0..2 {
        assert_eq!(blocks(&query_worker(&client, &worker).await.unwrap()), 2);
    }
}

#[tokio::test]
async fn a_port_that_others_have_is_named() {
    let taken = TcpListener::bind("[::]:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let client = client_with(Some(format!("localhost:{port}").parse().unwrap()));
    assert!(client.callback.prepare().await.is_err());
    let worker = FakeWorker::start(|_| Script::silence()).await;
    let failed = query_worker(&client, &worker).await.unwrap_err();
    assert_eq!(failed.why, QueryFault::NoCallback);
    assert!(failed.detail.contains("--callback"), "{}", failed.detail);
    assert!(worker.calls().is_empty());
}

#[tokio::test]
async fn refusals_are_reported_in_the_workers_words() {
    let failed = failure(Script::refusal("Server unavailable: unknown endpoint x")).await;
    assert_eq!(failed.why, QueryFault::Refused);
    assert!(failed.detail.contains("Server unavailable: unknown endpoint x"), "{}", failed.detail);
    let huge = Script::refusal(&"no ".repeat(1 << 20));
    assert!(failure(huge).await.detail.len() < 600);
}

#[tokio::test]
async fn a_handler_that_fails_before_its_first_item_is_reported() {
    let failed = failure(Script::response(prologue(Some("no indexer")))).await;
    assert_eq!((failed.why, failed.detail.contains("no indexer")), (QueryFault::Refused, true));
    let quic = "response plane mismatch: frontend requested tcp, worker configured quic";
    let failed = failure(Script::response(prologue(Some(quic)))).await;
    assert_eq!((failed.why, failed.detail.contains("QUIC")), (QueryFault::Unsupported, true));
}

#[tokio::test]
async fn tls_is_detected_by_its_first_bytes() {
    let alert = Acknowledge::With(vec![0x15, 3, 3, 0, 2, 2, 40]);
    let failed = failure(Script::silence().acknowledged(alert)).await;
    assert_eq!((failed.why, failed.detail.contains("TLS")), (QueryFault::Unsupported, true));
}

#[tokio::test]
async fn a_response_that_ends_early_is_no_response() {
    let item = part(b"", json!({"data": tree(9), "complete_final": false}).to_string().as_bytes());
    let cut = item.len() - 5;
    for early in [
        prologue(None),
        [prologue(None), item.clone()].concat(),
        [prologue(None), item[..cut].to_vec()].concat(),
        [prologue(None), item[..20].to_vec()].concat(),
    ] {
        assert_eq!(failure(Script::response(early).closing()).await.why, QueryFault::Truncated);
    }
    let without_last = [prologue(None), item, part(br#""sentinel""#, b"")].concat();
    assert_eq!(failure(Script::response(without_last)).await.why, QueryFault::Truncated);
}

#[tokio::test]
async fn an_invalid_response_is_malformed() {
    let item = part(b"", json!({"data": tree(9), "complete_final": false}).to_string().as_bytes());
    let claimed = |header: u64, data: u64| {
        [prologue(None), [header.to_be_bytes(), data.to_be_bytes(), [0; 8]].concat()].concat()
    };
    let foreign =
        json!({"worker_id": 8, "event": {"event_id": 0, "data": {"removed": {"block_hashes": [1]}}}});
    for (bytes, expected_text) in [
        (claimed(0, (512 << 20) + 1), "too large"),
        (claimed(0, u64::MAX), "too large"),
        (claimed(1 << 20, 0), "too large"),
        (claimed(5, 5), "cannot be decoded"),
        ([prologue(None), item.clone(), item.clone()].concat(), "two responses"),
        ([item.clone(), last_item(false)].concat(), "no prologue"),
        ([prologue(None), last_item(false)].concat(), "empty"),
        (std::iter::repeat_n(prologue(None), 100).flatten().collect(), "parts"),
        (whole(b"{\"data\":", false), "cannot be decoded"),
        (whole_json(&json!({"TreeDump": [foreign]})), "worker 8 rank 0; worker 7 rank 0 was asked"),
        (whole_json(&json!({"Status": {}})), "kind that is not known"),
    ] {
        let failed = failure(Script::response(bytes)).await;
        assert_eq!(failed.why, QueryFault::Malformed, "{expected_text}");
        assert!(failed.detail.contains(expected_text), "{expected_text}: {}", failed.detail);
    }
}

/// Most address space that this process ever had, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmPeak:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_024
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn room_is_made_for_what_comes_and_not_for_what_is_claimed() {
    let claim =
        [prologue(None), [[0; 8], (512_u64 << 20).to_be_bytes(), [0; 8]].concat(), vec![b' '; 64]].concat();
    let worker = FakeWorker::start(move |_| Script::response(claim.clone()).closing()).await;
    let (client, query) = (client(), query(worker.port(), Codec::Json));
    let before = peak_mib();
    let all = (0..MAX_AT_ONCE).map(|_| client.query(&query));
    for (outcome, size_bytes) in futures_util::future::join_all(all).await {
        assert_eq!(outcome.unwrap_err().why, QueryFault::Truncated);
        assert!(size_bytes < 200);
    }
    assert!(peak_mib() - before < 8 * 512, "{} MiB more", peak_mib() - before);
}

#[tokio::test]
async fn a_rank_that_is_not_the_workers_own_comes_back_as_a_response() {
    let detail = "WorkerKvQueryEngine::generate dp_rank mismatch: request.dp_rank=0 this.dp_rank=1";
    let worker = FakeWorker::start(move |_| Script::response(whole_json(&json!({"Error": detail})))).await;
    let response = query_worker(&client(), &worker).await.unwrap();
    assert_eq!(response, TreeResponse::Error { message: detail.to_owned(), rank: Some(1) });
}

#[tokio::test]
async fn workers_that_are_not_there_or_hang_are_unreachable() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let failed = client().query(&query(port, Codec::Json)).await.0.unwrap_err();
    assert_eq!(failed.why, QueryFault::Unreachable);
    assert!(failed.detail.contains(&format!("127.0.0.1:{port}")), "{}", failed.detail);
    // Connections to a process that was stopped are still made.
    let failed = failure(Script::silence().acknowledged(Acknowledge::Never)).await;
    assert_eq!(failed.why, QueryFault::Unreachable);
    assert!(failed.detail.contains("hangs"), "{}", failed.detail);
}

/// Connections to where a response is expected: as many as one address may have, saying what is given.
async fn open_connections(callback: &str, bytes: &[u8]) -> Vec<TcpStream> {
    let mut open_connections = Vec::new();
    for _ in 0..16 {
        let mut stream = TcpStream::connect(callback).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        open_connections.push(stream);
    }
    open_connections
}

#[tokio::test]
async fn strangers_are_closed_and_the_worker_is_let_in() {
    let subject = |subject: &str| {
        part(json!({"subject": subject, "stream_type": "response"}).to_string().as_bytes(), b"")
    };
    let other_plane = part(br#"{"subject":"x","stream_type":"request"}"#, b"");
    for bytes in [
        subject("none of ours"),
        other_plane,
        part(&vec![b' '; 70_000], b""),
        part(b"{}", b"data"),
        b"GET / HTTP/1.1\r\nHost: radixscope\r\n\r\n".to_vec(),
    ] {
        let (worker, is_called) = called().await;
        let (strangers_are_gone, go_on) = oneshot::channel::<()>();
        let client = client();
        let strange = async {
            let call = is_called.await.unwrap();
            for mut connection in open_connections(call.callback(), &bytes).await {
                // Reset, if something was not read of it.
                let closed = timeout(LONG, connection.read_u8()).await.expect("it is closed");
                assert!(closed.is_err());
            }
            strangers_are_gone.send(()).unwrap();
            call
        };
        let home = async {
            let (call, gone) = tokio::join!(strange, go_on);
            gone.unwrap();
            let mut home = TcpStream::connect(call.callback()).await.unwrap();
            home.write_all(&[subject(call.subject()), whole_json(&tree(4))].concat()).await.unwrap();
            let _ = home.read_u8().await;
        };
        let (response, ()) = tokio::join!(query_worker(&client, &worker), home);
        assert_eq!(blocks(&response.unwrap()), 4);
        assert_eq!(client.callback.closed(), 16);
    }
}

/// A worker that accepts and does not call back, and its first call.
async fn called() -> (FakeWorker, oneshot::Receiver<Call>) {
    let (called, is_called) = oneshot::channel();
    let called = std::sync::Mutex::new(Some(called));
    let worker = FakeWorker::start(move |call: &Call| {
        if let Some(called) = called.lock().unwrap().take() {
            called.send(call.clone()).unwrap();
        }
        Script::silence()
    });
    (worker.await, is_called)
}

#[tokio::test]
async fn those_that_say_nothing_take_few_places_for_a_short_time() {
    let (worker, is_called) = called().await;
    let client = client();
    let slow = async {
        let call = is_called.await.unwrap();
        // A byte, and no more.
        let mut open_connections = open_connections(call.callback(), &[0]).await;
        let mut one_more = TcpStream::connect(call.callback()).await.unwrap();
        let started = Instant::now();
        let closed = timeout(LONG, one_more.read_u8()).await.expect("it is closed");
        assert!(closed.is_err() && started.elapsed() < Duration::from_secs(2), "one more is closed at once");
        for connection in &mut open_connections {
            let closed = timeout(LONG, connection.read_u8()).await.expect("it is closed");
            assert!(closed.is_err(), "slow ones are closed");
        }
    };
    let (_, ()) = tokio::join!(query_worker(&client, &worker), slow);
    assert_eq!(client.callback.closed(), 17);
}

#[tokio::test]
async fn a_port_that_nobody_is_expected_on_closes_at_once() {
    let worker = FakeWorker::start(|_| Script::response(whole_json(&tree(1)))).await;
    let client = client();
    query_worker(&client, &worker).await.unwrap();
    let call = worker.calls().remove(0);
    let mut late = TcpStream::connect(call.callback()).await.unwrap();
    let expected_text =
        part(json!({"subject": call.subject(), "stream_type": "response"}).to_string().as_bytes(), b"");
    let _ = late.write_all(&expected_text).await;
    assert!(timeout(LONG, late.read_u8()).await.expect("it is closed").is_err());
    assert_eq!(client.callback.closed(), 1);
}

/// A connection that names a query's id, and what becomes of it.
async fn call_back(expected: &ExpectedConnection) -> TcpStream {
    let mut stream = TcpStream::connect(&expected.address).await.unwrap();
    let expected_text =
        part(json!({"subject": expected.subject, "stream_type": "response"}).to_string().as_bytes(), b"");
    stream.write_all(&expected_text).await.unwrap();
    stream
}

#[tokio::test]
async fn a_response_from_elsewhere_than_the_worker_leaves_the_query_waiting() {
    let client = client();
    let elsewhere = Origin::These(vec!["192.0.2.9".parse().unwrap()]);
    let expected = client.callback.expect("127.0.0.1".parse().unwrap(), elsewhere).await.unwrap();
    for _ in 0..2 {
        let mut stream = call_back(&expected).await;
        assert!(timeout(LONG, stream.read_u8()).await.expect("it is closed").is_err());
    }
    let detail = expected.foreign().expect("it is known").detail;
    for expected_text in ["came from 127.0.0.1", "worker at 192.0.2.9", "--callback"] {
        assert!(detail.contains(expected_text), "{detail}");
    }
    let list = client.gate.refusals().list();
    assert_eq!((list[0].what, list[0].why, list[0].count), ("response", "other_address", 2));
    assert_eq!(client.callback.closed(), 2);
}

#[tokio::test]
async fn a_response_from_the_worker_or_from_anywhere_if_there_is_nat_is_taken() {
    let client = client();
    for origin in [
        Origin::Anywhere,
        Origin::These(vec!["192.0.2.9".parse().unwrap(), "127.0.0.1".parse().unwrap()]),
        // All addresses of loopback are one machine's.
        Origin::These(vec!["127.0.0.7".parse().unwrap()]),
    ] {
        let mut expected =
            client.callback.expect("127.0.0.1".parse().unwrap(), origin.clone()).await.unwrap();
        let stream = call_back(&expected).await;
        let arrived = timeout(LONG, &mut expected.arrives).await.expect("it arrives");
        assert!(arrived.is_ok(), "{origin:?}");
        drop(stream);
    }
    assert!(client.gate.refusals().list().is_empty());
}

#[test]
fn a_socket_for_both_families_sees_the_same_address() {
    // With --callback on a dual-stack socket addresses of IPv4 come mapped.
    let origin = Origin::These(vec!["10.0.0.7".parse().unwrap()]);
    assert!(origin.has("::ffff:10.0.0.7".parse().unwrap()) && !origin.has("10.0.0.8".parse().unwrap()));
}

#[tokio::test]
async fn a_worker_may_respond_from_where_it_publishes_and_with_nat_from_anywhere() {
    let origin = async |client: &QueryClient, publishes_at: &[&str]| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let socket = TcpStream::connect(&address).await.unwrap();
        let mut query = query(1, Codec::Json);
        query.publishes_at = publishes_at.iter().map(|&at| at.to_owned()).collect();
        client.origin(&socket, &address, &query).await.unwrap()
    };
    let these = |ips: &[&str]| Origin::These(ips.iter().map(|ip| ip.parse().unwrap()).collect());
    assert_eq!(origin(&client(), &[]).await, these(&["127.0.0.1"]));
    let places = ["tcp://10.0.0.7:5556", "tcp://[::ffff:10.0.0.8]:5556", "ipc:///tmp/x"];
    assert_eq!(origin(&client(), &places).await, these(&["10.0.0.7", "10.0.0.8", "127.0.0.1"]));
    let nat = client_with(Some("radixscope.example:9300".parse().unwrap()));
    assert_eq!(origin(&nat, &places).await, Origin::Anywhere);
}

#[tokio::test]
async fn a_reply_that_is_none_of_dynamos_is_not_quoted() {
    for reply in [
        b"HTTP/1.1 200 OK\r\n\r\nAKIAEXAMPLE".to_vec(),
        br#"{"AccessKeyId":"AKIAEXAMPLE"}"#.to_vec(),
        // Its length is right, and its text none of Dynamo's.
        [&11_u32.to_be_bytes()[..], b"AKIAEXAMPLE"].concat(),
        // Shorter than it says.
        [&99_u32.to_be_bytes()[..], b"Server overloaded: AKIAEXAMPLE"].concat(),
    ] {
        let failed = failure(Script::silence().acknowledged(Acknowledge::With(reply))).await;
        assert_eq!(failed.why, QueryFault::Refused);
        assert!(failed.detail.contains("that is no Dynamo response"), "{}", failed.detail);
        assert!(!failed.detail.contains("AKIA"), "{}", failed.detail);
    }
}

/// The source as the hub would run it.
struct Running {
    inbox: LoneInbox,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    fn start() -> Self {
        let (stop, stopped) = watch::channel(false);
        let (handle, inbox) = LoneInbox::new(QueueLimits { messages: 64, bytes: 1 << 20 });
        let source = TreeSource { client: Arc::new(client()) };
        Self { inbox, stop, task: tokio::spawn(source.run(handle, stopped)) }
    }

    async fn query(&self, id: u64, worker: &FakeWorker) {
        let query = TreeQuery { id, ..query(worker.port(), Codec::Json) };
        self.inbox.command(Command::Query(query)).await;
    }

    async fn response(&mut self) -> (u64, Result<TreeResponse, QueryFault>, usize) {
        let (payload, _) = self.inbox.payload().await;
        let Payload::TreeResponse { query, outcome, size_bytes } = payload else { panic!("{payload:?}") };
        (query, outcome.as_ref().clone().map_err(|failed| failed.why), size_bytes)
    }
}

#[tokio::test]
async fn every_query_is_answered_once_also_one_that_is_cancelled() {
    let quiet = FakeWorker::start(|_| Script::response(prologue(None))).await;
    let good = FakeWorker::start(|_| Script::response(whole_json(&tree(5)))).await;
    let mut running = Running::start();
    // As many as are asked at once, and two that wait.
    for id in 0..MAX_AT_ONCE as u64 {
        running.query(id, &quiet).await;
    }
    for id in [100, 101] {
        running.query(id, &good).await;
    }
    running.inbox.command(Command::CancelQuery { id: 101 }).await;
    assert_eq!(running.response().await, (101, Err(QueryFault::Cancelled), 0), "it waited");
    running.inbox.command(Command::CancelQuery { id: 3 }).await;
    assert_eq!(running.response().await, (3, Err(QueryFault::Cancelled), 0), "it ran");
    let (id, response, size_bytes) = running.response().await;
    assert_eq!((id, blocks(&response.unwrap())), (100, 5));
    assert!(size_bytes > 300);
    running.inbox.command(Command::CancelQuery { id: 100 }).await;
    running.stop.send_replace(true);
    timeout(LONG, running.task).await.expect("it ends").unwrap();
}

#[tokio::test]
async fn the_state_says_who_does_not_answer_and_when_that_is_over() {
    let worker = FakeWorker::start(|_| Script::refusal("Server overloaded: worker at capacity")).await;
    let mut running = Running::start();
    assert_eq!(running.inbox.state().await.0, LinkState::Live);
    running.query(1, &worker).await;
    assert_eq!(running.response().await.1, Err(QueryFault::Refused));
    let (state, detail) = running.inbox.state().await;
    assert_eq!(state, LinkState::Refused);
    assert!(detail.contains("Worker 7/0: The worker rejected the query: Server overloaded"), "{detail}");
    worker.behave(|_| Script::response(whole_json(&tree(1))));
    running.query(2, &worker).await;
    assert_eq!(running.response().await.0, 2);
    assert_eq!(running.inbox.state().await.0, LinkState::Live);
}
