//! The recount of every recording in the repository, against counts made before by other means and against what the
//! clients themselves noted.

use std::collections::BTreeMap;
use std::path::PathBuf;

use radixscope_recount::capture::Capture;
use radixscope_recount::recording::Recording;
use serde_json::Value;

fn captures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/captures")
}

/// The independent counts, by recording.
fn expected() -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(captures().join("expected.jsonl")).expect("the counts");
    let lines = text.lines().map(|line| serde_json::from_str::<BTreeMap<String, Value>>(line).expect("JSON"));
    lines.flatten().collect()
}

#[test]
fn every_recording_comes_to_what_was_counted_before_and_no_client_contradicts_it() {
    let mut noted = 0;
    for (name, counted) in expected() {
        let recording = Recording::read(&captures().join(&name)).expect("a recording");
        let count = |of: &str| counted["logs"][of].as_u64().unwrap_or(0);
        // In 1.3 and 1.4 each dispatch reports `Selected worker` as well, so decisions are counted by the ends of requests.
        let says_twice = name.starts_with("1.3.") || name.starts_with("1.4.");
        let decisions = count(if says_twice { "request_done" } else { "selected" });
        let formulas: usize = recording.decisions.iter().map(|decision| decision.candidates.len()).sum();
        let found = (recording.decisions.len() as u64, formulas as u64);
        assert_eq!(found, (decisions, count("formula")), "{name}");
        // By the messages alone, which do not tell who left.
        let capture = Capture::read(&captures().join(&name).join("nats.jsonl.gz")).expect("messages");
        let figures = [capture.nodes_held_by(1), capture.nodes_held_by(2), capture.hit_rates.len() as u64];
        let counts = [&counted["nodes"], &counted["shared"], &counted["topics"]["kv-hit-rate"]];
        assert_eq!(figures, counts.map(|count| count.as_u64().unwrap_or(0)), "{name}");
        let (contradicted, of) = recording.contradicted();
        assert_eq!(contradicted, 0, "{name}: of {of}");
        noted += of;
    }
    assert!(noted > 1_000, "only {noted} requests are known to both");
}
