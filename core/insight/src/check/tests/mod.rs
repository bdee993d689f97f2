//! Behaviour of phases: hold, recheck, over.

pub(super) mod stage;

use super::*;
use radixscope_model::id::{Seq, SourceIx};
use radixscope_model::record::{Entry, MissedCause, Topic};

const NOW: u64 = 1_800_000_000_000;

fn fold(cluster: &mut Cluster, at: u64, record: Record<'_>) {
    let seq = Seq(cluster.seq().0 + 1);
    cluster.fold(seq, &Entry { at_ms: Millis(at), record });
}

fn listening() -> Cluster {
    let mut cluster = Cluster::default();
    let source = SourceIx(0);
    fold(&mut cluster, NOW, Record::Source { source, name: "nats://n".into(), kind: SourceKind::Nats });
    fold(&mut cluster, NOW, Record::SourceState { source, state: LinkState::Live, detail: "".into() });
    cluster
}

fn phases(records: &[Record<'static>], code: &str) -> Vec<Phase> {
    let of_code = |record: &Record<'static>| match record {
        Record::Finding(finding) if finding.code == code => Some(finding.phase),
        _ => None,
    };
    records.iter().filter_map(of_code).collect()
}

#[test]
fn a_fault_is_reported_rechecked_and_cleared() {
    let mut cluster = listening();
    let mut checks = Checks::default();
    let lost = Record::Missed {
        source: SourceIx(0),
        worker: None,
        topic: Topic::KvEvents,
        cause: MissedCause::QueueFull,
        count: 3,
    };
    assert!(phases(&checks.tick(&cluster, Millis(NOW)), "own_losses").is_empty());
    fold(&mut cluster, NOW + 1_000, lost);
    assert_eq!(phases(&checks.tick(&cluster, Millis(NOW + 1_000)), "own_losses"), [Phase::Warn]);
    assert!(phases(&checks.tick(&cluster, Millis(NOW + 2_000)), "own_losses").is_empty(), "nothing new yet");
    assert_eq!(phases(&checks.tick(&cluster, Millis(NOW + 62_000)), "own_losses"), [Phase::Recheck]);
    assert_eq!(phases(&checks.tick(&cluster, Millis(NOW + 93_000)), "own_losses"), [Phase::Cleared]);
    assert!(phases(&checks.tick(&cluster, Millis(NOW + 94_000)), "own_losses").is_empty());
}

#[test]
fn what_was_checked_is_reported_once_and_again_when_it_changes() {
    let cluster = listening();
    let mut checks = Checks::default();
    let is_reported = |records: Vec<Record<'static>>| records.iter().any(|r| matches!(r, Record::Checked(_)));
    assert!(is_reported(checks.tick(&cluster, Millis(NOW))));
    assert!(!is_reported(checks.tick(&cluster, Millis(NOW + 1_000))));
}

#[test]
fn nothing_is_judged_while_history_is_read() {
    let mut cluster = listening();
    let (source, state) = (SourceIx(0), LinkState::CatchingUp);
    fold(&mut cluster, NOW, Record::SourceState { source, state, detail: "".into() });
    assert!(Checks::default().tick(&cluster, Millis(NOW)).is_empty());
}

#[test]
fn what_was_logged_before_we_came_did_not_happen_lately() {
    use radixscope_model::id::{BlockHash, Worker, WorkerIx};
    let mut cluster = listening();
    let (source, worker, id) = (SourceIx(0), WorkerIx(0), Worker::new(7, 0));
    let link = |state| Record::SourceState { source, state, detail: "".into() };
    let remove = |n| Record::Removed { worker, hashes: vec![BlockHash(n)].into() };
    let mut checks = Checks::default();
    fold(&mut cluster, NOW, link(LinkState::CatchingUp));
    fold(&mut cluster, NOW, Record::new_worker(worker, id, "", ""));
    (0..50).for_each(|n| fold(&mut cluster, NOW, remove(n)));
    checks.tick(&cluster, Millis(NOW));
    fold(&mut cluster, NOW, link(LinkState::Live));
    checks.tick(&cluster, Millis(NOW + 1_000));
    (50..53).for_each(|n| fold(&mut cluster, NOW + 1_500, remove(n)));
    checks.tick(&cluster, Millis(NOW + 2_000));
    let rise = checks.history.rise(&cluster, worker, Millis(NOW + 2_000), 60_000);
    assert_eq!((rise.removed, rise.remove_events), (3, 3), "and not 53");
    assert_eq!(checks.history.session(&cluster, worker), rise);
}

#[test]
fn targets_are_a_record_where_others_hold() {
    let mut cluster = listening();
    let targets = |records: Vec<Record<'static>>| {
        let of = |record: &Record<'static>| match record {
            Record::Targets(targets) => Some(*targets),
            _ => None,
        };
        records.iter().find_map(of)
    };
    assert_eq!(targets(Checks::default().tick(&cluster, Millis(NOW))), None, "the default holds anyway");
    let stricter = LatencyTargets { ttft_ms: 500.0, itl_ms: 50.0 };
    let mut checks = Checks::new(stricter);
    let news = targets(checks.tick(&cluster, Millis(NOW)));
    assert_eq!(news, Some(stricter));
    let digest = cluster.digest();
    fold(&mut cluster, NOW, Record::Targets(stricter));
    assert_eq!(cluster.targets(), stricter);
    assert_ne!(cluster.digest(), digest);
    assert_eq!(targets(checks.tick(&cluster, Millis(NOW + 1_000))), None);
    // A server that was started again with other targets.
    assert_eq!(
        targets(Checks::default().tick(&cluster, Millis(NOW + 2_000))),
        Some(LatencyTargets::default())
    );
}
