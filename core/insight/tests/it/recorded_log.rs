//! Decisions that a real Dynamo 0.9.1 logged: our choice at the logged setting is its choice. The log is read here with
//! nothing but string splitting.

use std::collections::BTreeMap;
use std::io::Read;

use radixscope_insight::counterfactual::{Sample, SampleBuilder, SampledDecision};
use radixscope_model::id::{DecisionId, Millis, WorkerIx};
use radixscope_model::record::Candidate;
use radixscope_router::{Formula, RouterSettings, TieBreak};

/// Recorded logs and how many decisions each has.
const LOGS: [(&str, usize); 3] = [("0.9.1-healthy", 278), ("0.9.1-mismatch", 276), ("0.9.1-no-events", 156)];

/// Number that follows `label`, up to the next separator.
fn number(line: &str, label: &str) -> f64 {
    let after = line.split_once(label).expect(label).1;
    let end = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
    after[..end].parse().expect(label)
}

fn worker(line: &str) -> &str {
    line.split_once("worker_id=").expect("a worker").1.split(' ').next().expect("an id")
}

struct Logged {
    sample: Sample,
    decisions: usize,
    /// Decisions whose lowest exact cost several workers share.
    ties: usize,
}

fn read(name: &str) -> Logged {
    let path = format!("{}/../../tests/fixtures/captures/{name}/frontend.log.gz", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::File::open(&path).expect(&path);
    let mut log = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut log).expect("a log of text");
    let mut builder = SampleBuilder::default();
    let mut slots = BTreeMap::new();
    let (mut candidates, mut decisions, mut ties) = (Vec::new(), 0, 0);
    for line in log.lines() {
        let next = slots.len() as u16;
        if line.contains("Formula for worker_id=") {
            let sum = line.rsplit_once(" = ").expect("a sum").1;
            let prefill_blocks = number(sum, " * ");
            let decode_blocks = number(sum, " + ");
            let logged = number(line, "cached blocks: ");
            // What the log rounded is a whole number of tokens of 16 to the block.
            let exact = (prefill_blocks * 16.0).round() / 16.0 + decode_blocks;
            assert!((exact - logged).abs() <= 0.000_501, "{line}");
            candidates.push(Candidate {
                worker: WorkerIx((*slots.entry(worker(line).to_owned()).or_insert(next)).into()),
                overlap_blocks: number(line, " with ") as u32,
                host_blocks: 0,
                disk_blocks: 0,
                prefill_blocks,
                decode_blocks,
                cost: logged,
                tree_size: Some(0),
            });
        } else if line.contains("Selected worker: ") {
            let chosen = WorkerIx(slots[worker(line)].into());
            let exact = |c: &Candidate| (c.prefill_blocks * 16.0).round() / 16.0 + c.decode_blocks;
            let least = candidates.iter().map(exact).fold(f64::INFINITY, f64::min);
            ties += usize::from(candidates.iter().filter(|c| exact(c) == least).count() > 1);
            let decision = SampledDecision {
                id: DecisionId(decisions as u64),
                at_ms: Millis(decisions as u64),
                turn: decisions as u64,
                ended_ms: None,
                isl_tokens: None,
                ttft_ms: None,
                block_size_tokens: Some(16),
                chosen: candidates.iter().position(|c| c.worker == chosen).expect("among them") as u16,
            };
            builder.push(&decision, &RouterSettings::new(Formula::A), &candidates).expect("all terms known");
            candidates.clear();
            decisions += 1;
        }
    }
    Logged { sample: builder.finish(), decisions, ties }
}

#[test]
fn every_decision_of_a_real_router_is_among_our_choices() {
    for (name, decisions) in LOGS {
        let logged = read(name);
        assert_eq!(logged.decisions, decisions, "{name}");
        // The log has only the chosen worker's tree size, so every tied worker counts as a choice.
        let settings = RouterSettings { tie_break: TieBreak::Random, ..RouterSettings::new(Formula::A) };
        let outcome = logged.sample.outcome(&settings);
        assert_eq!((outcome.decisions, outcome.certain_changes), (decisions as u64, 0), "{name}");
        assert_eq!(outcome.ties as usize, logged.ties, "{name}");
        assert!(logged.ties > 0, "{name}");
        let by_load = logged.sample.outcome(&RouterSettings { overlap_score_weight: 0.0, ..settings });
        assert!(by_load.certain_changes > 0, "{name}: prefill decided nothing");
    }
}
