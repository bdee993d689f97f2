//! A simulated cluster, received as by a hub.

use radixscope_captures::Simulated;
use radixscope_intake::{Intake, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::SourceKind;
use radixscope_sim::{Config, Simulation, WireMessage};
use radixscope_state::cluster::Cluster;

/// When simulations begin.
pub(crate) const START: Millis = Millis(1_767_225_600_000);

pub(crate) struct Observed {
    pub(crate) cluster: Cluster,
    pub(crate) intake: Intake,
}

/// The cluster after `ms`, as far as `is_received` lets its messages through.
pub(crate) fn observe(ms: u64, config: Config, is_received: impl Fn(&WireMessage<'_>) -> bool) -> Observed {
    let mut observed = Observed { cluster: Cluster::default(), intake: Intake::default() };
    let Observed { cluster, intake } = &mut observed;
    let source = intake.source("simulated", SourceKind::Simulator, START, cluster).unwrap();
    let (mut simulation, mut simulated) = (Simulation::new(config, START).unwrap(), Simulated::default());
    simulation.run_until(Millis(START.0 + ms), &mut |m| {
        if is_received(&m) {
            let received = Received { source, at_ms: m.at_ms, payload: simulated.payload(&m) };
            intake.handle(&received, cluster);
        }
    });
    observed
}
