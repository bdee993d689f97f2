//! What the simulated frontend reports to its replicas and writes into its log, read by means that are not its own:
//! `rmp-serde` and the regular expressions of reference §7.3.

use std::collections::{HashMap, HashSet};

use radixscope_dynamo::active_sequence::{self, RouterId};
use radixscope_dynamo::envelope;
use radixscope_model::id::Millis;
use radixscope_router::{Formula, RouterSettings};
use radixscope_sim::{Channel, Config, Simulation};
use regex::{Captures, Regex};
use serde_json::Value;

use crate::observed::{Message, START, bytes, run};

/// The payload of an envelope, read by serde.
fn open(body: &[u8]) -> Value {
    #[derive(serde::Deserialize)]
    struct Envelope {
        topic: String,
        #[serde(deserialize_with = "bytes")]
        payload: Vec<u8>,
    }
    let envelope: Envelope = rmp_serde::from_slice(body).expect("an envelope");
    assert_eq!(envelope.topic, "active_sequences_events");
    rmp_serde::from_slice(&envelope.payload).expect("a payload")
}

fn sequences(messages: &[Message]) -> impl Iterator<Item = &[u8]> {
    let subject = "namespace.dynamo.component.backend.active_sequences_events";
    messages.iter().filter(move |m| m.name == subject).map(|m| &m.payload[..])
}

fn lines(messages: &[Message]) -> Vec<&str> {
    let logged = messages.iter().filter(|m| m.channel == Channel::Log && m.name == "frontend");
    logged.map(|m| std::str::from_utf8(&m.payload).expect("text")).collect()
}

#[test]
fn every_request_is_added_once_prefilled_once_and_freed_once() {
    let (simulation, messages) = run(Config::default(), 120);
    let uuid =
        Regex::new("^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$").expect("valid");
    // Worker and last step of each request.
    let mut requests: HashMap<String, (u64, &str)> = HashMap::new();
    let (mut added, mut freed) = (0, 0);
    for decoded in sequences(&messages).map(open) {
        assert_eq!(decoded["router_id"], simulation.router_id());
        assert_eq!(decoded["worker"]["dp_rank"], 0);
        assert_eq!(decoded.as_object().map(serde_json::Map::len), Some(4), "and nothing else");
        let id = decoded["request_id"].as_str().expect("text").to_owned();
        let worker = decoded["worker"]["worker_id"].as_u64().expect("a number");
        assert!(uuid.is_match(&id), "{id}");
        match decoded["data"].as_str() {
            None => {
                let request = &decoded["data"]["AddRequest"];
                let isl = request["isl"].as_u64().expect("a number");
                let blocks = request["token_sequence"].as_array().expect("hashes").len() as u64;
                assert_eq!(blocks, isl / 32, "full blocks alone");
                assert!(request["overlap"].as_u64().expect("a number") <= blocks);
                assert_eq!(request.get("expected_output_tokens"), Some(&Value::Null));
                assert_eq!(requests.insert(id, (worker, "AddRequest")), None, "ids are never used again");
                added += 1;
            }
            Some("MarkPrefillCompleted") => {
                let before = requests.insert(id, (worker, "MarkPrefillCompleted"));
                assert_eq!(before, Some((worker, "AddRequest")));
            }
            Some(step) => {
                assert_eq!(step, "Free");
                assert_eq!(requests.insert(id, (worker, "Free")), Some((worker, "MarkPrefillCompleted")));
                freed += 1;
            }
        }
    }
    let report = simulation.report();
    assert_eq!((added, freed), (report.routed_total, report.finished_total));
    assert!(freed > 200);
}

#[test]
fn our_own_decoder_reads_the_same_as_serde() {
    let (simulation, messages) = run(Config::default(), 60);
    let mut read = 0;
    for body in sequences(&messages) {
        let (decoded, envelope) = (open(body), envelope::open(body).expect("an envelope"));
        let (payload, format) = envelope.payload();
        let mut steps = Vec::new();
        active_sequence::decode(payload, format, &mut steps).expect("understood");
        let [step] = &steps[..] else { panic!("one step a message: {steps:?}") };
        assert_eq!(step.request_id, decoded["request_id"].as_str().expect("text"));
        assert_eq!(decoded["worker"]["worker_id"], step.worker.id.0);
        assert_eq!(step.router, RouterId::Number(simulation.router_id()));
        assert!(!step.by_worker);
        if let active_sequence::SequenceChange::Added(request) = &step.step {
            let decoded = &decoded["data"]["AddRequest"];
            assert_eq!(decoded["token_sequence"], serde_json::json!(request.token_sequence));
            assert_eq!(decoded["isl"], serde_json::json!(request.isl));
            assert_eq!(decoded["overlap"], serde_json::json!(request.overlap));
            assert_eq!((request.expected_output_tokens, request.track_prefill_tokens), (None, None));
        }
        read += 1;
    }
    assert!(read > 300);
}

/// The patterns of Formula A, the tie and Selected A, as the reference gives them.
struct Patterns {
    stamp: Regex,
    formula: Regex,
    selected: Regex,
}

impl Patterns {
    fn new() -> Self {
        let pattern = |text| Regex::new(text).expect("valid");
        Self {
            stamp: pattern(
                r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z  INFO dynamo_llm::kv_router::scheduler: ",
            ),
            formula: pattern(
                r"(Formula|Pinned formula) for worker_id=(\d+) dp_rank=(\d+) with (\d+) cached blocks: (-?[\d.]+) = ([\d.]+) \* prefill_blocks \+ decode_blocks = [\d.]+ \* ([\d.]+) \+ ([\d.]+)$",
            ),
            selected: pattern(
                r"Selected worker: (?:worker_type=(\w+), )?worker_id=(\d+) dp_rank=(\d+), logit: (-?[\d.]+)(?:, cached blocks: (\d+), tree size: (\d+)(?:, total blocks: (\d+))?)?$",
            ),
        }
    }
}

const TIE: &str = "Multiple workers tied with same logit, using tree size as tie-breaker";

fn number<T: std::str::FromStr>(captures: &Captures<'_>, group: usize) -> T
where
    T::Err: std::fmt::Debug,
{
    captures[group].parse().expect("a number")
}

#[test]
fn the_log_reports_every_candidate_and_the_cheapest_is_chosen() {
    let (simulation, messages) = run(Config::default(), 120);
    let patterns = Patterns::new();
    let mut candidates: HashMap<u64, (String, u32)> = HashMap::new();
    let (mut tied, mut ties, mut decisions) = (false, 0, 0);
    for line in lines(&messages) {
        assert!(patterns.stamp.is_match(line), "{line}");
        if let Some(decoded) = patterns.formula.captures(line) {
            let (logit, weight): (f64, f64) = (number(&decoded, 5), number(&decoded, 6));
            let (prefill, decode): (f64, f64) = (number(&decoded, 7), number(&decoded, 8));
            // At B = 32 a fraction has five decimals, of which three are printed.
            assert!((logit - (weight * prefill + decode)).abs() <= 0.001 + 1e-9, "{line}");
            candidates.insert(number(&decoded, 2), (decoded[5].to_owned(), number(&decoded, 4)));
        } else if let Some(decoded) = patterns.selected.captures(line) {
            assert_eq!(candidates.len(), 3, "a line for each worker");
            let (logit, overlap) = &candidates[&number(&decoded, 2)];
            assert_eq!(*logit, decoded[4], "the logit is printed alike");
            assert_eq!(*overlap, number::<u32>(&decoded, 5));
            let chosen: f64 = number(&decoded, 4);
            let costs = || candidates.values().map(|(cost, _)| cost.parse::<f64>().expect("a number"));
            assert!(costs().all(|cost| chosen <= cost));
            if tied {
                assert!(costs().filter(|cost| *cost == chosen).count() > 1);
            }
            let tree: u64 = number(&decoded, 6);
            assert_eq!(tree > 0, *overlap > 0, "a tree size comes only with an overlap");
            assert_eq!(number::<u32>(&decoded, 7), simulation.config().blocks_per_worker);
            candidates.clear();
            tied = false;
            decisions += 1;
        } else {
            assert!(line.ends_with(TIE), "{line}");
            tied = true;
            ties += 1;
        }
    }
    assert_eq!(decisions, simulation.report().routed_total);
    assert!(ties > 0, "the first request finds idle workers");
}

#[test]
fn a_line_comes_at_the_time_it_carries() {
    let mut simulation = Simulation::new(Config::default(), START).expect("valid");
    let mut seen = 0;
    simulation.run_until(Millis(START.0 + 30_000), &mut |m| {
        if (m.channel, m.name) == (Channel::Log, "frontend") {
            let line = std::str::from_utf8(m.payload).expect("text");
            let (day, clock) = line.split_once('T').expect("a time");
            assert_eq!(day, "2026-01-01");
            let part = |range: std::ops::Range<usize>| clock[range].parse::<u64>().expect("a number");
            let us = (part(0..2) * 3_600 + part(3..5) * 60 + part(6..8)) * 1_000_000 + part(9..15);
            let at_us = (m.at_ms.0 - START.0) * 1_000;
            assert!((at_us..at_us + 1_100).contains(&us), "{line} at {}", m.at_ms.0);
            seen += 1;
        }
    });
    assert!(seen > 100);
}

#[test]
fn log_and_replica_sync_are_switched_off_each_by_its_own_and_change_nothing_else() {
    let (_, both) = run(Config::default(), 60);
    let is_log = |channel: Channel, _: &str| channel == Channel::Log;
    let is_sync = |_: Channel, name: &str| name.ends_with(".active_sequences_events");
    let without = |off: &dyn Fn(Channel, &str) -> bool| -> Vec<Message> {
        both.iter().filter(|m| !off(m.channel, &m.name)).cloned().collect()
    };
    assert!(run(Config { log: false, ..Config::default() }, 60).1 == without(&is_log));
    assert!(run(Config { replica_sync: false, ..Config::default() }, 60).1 == without(&is_sync));
    let names: HashSet<(Channel, &str)> = both.iter().map(|m| (m.channel, m.name.as_str())).collect();
    assert!(names.iter().any(|&(c, n)| is_log(c, n)) && names.iter().any(|&(c, n)| is_sync(c, n)));
}

#[test]
fn round_robin_decides_without_a_word() {
    let (_, messages) = run(Config { router: RouterSettings::round_robin(), ..Config::default() }, 30);
    assert_eq!((lines(&messages).len(), sequences(&messages).count()), (0, 0));
}

#[test]
fn a_temperature_is_drawn_and_leaves_no_ties_to_report() {
    let router = RouterSettings {
        overlap_score_weight: 0.5,
        router_temperature: 0.5,
        ..RouterSettings::new(Formula::A)
    };
    let (_, messages) = run(Config { router, ..Config::default() }, 30);
    let lines = lines(&messages);
    assert!(lines.len() > 100 && lines.iter().all(|line| !line.ends_with(TIE)));
    let patterns = Patterns::new();
    assert!(lines.iter().filter_map(|l| patterns.formula.captures(l)).all(|decoded| &decoded[6] == "0.5"));
}
