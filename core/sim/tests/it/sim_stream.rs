//! The simulated cluster seen from outside: its bytes are decoded here by other means than its own and folded into
//! plain sets, and must then agree with what the engines hold.

use std::collections::{BTreeMap, HashMap, HashSet};

use radixscope_model::id::Millis;
use radixscope_router::{Formula, RouterSettings};
use radixscope_sim::{Channel, Config, ConfigError, EventTransport, Simulation, Workload};
use serde_json::Value;

use crate::observed::{Message, START, bytes, run, small};

fn local_indexer() -> Config {
    Config { events: EventTransport::LocalIndexer, ..small() }
}

/// The parts of an envelope and its payload as JSON.
#[derive(serde::Deserialize)]
struct Envelope {
    publisher_id: u64,
    sequence: u64,
    published_at: u64,
    topic: String,
    #[serde(deserialize_with = "bytes")]
    payload: Vec<u8>,
}

fn open(message: &Message) -> (Envelope, Value) {
    let envelope: Envelope = rmp_serde::from_slice(&message.payload).expect("an envelope");
    let payload = rmp_serde::from_slice(&envelope.payload).expect("a payload");
    (envelope, payload)
}

/// The KV event in a message, whichever line it came by.
fn kv_event(message: &Message) -> Option<Value> {
    if message.name == "namespace-dynamo-component-backend-kv-events.kv-events" {
        return Some(serde_json::from_slice(&message.payload).expect("JSON"));
    }
    (message.name == "namespace.dynamo.component.backend.kv-events").then(|| open(message).1)
}

fn load(message: &Message) -> Option<(Envelope, Value)> {
    (message.name == "namespace.dynamo.kv_metrics").then(|| open(message))
}

fn hashes(value: &Value) -> Vec<u64> {
    value.as_array().expect("an array").iter().map(|h| h.as_u64().expect("a hash")).collect()
}

/// A worker's cache, folded from its events alone.
#[derive(Default)]
struct WorkerCache {
    /// Block → its parent.
    blocks: HashMap<u64, Option<u64>>,
    children: HashMap<u64, u32>,
    next_event_id: u64,
    most: usize,
    stored: u64,
    removed: u64,
}

impl WorkerCache {
    fn apply(&mut self, event: &Value) {
        assert_eq!(event["event_id"], self.next_event_id, "event ids are contiguous");
        assert_eq!(event["dp_rank"], 0);
        self.next_event_id += 1;
        if let Some(stored) = event["data"].get("stored") {
            let mut parent = stored["parent_hash"].as_u64();
            assert!(parent.is_none_or(|p| self.blocks.contains_key(&p)), "the parent is held");
            for block in stored["blocks"].as_array().expect("blocks") {
                let hash = block["block_hash"].as_u64().expect("a hash");
                assert!(self.blocks.insert(hash, parent).is_none(), "a held block is not stored again");
                if let Some(parent) = parent {
                    *self.children.entry(parent).or_default() += 1;
                }
                parent = Some(hash);
                self.stored += 1;
            }
        } else {
            for hash in hashes(&event["data"]["removed"]["block_hashes"]) {
                assert_eq!(self.children.remove(&hash).unwrap_or(0), 0, "an evicted block is a leaf");
                let parent = self.blocks.remove(&hash).expect("an evicted block was held");
                if let Some(children) = parent.and_then(|p| self.children.get_mut(&p)) {
                    *children -= 1;
                }
                self.removed += 1;
            }
        }
        self.most = self.most.max(self.blocks.len());
    }
}

fn fold(messages: &[Message]) -> BTreeMap<u64, WorkerCache> {
    let mut workers: BTreeMap<u64, WorkerCache> = BTreeMap::new();
    for event in messages.iter().filter_map(kv_event) {
        let worker = event["worker_id"].as_u64().expect("an id");
        workers.entry(worker).or_default().apply(&event["event"]);
    }
    workers
}

#[test]
fn an_observer_of_the_events_ends_with_what_the_engines_hold() {
    for config in [small(), local_indexer(), Config { router: RouterSettings::round_robin(), ..small() }] {
        let capacity = config.blocks_per_worker as usize;
        let (simulation, messages) = run(config, 300);
        let seen = fold(&messages);
        assert_eq!(seen.len(), 3);
        for worker in 0..3 {
            let held = &seen[&simulation.worker_id(worker)];
            let observed: HashSet<u64> = held.blocks.keys().copied().collect();
            let real: HashSet<u64> = simulation.cached_blocks(worker).map(|h| h.0).collect();
            assert_eq!(observed, real);
            let report = simulation.report();
            assert_eq!(held.stored, report.stored_blocks_total[usize::from(worker)]);
            assert_eq!(held.removed, report.evicted_blocks_total[usize::from(worker)]);
            assert!(held.removed > 100, "the small cluster is under pressure");
            assert!(held.most <= capacity && held.most > capacity * 9 / 10);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let (_, first) = run(small(), 60);
    assert!(first.len() > 1_000);
    assert!(first == run(small(), 60).1);
    assert!(first != run(Config { seed: 2, ..small() }, 60).1);
}

#[test]
fn the_stream_does_not_depend_on_how_often_it_is_requested() {
    let (_, whole) = run(small(), 30);
    let mut simulation = Simulation::new(small(), START).expect("valid");
    let mut pieces = Vec::new();
    for ms in (0..=30_000).step_by(7).chain([30_000]) {
        simulation.run_until(Millis(START.0 + ms), &mut |m| {
            assert!(m.at_ms.0 <= START.0 + ms);
            pieces.push(Message {
                at_ms: m.at_ms.0,
                channel: m.channel,
                name: m.name.to_owned(),
                payload: m.payload.to_owned(),
            });
        });
    }
    assert!(whole == pieces);
    assert!(whole.is_sorted_by_key(|m| m.at_ms));
}

#[test]
fn both_event_lines_carry_the_same_events() {
    let (_, json) = run(small(), 60);
    let (_, packed) = run(local_indexer(), 60);
    let events = |messages: &[Message]| -> Vec<(u64, Value)> {
        messages.iter().filter_map(|m| Some((m.at_ms, kv_event(m)?))).collect()
    };
    assert!(events(&json).len() > 500);
    assert!(events(&json) == events(&packed));
}

#[test]
fn envelopes_are_numbered_per_publisher_and_topic() {
    let (_, messages) = run(local_indexer(), 60);
    let mut next: HashMap<(u64, String), u64> = HashMap::new();
    for message in messages.iter().filter(|m| m.name.starts_with("namespace.")) {
        let (envelope, _) = open(message);
        let expected = next.entry((envelope.publisher_id, envelope.topic.clone())).or_default();
        assert_eq!(envelope.sequence, *expected);
        assert_eq!(envelope.published_at, message.at_ms);
        assert!(message.name.ends_with(&format!(".{}", envelope.topic)));
        *expected += 1;
    }
    assert_eq!(
        next.len(),
        3 + 3 + 3,
        "events and load of each worker; hits, load and sequences of the router"
    );
}

#[test]
fn model_cards_come_first_and_say_the_capacity() {
    let (simulation, messages) = run(small(), 1);
    for (worker, message) in (0..3).zip(&messages) {
        let id = simulation.worker_id(worker);
        assert_eq!(message.name, format!("v1/mdc/dynamo/backend/generate/{id:x}"));
        let card: Value = serde_json::from_slice(&message.payload).expect("JSON");
        assert_eq!(card["type"], "Model");
        assert_eq!(card["instance_id"], id);
        assert_eq!(card["card_json"]["kv_cache_block_size"], 16);
        assert_eq!(card["card_json"]["runtime_config"]["total_kv_blocks"], 900);
    }
    assert!(messages.iter().skip(3).all(|m| m.channel != Channel::Discovery));
}

#[test]
fn workers_report_what_running_requests_use_and_not_too_often() {
    let (simulation, messages) = run(small(), 60);
    for worker in 0..3 {
        let id = simulation.worker_id(worker);
        let loads: Vec<_> = messages.iter().filter_map(load).filter(|(e, _)| e.publisher_id == id).collect();
        assert!(loads.len() > 50);
        assert!(
            loads.iter().all(|(_, load)| load["worker_id"] == id && load["active_prefill_tokens"].is_null())
        );
        assert!(loads.iter().all(|(_, load)| load["active_decode_blocks"].as_u64() <= Some(900)));
        assert!(loads.windows(2).all(|w| w[0].1 != w[1].1), "only on change");
        assert!(loads.windows(2).all(|w| w[0].0.published_at + 99 <= w[1].0.published_at));
    }
}

#[test]
fn decisions_follow_formula_a_on_what_was_published() {
    let (simulation, messages) = run(small(), 120);
    // The router's own load reports and the events, replayed up to each decision.
    let mut held: HashMap<u64, HashSet<u64>> = HashMap::new();
    let mut loads: HashMap<u64, (u64, u64)> = HashMap::new();
    let total = messages.iter().filter(|m| m.name.ends_with("kv-hit-rate")).count();
    let decisions = &simulation.report().decisions;
    let mut decision = decisions.iter();
    let mut seen = 0;
    for message in &messages {
        if let Some(event) = kv_event(message) {
            let held = held.entry(event["worker_id"].as_u64().expect("an id")).or_default();
            if let Some(stored) = event["event"]["data"].get("stored") {
                let blocks = stored["blocks"].as_array().expect("blocks");
                held.extend(blocks.iter().filter_map(|b| b["block_hash"].as_u64()));
            } else {
                for hash in hashes(&event["event"]["data"]["removed"]["block_hashes"]) {
                    held.remove(&hash);
                }
            }
        } else if let Some((envelope, load)) = load(message) {
            if envelope.publisher_id == simulation.router_id() {
                let value = |key: &str| load[key].as_u64().expect("the router sets both");
                let worker = load["worker_id"].as_u64().expect("an id");
                loads.insert(worker, (value("active_decode_blocks"), value("active_prefill_tokens")));
            }
        } else if message.name.ends_with("kv-hit-rate") {
            seen += 1;
            if seen <= total - decisions.len() {
                continue;
            }
            let (_, decoded) = open(message);
            let decision = decision.next().expect("a record for each");
            assert_eq!(message.at_ms, decision.at_ms.0);
            let mut least = f64::INFINITY;
            for (worker, candidate) in (0..).zip(&decision.candidates) {
                let id = simulation.worker_id(worker);
                let holds = held.entry(id).or_default();
                let overlap = decision.prompt.iter().filter(|&h| holds.contains(&h.0)).count() as u64;
                assert_eq!(u64::from(candidate.candidate.overlap_blocks), overlap);
                let (decode, prefill) = loads.get(&id).copied().unwrap_or_default();
                assert_eq!((candidate.decode_blocks, candidate.prefill_tokens), (decode, prefill));
                let new_tokens = u64::from(decision.isl_tokens) - overlap * 16;
                let cost = (prefill + new_tokens) as f64 / 16.0 + (decode + candidate.new_blocks) as f64;
                assert_eq!(candidate.candidate.cost, cost);
                least = least.min(cost);
            }
            let chosen = &decision.candidates[usize::from(decision.worker)].candidate;
            assert_eq!(chosen.cost, least);
            assert_eq!(decoded["worker_id"], simulation.worker_id(decision.worker));
            assert_eq!(decoded["overlap_blocks"], chosen.overlap_blocks);
            assert_eq!(decoded["isl_blocks"], decision.isl_tokens.div_ceil(16));
        }
    }
    assert!(decision.next().is_none() && decisions.len() > 30);
}

#[test]
fn round_robin_has_no_router_topics_and_turns_the_workers() {
    let (simulation, messages) = run(Config { router: RouterSettings::round_robin(), ..small() }, 60);
    assert!(messages.iter().all(|m| !m.name.ends_with("kv-hit-rate")));
    let routers = messages.iter().filter_map(load).filter(|(e, _)| e.publisher_id == simulation.router_id());
    assert_eq!(routers.count(), 0);
    assert!(simulation.report().decisions.is_empty());
    assert!(simulation.report().finished_total > 50);
}

#[test]
fn a_batch_never_exceeds_its_limit_and_the_loop_is_closed() {
    let mut simulation = Simulation::new(small(), START).expect("valid");
    let mut queued_ever = 0;
    for second in 1..120 {
        simulation.run_until(Millis(START.0 + second * 1_000), &mut |_| {});
        let loads: Vec<(u32, u32)> = (0..3).map(|w| simulation.running_and_queued(w)).collect();
        assert!(loads.iter().all(|&(running, _)| running <= 6));
        assert!(loads.iter().map(|&(running, queued)| running + queued).sum::<u32>() <= 24);
        queued_ever += loads.iter().map(|&(_, queued)| queued).sum::<u32>();
        assert!((0..3).all(|w| simulation.used_blocks(w) <= 900));
    }
    assert!(queued_ever > 0);
    let report = simulation.report();
    assert!(report.routed_total - report.finished_total <= 24);
}

#[test]
fn what_cannot_be_simulated_is_refused_with_the_reason() {
    let refused = |config: Config| Simulation::new(config, START).expect_err("refused");
    assert_eq!(refused(Config { workers: 0, ..small() }), ConfigError::Workers(0));
    assert_eq!(refused(Config { workers: 1_025, ..small() }), ConfigError::Workers(1_025));
    for block_size_tokens in [0, 1] {
        let error = refused(Config { block_size_tokens, ..small() });
        assert_eq!(error, ConfigError::BlockSize(block_size_tokens));
    }
    assert_eq!(refused(Config { concurrency: 0, ..small() }), ConfigError::Concurrency(0));
    assert_eq!(refused(Config { max_batch: 0, ..small() }), ConfigError::MaxBatch);
    let error = refused(Config { blocks_per_worker: 100, ..small() });
    assert_eq!(
        error.to_string(),
        "blocks_per_worker is 100; one request of up to 4801 tokens needs 301 blocks of 16 tokens"
    );
    let error = refused(Config { namespace: "a.b".to_owned(), ..small() });
    assert_eq!(error.to_string(), "namespace is \"a.b\"; it must be letters, digits, `-` or `_`");
    let router = RouterSettings { overlap_score_weight: f64::NAN, ..RouterSettings::new(Formula::A) };
    let error = refused(Config { router, ..small() });
    assert_eq!(error.to_string(), "overlap_score_weight is NaN; it must be a finite number, 0 or more");
    let workload = Workload { turns: (4, 3), ..Workload::default() };
    let error = refused(Config { workload, ..small() });
    assert_eq!(
        error.to_string(),
        "workload.turns is 4 to 3; it must not begin below 1 or end before it begins"
    );
}
