use proptest::prelude::*;

use super::*;
use crate::cluster::Cluster;
use radixscope_model::id::{DecisionId, Millis, Seq, Worker, WorkerIx};
use radixscope_model::record::{DecidedBy, Decision, DecisionSource, Entry, Record};

/// A decision for worker 1 of these candidates, as the state keeps it: overlap and cost of each.
pub(in crate::cluster) fn decided(
    isl_blocks: Option<u64>,
    overlap: Option<u64>,
    candidates: &[(u32, f64)],
) -> DecisionEntry {
    let mut cluster = Cluster::default();
    let mut decision = Decision::new(DecisionId(1), WorkerIx(1), DecisionSource::Log);
    decision.isl_blocks = isl_blocks;
    decision.overlap_blocks = overlap;
    let of = |(at, &(overlap_blocks, cost)): (usize, &(u32, f64))| Candidate {
        worker: WorkerIx(at as u32),
        overlap_blocks,
        host_blocks: 0,
        disk_blocks: 0,
        prefill_blocks: cost - 5.0,
        decode_blocks: 5.0,
        cost,
        tree_size: None,
    };
    let candidates: Vec<Candidate> = candidates.iter().enumerate().map(of).collect();
    if !candidates.is_empty() {
        decision.completeness = Completeness::AllCandidates;
    }
    decision.candidates = candidates;
    let worker = |ix| Record::new_worker(WorkerIx(ix), Worker::new(ix.into(), 0), "", "");
    for (seq, record) in [worker(0), worker(1), Record::Decision(Box::new(decision))].into_iter().enumerate()
    {
        cluster.fold(Seq(seq as u64 + 1), &Entry { at_ms: Millis(1), record });
    }
    cluster.decisions().get(DecisionId(1)).unwrap().clone()
}

#[test]
fn what_the_cost_did_not_decide_is_no_tie_and_skips_no_worker() {
    let mut of = decided(Some(100), None, &[(95, 30.0), (20, 30.0)]);
    assert!(of.is_tie() && of.lost_affinity().is_some(), "nothing is reported of what decided");
    for by in DecidedBy::ALL {
        of.decision.decided_by = Some(by);
        let is_cost = by == DecidedBy::Cost;
        assert_eq!(
            (of.is_by_cost(), of.is_tie(), of.lost_affinity().is_some()),
            (is_cost, is_cost, is_cost),
            "{by:?}"
        );
        assert_eq!(of.cost_gap_blocks(), Ok(0.0), "what it cost is known all the same");
    }
}

#[test]
fn what_was_held_decides_between_hit_and_miss() {
    let verdict = |isl, overlap| decided(isl, overlap, &[]).cache_outcome();
    assert_eq!(verdict(Some(100), Some(0)), CacheOutcome::Miss);
    assert_eq!(verdict(Some(100), Some(1)), CacheOutcome::Partial);
    assert_eq!(verdict(Some(100), Some(89)), CacheOutcome::Partial);
    assert_eq!(verdict(Some(100), Some(90)), CacheOutcome::Hit);
    assert_eq!(verdict(Some(100), None), CacheOutcome::Unknown);
    assert_eq!(verdict(None, Some(7)), CacheOutcome::Unknown);
}

#[test]
fn an_incomplete_block_has_no_owner_and_does_not_count() {
    let mut short = decided(Some(3), Some(2), &[]);
    assert_eq!(short.cache_outcome(), CacheOutcome::Partial);
    (short.decision.isl_tokens, short.decision.block_size_tokens) = (Some(47), Some(16));
    assert_eq!((short.full_blocks(), short.cache_outcome()), (Some(2), CacheOutcome::Hit));
}

#[test]
fn the_cost_gap_is_to_the_cheapest_other_one() {
    let example = decided(Some(100), None, &[(20, 90.0), (75, 30.0), (10, 99.0)]);
    assert_eq!(example.cost_gap_blocks(), Ok(60.0));
    assert_eq!((example.is_tie(), example.lost_affinity()), (false, None));
    let dearer = decided(Some(100), None, &[(0, 25.0), (0, 30.0)]);
    assert_eq!(dearer.cost_gap_blocks(), Ok(-5.0));
}

#[test]
fn without_candidates_the_cost_gap_is_unknown_and_says_why() {
    assert_eq!(decided(Some(9), Some(3), &[]).cost_gap_blocks(), Err(NoCostGap::ChosenOnly));
    let mut alone = decided(Some(9), None, &[(0, 4.0), (3, 1.0)]);
    alone.decision.candidates.remove(0);
    assert_eq!(alone.cost_gap_blocks(), Err(NoCostGap::Alone));
    let mut elsewhere = decided(Some(9), None, &[(0, 4.0), (3, 1.0)]);
    elsewhere.decision.candidates.remove(1);
    assert_eq!(elsewhere.cost_gap_blocks(), Err(NoCostGap::ChosenUnknown));
}

#[test]
fn equal_lowest_costs_tie_even_where_the_router_does_not_say_so() {
    let tie = decided(Some(9), None, &[(0, 9.0), (0, 9.0), (0, 10.0)]);
    assert_eq!((tie.is_tie(), tie.tied_at_lowest(), tie.cost_gap_blocks()), (true, 2, Ok(0.0)));
    let mut entry = decided(Some(9), None, &[(0, 9.0), (0, 8.0)]);
    entry.decision.tied = true;
    assert!(entry.is_tie());
    let endless = decided(Some(9), None, &[(0, f64::INFINITY), (0, f64::INFINITY)]);
    assert_eq!(endless.cost_gap_blocks(), Ok(0.0));
}

#[test]
fn who_held_more_and_lost_is_named_with_how_much_more() {
    let lost = decided(Some(100), None, &[(80, 95.0), (20, 30.0), (80, 90.0)]).lost_affinity().unwrap();
    assert_eq!((lost.candidate.worker, lost.more_blocks), (WorkerIx(2), 60));
}

proptest! {
    #[test]
    fn a_cost_gap_of_a_cheapest_choice_is_never_below_zero_and_affinity_is_lost_only_to_more(
        weighed in prop::collection::vec((0u32..200, -1e6f64..1e6), 2..40)
    ) {
        let decided = decided(Some(200), None, &weighed);
        let cost_gap = decided.cost_gap_blocks().unwrap();
        let least = weighed.iter().map(|w| w.1).fold(f64::INFINITY, f64::min);
        prop_assert_eq!(cost_gap >= 0.0, weighed[1].1 == least);
        let most = weighed.iter().map(|w| w.0).max().unwrap();
        prop_assert_eq!(decided.lost_affinity().map_or(0, |lost| lost.more_blocks), most - weighed[1].0);
    }
}
