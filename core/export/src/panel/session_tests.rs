//! A conversation that moves: what each request lost, why, and how that is said.

use radixscope_model::id::{Seq, Worker};
use radixscope_model::record::{
    Candidate, Completeness, Decision, DecisionSource, DisplacedBy, Entry, GoneBlock, GoneReason, Progress,
    Record, Reuse,
};

use super::super::not_reused::ghost;
use super::*;

const NOW: u64 = 1_800_000_000_000;

fn fold(cluster: &mut Cluster, record: Record<'_>) {
    let seq = Seq(cluster.seq().0 + 1);
    cluster.fold(seq, &Entry { at_ms: Millis(NOW), record });
}

fn candidate(worker: u32, cost: f64) -> Candidate {
    Candidate {
        worker: WorkerIx(worker),
        overlap_blocks: 0,
        host_blocks: 0,
        disk_blocks: 0,
        prefill_blocks: 0.0,
        decode_blocks: 0.0,
        cost,
        tree_size: None,
    }
}

/// A request with a prompt of ten blocks of 16 tokens, on a worker that held so many of them; another one held `held`.
fn decide(
    cluster: &mut Cluster,
    (id, session): (u64, Option<&str>),
    worker: u32,
    (held, chosen): (u32, u32),
    ttft_ms: u64,
    change: impl FnOnce(&mut Reuse),
) {
    let mut decision = Decision::new(DecisionId(id), WorkerIx(worker), DecisionSource::Log);
    (decision.isl_tokens, decision.block_size_tokens, decision.isl_blocks) = (Some(160), Some(16), Some(10));
    decision.decided_ms = Some(Millis(NOW + id * 1_000));
    decision.session = session.map(str::to_owned);
    decision.completeness = Completeness::AllCandidates;
    decision.candidates = vec![candidate(0, if worker == 0 { 1.0 } else { 9.0 }), candidate(1, 5.0)];
    decision.candidates[0].overlap_blocks = held;
    let mut reuse = Reuse {
        decision: DecisionId(id),
        prompt_blocks: 10,
        seen_blocks: held,
        held_blocks: held,
        eligible_blocks: held,
        chosen_blocks: chosen,
        holder: Some(WorkerIx(0)),
        gone: None,
        known_since_ms: Millis(NOW - 60_000),
        lacked_blocks: false,
        displaced_by: None,
    };
    change(&mut reuse);
    fold(cluster, Record::Decision(Box::new(decision)));
    fold(cluster, Record::Reuse(Box::new(reuse)));
    let progress = Progress { ttft_us: Some(ttft_ms * 1_000), ..Progress::default() };
    fold(cluster, Record::Progress { decision: DecisionId(id), progress: Box::new(progress) });
}

fn name(worker: WorkerIx) -> String {
    format!("W{}", worker.0 + 1)
}

fn conversation() -> Cluster {
    let mut cluster = Cluster::default();
    for w in 0..2 {
        let id = Worker::new(7 + u64::from(w), 0);
        fold(&mut cluster, Record::new_worker(WorkerIx(w), id, "dynamo", "backend"));
    }
    decide(&mut cluster, (1, Some("a")), 0, (0, 0), 90, |_| {});
    decide(&mut cluster, (2, Some("b")), 0, (0, 0), 90, |_| {});
    decide(&mut cluster, (3, Some("a")), 0, (9, 9), 20, |_| {});
    decide(&mut cluster, (4, Some("a")), 1, (9, 2), 200, |_| {});
    decide(&mut cluster, (5, Some("a")), 1, (3, 3), 50, |reuse| {
        reuse.seen_blocks = 10;
        let at_ms = Millis(NOW - 36_000);
        reuse.gone =
            Some(GoneBlock { worker: WorkerIx(0), at_ms, why: GoneReason::Evicted, held_blocks: 98 });
        let decision = Some(DecisionId(2));
        reuse.displaced_by = Some(DisplacedBy { stored_blocks: 240, decision, decision_blocks: 180 });
    });
    cluster
}

#[test]
fn each_request_of_a_session_says_where_it_ran_and_what_moving_cost() {
    let turns = turns(&conversation(), "a", name);
    let all: Vec<_> =
        turns.iter().map(|turn| (turn.number, turn.id.0, turn.worker.0, turn.moved_from)).collect();
    assert_eq!(all, [(1, 1, 0, None), (2, 3, 0, None), (3, 4, 1, Some(WorkerIx(0))), (4, 5, 1, None)]);
    assert_eq!(turns[2].lost, Some((112, LossCause::Load)));
    assert_eq!(turns[2].figures(), "20 % cached, TTFT 200 ms");
    assert_eq!(turns.iter().map(|turn| turn.is_slowest).collect::<Vec<_>>(), [false, false, true, false]);
    assert!(
        turns[2].sentence.starts_with(
            "Moved from W1 to W2: 7 blocks computed anew that had been cached, worker was busier. Computed anew: "
        ),
        "{}",
        turns[2].sentence
    );
    assert!(turns[0].sentence.starts_with("On W1. Computed anew: 160 tokens seen for the first time."));
}

#[test]
fn an_evicted_block_names_when_how_full_its_worker_was_and_what_it_stored_then() {
    let cluster = conversation();
    let decided = cluster.decisions().get(DecisionId(5)).unwrap();
    assert_eq!(
        not_reused::sentence(&cluster, decided, name).unwrap(),
        "Computed anew: 112 tokens evicted on W1, 41 s before, when it held 98 blocks, while it stored 180 blocks of session b \
         (75 % of all that it stored then)."
    );
    let ghost = ghost(decided, name).unwrap();
    assert_eq!(
        (ghost.depth, ghost.blocks, ghost.label.as_str()),
        (3, 7, "7 blocks evicted on W1 41 s before")
    );
    assert_eq!(super::super::not_reused::ghost(cluster.decisions().get(DecisionId(4)).unwrap(), name), None);
}

#[test]
fn a_session_without_decisions_has_no_requests() {
    assert!(turns(&conversation(), "c", name).is_empty());
}
