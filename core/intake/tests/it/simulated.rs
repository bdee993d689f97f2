//! A simulated cluster, received and folded as by a server.

use radixscope_captures::Simulated;
use radixscope_intake::{Intake, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::SourceKind;
use radixscope_sim::WireMessage;
use radixscope_state::cluster::Cluster;

/// When simulations begin.
pub(crate) const START: Millis = Millis(1_767_225_600_000);

pub(crate) struct Observer {
    intake: Intake,
    simulated: Simulated,
    pub(crate) cluster: Cluster,
    source: SourceIx,
}

impl Observer {
    pub(crate) fn new() -> Self {
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        let source =
            intake.source("simulated", SourceKind::Simulator, START, &mut cluster).expect("the first source");
        Self { intake, simulated: Simulated::default(), cluster, source }
    }

    pub(crate) fn handle(&mut self, message: &WireMessage<'_>) {
        let payload = self.simulated.payload(message);
        let received = Received { source: self.source, at_ms: message.at_ms, payload };
        self.intake.handle(&received, &mut self.cluster);
    }

    pub(crate) fn flush(&mut self, at_ms: Millis) {
        self.intake.flush(at_ms, &mut self.cluster);
    }
}
