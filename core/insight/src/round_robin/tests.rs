//! Round-robin for one request: the worker in turn, the blocks as recorded, the pace of the window with its error.

use super::*;
use crate::counterfactual::{DecisionRange, Sample, Selection};
use radixscope_model::id::{Millis, Seq, Worker};
use radixscope_model::record::{Candidate, Completeness, Decision, DecisionSource, Entry, Progress, Record};
use radixscope_router::RouterOverrides;

const NOW: u64 = 1_800_000_000_000;
const ISL_BLOCKS: u64 = 100;

fn fold(cluster: &mut Cluster, at: u64, record: Record<'_>) {
    let seq = Seq(cluster.seq().0 + 1);
    cluster.fold(seq, &Entry { at_ms: Millis(at), record });
}

fn name(worker: WorkerIx) -> String {
    format!("W{}", worker.0 + 1)
}

/// Decisions of which the chosen worker, the first, held `overlaps[0]` blocks, the others the rest; and the time to first token.
fn cluster(decisions: impl IntoIterator<Item = ([u32; 3], Option<u64>)>) -> Cluster {
    let mut cluster = Cluster::default();
    for at in 0..3 {
        let (worker, id) = (WorkerIx(at), Worker::new(u64::from(at) + 7, 0));
        fold(&mut cluster, NOW, Record::new_worker(worker, id, "", ""));
    }
    for (id, (overlaps, ttft_ms)) in (1..).zip(decisions) {
        let candidate = |(at, &overlap_blocks): (usize, &u32)| Candidate {
            worker: WorkerIx(at as u32),
            overlap_blocks,
            host_blocks: 0,
            disk_blocks: 0,
            prefill_blocks: ISL_BLOCKS as f64 - f64::from(overlap_blocks),
            decode_blocks: 10.0 * at as f64,
            cost: 0.0,
            tree_size: None,
        };
        let mut decision = Decision::new(DecisionId(id), WorkerIx(0), DecisionSource::Log);
        decision.candidates = overlaps.iter().enumerate().map(candidate).collect();
        decision.completeness = Completeness::AllCandidates;
        decision.overlap_blocks = Some(u64::from(overlaps[0]));
        (decision.isl_blocks, decision.isl_tokens) = (Some(ISL_BLOCKS), Some(ISL_BLOCKS * 16));
        (decision.block_size_tokens, decision.prefill_factor) = (Some(16), Some(1.0));
        decision.formula = Some(radixscope_router::Formula::A);
        decision.decided_ms = Some(Millis(NOW + id * 100));
        fold(&mut cluster, NOW + id * 100, Record::Decision(Box::new(decision)));
        let first_token_ms = ttft_ms.map(|ms| Millis(NOW + id * 100 + ms));
        let progress = Progress { first_token_ms, ..Progress::default() };
        fold(
            &mut cluster,
            NOW + id * 100 + 50,
            Record::Progress { decision: DecisionId(id), progress: Box::new(progress) },
        );
    }
    cluster
}

fn round_robin(cluster: &Cluster, id: u64) -> RoundRobin {
    RoundRobin::of(cluster, cluster.decisions().get(DecisionId(id)).unwrap()).unwrap()
}

/// 3 ms a block that is not cached, 20 ms beside, and up to 40 ms that have other reasons.
fn steady(at: u32) -> ([u32; 3], Option<u64>) {
    let held = at * 37 % 101;
    ([held, held / 2, 0], Some(20 + 3 * u64::from(100 - held) + u64::from(at * 13 % 41)))
}

#[test]
fn the_worker_is_the_one_of_the_counterfactual_s_replay_in_any_window() {
    let cluster = cluster((0..100).map(steady));
    let whole: Vec<WorkerIx> = (1..=100).map(|id| round_robin(&cluster, id).worker).collect();
    assert_eq!(whole[..4], [WorkerIx(0), WorkerIx(1), WorkerIx(2), WorkerIx(0)], "in turn");
    for last in [100, 41, 40] {
        let sample = Sample::of(&cluster, Selection::of(DecisionRange::Last(last)));
        let replayed = sample.evaluate(RouterOverrides::round_robin());
        assert_eq!(replayed.tried.decisions, u64::from(last));
        assert!(!replayed.tried.changed.is_empty());
        for changed in &replayed.tried.changed {
            assert_eq!(
                changed.to,
                round_robin(&cluster, changed.decision.0).worker,
                "{changed:?}, last {last}"
            );
        }
    }
}

#[test]
fn blocks_are_those_recorded_and_the_time_follows_the_pace_of_the_window() {
    let mut all: Vec<_> = (0..600).map(steady).collect();
    // Turn 601 is W2's.
    all.extend([steady(0), ([90, 26, 0], None)]);
    let found = round_robin(&cluster(all), 602);
    assert_eq!((found.worker, found.turn, found.candidates), (WorkerIx(1), 601, 3));
    assert_eq!((found.more_cached_blocks, found.more_decode_blocks), (-64, 10.0));
    let pace = found.pace.unwrap().unwrap();
    assert_eq!(pace.requests, 601, "the one itself has no first token yet");
    assert!((pace.ms_per_block.value - 3.0).abs() < 0.1, "{pace:?}");
    assert!(pace.ms_per_block.low < 3.0 && pace.ms_per_block.high > 3.0, "{pace:?}");
    let change = found.ttft_change_ms().unwrap();
    assert!((change.value - 192.0).abs() < 6.0 && change.low < change.value, "{change:?}");
    let sentence = found.sentence(name);
    assert!(
        sentence.starts_with("Round-robin would have sent it to W2: 64 fewer cached blocks, ≈ +1"),
        "{sentence}"
    );
    assert!(found.derivation().contains("request 602 of this pool, 3 candidates"), "{}", found.derivation());
    assert!(found.derivation().contains("601 requests"), "{}", found.derivation());
}

#[test]
fn more_cached_blocks_elsewhere_are_less_time_and_the_nearer_end_comes_first() {
    let mut all: Vec<_> = (0..301).map(steady).collect();
    all.push(([0, 0, 0], None));
    all[301].0 = [10, 20, 0];
    let mut found = round_robin(&cluster(all), 302);
    let interval = Interval { value: 3.0, low: 2.5, high: 3.5 };
    found.pace = Some(Ok(Pace { ms_per_block: interval, requests: 300 }));
    assert_eq!(
        found.sentence(name),
        "Round-robin would have sent it to W2: 10 more cached blocks, ≈ −30 ms TTFT (−35 ms to −25 ms)."
    );
    found.more_cached_blocks = -1;
    assert!(found.sentence(name).contains("1 fewer cached block, ≈ +3 ms TTFT (+2.5 ms to +3.5 ms)"));
    found.more_cached_blocks = 0;
    assert_eq!(found.sentence(name), "Round-robin would have sent it to W2: as many cached blocks.");
    found.worker = WorkerIx(0);
    assert_eq!(found.sentence(name), "Round-robin would have sent it to W1 as well.");
    (found.worker, found.pace) = (WorkerIx(2), None);
    assert_eq!(found.sentence(name), "Round-robin would have sent it to W3: 10 more blocks in use there.");
}

#[test]
fn too_few_requests_and_times_that_follow_nothing_give_no_time() {
    let few = round_robin(&cluster((0..50).map(steady)), 2);
    assert_eq!(few.pace, Some(Err(NoPace::TooFew(50))));
    assert!(few.sentence(name).ends_with("unknown, not enough requests."), "{}", few.sentence(name));
    let queued = |at: u32| (steady(at).0, Some(u64::from(at.wrapping_mul(2_654_435_769) % 4_001)));
    let unclear = round_robin(&cluster((0..300).map(queued)), 2);
    assert_eq!(unclear.pace, Some(Err(NoPace::Unclear(300))));
    assert!(unclear.derivation().contains("does not clearly rise"), "{}", unclear.derivation());
    let equal = round_robin(&cluster((0..300).map(|_| ([50, 40, 0], Some(90)))), 2);
    assert_eq!(equal.pace, Some(Err(NoPace::Unclear(300))), "no two of them differ");
    assert_eq!(few.ttft_change_ms(), None);
}

#[test]
fn missing_inputs_are_named() {
    let mut cluster = Cluster::default();
    let (worker, id) = (WorkerIx(0), Worker::new(7, 0));
    fold(&mut cluster, NOW, Record::new_worker(worker, id, "", ""));
    fold(
        &mut cluster,
        NOW,
        Record::Decision(Box::new(Decision::new(DecisionId(1), worker, DecisionSource::KvHitRate))),
    );
    let decided = cluster.decisions().get(DecisionId(1)).unwrap();
    let missing = RoundRobin::of(&cluster, decided).unwrap_err();
    assert_eq!(missing, LeftOut::ChosenOnly);
    assert!(not_known(missing).ends_with("decisions of which only the chosen worker is known."));
}
