//! Dynamo's ZeroMQ event plane through a broker: what is shown is what NATS would have shown, loss is counted exactly, and a
//! real libzmq is understood.

use std::collections::BTreeSet;

use radixscope_captures::publisher::Publisher;
use radixscope_captures::{Recording, ZmqMessage};
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

const CAPTURE: &str = "1.6.1-zmq-broker";

/// What was recorded, without what is left out.
fn recorded() -> Vec<ZmqMessage> {
    let is_read = |message: &ZmqMessage| !message.topic().ends_with("forward-pass-metrics");
    let messages: Vec<_> = Recording::zmq_fixture(CAPTURE).zmq_messages().filter(is_read).collect();
    assert_eq!(messages.len(), 445);
    messages
}

async fn serve(endpoint: &str) -> Radixscope {
    Radixscope::start(["serve", "--zmq-broker", endpoint]).await
}

fn source(cluster: &Value) -> &Value {
    &cluster["sources"][0]
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_broker_carries_shows_as_over_nats() {
    let messages = recorded();
    let broker = Publisher::bind(1);
    let (nats, over_zmq) = (Nats::start().await, serve(&broker.endpoint()).await);
    let over_nats = Radixscope::serve(&nats.url()).await;
    over_zmq.until_ready().await;
    over_nats.until_ready().await;
    broker.wait_for_subscribers("namespace.", 1);
    let client = nats.client().await;
    for message in &messages {
        broker.publish(&message.frames);
        client.publish(message.topic().to_owned(), message.envelope()).await.expect("NATS takes it");
    }
    client.flush().await.expect("NATS takes it");
    let zmq = over_zmq.until_quiet(messages.len() as u64).await;
    let nats = over_nats.until_quiet(messages.len() as u64).await;
    assert_eq!(workers(&zmq), workers(&nats));
    assert_eq!(workers(&zmq).len(), 2);
    assert_eq!((&source(&zmq)["kind"], &source(&zmq)["state"]), (&"zmq".into(), &"live".into()));
    assert_eq!(source(&zmq)["detail"], "1 of 1 brokers connected.");
    assert_eq!(
        (&source(&zmq)["missed"], &source(&zmq)["rejected"]),
        (&Value::Array(vec![]), &Value::Array(vec![]))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_lost_while_the_broker_is_away_is_a_gap_and_then_a_number() {
    let messages = recorded();
    let broker = Publisher::bind(0);
    let server = serve(&broker.endpoint()).await;
    broker.wait_for_subscribers("namespace.", 1);
    let (before, rest) = messages.split_at(200);
    let (lost, after) = rest.split_at(60);
    before.iter().for_each(|message| broker.publish(&message.frames));
    server.until_quiet(200).await;
    let address = broker.address();
    drop(broker);
    let gone = server.until_source_is("connecting").await;
    let detail = source(&gone)["detail"].as_str().expect("words").to_owned();
    assert!(detail.starts_with("0 of 1 brokers connected; tcp://"), "{detail}");
    let broker = Publisher::at(address, 1);
    broker.wait_for_subscribers("namespace.", 1);
    server
        .until_cluster("the break shows", |cluster| {
            let gaps = source(cluster)["gaps"].as_array().map_or(0, Vec::len);
            wait::expect(gaps > 0, || source(cluster).to_string())
        })
        .await;
    after.iter().for_each(|message| broker.publish(&message.frames));
    let publisher = |message: &ZmqMessage| (message.publisher_id(), message.topic().to_owned());
    let known: BTreeSet<_> = before.iter().map(publisher).collect();
    let received_count: BTreeSet<_> = after.iter().map(publisher).collect();
    // Publishers without a message before or afterwards leave no number.
    let counted =
        lost.iter().map(publisher).filter(|one| known.contains(one) && received_count.contains(one)).count();
    assert!(counted > 40, "{counted}");
    server
        .until_cluster("the loss is a number", |cluster| {
            let missed = source(cluster)["missed"].as_array().expect("a list");
            let gaps = missed.iter().filter(|missed| missed["cause"] == "envelope_gap");
            let count: u64 = gaps.filter_map(|missed| missed["count"].as_u64()).sum();
            wait::expect(count == counted as u64, || format!("{counted} expected: {}", source(cluster)))
        })
        .await;
}
