//! More states to show: recordings of other deployments than one aggregated pool, and states of a few records.

use radixscope_captures::Recording;
use radixscope_intake::{Intake, NatsSubjects, Received};
use radixscope_model::id::{Millis, Seq};
use radixscope_model::record::{Entry, LinkState, Record, SourceKind};
use radixscope_panels::time_zone::TimeZone;
use radixscope_panels::url::Address;
use radixscope_sim::{Config, Fault, FaultPlan};
use radixscope_state::cluster::Cluster;
use radixscope_state::sink::RecordSink as _;

use crate::folded::Folded;

/// The reader's zone in tests: an hour and a half east of Greenwich.
pub(crate) const ZONE: TimeZone = TimeZone(5_400_000);

/// A view by its query, all of which is understood.
pub(crate) fn address(query: &str) -> Address {
    let (address, misread) = Address::parse(query);
    assert!(misread.is_empty(), "{misread:?}");
    address
}

/// A simulated cluster with a fault from its first second on.
pub(crate) fn faulty(fault: Fault, seconds: u64) -> Folded {
    Folded::of(Config { fault: Some(FaultPlan { fault, after_ms: 0 }), ..Config::default() }, seconds)
}

/// The messages of a recording, folded.
pub(crate) fn recorded(recording: &Recording) -> Folded {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let source = intake.source("capture", SourceKind::Nats, Millis(1), &mut cluster).unwrap();
    let is_live = Record::SourceState { source, state: LinkState::Live, detail: "".into() };
    cluster.append(&Entry { at_ms: Millis(1), record: is_live });
    let (mut subjects, mut now) = (NatsSubjects::default(), Millis(1));
    for message in recording.subscribed() {
        now = Millis((message.at_s * 1e3) as u64 + 1_000);
        let payload = subjects.publication(&message.subject, message.reply.as_deref(), message.payload);
        let Some(payload) = payload else { continue };
        intake.handle(&Received { source, at_ms: now, payload }, &mut cluster);
    }
    intake.flush(now, &mut cluster);
    Folded { cluster, now }
}

/// A state of these records, all at `at`.
pub(crate) fn of_records(at: Millis, records: impl IntoIterator<Item = Record<'static>>) -> Folded {
    let mut cluster = Cluster::default();
    for record in records {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: at, record });
    }
    Folded { cluster, now: at }
}

/// Nothing was ever received.
pub(crate) fn nothing() -> Folded {
    of_records(Millis(0), [])
}

/// The numbers of a text, in order: `1,234` is one.
pub(crate) fn numbers(text: &str) -> Vec<u64> {
    let text = text.replace(',', "");
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}
