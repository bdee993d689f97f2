//! States to show: the simulator in virtual time, recordings as fast as they fold. What each is, is counted by its own test.

use radixscope_captures::{Message, Played, Recording, play};
use radixscope_insight::check::Checks;
use radixscope_insight::view_context::{PoolQuery, ShownPools, ViewContext};
use radixscope_intake::{Intake, NatsSubjects, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::SourceKind;
use radixscope_sim::{Config, Fault, FaultPlan, Topology};
use radixscope_state::cluster::Cluster;

/// When simulated clusters begin.
pub(crate) const START: Millis = Millis(1_767_225_600_000);

/// A state, and the time at which it is shown.
pub(crate) struct Folded {
    pub(crate) cluster: Cluster,
    pub(crate) now: Millis,
}

impl Folded {
    /// A healthy simulated cluster after so many seconds, its findings included.
    pub(crate) fn demo(topology: Topology, seconds: u64) -> Self {
        Self::of(Config { topology, ..Config::default() }, seconds)
    }

    /// The same with a fault that begins after 60 seconds, if it does not need to be there from the start.
    pub(crate) fn fault(fault: Fault, seconds: u64) -> Self {
        let after_ms = if fault.is_set_up() { 0 } else { 60_000 };
        Self::of(Config { fault: Some(FaultPlan { fault, after_ms }), ..Config::default() }, seconds)
    }

    /// Any simulated cluster.
    pub(crate) fn of(config: Config, seconds: u64) -> Self {
        let (mut cluster, mut checks, mut last) = (Cluster::default(), Checks::default(), START);
        let played = Played { start: START, warm_up_s: 0, live_s: seconds };
        play(config, played, &mut cluster, |now, cluster: &mut Cluster| {
            checks.run(now, cluster);
            last = now;
            true
        })
        .expect("the simulator can do this");
        Self { cluster, now: last }
    }

    /// The messages of a recording of real Dynamo, folded.
    pub(crate) fn recorded(name: &str) -> Self {
        Self::of_messages(&Recording::fixture(name).messages().collect::<Vec<_>>())
    }

    /// Some of them.
    pub(crate) fn of_messages(messages: &[Message]) -> Self {
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        let source = intake.source("capture", SourceKind::Nats, Millis(1), &mut cluster).unwrap();
        let (mut subjects, mut now) = (NatsSubjects::default(), Millis(1));
        for message in messages {
            now = Millis((message.at_s * 1e3) as u64 + 1_000);
            let payload =
                subjects.publication(&message.subject, message.reply.as_deref(), message.payload.clone());
            let Some(payload) = payload else { continue };
            intake.handle(&Received { source, at_ms: now, payload }, &mut cluster);
        }
        intake.flush(now, &mut cluster);
        Self { cluster, now }
    }

    /// All of its pools, as the page shows them first.
    pub(crate) fn shown(&self) -> ViewContext<'_> {
        ViewContext::new(&self.cluster, ShownPools::of(&self.cluster, &PoolQuery::default()))
    }
}

#[test]
fn a_demo_and_a_recording_have_workers_and_blocks() {
    for folded in [Folded::demo(Topology::Aggregated, 30), Folded::recorded("0.9.1-healthy")] {
        assert!(folded.shown().worker_list().count() >= 2);
        assert!(folded.cluster.tree(folded.cluster.default_pool()).totals().resident > 0);
    }
    assert!(!Folded::fault(Fault::NoEvents, 150).cluster.findings().is_empty());
}
