//! Trees that lack blocks, and what is done about it.

use super::events::late;
use super::{Stage, evidence};
use radixscope_model::id::{Millis, SourceIx, WorkerIx};
use radixscope_model::record::{
    CheckStatus, Divergence, IndexComparison, IndexedWorker, IndexerReport, KnowledgeWhy, MissedCause,
    QueryState, Record, Severity, Topic, TreeKnowledge,
};

/// A worker that could not be asked.
pub(super) fn failed() -> Stage {
    let mut stage = late();
    let next_ms = Some(Millis(stage.now().0 + 300_000));
    stage.asks(WorkerIx(0), QueryState::Failed { next_ms }, "no response within 3 s at 10.0.0.1:4444");
    stage.pass(10);
    stage
}

/// A worker that holds other blocks than its events say.
pub(super) fn diverged() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..101);
    let drift = Divergence { missing_blocks: 12, surplus_blocks: 3, detached_blocks: 40 };
    stage.record(Record::Divergence { worker, drift });
    stage.pass(1);
    stage
}

/// A worker of whose blocks an indexer lacks some, in two readings.
pub(super) fn indexed() -> Stage {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..101);
    stage.knows(worker, TreeKnowledge::Complete, KnowledgeWhy::FromFirstEvent);
    let once = IndexComparison { same_blocks: 79, tree_only_blocks: 21, ..IndexComparison::default() };
    stage.index(worker, once);
    stage.pass(30);
    stage.index(worker, IndexComparison { tree_only_twice_blocks: 18, ..once });
    stage.pass(1);
    stage
}

impl Stage {
    fn index(&mut self, worker: WorkerIx, compared: IndexComparison) {
        let indexed = IndexedWorker {
            instance_id: 1,
            dp_rank: 0,
            endpoint: "tcp://10.0.0.7:5557".to_owned(),
            status: "active".to_owned(),
            worker: Some(worker),
            blocks: compared.same_blocks + compared.index_only_blocks,
            compared: Some(compared),
            load: None,
        };
        let name = "http://indexer:8090".to_owned();
        let report = IndexerReport { name, workers: vec![indexed], omitted_workers: 0 };
        self.record(Record::Indexer(Box::new(report)));
    }
}

#[test]
fn an_index_that_lacks_the_same_blocks_twice_is_found() {
    let mut stage = indexed();
    assert_eq!(stage.grave(), ["indexer_differs"]);
    let finding = stage.found("indexer_differs");
    assert!(finding.title.starts_with("The index of http://indexer:8090 differs"), "{}", finding.title);
    assert_eq!(evidence(finding, "only the tree has"), "18 of 100 (18 %)");
    let worker = WorkerIx(0);
    stage.index(worker, IndexComparison { same_blocks: 100, ..IndexComparison::default() });
    stage.pass(31);
    assert!(stage.codes().is_empty(), "{:?}", stage.codes());
    stage.pass(200);
    let rule = stage.cluster.checked().iter().find(|rule| rule.code == "indexer_differs").unwrap();
    assert_eq!(rule.status, CheckStatus::NoData, "a reading of three minutes ago says nothing of now");
}

fn settings(stage: &Stage) -> Vec<String> {
    stage.found("tree_partial").fix.iter().map(|fix| fix.setting.to_string()).collect()
}

#[test]
fn a_tree_that_was_joined_late_is_found_in_the_first_second_with_what_is_known_of_each_cache() {
    let mut stage = Stage::new();
    let worker = stage.quiet_worker(7);
    stage.knows(worker, TreeKnowledge::Partial, KnowledgeWhy::JoinedLate);
    stage.store(worker, Some(1_000), 1..20);
    stage.pass(1);
    let finding = stage.found("tree_partial");
    assert_eq!(finding.severity, Severity::Warning, "how much is missing is not known");
    assert_eq!(evidence(finding, "Coverage"), "unknown share of used blocks · 0 of 1 workers complete");

    let stage = late();
    let finding = stage.found("tree_partial");
    assert_eq!((finding.severity, &*finding.workers), (Severity::Warning, &[WorkerIx(0)][..]));
    assert_eq!(evidence(finding, "Known blocks of worker 7/0"), "0 of 1,600 (0 %)");
    assert_eq!(evidence(finding, "parent is missing"), "1,120 of 1,120 (100 %)");
    assert_eq!(evidence(finding, "Coverage"), "0 % of used blocks · 0 of 1 workers complete");
    assert!(evidence(finding, "Reason, worker 7/0").starts_with("it stored blocks before this dashboard"));
    assert_eq!(evidence(finding, "Number of the first event"), "4711");
}

#[test]
fn the_setting_proposed_is_the_one_that_is_missing() {
    assert!(settings(&late()).contains(&"--tree-dumps".to_owned()), "{:?}", settings(&late()));
    let stage = failed();
    let done = evidence(stage.found("tree_partial"), "Next step for worker 7/0").to_owned();
    let text = "the last query failed: no response within 3 s at 10.0.0.1:4444; next try in 29";
    assert!(done.starts_with(text), "{done}");
    assert_eq!(settings(&stage), [""], "its value is the reader's");
    assert!(stage.found("tree_partial").fix[0].text.contains("`--callback`"));
    let mut stage = late();
    for (state, setting) in [
        (QueryState::NoEndpoint, ""),
        (QueryState::OnRequest, "POST /api/v1/tree-dumps"),
        (QueryState::Waiting, ""),
    ] {
        stage.asks(WorkerIx(0), state, "");
        stage.pass(10);
        assert_eq!(settings(&stage)[0], setting, "{state:?}");
    }
}

#[test]
fn a_response_ends_it() {
    let mut stage = late();
    stage.knows(WorkerIx(0), TreeKnowledge::Complete, KnowledgeWhy::Dump);
    stage.pass(7);
    assert!(stage.codes().is_empty(), "{:?}", stage.codes());
    assert_eq!(stage.status("tree_partial").0, CheckStatus::Ok);
}

#[test]
fn nearly_all_blocks_are_enough_not_to_warn() {
    let mut stage = late();
    stage.store(WorkerIx(0), None, 900_000..901_530);
    stage.pass(1);
    assert_eq!(stage.found("tree_partial").severity, Severity::Info, "1,530 of 1,600");
}

#[test]
fn a_worker_without_events_lacks_blocks_only_where_others_were_there_before_us() {
    let mut stage = Stage::new();
    let old = stage.worker(7);
    stage.quiet_worker(8);
    stage.pass(5);
    assert!(stage.finding("tree_partial").is_none(), "it has just started, as far as anything tells");
    stage.knows(old, TreeKnowledge::Partial, KnowledgeWhy::JoinedLate);
    stage.pass(1);
    assert_eq!(stage.found("tree_partial").workers, [WorkerIx(0), WorkerIx(1)]);
}

#[test]
fn what_was_lost_and_got_back_is_no_loss() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.store(worker, None, 1..5);
    let (source, topic, cause) = (SourceIx(0), Topic::KvEvents, MissedCause::EnvelopeGap);
    stage.record(Record::Missed { source, worker: Some(worker), topic, cause, count: 30 });
    stage.pass(1);
    stage.record(Record::Recovered { source, worker, topic, cause, count: 28 });
    stage.pass(3);
    let finding = stage.found("event_gaps");
    assert_eq!(evidence(finding, "Events missing, worker 7/0"), "2 beside 1 received");
    assert_eq!(evidence(finding, "recovered by queries to workers"), "28 of 30 (93 %)");
    stage.record(Record::Recovered { source, worker, topic, cause, count: 2 });
    stage.pass(40);
    assert!(stage.codes().is_empty(), "{:?}", stage.codes());
}

#[test]
fn a_break_that_cost_the_tree_nothing_is_no_loss() {
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    let gap = |stage: &mut Stage| {
        let (since_ms, until_ms) = (stage.now(), stage.now());
        let (source, topic) = (SourceIx(0), Topic::KvEvents);
        stage.record(Record::Gaps { source, topic, count: 1, since_ms, until_ms });
        stage.pass(2);
    };
    gap(&mut stage);
    assert!(stage.codes().is_empty(), "{:?}", stage.codes());
    stage.knows(worker, TreeKnowledge::Partial, KnowledgeWhy::ConnectionBroke);
    gap(&mut stage);
    assert_eq!(stage.grave(), ["own_losses"]);
    assert_eq!(stage.found("tree_partial").severity, Severity::Info, "figures are marked, not withheld");
}

#[test]
fn a_difference_that_survives_a_second_response_is_a_fault_of_the_events() {
    let stage = diverged();
    assert_eq!(stage.grave(), ["tree_drift"]);
    let finding = stage.found("tree_drift");
    assert_eq!(evidence(finding, "has and its events did not store"), "12 of 100 (12 %)");
    assert_eq!(evidence(finding, "no fault of the events"), "40 of 100 (40 %)");
    let mut stage = Stage::new();
    let worker = stage.worker(7);
    stage.asks(worker, QueryState::Dump, "");
    stage.asks(worker, QueryState::Joining, "");
    let drift = Divergence { detached_blocks: 40, ..Divergence::default() };
    stage.record(Record::Divergence { worker, drift });
    stage.pass(5);
    assert!(stage.codes().is_empty(), "{:?}", stage.codes());
    let noted = stage.cluster.checked().iter().find(|rule| rule.code == "tree_drift").unwrap();
    assert!(noted.missing.starts_with("40 blocks whose parents"), "{}", noted.missing);
}
