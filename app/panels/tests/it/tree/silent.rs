//! Clusters of which little is received.

use radixscope_sim::{Config, Fault, FaultPlan};

use crate::folded::Folded;

impl Folded {
    /// A simulated cluster whose workers publish no KV event from the start.
    pub(crate) fn without_events(seconds: u64) -> Self {
        let fault = Some(FaultPlan { fault: Fault::NoEvents, after_ms: 0 });
        Self::of(Config { fault, ..Config::default() }, seconds)
    }

    /// A simulated cluster whose frontends neither log nor publish what they route.
    pub(crate) fn without_requests(seconds: u64) -> Self {
        Self::of(Config { log: false, replica_sync: false, ..Config::default() }, seconds)
    }
}
