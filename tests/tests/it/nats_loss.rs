//! What is lost is counted: as many as were sent and not received, each once, and what cannot be known as unknown.

use radixscope_tests::figures::{number, sum};
use radixscope_tests::flood::{self, Form};
use radixscope_tests::nats::{Nats, Options};
use radixscope_tests::proxy::Proxy;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

/// Events of a burst: far more than the queue of these tests holds.
const EVENTS: u64 = 20_000;
/// The same into a stream, of which every message is read with a question of its own.
const STREAMED: u64 = 6_000;
/// A queue that this cannot fit into, however fast the machine.
const TINY: [&str; 2] = ["--queue-messages", "20"];

async fn without_jetstream() -> Nats {
    Nats::with(Options { jetstream: false, ..Options::default() }).await
}

/// Waits until what was received and what is reported as lost make up what was sent, exactly.
async fn accounts_for(server: &Radixscope, sent: u64) -> Value {
    let cluster = server
        .until_cluster("everything sent is received or reported", |cluster| {
            let source = &cluster["sources"][0];
            let (received, missed) = (number(source, "received"), number(source, "missed_total"));
            wait::expect(received + missed == sent, || format!("{received} + {missed} of {sent}: {source}"))
        })
        .await;
    cluster["sources"][0].clone()
}

#[tokio::test]
async fn a_burst_beyond_the_queue_is_reported_exactly_with_numbers_and_without() {
    for form in [Form::Envelope, Form::Json] {
        let nats = without_jetstream().await;
        let server = Radixscope::serve_with(&nats.url(), &TINY).await;
        server.until_ready().await;
        flood::publish(&nats.client().await, form, 0..EVENTS).await;
        let source = accounts_for(&server, EVENTS).await;
        assert!(number(&source, "missed_total") > 0, "it cannot fit: {source}");
        assert_eq!(source["missed_at_least"], false, "{form:?}: {source}");
        let causes: Vec<_> = source["missed"].as_array().unwrap().iter().map(|m| &m["cause"]).collect();
        assert!(
            causes.iter().all(|cause| **cause != "envelope_gap"),
            "counted where it was dropped: {source}"
        );
        // And it stays so: nothing is counted a second time later.
        flood::publish(&nats.client().await, form, EVENTS..EVENTS + 1).await;
        let source = accounts_for(&server, EVENTS + 1).await;
        assert_eq!(source["gaps"], Value::Array(Vec::new()));
    }
}

#[tokio::test]
async fn what_a_stream_holds_is_read_again_until_nothing_is_missing() {
    let nats = Nats::start().await;
    flood::create_stream(&nats.jetstream().await).await;
    let server = Radixscope::serve_with(&nats.url(), &TINY).await;
    server.until_ready().await;
    flood::publish(&nats.client().await, Form::Stream, 0..STREAMED).await;
    let source = accounts_for(&server, STREAMED).await;
    assert_eq!((number(&source, "received"), number(&source, "missed_total")), (STREAMED, 0), "{source}");
    let cluster = server.cluster().await;
    let stored = sum(cluster["workers"].as_array().unwrap(), "store_events_total");
    let removed = sum(cluster["workers"].as_array().unwrap(), "remove_events_total");
    assert_eq!(stored + removed, STREAMED, "each once");
}

#[tokio::test]
async fn a_server_that_lost_its_latest_messages_is_a_gap_and_its_new_ones_are_all_read() {
    let mut nats = Nats::start().await;
    flood::create_stream(&nats.jetstream().await).await;
    let proxy = Proxy::start(nats.port()).await;
    let server = Radixscope::serve(&proxy.url()).await;
    server.until_ready().await;
    let publish =
        async |nats: &Nats, events| flood::publish(&nats.client().await, Form::Stream, events).await;
    publish(&nats, 0..1_000).await;
    server.until_quiet(1_000).await;
    nats.stop();
    nats.keep_store();
    nats.start_again().await;
    server.until_source_is("live").await;
    publish(&nats, 1_000..7_000).await;
    server.until_quiet(7_000).await;
    let gaps = number(&server.cluster().await["sources"][0]["gaps"][0], "gaps");
    proxy.cut();
    nats.stop();
    nats.lose_latest();
    nats.start_again().await;
    // They take the numbers of those that were lost, and more.
    publish(&nats, 7_000..14_000).await;
    proxy.mend();
    let source = accounts_for(&server, 14_000).await;
    assert_eq!(
        (number(&source, "received"), number(&source["gaps"][0], "gaps")),
        (14_000, gaps + 1),
        "{source}"
    );
    let cluster = server.cluster().await;
    let workers = cluster["workers"].as_array().unwrap();
    assert_eq!(sum(workers, "store_events_total") + sum(workers, "remove_events_total"), 14_000, "each once");
}

#[tokio::test]
async fn a_connection_that_breaks_without_numbers_is_a_gap_of_unknown_size() {
    let nats = without_jetstream().await;
    let proxy = Proxy::start(nats.port()).await;
    let server = Radixscope::serve(&proxy.url()).await;
    server.until_ready().await;
    let client = nats.client().await;
    flood::publish(&client, Form::Json, 0..100).await;
    server.until_quiet(100).await;
    proxy.cut();
    // These have no receiver.
    flood::publish(&client, Form::Json, 100..200).await;
    proxy.mend();
    let cluster = server
        .until_cluster("the gap is shown", |cluster| {
            let source = &cluster["sources"][0];
            wait::expect(source["state"] == "live" && source["gaps"][0]["gaps"] == 1, || source.to_string())
        })
        .await;
    let source = &cluster["sources"][0];
    assert_eq!(
        (&source["gaps"][0]["topic"], &source["gaps"][0]["messages"]),
        (&"kv-events".into(), &Value::Null)
    );
    assert_eq!(source["missed_at_least"], true);
    let gap = &source["gaps"][0];
    assert!(number(gap, "until_ms") >= number(gap, "since_ms"), "{gap}");
    let metrics = server.get("/metrics").await.text().to_owned();
    let shown = metrics.lines().any(|line| {
        line.starts_with("radixscope_ingest_unknown_gaps{")
            && line.contains("kv-events")
            && line.ends_with(" 1.0")
    });
    assert!(shown, "{metrics}");
    wait::until("the finding says it", async || {
        let findings = server.json("/api/v1/findings").await.to_string();
        wait::expect(findings.contains("unknown number, 1 gap"), || findings)
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_breaks_with_numbers_is_counted_at_least_once_all_have_spoken() {
    let nats = without_jetstream().await;
    let proxy = Proxy::start(nats.port()).await;
    let server = Radixscope::serve(&proxy.url()).await;
    server.until_ready().await;
    let client = nats.client().await;
    flood::publish(&client, Form::Envelope, 0..160).await;
    server.until_quiet(160).await;
    proxy.cut();
    flood::publish(&client, Form::Envelope, 160..1_600).await;
    proxy.mend();
    server
        .until_cluster("the gap is shown while it is unknown", |cluster| {
            let source = &cluster["sources"][0];
            wait::expect(source["gaps"][0]["gaps"] == 1, || source.to_string())
        })
        .await;
    flood::publish(&client, Form::Envelope, 1_600..1_760).await;
    let source = accounts_for(&server, 1_760).await;
    assert_eq!(number(&source, "missed_total"), 1_440);
    let cluster = server
        .until_cluster("no gap of unknown size is left", |cluster| {
            let source = &cluster["sources"][0];
            wait::expect(source["gaps"] == Value::Array(Vec::new()), || source.to_string())
        })
        .await;
    // Workers may have come and left meanwhile: no number tells.
    let source = &cluster["sources"][0];
    assert_eq!(source["missed_at_least"], true);
    assert!(source["missed"].as_array().unwrap().iter().any(|missed| missed["at_least"] == true), "{source}");
    assert!(cluster["workers"].as_array().unwrap().iter().all(|worker| worker["missed_at_least"] == true));
    let metrics = server.get("/metrics").await.text().to_owned();
    for name in ["radixscope_ingest_missed_at_least{", "radixscope_worker_missed_at_least{"] {
        let is_said = metrics.lines().any(|line| line.starts_with(name) && line.ends_with(" 1.0"));
        assert!(is_said, "{name}: {metrics}");
    }
}
