//! Events that do not come, come two ways, or leave holes.

use super::{Stage, evidence};
use radixscope_model::id::{SourceIx, WorkerIx};
use radixscope_model::record::{
    Counter, EventTransport, KnowledgeWhy, LogSignal, MissedCause, PanelRef, ProcessRole, Record, Severity,
    Topic, TreeKnowledge,
};

/// A worker that gets requests and publishes its load alone, beside one that publishes all.
pub(super) fn one_silent() -> Stage {
    let mut stage = Stage::new();
    let (speaks, silent) = (stage.worker(7), stage.quiet_worker(8));
    for n in 0..30 {
        stage.store(speaks, None, n * 100..n * 100 + 20);
        for worker in [speaks, silent] {
            stage.used(worker, 40 + n);
            stage.decide(worker, 20, if worker == speaks { 5 } else { 0 });
        }
        stage.pass(1);
    }
    stage
}

/// Workers on both lines, of which the router matches JetStream's alone.
pub(super) fn two_lines() -> Stage {
    let mut stage = Stage::new();
    let workers: Vec<WorkerIx> = (7..10).map(|id| stage.quiet_worker(id)).collect();
    for (&worker, line) in
        workers.iter().zip([EventTransport::JetStream, EventTransport::JetStream, EventTransport::Core])
    {
        stage.add_transport(worker, line, 0);
    }
    for n in 0..30 {
        for &worker in &workers {
            let first = (n * 10 + u64::from(worker.0)) * 1_000;
            stage.store(worker, None, first..first + 20);
            stage.decide(worker, 20, if worker.0 < 2 { 15 } else { 0 });
        }
        stage.pass(1);
    }
    stage
}

/// A worker received from the beginning whose stores hang in the air.
pub(super) fn unknown_parents() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..20 {
        stage.store(worker, Some(1_000_000 + n), n * 100..n * 100 + 5);
        stage.pass(1);
    }
    stage
}

/// A worker received from the beginning that removes what it never stored.
pub(super) fn unknown_removals() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..30 {
        stage.store(worker, None, n * 100..n * 100 + 5);
        stage.remove(worker, 1_000_000 + n * 10..1_000_000 + n * 10 + 5);
        stage.pass(1);
    }
    stage
}

/// Three messages that did not arrive.
pub(super) fn gap() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..5);
    let (source, topic, cause) = (SourceIx(0), Topic::KvEvents, MissedCause::EnvelopeGap);
    stage.record(Record::Missed { source, worker: Some(worker), topic, cause, count: 3 });
    stage.pass(3);
    stage
}

/// Two workers that name the same tokens differently.
pub(super) fn other_hashes() -> Stage {
    use radixscope_model::id::{BlockHash, TokensHash};
    use radixscope_model::record::Block;
    let mut stage = Stage::new();
    for (id, offset) in [(7, 0), (8, 5_000)] {
        let worker = stage.worker(id);
        let block = |n| Block { block_hash: BlockHash(n + offset), tokens_hash: TokensHash(n) };
        let blocks: Vec<_> = (1..31).map(block).collect();
        stage.record(Record::Stored { worker, parent: None, blocks: blocks.into() });
    }
    stage.pass(10);
    stage
}

/// Workers that were there long before us.
pub(super) fn late() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.quiet_worker(7);
    stage.add_transport(worker, EventTransport::Core, 4_711);
    stage.knows(worker, TreeKnowledge::Partial, KnowledgeWhy::JoinedLate);
    stage.record(Record::ModelCard {
        worker,
        total_kv_blocks: Some(1_600),
        block_size_tokens: Some(16),
        publishes_events: None,
    });
    for n in 0..60 {
        stage.store(worker, Some(1_000_000 + n), n * 100..n * 100 + 20);
        stage.remove(worker, 2_000_000 + n * 100..2_000_000 + n * 100 + 20);
        stage.pass(1);
    }
    stage
}

#[test]
fn a_loss_that_is_got_back_is_none_though_an_earlier_one_was_not() {
    let mut stage = gap();
    let other = stage.worker(8);
    let (source, topic, cause) = (SourceIx(0), Topic::KvEvents, MissedCause::EnvelopeGap);
    stage.pass(2);
    assert!(stage.finding("event_gaps").is_some());
    stage.pass(100);
    assert!(stage.finding("event_gaps").is_none(), "long ago");
    for worker in [other, WorkerIx(0)] {
        stage.record(Record::Missed { source, worker: Some(worker), topic, cause, count: 2 });
        stage.record(Record::Recovered { source, worker, topic, cause, count: 2 });
        stage.pass(5);
        assert!(stage.finding("event_gaps").is_none(), "{worker:?}");
    }
    // One of two that is got back leaves the other.
    stage.record(Record::Missed { source, worker: Some(other), topic, cause, count: 2 });
    stage.record(Record::Missed { source, worker: Some(WorkerIx(0)), topic, cause, count: 2 });
    stage.record(Record::Recovered { source, worker: other, topic, cause, count: 2 });
    stage.pass(5);
    assert!(stage.finding("event_gaps").is_some());
}

#[test]
fn a_worker_that_gets_requests_and_publishes_nothing_is_named() {
    let stage = one_silent();
    assert_eq!(stage.grave(), ["no_events"]);
    let finding = stage.found("no_events");
    assert_eq!((finding.severity, &*finding.workers), (Severity::Warning, &[WorkerIx(1)][..]));
    assert_eq!(evidence(finding, "Workers that get requests"), "1 of 2 (50 %)");
    assert_eq!((finding.panel, finding.selects_worker), (PanelRef::Workers, true));
}

#[test]
fn a_worker_that_no_longer_publishes_is_named_after_a_minute() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..20);
    for n in 0..90 {
        stage.used(worker, 40 + n);
        stage.decide(worker, 20, 10);
        stage.pass(1);
        assert_eq!(stage.finding("no_events").is_some(), n >= 64, "after {n} s");
    }
}

#[test]
fn prompts_that_are_cached_whole_or_shorter_than_a_block_store_nothing() {
    for (isl, overlap) in [(20, 20), (1, 0)] {
        let mut stage = Stage::new();
        let worker = stage.quiet_worker(7);
        for _ in 0..60 {
            stage.used(worker, 3);
            stage.decide(worker, isl, overlap);
            stage.pass(1);
        }
        assert!(stage.finding("no_events").is_none(), "{isl} blocks, {overlap} cached");
    }
}

#[test]
fn a_component_that_only_decodes_may_be_silent() {
    let mut stage = Stage::new();
    let prefill = stage.worker(7);
    let worker = WorkerIx(1);
    stage.record(Record::new_worker(worker, radixscope_model::id::Worker::new(8, 0), "dynamo", "decode"));
    for n in 0..30 {
        stage.store(prefill, None, n * 100..n * 100 + 20);
        stage.used(worker, 40 + n);
        stage.pass(1);
    }
    assert_eq!(stage.found("no_events").severity, Severity::Info);
}

#[test]
fn workers_whose_events_the_router_does_not_receive_are_named() {
    let stage = two_lines();
    let finding = stage.found("event_planes_mixed");
    assert_eq!((finding.severity, &*finding.workers), (Severity::Critical, &[WorkerIx(2)][..]));
    assert_eq!(evidence(finding, "routed to plain NATS"), "0 of 520 (0 %)", "when it was found");
}

#[test]
fn an_old_stream_of_workers_that_left_is_no_mixture() {
    let mut stage = Stage::new();
    let (old, new) = (stage.quiet_worker(7), stage.quiet_worker(8));
    stage.add_transport(old, EventTransport::JetStream, 0);
    stage.store(old, None, 1..20);
    stage.pass(700);
    stage.add_transport(new, EventTransport::Core, 0);
    stage.store(new, None, 1..20);
    stage.pass(30);
    assert!(stage.finding("event_planes_mixed").is_none());
}

#[test]
fn stores_in_the_air_are_a_fault_unless_we_came_late_or_lost_events() {
    assert_eq!(unknown_parents().grave(), ["unknown_parents"]);
    let mut lossy = unknown_parents();
    let (source, worker, topic, cause) = (SourceIx(0), None, Topic::KvEvents, MissedCause::EnvelopeGap);
    lossy.record(Record::Missed { source, worker, topic, cause, count: 3 });
    lossy.pass(40);
    assert_eq!(lossy.grave(), ["event_gaps"], "the loss explains them");
}

#[test]
fn stores_that_hung_in_the_air_until_what_was_lost_was_got_back_are_none() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    let (source, topic, cause) = (SourceIx(0), Topic::KvEvents, MissedCause::EnvelopeGap);
    for n in 0..20 {
        stage.record(Record::Missed { source, worker: Some(worker), topic, cause, count: 1 });
        stage.store(worker, Some(1_000_000 + n), n * 100..n * 100 + 5);
        stage.remove(worker, 2_000_000 + n * 10..2_000_000 + n * 10 + 5);
        stage.record(Record::Recovered { source, worker, topic, cause, count: 1 });
        stage.pass(1);
    }
    assert!(stage.grave().is_empty(), "{:?}", stage.grave());
}

#[test]
fn stores_that_the_router_itself_cannot_place_are_a_fault_even_where_we_can() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..20u32 {
        let first = u64::from(n) * 100;
        stage.store(worker, None, first..first + 5);
        let counters = [(Counter::StoredParentUnknown, f64::from(n)), (Counter::StoredOk, 100.0)];
        stage.scrape(ProcessRole::Frontend, &counters, &[], Vec::new());
        stage.pass(1);
    }
    assert_eq!(stage.grave(), ["unknown_parents"]);
}

#[test]
fn removals_of_unknown_blocks_are_a_fault_beyond_what_was_held_before_us() {
    assert_eq!(unknown_removals().grave(), ["unknown_removals"]);
    let mut stage = late();
    assert_eq!(stage.codes(), ["tree_partial"], "1,200 of at most 1,600");
    let worker = WorkerIx(0);
    for n in 0..60 {
        stage.remove(worker, 3_000_000 + n * 100..3_000_000 + n * 100 + 20);
        stage.pass(1);
    }
    assert_eq!(stage.grave(), ["tree_partial", "unknown_removals"], "more than its cache can have held");
}

#[test]
fn a_few_removals_of_unknown_blocks_are_worth_knowing_and_no_fault() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..40 {
        stage.store(worker, None, n * 100..n * 100 + 60);
        stage.remove(worker, (n * 100..n * 100 + 60).chain([1_000_000 + n]));
        stage.pass(1);
    }
    assert_eq!(stage.codes(), ["unknown_removals"]);
    assert_eq!(stage.found("unknown_removals").severity, Severity::Info);
}

#[test]
fn a_worker_that_came_back_is_like_one_that_we_came_late_to() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..200);
    stage.record(Record::Left { worker, why: radixscope_model::record::DepartureCause::Health });
    stage.record(Record::Rejoined { worker });
    stage.knows(worker, TreeKnowledge::Partial, KnowledgeWhy::Restarted);
    for n in 0..20 {
        stage.remove(worker, n * 9 + 1..n * 9 + 10);
        stage.store(worker, Some(n + 1), [10_000 + n]);
        stage.pass(1);
    }
    assert_eq!(stage.grave(), ["tree_partial"]);
}

#[test]
fn lost_events_are_reported_with_their_worker() {
    let finding = gap();
    let finding = finding.found("event_gaps");
    assert_eq!(finding.workers, [WorkerIx(0)]);
    assert_eq!(evidence(finding, "Events missing, worker 7/0"), "3 beside 1 received");
}

#[test]
fn engines_that_hash_differently_are_found_by_the_tree_or_by_the_log() {
    assert_eq!(
        evidence(other_hashes().found("engine_hashes_differ"), "with another hash on a second worker"),
        "30 of 30 (100 %)"
    );
    let mut stage = Stage::new();
    stage.worker(7);
    stage.log_signal(LogSignal::HashMismatch, 200);
    stage.pass(10);
    assert_eq!(stage.grave(), ["engine_hashes_differ"]);
}

#[test]
fn workers_that_need_not_publish_are_not_silent() {
    let silent = |of: &dyn Fn(&mut Stage, WorkerIx)| {
        let mut stage = one_silent();
        let silent = stage.found("no_events").workers[0];
        of(&mut stage, silent);
        stage.pass(40);
        stage.finding("no_events").is_some()
    };
    assert!(silent(&|_, _| {}));
    let card = |stage: &mut Stage, worker| {
        let (total_kv_blocks, block_size_tokens) = (None, None);
        let publishes_events = Some(false);
        stage.record(Record::ModelCard { worker, total_kv_blocks, block_size_tokens, publishes_events });
    };
    assert!(!silent(&card), "its card says so");
}

#[test]
fn names_of_a_worker_that_has_several_for_a_block_are_not_compared() {
    use radixscope_model::id::{BlockHash, TokensHash};
    use radixscope_model::record::Block;
    let mut stage = other_hashes();
    let block = |n| Block { block_hash: BlockHash(n + 9_000), tokens_hash: TokensHash(n) };
    let blocks: Vec<_> = (1..31).map(block).collect();
    stage.record(Record::Stored { worker: WorkerIx(0), parent: None, blocks: blocks.into() });
    stage.pass(40);
    assert!(stage.finding("engine_hashes_differ").is_none());
    let status = stage.cluster.checked().iter().find(|rule| rule.code == "engine_hashes_differ").unwrap();
    assert!(status.missing.contains("several hashes for 30 blocks"), "{}", status.missing);
}
