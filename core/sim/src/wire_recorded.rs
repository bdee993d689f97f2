//! Messages of a real Dynamo 1.6.1, sent again: what they say goes in, their bytes must come out.

use super::super::config::Topology;
use super::*;
use radixscope_model::id::TokensHash;
use serde_json::Value;

const RECORDED: &str = include_str!("../tests/fixtures/messages_1_6_1.tsv");

/// A pool's publishers under the ids of a recorded message.
fn wire(topology: Topology, pool: usize, worker: u64, router: u64) -> (Pool, Wire) {
    let config = Config { topology, workers: 1, ..Config::default() }.set_up();
    let pool = config.pools().remove(pool);
    let mut wire = Wire::new(&pool);
    (wire.workers[0].id, wire.routers[0].id) = (worker, router);
    (pool, wire)
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn send_kv_events(wire: &mut Wire, events: &Value, out: WireOut<'_>) {
    wire.workers[0].event_id = Sequence(number(&events[0]["event"]["event_id"]));
    for event in list(events) {
        let tier = if event["storage_tier"] == "device" { Tier::Device } else { Tier::Host };
        let (at, data) = ((Millis(0), 0, tier), &event["event"]["data"]);
        if let Some(stored) = data.get("stored") {
            let block = |block: &Value| Block {
                block_hash: BlockHash(number(&block["block_hash"])),
                tokens_hash: TokensHash(number(&block["tokens_hash"])),
            };
            let blocks: Vec<Block> = list(&stored["blocks"]).iter().map(block).collect();
            let parent = stored["parent_hash"].as_u64().map(BlockHash);
            let from = stored["start_position"].as_u64().unwrap_or(0) as u32;
            wire.stored(at, (parent, from, &blocks), Delivery::Whole, out);
        } else {
            for hash in list(&data["removed"]["block_hashes"]) {
                wire.removed(at, BlockHash(number(hash)), Delivery::Whole, out);
            }
        }
    }
    wire.flush(Millis(0), 0, out);
}

fn send_sequence(wire: &mut Wire, pool: &Pool, message: &Value, out: WireOut<'_>) {
    let by_worker = message["router_id"] == message["worker"]["worker_id"];
    let reporter = if by_worker { Reporter::Worker } else { Reporter::Router };
    let request_id = message["request_id"].as_str().expect("text");
    let added = &message["data"]["AddRequest"];
    let prompt: Vec<Block> = added["token_sequence"].as_array().map_or(Vec::new(), |hashes| {
        let block = |hash: &Value| Block { block_hash: BlockHash(number(hash)), tokens_hash: TokensHash(0) };
        hashes.iter().map(block).collect()
    });
    let step = match message["data"].as_str() {
        Some("Free") => Step::Free,
        Some(_) => Step::MarkPrefillCompleted,
        None => {
            let hint = &added["prefill_load_hint"]["initial_effective_prefill_tokens"];
            Step::added(pool, &prompt, (0, 0), hint.as_u64().unwrap_or(0))
        }
    };
    wire.sequence(Millis(0), (reporter, 0), request_id, step, out);
}

#[test]
fn what_was_recorded_of_each_topology_comes_out_byte_for_byte() {
    let mut compared = 0;
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let [topology, pool, subject, payload] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("four columns: {line}");
        };
        let topology = Topology::ALL.into_iter().find(|of| of.name() == topology).expect("a topology");
        let bytes: Vec<u8> = (0..payload.len() / 2)
            .map(|at| u8::from_str_radix(&payload[2 * at..2 * at + 2], 16).expect("hex"))
            .collect();
        let message: Value = rmp_serde::from_slice(&bytes).expect("MessagePack");
        let first = message.get(0).unwrap_or(&message);
        let worker = number(first.get("worker_id").unwrap_or(&first["worker"]["worker_id"]));
        let router = message.get("router_id").map_or(0, number);
        let (pool, mut wire) = wire(topology, pool.parse().expect("a pool"), worker, router);
        let mut sent = Vec::new();
        let out: WireOut<'_> = &mut |m| sent.push((m.name.to_owned(), m.payload.to_owned()));
        match subject.rsplit('.').next() {
            Some("kv-events") => send_kv_events(&mut wire, &message, out),
            Some("kv_metrics") => wire.worker_load(Millis(0), 0, number(&message["kv_used_blocks"]), out),
            _ => send_sequence(&mut wire, &pool, &message, out),
        }
        let [(name, payload)] = &sent[..] else { panic!("one message: {sent:?}") };
        assert_eq!(name, subject);
        assert!(
            payload.ends_with(&bytes),
            "{subject} is {}\nnot {message}",
            rmp_serde::from_slice::<Value>(&payload[payload.len() - bytes.len()..]).unwrap_or_default()
        );
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}
