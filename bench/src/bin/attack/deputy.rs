//! What an entry of discovery can make the server send: to a bystander over TCP, to a key-value bucket over NATS, and how many
//! lines strangers at the port for responses leave in the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use radixscope_tests::discovery::Registered;
use radixscope_tests::fake_worker::Script;
use radixscope_tests::one_worker::{Deployment, PUBLISHER, WORKER, response, stored, tree};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::row;

/// Number of the event before the attack.
const LAST: u64 = 40;

/// The rows of all of them.
pub(super) async fn rows(each: Duration) -> Vec<Value> {
    let mut rows = vec![bytes_to_a_bystander(each).await];
    for subject in ["$KV.cfg.limit", "$JS.API.STREAM.PURGE.KV_cfg"] {
        rows.push(writes_to_a_bucket(subject, each).await);
    }
    rows.push(lines_in_the_log(each).await);
    rows
}

/// The worker's entries, leading elsewhere.
fn leading_to(transport: &Value) -> Vec<(String, Value)> {
    let registered = Registered { worker_id: WORKER, publisher_id: PUBLISHER, zmq_port: 1, tcp_port: 1 };
    let entries = registered.entries().into_iter().filter(|(key, _)| key.contains("instances"));
    let lead = |mut value: Value| {
        value["transport"] = transport.clone();
        value
    };
    entries.map(|(key, value)| (key, lead(value))).collect()
}

/// Bytes that a service receives which is no worker, by a path that is a request of its own protocol.
async fn bytes_to_a_bystander(each: Duration) -> Value {
    let mut deployment = Deployment::start(|call| response(call, &tree(&[], LAST))).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let received = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&received);
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = [0; 4_096];
            count.fetch_add(stream.read(&mut bytes).await.unwrap_or(0), Ordering::Relaxed);
        }
    });
    let path = "\r\nGET /latest/meta-data HTTP/1.1\r\n\r\n";
    deployment.keep(leading_to(&json!({"tcp": format!("127.0.0.1:{port}/{path}")})));
    let server = deployment.attach(&[]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    tokio::time::sleep(each).await;
    serving.abort();
    drop(server);
    let bytes = received.load(Ordering::Relaxed) as f64;
    row("bytes sent to a bystander named by discovery", bytes, "bytes", Some(("0 bytes", 0.0)))
}

/// Changes of a bucket by queries to its subjects.
async fn writes_to_a_bucket(subject: &str, each: Duration) -> Value {
    let mut deployment = Deployment::start(|call| response(call, &tree(&[], LAST))).await;
    deployment.nats.make_bucket("cfg").await;
    deployment.keep(leading_to(&json!({"nats_tcp": subject})));
    let server = deployment.attach(&[]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    tokio::time::sleep(each).await;
    drop(server);
    let is_changed = deployment.nats.bucket("cfg").await != (1, 1);
    let what = format!("changes of a bucket by queries to {subject}");
    row(&what, f64::from(u8::from(is_changed)), "changes", Some(("none", 0.0)))
}

/// Lines of the log for each minute in which strangers connect to the port for responses.
async fn lines_in_the_log(each: Duration) -> Value {
    let mut deployment = Deployment::start(|_| Script::silence()).await;
    let server = deployment.attach(&["--log", "debug"]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    let callback = deployment.until_queried().await.callback().to_owned();
    let (before, since) = (server.process().lines().len(), Instant::now());
    let mut connections = 0_u32;
    while since.elapsed() < each {
        if let Ok(mut stranger) = TcpStream::connect(&callback).await {
            let _ = stranger.write_all(b"GET / HTTP/1.1\r\n\r\n----").await;
            connections += 1;
        }
    }
    let lines = (server.process().lines().len() - before) as f64 * 60.0 / since.elapsed().as_secs_f64();
    let what = format!("lines of the log a minute, {connections} connections of strangers");
    row(&what, lines, "lines", Some(("≤ 600 lines", 600.0)))
}
