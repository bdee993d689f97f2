//! Decisions, workers, weights and arrivals of one pool only, where there are several.

use radixscope_model::formula::Formula;
use radixscope_model::id::{DecisionId, Millis, PoolIx, Seq, Worker, WorkerIx};
use radixscope_model::record::{
    Arithmetic, Candidate, Completeness, DecidedBy, Decision, DecisionSource, Entry, Record,
};
use radixscope_state::cluster::Cluster;
use radixscope_state::requests::Arrivals;

use super::{DecisionRange, Facts, LeftOut, Sample, Selection, arrivals_in, hint};

const AT_MS: Millis = Millis(1_800_000_000_000);

fn fold(cluster: &mut Cluster, record: Record<'_>) {
    let seq = Seq(cluster.seq().0 + 1);
    cluster.fold(seq, &Entry { at_ms: AT_MS, record });
}

fn candidate(worker: u16, cost: f64) -> Candidate {
    Candidate {
        worker: WorkerIx(worker.into()),
        overlap_blocks: 0,
        prefill_blocks: cost,
        decode_blocks: 0.0,
        cost,
        tree_size: None,
        host_blocks: 0,
        disk_blocks: 0,
    }
}

/// Workers 0 and 1 of `prefill`, which weigh with 1, workers 2, 3 and 4 of `backend`, which weigh with 2; decisions 1, 3, 5
/// in the first, 2, 4, 6 in the second, two for each request.
fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    for (worker, component) in (0..).zip(["prefill", "prefill", "backend", "backend", "backend"]) {
        let id = Worker::new(u64::from(worker) + 1, 0);
        fold(&mut cluster, Record::new_worker(WorkerIx(worker), id, "dynamo", component));
    }
    for id in 1..=6 {
        let is_prefill = id % 2 == 1;
        let (workers, factor, other) = if is_prefill { (0..2, 1.0, id + 1) } else { (2..5, 2.0, id - 1) };
        let candidates: Vec<Candidate> =
            workers.map(|worker| candidate(worker, f64::from(worker) + 1.0)).collect();
        let chosen = candidates[0].worker;
        let decision = Decision::new(DecisionId(id), chosen, DecisionSource::ActiveSequences);
        let decision = Decision {
            isl_tokens: Some(64),
            isl_blocks: Some(4),
            block_size_tokens: Some(16),
            formula: Some(Formula::E),
            prefill_factor: Some(factor),
            candidates,
            completeness: Completeness::Reconstructed,
            other_part: Some(DecisionId(other)),
            ..decision
        };
        fold(&mut cluster, Record::Decision(Box::new(decision)));
    }
    cluster
}

fn in_pool(pool: u16) -> Selection {
    Selection { pool: Some(PoolIx(pool)), ..Selection::of(DecisionRange::ALL) }
}

#[test]
fn decisions_of_other_routers_are_left_out_and_counted() {
    let mut cluster = cluster();
    let mut decision = Decision::new(DecisionId(7), WorkerIx(2), DecisionSource::Log);
    (decision.arithmetic, decision.decided_by) = (Arithmetic::EndpointPicker, Some(DecidedBy::Scores));
    fold(&mut cluster, Record::Decision(Box::new(decision)));
    let sample = Sample::of(&cluster, in_pool(1));
    assert_eq!(sample.about().left_out, [(LeftOut::OtherRouter, 1)]);
    assert_eq!((sample.about().considered, sample.about().judged), (4, 3));
    assert_eq!(hint(sample.about()), None);
    let only = Selection { worker: Some(WorkerIx(2)), ..Selection::of(DecisionRange::Last(1)) };
    let text = hint(Sample::of(&cluster, only).about()).expect("none is judged");
    assert!(text.contains("know Dynamo's cost formula alone"), "{text}");
}

#[test]
fn a_sample_has_the_decisions_and_the_weight_of_one_pool() {
    let cluster = cluster();
    let seen = |selection| {
        let sample = Sample::of(&cluster, selection);
        (sample.about().considered, sample.latest_weight())
    };
    assert_eq!(seen(in_pool(0)), (3, Some(1.0)));
    assert_eq!(seen(in_pool(1)), (3, Some(2.0)));
    assert_eq!(seen(Selection::of(DecisionRange::ALL)).0, 6);
}

#[test]
fn the_latest_so_many_are_counted_within_the_pool() {
    let cluster = cluster();
    let selection = Selection { pool: Some(PoolIx(0)), ..Selection::of(DecisionRange::Last(2)) };
    assert_eq!(Sample::of(&cluster, selection).about().considered, 2);
}

#[test]
fn a_model_has_the_workers_and_the_weight_of_one_pool() {
    let cluster = cluster();
    let facts = |pool| {
        let facts = Facts::of(&cluster, in_pool(pool));
        let (_, known) = facts.settings(&Arrivals::default());
        known.iter().map(|fact| fact.value).collect::<Vec<_>>()
    };
    let workers_and_weight = |pool| {
        let known = facts(pool);
        (known[0], known[3])
    };
    assert_eq!(workers_and_weight(0), (2.0, 1.0));
    assert_eq!(workers_and_weight(1), (3.0, 2.0));
}

#[test]
fn a_prompt_that_is_kept_with_the_other_choice_belongs_to_both_pools_once() {
    let cluster = cluster();
    let mut arrivals = Arrivals::default();
    // The first request's prompt is retained with its decode choice, the second one's with both, the third one's with none.
    for id in [2, 3, 4] {
        arrivals.push(DecisionId(id), AT_MS, Some(64), &[id, id + 10]);
    }
    let of = |pool: Option<u16>, count| {
        let found = arrivals_in(&cluster, &arrivals, pool.map(PoolIx), count);
        found.iter().map(|arrival| arrival.decision.0).collect::<Vec<_>>()
    };
    assert_eq!(of(Some(0), 10), [2, 3]);
    assert_eq!(of(Some(1), 10), [2, 4]);
    assert_eq!(of(Some(1), 1), [4], "the latest");
    assert_eq!(of(None, 10), [2, 3, 4]);
    let found = arrivals_in(&cluster, &arrivals, Some(PoolIx(1)), 1);
    let mut prompt = Vec::new();
    found.prompt(found.iter().next().unwrap(), &mut prompt);
    assert_eq!(prompt, [4, 14], "with its blocks");
}
