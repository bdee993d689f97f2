//! The forms of the block size mismatch, and what only looks like one.

use super::{Stage, evidence};
use radixscope_model::record::{LogSignal, Record, Severity};

const CODE: &str = "block_size_mismatch";

/// Form 1: nothing but removals.
pub(super) fn oversize() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..20 {
        stage.remove(worker, n * 10..n * 10 + 10);
        stage.decide(worker, 260, 0);
        stage.pass(1);
    }
    stage
}

/// Forms 2 and 3 before removals: nothing but empty stores.
pub(super) fn emptied() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..20 {
        stage.store(worker, (n > 0).then_some(n), []);
        stage.decide(worker, 260, 0);
        stage.pass(1);
    }
    stage
}

/// Form 4: whole events, an overlap of 0, chains half as long as prompts.
pub(super) fn router(router_blocks: u64) -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..55 {
        // One common beginning, different ends.
        stage.store(worker, None, 1..101);
        stage.store(worker, Some(100), 1_000 * (n + 1)..1_000 * (n + 1) + 30);
        stage.decide(worker, router_blocks, 0);
        stage.pass(1);
    }
    stage
}

/// Cards of one component that differ.
pub(super) fn cards() -> Stage {
    let mut stage = Stage::new();
    for (id, size) in [(7, 16), (8, 16), (9, 32)] {
        let worker = stage.worker(id);
        stage.record(Record::ModelCard {
            worker,
            total_kv_blocks: Some(800),
            block_size_tokens: Some(size),
            publishes_events: None,
        });
    }
    stage.pass(10);
    stage
}

fn form(stage: &Stage) -> &str {
    evidence(stage.found(CODE), "Form of the fault")
}

#[test]
fn removals_without_any_store_are_blocks_too_large_for_the_publisher() {
    let mut stage = oversize();
    assert!(form(&stage).starts_with("1:"));
    assert_eq!(stage.grave(), [CODE], "and nothing else");
    assert_eq!(evidence(stage.found(CODE), "Engine's size"), "unknown");
    assert_eq!(evidence(stage.found(CODE), "Router's size"), "16");
    stage.log_signal(LogSignal::Oversize { publisher: 16, engine: 32 }, 3);
    stage.pass(6);
    assert_eq!(evidence(stage.found(CODE), "Engine's size"), "32", "the worker's log says it");
    assert!(stage.found(CODE).fix.iter().any(|f| f.setting == "--kv-block-size" && f.value == "32"));
}

#[test]
fn stores_that_a_log_says_are_dropped_are_found_before_the_first_removal() {
    let mut stage = Stage::new();
    let worker = stage.quiet_worker(7);
    stage.log_signal(LogSignal::Oversize { publisher: 16, engine: 32 }, 3);
    for _ in 0..30 {
        stage.used(worker, 100);
        stage.decide(worker, 260, 0);
        stage.pass(1);
    }
    assert!(form(&stage).starts_with("1:"));
    assert_eq!(stage.grave(), [CODE], "that no event comes is explained");
}

#[test]
fn empty_stores_alone_do_not_distinguish_the_relay_from_small_blocks() {
    let mut stage = emptied();
    assert!(form(&stage).starts_with("2 or 3:"));
    assert_eq!(stage.grave(), [CODE]);
    let worker = stage.cluster.worker_ix(radixscope_model::id::Worker::new(7, 0)).unwrap();
    for n in 0..5 {
        stage.remove(worker, n * 10..n * 10 + 10);
    }
    stage.pass(6);
    assert!(form(&stage).starts_with("3:"), "a relay passes removals on");
}

#[test]
fn empty_stores_and_no_removal_although_caches_must_be_full_are_small_blocks() {
    let mut stage = emptied();
    let worker = stage.cluster.worker_ix(radixscope_model::id::Worker::new(7, 0)).unwrap();
    stage.record(Record::ModelCard {
        worker,
        total_kv_blocks: Some(15),
        block_size_tokens: Some(32),
        publishes_events: None,
    });
    stage.pass(6);
    assert!(form(&stage).starts_with("2:"), "20 stores of a block at least, 15 fit");
}

#[test]
fn full_trees_that_no_prompt_meets_are_a_router_of_another_size() {
    let stage = router(260);
    assert!(form(&stage).starts_with("4:"));
    assert_eq!(evidence(stage.found(CODE), "Engine's size"), "32", "twice as many blocks asked as stored");
    assert_eq!(stage.grave(), [CODE], "the overlap of 0 is explained");
    let label = &stage.found(CODE).evidence.iter().find(|e| e.label.starts_with("Engine's")).unwrap().label;
    assert!(label.contains("estimate"));
}

#[test]
fn an_overlap_of_0_with_chains_as_long_as_prompts_is_another_fault() {
    let stage = router(130);
    assert!(stage.finding(CODE).is_none());
    assert_eq!(stage.grave(), ["zero_overlap"]);
}

#[test]
fn an_overlap_beyond_the_prompt_in_the_log_is_a_router_of_another_size() {
    let mut stage = router(130);
    stage.log_signal(LogSignal::NegativePrefill, 1);
    stage.pass(10);
    assert!(form(&stage).starts_with("4:"));
}

#[test]
fn cards_that_differ_within_a_component_are_found() {
    let stage = cards();
    assert_eq!(stage.found(CODE).severity, Severity::Warning);
    assert_eq!(evidence(stage.found(CODE), "Sizes registered"), "16, 32");
}

#[test]
fn prompts_shorter_than_a_block_are_no_mismatch() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for _ in 0..30 {
        stage.store(worker, None, []);
        stage.decide(worker, 1, 0);
        stage.pass(1);
    }
    assert!(stage.grave().is_empty(), "{:?}", stage.codes());
}

#[test]
fn a_few_events_are_no_sample() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    for n in 0..9 {
        stage.store(worker, Some(n), []);
        stage.remove(worker, [n, n + 100]);
    }
    stage.pass(60);
    assert!(stage.grave().is_empty(), "{:?}", stage.codes());
}

#[test]
fn an_idle_hour_does_not_mend_it_and_a_mended_worker_does() {
    let mut stage = emptied();
    stage.pass(3_600);
    assert!(stage.finding(CODE).is_some(), "nothing was received that would say otherwise");
    let worker = stage.cluster.worker_ix(radixscope_model::id::Worker::new(7, 0)).unwrap();
    for n in 0..100 {
        stage.store(worker, None, n * 10..n * 10 + 10);
        stage.pass(1);
    }
    assert!(stage.finding(CODE).is_none());
}
