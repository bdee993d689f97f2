//! In words: which setting would show what was never heard. Pure.

use super::Cluster;

/// Dynamo from 1.0 on, known by something that only it says.
const FROM_1_0: &str = "These workers are of Dynamo 1.0 or later, whose routers do not publish their decisions by \
    themselves. Start the frontends with --router-replica-sync (DYN_ROUTER_REPLICA_SYNC=true) and \
    DYN_EVENT_PLANE=nats: each request's worker then shows here. Dynamo from 1.4 on can also publish a trace of \
    each request with DYN_REQUEST_TRACE=1 and DYN_REQUEST_TRACE_SINKS=nats; this version does not read it yet.";

/// Any version.
const ANY: &str = "Dynamo 0.8 and 0.9 publish every decision of a frontend started with --router-mode kv, unless it \
    runs with --no-kv-events. Dynamo 1.0 and later do not by themselves: start the frontends with \
    --router-replica-sync (DYN_ROUTER_REPLICA_SYNC=true) and DYN_EVENT_PLANE=nats, and each request's worker shows \
    here. From 1.4 on, DYN_REQUEST_TRACE=1 with DYN_REQUEST_TRACE_SINKS=nats publishes a trace of each request; this \
    version does not read it yet.";

impl Cluster {
    /// Which setting would show routing decisions. `None` where decisions were heard, or no worker yet.
    pub fn decisions_hint(&self) -> Option<&'static str> {
        if self.workers().is_empty() || self.decisions().totals().count > 0 {
            return None;
        }
        // Workers themselves report the end of a prefill from 1.5 on, other storage tiers from 1.1 on.
        let is_new = self.workers().iter().any(|w| w.sequences.prefilled > 0 || w.other_tier != (0, 0));
        Some(if is_new { FROM_1_0 } else { ANY })
    }
}
