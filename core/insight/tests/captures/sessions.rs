//! Decisions that the cost did not decide, of real routers: each names what decided it.

use std::collections::BTreeMap;

use radixscope_model::record::{Completeness, DecidedBy, DecisionSource, NotReconstructed};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::routing::play;

#[test]
fn explore() {
    for name in [
        "1.6.1-session-affinity",
        "1.7.0.dev20261026-session-affinity-soft",
        "1.7.0.dev20261026-two-tier",
        "1.6.1-keyed-hash",
    ] {
        for (nats, logs) in [(true, true), (true, false), (false, true)] {
            let cluster = play(&format!("../routing/{name}"), nats, logs);
            let mut by = BTreeMap::new();
            for d in cluster.decisions().newest_first() {
                *by.entry(format!(
                    "{:?} session {} {:?} {:?} gap<0 {:?} lost {}",
                    d.decision.decided_by,
                    d.decision.session.is_some(),
                    d.decision.completeness,
                    d.decision.not_reconstructed,
                    d.cost_gap_blocks().ok().map(|g| g < 0.0),
                    d.lost_affinity().is_some()
                ))
                .or_insert(0) += 1;
            }
            println!("{name} nats {nats} logs {logs}");
            for (k, n) in by {
                println!("   {n} {k}");
            }
        }
    }
}
