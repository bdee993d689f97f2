//! What sources can do to a server by what they send: memory beyond an idle one and answers of `/healthz`, while ZeroMQ publishers,
//! collectors of OpenTelemetry, metrics endpoints, logs and results of clients hold or send nonsense without end.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;
use hyper::Method;
use radixscope_tests::endless::{Cost, cost};
use radixscope_tests::http::Http;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{ms, row};

const MEMORY: (&str, f64) = ("≤ 64 MB", 64.0);
/// Where bodies, or lines that wait for the hub, are held up to their limits.
const HELD_MEMORY: (&str, f64) = ("≤ 192 MB", 192.0);
const HEALTH: (&str, f64) = ("≤ 50 ms", 50.0);
/// Size of what is sent at once.
const PIECE_BYTES: usize = 1 << 20;
/// Senders at a time.
const SENDERS: usize = 8;
/// What a publisher of ZeroMQ says first.
const READY: &[u8] = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB";

/// All attacks, each for so long.
pub(super) async fn rows(each: Duration) -> Vec<Value> {
    let mut rows = publishers(each).await.to_vec();
    rows.extend(otlp(each, "OTLP requests of 8 MB without sense", &nonsense(7 << 20), &[]).await);
    let bomb = gzip(&vec![0; 1 << 30]);
    rows.extend(
        otlp(each, "OTLP requests that unpack to 1 GiB", &bomb, &[("content-encoding", "gzip")]).await,
    );
    rows.extend(metrics(each).await);
    rows.extend(log(each).await);
    rows.extend(results(each).await);
    rows
}

fn paid(name: &str, cost: Cost, budget: (&str, f64)) -> [Value; 3] {
    [
        row(&format!("memory beyond idle at most, {name}"), cost.grown_mb, "MB", Some(budget)),
        row(&format!("slowest /healthz, {name}"), ms(cost.slowest_health), "ms", Some(HEALTH)),
        row(&format!("the same of an idle server, {name}"), ms(cost.slowest_idle), "ms", None),
    ]
}

/// Bytes that follow from nothing but their number, of every value.
fn nonsense(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(next).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).expect("memory");
    packed.finish().expect("memory")
}

/// Eight engines that publish messages of 1 MiB as fast as they are read.
async fn publishers(each: Duration) -> [Value; 3] {
    let mut peers = JoinSet::new();
    let mut args = vec!["serve".to_owned()];
    for _ in 0..SENDERS {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        args.extend(["--engine-events".to_owned(), format!("vllm=tcp://127.0.0.1:{port}")]);
        peers.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(publish(stream));
            }
        });
    }
    let server = Radixscope::start(&args).await;
    let ((), cost) = cost(&server, tokio::time::sleep(each)).await;
    paid("8 engines that publish 1 MiB of nonsense after the other", cost, MEMORY)
}

/// Speaks ZMTP up to the first message, then sends messages of three frames: a topic, a number, nonsense.
async fn publish(mut stream: TcpStream) {
    let mut greeting = [0_u8; 64];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting[12..16].copy_from_slice(b"NULL");
    let hello = [&greeting[..], READY].concat();
    if stream.write_all(&hello).await.is_err() {
        return;
    }
    let (mut reads, mut writes) = stream.into_split();
    tokio::spawn(async move {
        let mut bytes = [0; 4_096];
        while reads.read(&mut bytes).await.is_ok_and(|read| read > 0) {}
    });
    let body = nonsense(PIECE_BYTES);
    let large = [&[0x02][..], &(body.len() as u64).to_be_bytes(), &body].concat();
    for number in 0_u64.. {
        let message = [&b"\x01\x00\x01\x08"[..], &number.to_be_bytes(), &large].concat();
        if writes.write_all(&message).await.is_err() {
            return;
        }
    }
}

/// Where the receiver of OpenTelemetry listens, by its own words.
fn otlp_port(cluster: &Value) -> Option<u16> {
    let sources = cluster["sources"].as_array()?;
    let detail = sources.iter().find(|of| of["kind"] == "otlp")?["detail"].as_str()?;
    detail.split("127.0.0.1:").nth(1)?.split(':').next()?.parse().ok()
}

async fn otlp(
    each: Duration,
    name: &str,
    body: &[u8],
    headers: &'static [(&'static str, &'static str)],
) -> [Value; 3] {
    let server = Radixscope::start(["serve", "--otlp", "127.0.0.1:0"]).await;
    let listening = |cluster: &Value| wait::expect(otlp_port(cluster).is_some(), || cluster.to_string());
    let cluster = server.until_cluster("the receiver listens", listening).await;
    let url = format!("http://127.0.0.1:{}/v1/traces", otlp_port(&cluster).expect("it listens"));
    let mut all = JoinSet::new();
    for _ in 0..2 * SENDERS {
        let (url, body) = (url.clone(), body.to_vec());
        all.spawn(async move {
            loop {
                let headers = [&[("content-type", "application/x-protobuf")][..], headers].concat();
                // A refusal may come before the body is sent, which the client takes for a broken connection.
                let _ = Http::default().send(Method::POST, &url, &headers, body.clone()).await;
            }
        });
    }
    let ((), cost) = cost(&server, tokio::time::sleep(each)).await;
    paid(name, cost, HELD_MEMORY)
}

/// A metrics endpoint whose response never ends.
async fn metrics(each: Duration) -> [Value; 3] {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/metrics", listener.local_addr().expect("it is bound"));
    let endless = || async {
        let line = Bytes::from("dynamo_frontend_requests_total{model=\"\\\"<script>\"} 1\n".repeat(20_000));
        Body::from_stream(stream::repeat_with(move || Ok::<_, std::convert::Infallible>(line.clone())))
    };
    let routes = Router::new().fallback(endless);
    let serving = tokio::spawn(async move { axum::serve(listener, routes).await });
    let server = Radixscope::start(["serve", "--prometheus", &url]).await;
    let ((), cost) = cost(&server, tokio::time::sleep(each)).await;
    serving.abort();
    paid("metrics without end", cost, MEMORY)
}

/// Appends to the file `--OPTION` names, as fast as the disk takes it, `line` again and again.
async fn growing(each: Duration, option: &str, name: &str, line: &[u8]) -> [Value; 3] {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("grows.jsonl");
    fs::write(&path, b"").expect("written");
    // Results of clients alone are nothing to listen to.
    let args = ["serve", "--otlp", "127.0.0.1:0", option, path.to_str().expect("a name")];
    let server = Radixscope::start(args).await;
    let piece = line.repeat(PIECE_BYTES.div_ceil(line.len()));
    let ((), cost) = cost(&server, async {
        let until = tokio::time::Instant::now() + each;
        let mut file = tokio::fs::OpenOptions::new().append(true).open(&path).await.expect("there");
        while tokio::time::Instant::now() < until {
            file.write_all(&piece).await.expect("written");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    paid(name, cost, HELD_MEMORY)
}

async fn log(each: Duration) -> [Value; 3] {
    growing(each, "--logs", "a log of 100 MB/s without a line feed", b"\x1b[31m<script>\xff\x00").await
}

async fn results(each: Duration) -> [Value; 3] {
    let ids =
        json!({"metadata": {"x_request_id": "\u{202e}<img>", "request_start_ns": u64::MAX}, "metrics": {}});
    let line = format!("{ids}\n");
    growing(each, "--client-results", "results of clients, 100 MB/s of lines without sense", line.as_bytes())
        .await
}
