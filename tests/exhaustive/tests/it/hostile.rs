//! Invalid input among valid messages: the good ones count exactly, the bad ones are counted by topic and reason, and memory
//! stays bounded.

use std::collections::BTreeMap;

use async_nats::Client;
use bytes::Bytes;
use radixscope_tests::capture::{Capture, Message};
use radixscope_tests::figures;
use radixscope_tests::nats::{Nats, Options};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::replay;
use serde_json::{Value, json};

const CORE: &str = "namespace.dynamo.component.backend.kv-events";
const STREAM: &str = "namespace-dynamo-component-backend-kv-events.kv-events";
const HITS: &str = "namespace.dynamo.kv-hit-rate";
const LOADS: &str = "namespace.dynamo.kv_metrics";
const SEQUENCES: &str = "namespace.dynamo.component.backend.active_sequences_events";
const MIB: usize = 1024 * 1024;

/// A generator good enough to make noise, and always the same noise.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

fn message(subject: &str, payload: impl Into<Bytes>) -> Message {
    Message { at_s: 0.0, subject: subject.to_owned(), reply: None, payload: payload.into() }
}

fn pack(value: &Value) -> Vec<u8> {
    rmp_serde::to_vec_named(value).unwrap()
}

/// An envelope as Dynamo's event plane sends it, around `payload`.
fn envelope(topic: &str, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.push(0x85);
    let text = |out: &mut Vec<u8>, text: &str| out.extend(rmp_serde::to_vec(text).unwrap());
    let number = |out: &mut Vec<u8>, n: u64| out.extend(rmp_serde::to_vec(&n).unwrap());
    text(&mut out, "publisher_id");
    number(&mut out, 4_000_000_000_000_000_001);
    text(&mut out, "sequence");
    number(&mut out, sequence);
    text(&mut out, "published_at");
    number(&mut out, 1_800_000_000_000);
    text(&mut out, "topic");
    text(&mut out, topic);
    text(&mut out, "payload");
    out.push(0xc6);
    out.extend((payload.len() as u32).to_be_bytes());
    out.extend(payload);
    out
}

fn stored(worker: u64, event_id: u64, parent: Option<u64>, blocks: &[u64]) -> Value {
    let blocks: Vec<Value> = blocks
        .iter()
        .map(|&hash| json!({"block_hash": hash, "tokens_hash": hash ^ 0x5555, "mm_extra_info": null}))
        .collect();
    let data = json!({"stored": {"parent_hash": parent, "blocks": blocks}});
    json!({"worker_id": worker, "event": {"event_id": event_id, "data": data, "dp_rank": 0}})
}

/// Bad messages with the topic and the reason that the API must give for each.
fn bad_ones() -> Vec<(Message, &'static str, &'static str)> {
    let good = envelope(
        "kv-hit-rate",
        0,
        &pack(&json!({"worker_id": 1, "dp_rank": 0, "isl_blocks": 3, "overlap_blocks": 0})),
    );
    let event = stored(1, 0, None, &[1, 2, 3]).to_string();
    let wrong = |name: &str, value: Value| {
        let mut load =
            json!({"worker_id": 1, "dp_rank": 0, "active_decode_blocks": 1, "active_prefill_tokens": 1});
        load[name] = value;
        envelope("kv_metrics", 0, &pack(&load))
    };
    let depth = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let hostile_depth = event.replacen('{', &format!("{{\"later\":{depth},"), 1);
    vec![
        (message(STREAM, ""), "kv-events", "truncated"),
        (message(HITS, ""), "kv-hit-rate", "truncated"),
        (message(HITS, good[..good.len() - 9].to_vec()), "kv-hit-rate", "truncated"),
        (message(STREAM, event[..event.len() - 4].to_owned()), "kv-events", "truncated"),
        (message(STREAM, "{\"worker_id\" 1}"), "kv-events", "malformed"),
        (message(CORE, vec![0xc1; 64]), "kv-events", "malformed"),
        (message(LOADS, wrong("worker_id", json!("one"))), "kv_metrics", "wrong_type"),
        (message(LOADS, wrong("worker_id", json!(-1))), "kv_metrics", "wrong_type"),
        (message(STREAM, "{\"worker_id\":1}"), "kv-events", "missing_field"),
        (
            message(SEQUENCES, envelope("active_sequences_events", 0, &pack(&json!({})))),
            "active_sequences_events",
            "missing_field",
        ),
        (message(STREAM, hostile_depth), "kv-events", "too_large"),
    ]
}

/// What the API says was rejected, by topic and reason.
fn rejected(cluster: &Value) -> BTreeMap<(String, String), u64> {
    let rows = cluster["sources"][0]["rejected"].as_array().unwrap();
    let key =
        |row: &Value| (row["topic"].as_str().unwrap().to_owned(), row["reason"].as_str().unwrap().to_owned());
    rows.iter().map(|row| (key(row), figures::number(row, "count"))).collect()
}

async fn publish_all(client: &Client, messages: &[Message]) {
    replay::publish(client, messages).await;
}

#[tokio::test]
async fn among_bad_messages_the_good_ones_count_exactly() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let capture = Capture::load("0.9.1-worker-restart");
    let bad = bad_ones();
    let mut messages = Vec::new();
    let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
    let every = capture.messages.len() / (bad.len() * 3);
    let mut cycle = bad.iter().cycle();
    for (i, good) in capture.messages.iter().enumerate() {
        messages.push(good.clone());
        if i % every == 0 {
            let (message, topic, reason) = cycle.next().unwrap();
            messages.push(message.clone());
            *expected.entry(((*topic).to_owned(), (*reason).to_owned())).or_default() += 1;
        }
    }
    let client = nats.client().await;
    for some in messages.chunks(200) {
        publish_all(&client, some).await;
    }
    let count = messages.iter().filter(|m| !m.is_delivery_copy()).count();
    let cluster = server.until_quiet(count as u64).await;
    figures::of(capture.name).check_cluster(&cluster).unwrap();
    let decisions = server.json("/api/v1/decisions?limit=10000").await;
    figures::of(capture.name).check_decisions(&decisions).unwrap();
    assert_eq!(rejected(&cluster), expected, "{}", cluster["sources"][0]["rejected"]);
    for row in cluster["sources"][0]["rejected"].as_array().unwrap() {
        let sample = row["sample"].as_str().unwrap();
        assert!(!sample.is_empty() && sample.len() < 500, "the last one in words: {row}");
    }
}

#[tokio::test]
async fn random_bytes_on_every_subject_are_rejected_and_change_nothing() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let capture = Capture::load("1.6.1-log-jsonl-debug");
    let client = nats.client().await;
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let mut sent = 0;
    for some in capture.messages.chunks(100) {
        publish_all(&client, some).await;
        for subject in [CORE, STREAM, HITS, LOADS, SEQUENCES] {
            for _ in 0..20 {
                let len = (noise.next() % 300) as usize;
                // Never the start of an envelope or an event by chance: a first byte that is neither.
                let mut bytes = noise.bytes(len);
                bytes.insert(0, 0xc1);
                client.publish(subject, bytes.into()).await.unwrap();
                sent += 1;
            }
        }
        client.flush().await.unwrap();
    }
    let cluster = server.until_quiet((capture.publications() + sent) as u64).await;
    figures::of(capture.name).check_cluster(&cluster).unwrap();
    assert_eq!(rejected(&cluster).values().sum::<u64>(), sent as u64);
}

#[tokio::test]
async fn payloads_beyond_all_sense_are_refused_and_memory_stays_bounded() {
    let options = Options { max_payload: 64 * MIB, ..Options::default() };
    let nats = Nats::with(options).await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let before = server.process().rss_bytes();
    let client = nats.client().await;
    let mut huge = b"{\"worker_id\":1,\"event\":\"".to_vec();
    huge.resize(16 * MIB, b'x');
    let huge = Bytes::from(huge);
    for _ in 0..16 {
        client.publish(STREAM, huge.clone()).await.unwrap();
        client.flush().await.unwrap();
    }
    let cluster = server
        .until_cluster("all sixteen are accounted for", |cluster| {
            let refused = rejected(cluster).get(&("kv-events".to_owned(), "too_large".to_owned())).copied();
            let dropped = figures::number(&cluster["sources"][0], "dropped");
            radixscope_tests::wait::expect(refused.unwrap_or(0) + dropped >= 16, || {
                cluster["sources"].to_string()
            })
        })
        .await;
    assert_eq!(cluster["workers"], json!([]));
    let grown = server.process().rss_bytes().saturating_sub(before);
    assert!(grown < 256 * MIB as u64, "grew by {} MiB", grown / MIB as u64);
    let capture = Capture::load("0.9.1-log-jsonl-info");
    replay::publish(&client, &capture.messages).await;
    let cluster = server
        .until_cluster("good messages still count", |cluster| {
            figures::of(capture.name).check_cluster(cluster)
        })
        .await;
    assert_eq!(cluster["sources"][0]["state"], "live");
}

#[tokio::test]
async fn a_chain_of_a_hundred_thousand_blocks_is_held_drawn_and_dropped() {
    const LEN: u64 = 100_000;
    const AT_ONCE: u64 = 500;
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let client = nats.client().await;
    let worker = 77;
    let hash = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for (i, first) in (0..LEN).step_by(AT_ONCE as usize).enumerate() {
        let blocks: Vec<u64> = (first..first + AT_ONCE).map(hash).collect();
        let parent = first.checked_sub(1).map(hash);
        let event = stored(worker, i as u64, parent, &blocks).to_string();
        client.publish(STREAM, event.into()).await.unwrap();
    }
    client.flush().await.unwrap();
    let cluster = server.until_quiet(LEN / AT_ONCE).await;
    assert_eq!(cluster["workers"][0]["blocks"], LEN);
    server
        .until_cluster("the depth, which may be a second old, is that of the chain", |cluster| {
            let depth = &cluster["tree"]["max_depth"];
            radixscope_tests::wait::expect(depth == LEN, || depth.to_string())
        })
        .await;
    let tree = server.json("/api/v1/tree").await;
    assert_eq!((&tree["blocks"], &tree["rows"][0]["len"]), (&LEN.into(), &LEN.into()), "one chain");
    server.viewer().await.agrees_with(&server).await;
    let cleared = json!({"worker_id": worker, "event": {"event_id": 9999, "data": "cleared", "dp_rank": 0}});
    client.publish(STREAM, cleared.to_string().into()).await.unwrap();
    client.flush().await.unwrap();
    let cluster = server.until_quiet(LEN / AT_ONCE + 1).await;
    assert_eq!((&cluster["workers"][0]["blocks"], &cluster["tree"]["nodes"]), (&0.into(), &0.into()));
}

#[tokio::test]
async fn a_flood_beyond_the_queue_is_dropped_and_every_drop_is_counted() {
    const EVENTS: u64 = 20_000;
    let nats = Nats::start().await;
    let server = Radixscope::serve_with(&nats.url(), &["--queue-messages", "100"]).await;
    server.until_ready().await;
    let client = nats.client().await;
    let blocks: Vec<u64> = (1..=200).map(|n| n << 40).collect();
    let event = Bytes::from(stored(5, 0, None, &blocks).to_string());
    for _ in 0..EVENTS {
        client.publish(STREAM, event.clone()).await.unwrap();
    }
    client.flush().await.unwrap();
    let cluster = server
        .until_cluster("every event is either received or counted as dropped", |cluster| {
            let source = &cluster["sources"][0];
            let (received, dropped) =
                (figures::number(source, "received"), figures::number(source, "dropped"));
            radixscope_tests::wait::expect(received + dropped == EVENTS, || format!("{received} + {dropped}"))
        })
        .await;
    let source = &cluster["sources"][0];
    assert!(figures::number(source, "dropped") > 0, "a queue of 100 cannot hold this: {source}");
    assert_eq!(source["missed"][0]["cause"], "queue_full");
    assert_eq!(source["missed"][0]["topic"], "kv-events");
}

#[tokio::test]
async fn ids_and_hashes_of_all_64_bits_come_out_exactly() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let client = nats.client().await;
    let (worker, other, first, second) = (u64::MAX, u64::MAX - 2, u64::MAX - 1, (1 << 53) + 1);
    // A worker publishes in one form only: each has its own.
    let event = stored(worker, 0, None, &[first]);
    client.publish(STREAM, event.to_string().into()).await.unwrap();
    let event = pack(&stored(other, 0, None, &[second]));
    client.publish(CORE, envelope("kv-events", 0, &event).into()).await.unwrap();
    client.flush().await.unwrap();
    let cluster = server.until_quiet(2).await;
    let all = cluster["workers"].as_array().expect("workers");
    let mut ids: Vec<_> = all.iter().map(|worker| worker["worker_id"].as_str().expect("a text")).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["18446744073709551613", "18446744073709551615"]);
    let mut text = String::new();
    for pool in cluster["pools"].as_array().expect("pools") {
        let name = pool["pool"].as_str().expect("a name");
        text += server.get(&format!("/api/v1/tree?pool={name}")).await.text();
    }
    for id in [worker, other, first, first ^ 0x5555, second] {
        assert!(text.contains(&format!("\"{id}\"")), "{id} in {text}");
    }
    let by_hash = server.json(&format!("/api/v1/tree?root={second}&worker={other}")).await;
    assert_eq!(by_hash["rows"][0]["block_hash"], second.to_string());
}
