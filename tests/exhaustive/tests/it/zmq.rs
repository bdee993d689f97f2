//! Event planes over ZeroMQ that take longer: a real libzmq, through pyzmq, and publishers that discovery names and that are started
//! again.

use std::collections::BTreeMap;
use std::process::Command;

use radixscope_captures::publisher::Publisher;
use radixscope_captures::{Recording, ZmqMessage};
use radixscope_tests::discovery::{Folder, event_channel};
use radixscope_tests::process::Process;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{paths, wait};
use serde_json::Value;

const CAPTURE: &str = "1.6.1-zmq-broker";

/// libzmq with messages `from` up to but not including `to`; and where it is bound.
async fn libzmq(endpoint: &str, from: usize, to: usize) -> (Process, String) {
    let file = Recording::zmq_fixture(CAPTURE).folder().join("zmq.jsonl.gz");
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", paths::pyzmq()).arg(paths::fixture("zmq/libzmq.py"));
    command.arg(endpoint).arg(file).args([from.to_string(), to.to_string()]);
    let mut process = Process::start("libzmq", &mut command);
    let bound = |line: &str| Some(line.strip_prefix("endpoint ")?.split(' ').next()?.to_owned());
    let endpoint = process.line("where it is bound", bound).await;
    (process, endpoint)
}

#[tokio::test]
async fn a_real_libzmq_is_understood_and_found_again() {
    let all: Vec<_> = Recording::zmq_fixture(CAPTURE).zmq_messages().collect();
    let half = all.len() / 2;
    let is_read = |message: &&ZmqMessage| !message.topic().ends_with("forward-pass-metrics");
    let first = all[..half].iter().filter(is_read).count() as u64;
    let (mut one, endpoint) = libzmq("tcp://127.0.0.1:*", 0, half).await;
    let server = Radixscope::start(["serve", "--zmq-broker", &endpoint]).await;
    one.line("that all is sent", |line| (line == "sent").then_some(())).await;
    server.until_quiet(first).await;
    one.kill();
    server.until_source_is("connecting").await;
    let (mut other, _) = libzmq(&endpoint, half, all.len()).await;
    other.line("that all is sent", |line| (line == "sent").then_some(())).await;
    let cluster = server.until_quiet(all.iter().filter(is_read).count() as u64).await;
    assert_eq!(cluster["sources"][0]["missed"], Value::Array(vec![]), "what came after the restart goes on");
    assert_eq!(cluster["workers"].as_array().map(Vec::len), Some(2));
    // No one unsubscribed meanwhile: heartbeats are answered.
    assert!(!other.lines().iter().any(|line| line.starts_with("then")), "{}", other.output());
}

/// What the state holds of workers, without times.
fn workers(cluster: &Value) -> Vec<Value> {
    let fields =
        ["worker_id", "dp_rank", "component", "blocks", "stored_total", "removed_total", "unattached"];
    let worker = |worker: &Value| fields.iter().map(|field| worker[*field].clone()).collect();
    let mut workers: Vec<Value> = cluster["workers"].as_array().expect("a list").iter().map(worker).collect();
    workers.sort_by_key(ToString::to_string);
    workers
}

/// Publishers of the recorded default plane, each on a socket of its own, as discovery names them.
fn publishers(messages: &[ZmqMessage], folder: &Folder) -> BTreeMap<String, Publisher> {
    let mut publishers = BTreeMap::new();
    for message in messages {
        publishers.entry(message.endpoint.clone()).or_insert_with(|| {
            let publisher = Publisher::bind(1);
            announce(folder, message, &publisher);
            publisher
        });
    }
    publishers
}

fn announce(folder: &Folder, message: &ZmqMessage, publisher: &Publisher) {
    let (key, value) = event_channel(message.topic(), message.publisher_id(), &publisher.endpoint());
    folder.put(&key, &value);
}

fn zmq_source(cluster: &Value) -> &Value {
    let sources = cluster["sources"].as_array().expect("sources");
    sources.iter().find(|source| source["kind"] == "zmq").expect("the event plane")
}

async fn until_status(server: &Radixscope, expected: &str) {
    server
        .until_cluster(expected, |cluster| {
            let detail = zmq_source(cluster)["detail"].as_str().unwrap_or_default();
            wait::expect(detail.contains(expected), || detail.to_owned())
        })
        .await;
}

async fn until_received(server: &Radixscope, count: u64) -> Value {
    let received = |cluster: &Value| zmq_source(cluster)["received"].as_u64().unwrap_or(0);
    let cluster = server
        .until_cluster(&format!("{count} messages are received"), |cluster| {
            wait::expect(received(cluster) >= count, || zmq_source(cluster).to_string())
        })
        .await;
    assert_eq!(received(&cluster), count);
    cluster
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_are_found_by_discovery_and_followed_through_restarts() {
    let is_read = |message: &ZmqMessage| message.topic() != "forward-pass-metrics";
    let messages: Vec<_> =
        Recording::zmq_fixture("1.6.1-zmq-default").zmq_messages().filter(is_read).collect();
    let folder = Folder::default();
    let mut publishers = publishers(&messages, &folder);
    assert_eq!(publishers.len(), 9);
    let server = Radixscope::start(["serve", "--discovery", &folder.url(), "--tree-dumps", "off"]).await;
    until_status(&server, "9 of 9 publishers connected.").await;
    for (endpoint, publisher) in &publishers {
        let topic = messages.iter().find(|message| message.endpoint == *endpoint).expect("it speaks").topic();
        publisher.wait_for_subscribers(topic, 1);
    }
    let (first, rest) = messages.split_at(messages.len() / 2);
    first.iter().for_each(|message| publishers[&message.endpoint].publish(&message.frames));
    let cluster = until_received(&server, first.len() as u64).await;
    assert_eq!(workers(&cluster).len(), 3);
    assert_eq!(zmq_source(&cluster)["missed"], Value::Array(vec![]));

    // One is killed: its entry stays, but nothing listens there.
    let victim = rest.iter().find(|message| message.topic() == "kv-events").expect("more events").clone();
    drop(publishers.remove(&victim.endpoint).expect("it is there"));
    until_status(&server, "8 of 9 publishers connected; tcp://127.0.0.1:").await;
    // Another takes its place: the entry goes, and the same worker publishes elsewhere.
    let (key, _) = event_channel(victim.topic(), victim.publisher_id(), "");
    folder.remove(&key);
    until_status(&server, "8 of 8 publishers connected.").await;
    let again = Publisher::bind(0);
    announce(&folder, &victim, &again);
    until_status(&server, "9 of 9 publishers connected.").await;
    again.wait_for_subscribers(victim.topic(), 1);
    publishers.insert(victim.endpoint.clone(), again);
    rest.iter().for_each(|message| publishers[&message.endpoint].publish(&message.frames));
    let cluster = until_received(&server, messages.len() as u64).await;
    assert_eq!(zmq_source(&cluster)["missed"], Value::Array(vec![]), "nothing was published meanwhile");
    assert_eq!(zmq_source(&cluster)["rejected"], Value::Array(vec![]));
}
