//! What was lost or rejected, by source, topic and cause.

use radixscope_panels::format;
use radixscope_panels::losses::{EngineLine, LossRow};
use radixscope_sim::{Fault, Topology};

use crate::folded::Folded;

#[test]
fn lost_events_are_counted_with_their_cause() {
    let folded = Folded::fault(Fault::Gap, 120);
    let rows = LossRow::all(&folded.shown(), folded.now);
    let missed: Vec<_> = folded.cluster.sources().iter().flat_map(|source| &source.missed).collect();
    assert!(!missed.is_empty());
    assert_eq!(rows.len(), missed.len());
    for (row, missed) in rows.iter().zip(missed) {
        assert_eq!((row.source.as_str(), row.topic), ("simulated", missed.topic.as_str()));
        assert!(row.cause.starts_with("Lost: ") || row.cause.starts_with("Events in lost"), "{}", row.cause);
        assert!(row.count.contains(&format::count(missed.count)), "{}", row.count);
        assert_eq!(row.last, format::ago(folded.now.since(missed.last_ms)));
        assert_eq!(row.sample, "");
    }
}

#[test]
fn a_healthy_cluster_lost_nothing() {
    let folded = Folded::demo(Topology::Aggregated, 30);
    assert_eq!(LossRow::all(&folded.shown(), folded.now), []);
    assert_eq!(EngineLine::all(&folded.shown()), []);
    let recorded = Folded::recorded("0.9.1-healthy");
    assert_eq!(LossRow::all(&recorded.shown(), recorded.now), []);
}
