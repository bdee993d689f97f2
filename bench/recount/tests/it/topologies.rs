//! The recount of recordings of several pools and tiers, against counts made before by other means.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;

use flate2::read::MultiGzDecoder;
use radixscope_recount::Worker;
use radixscope_recount::discovery::Role;
use radixscope_recount::recording::Recording;
use radixscope_recount::router::Decision;
use serde_json::Value;

/// Those that are started by `cargo xtask live --topology` as well.
const RECORDINGS: [&str; 8] = [
    "0.9.1-disagg",
    "0.9.1-disagg-sync",
    "0.9.1-two-models",
    "1.6.1-disagg",
    "1.6.1-disagg-default",
    "1.6.1-host",
    "1.6.1-scale",
    "1.6.1-two-models",
];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/topologies").join(name)
}

fn expected(name: &str) -> Value {
    let text = std::fs::read_to_string(folder("expected.jsonl")).expect("the counts");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.find_map(|line| line.get(name).cloned()).expect("an entry of this name")
}

fn worker(of: &Value) -> Worker {
    let id = of["worker_id"].as_str().and_then(|id| id.parse().ok());
    (id.expect("an id"), of["dp_rank"].as_u64().unwrap_or(0))
}

fn rows(of: &Value) -> &Vec<Value> {
    of.as_array().expect("rows")
}

#[test]
fn pools_and_tiers_come_to_what_was_counted_before() {
    for name in RECORDINGS {
        let recording = Recording::read(&folder(name)).expect("a recording");
        let (capture, counted) = (&recording.capture, expected(name));
        for of in rows(&counted["workers"]) {
            let figures = &capture.workers[&worker(of)];
            let blocks = match of["tier"].as_str() {
                Some("device") | None => figures.blocks(),
                Some(tier) => figures.tiers[tier].blocks(),
            };
            assert_eq!(Some(blocks), of["blocks"].as_u64(), "{name}: {of}");
            assert_eq!(of["group"].as_str(), Some(figures.pool.as_str()), "{name}");
        }
        for (pool, of) in counted["pools"].as_object().expect("pools") {
            let figures = [capture.nodes_of(pool, 1), capture.nodes_of(pool, 2), capture.resident_of(pool)];
            let counts = ["nodes", "shared", "resident"].map(|what| of[what].as_u64().unwrap_or(0));
            assert_eq!(figures, counts, "{name}: {pool}");
        }
        for (pool, of) in counted["requests_by_pool"].as_object().expect("pools") {
            let added = capture.added.iter().filter(|added| added.pool == **pool).count();
            assert_eq!(of["requests"].as_u64(), Some(added as u64), "{name}: requests of {pool}");
        }
        let (contradicted, of) = recording.contradicted();
        assert_eq!(contradicted, 0, "{name}: clients contradict, of {of}");
        let costs: Vec<(&Decision, f64)> =
            recording.decisions.iter().filter_map(|of| Some((of, of.message_cost?))).collect();
        let wrong = costs.iter().filter(|(decision, cost)| !decision.is_logit(*cost)).count();
        assert_eq!(wrong, 0, "{name}: costs that the router did not log, of {}", costs.len());
    }
}

#[test]
fn both_choices_of_a_request_are_counted() {
    let recording = Recording::read(&folder("1.6.1-disagg")).expect("a recording");
    let (mut text, file) = (String::new(), folder("1.6.1-disagg/expected_requests.jsonl.gz"));
    let file = std::fs::File::open(file).expect("the requests");
    MultiGzDecoder::new(file).read_to_string(&mut text).expect("text");
    let mut parts: BTreeMap<(&str, Role), &Decision> = BTreeMap::new();
    for decision in &recording.decisions {
        if let Some(id) = decision.request_id.reported() {
            parts.insert((id, decision.role), decision);
        }
    }
    let mut count = 0;
    for want in text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")) {
        let id = want["request_id"].as_str().expect("an id");
        let (prefill, decode) = (parts[&(id, Role::Prefill)], parts[&(id, Role::Decode)]);
        let is = |what: &str, counted: Option<f64>| {
            let wanted = want[what].as_f64().or_else(|| want[what].as_str()?.parse().ok());
            let is_equal =
                counted.zip(wanted).is_some_and(|(counted, wanted)| (counted - wanted).abs() < 2e-3);
            assert!(is_equal, "{id} {what}: {counted:?}, not {wanted:?}");
        };
        assert_eq!(prefill.worker.0.to_string(), want["prefill_worker"], "{id}");
        assert_eq!(decode.worker.0.to_string(), want["decode_worker"], "{id}");
        assert_eq!((prefill.other_part, decode.other_part), (Some(decode.worker), Some(prefill.worker)));
        is("isl_tokens", prefill.isl_tokens.reported().map(|&tokens| tokens as f64));
        is("isl_tokens", decode.isl_tokens.reported().map(|&tokens| tokens as f64));
        is("overlap_blocks", prefill.overlap_blocks.reported().map(|&blocks| blocks as f64));
        is("prefill_cost", prefill.message_cost);
        is("decode_cost", decode.message_cost);
        let is_published = |at: &radixscope_recount::capture::Happened| at.is_published;
        assert!(decode.first_token.reported().is_some_and(is_published));
        count += 1;
    }
    assert_eq!(count, 81);
}
