//! Some workers publish over JetStream and some over plain NATS (0.9): a router receives only one kind (reference §2.7).

use super::prelude::*;
use crate::check::view::event_transport;
use radixscope_model::id::PoolIx;
use radixscope_model::record::{EventTransport, LogSignal};
use radixscope_state::cluster::WorkerState;

/// Workers that published within this time count; an old stream may be of workers that are long gone.
const RECENT_MS: u64 = 600_000;

pub(in crate::check) const RULE: Rule =
    Rule::new("event_planes_mixed", "Same event plane on all workers", evaluate);

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let pools = view.cluster.pools_in_use().into_iter();
    RuleOutcome::of_pools(pools.map(|pool| evaluate_pool(view, pool)), NOTHING)
}

const NOTHING: &str = "No KV event was received lately.";

/// A router reads the events of one pool.
fn evaluate_pool(view: &View<'_>, pool: PoolIx) -> RuleOutcome {
    let (jetstream, core) =
        (on_line(view, pool, EventTransport::JetStream), on_line(view, pool, EventTransport::Core));
    if jetstream.is_empty() && core.is_empty() {
        return RuleOutcome::no_data(NOTHING);
    }
    if jetstream.is_empty() || core.is_empty() {
        return RuleOutcome::Ok;
    }
    found(view, &jetstream, &core).into()
}

/// Whether that is the case, for rules that see its consequences.
pub(super) fn is_mixed(view: &View<'_>) -> bool {
    let is_on = |pool, line| !on_line(view, pool, line).is_empty();
    let mut pools = view.cluster.pools_in_use().into_iter();
    pools.any(|pool| is_on(pool, EventTransport::JetStream) && is_on(pool, EventTransport::Core))
}

fn on_line(view: &View<'_>, pool: PoolIx, line: EventTransport) -> Vec<WorkerIx> {
    let is_recent = |w: &WorkerState| w.last_event_ms.is_some_and(|last| view.now.since(last) <= RECENT_MS);
    let wanted = |worker: &WorkerIx| {
        view.worker(*worker).is_some_and(|w| is_recent(w) && event_transport(w) == Some(line))
    };
    view.present_in(pool).filter(wanted).collect()
}

/// Overlap of the decisions for some workers: blocks held of blocks asked.
fn overlap(view: &View<'_>, workers: &[WorkerIx]) -> (u64, u64) {
    let rises = workers.iter().map(|&worker| view.rise(worker, WINDOW_MS));
    rises.fold((0, 0), |sum, rise| (sum.0 + rise.overlap_blocks, sum.1 + rise.isl_blocks))
}

fn found(view: &View<'_>, jetstream: &[WorkerIx], core: &[WorkerIx]) -> Finding {
    let (by_stream, by_core) = (overlap(view, jetstream), overlap(view, core));
    // A router takes JetStream unless every worker it saw at its start has a local indexer. What it matches shows it.
    let says_stream = view.cluster.sign(|sign| *sign == LogSignal::UsesJetStream).is_some();
    let matches_core_only = by_core.0 > 0 && by_stream.0 == 0 && by_stream.1 > 0;
    let not_received = if matches_core_only && !says_stream { jetstream } else { core };
    let title = format!(
        "Workers use two event planes, and the router receives one of them: no KV events from {}",
        view.names(not_received)
    );
    let present = view.present().count() as u64;
    let number = |workers: &[WorkerIx]| part(workers.len() as u64, present);
    Finding::new(
        Severity::Critical,
        title,
        "A 0.9 router decides once, at its start, whether it listens to JetStream or to plain NATS, and never receives events of \
         the other workers. Their cached blocks are not in its tree, so hits there are by chance.",
    )
    .about(PanelRef::Tree, not_received)
    .evidence("Workers that publish over JetStream, by NATS, of those present", number(jetstream), "workers")
    .evidence("Workers that publish over plain NATS, by NATS, of those present", number(core), "workers")
    .evidence("Overlap of prompts routed to JetStream's workers, by the router, last 60 s", part(by_stream.0, by_stream.1), "blocks")
    .evidence("Overlap of prompts routed to plain NATS's workers, by the router, last 60 s", part(by_core.0, by_core.1), "blocks")
    .each(view, not_received, |found, worker, who| {
        let label = format!("Blocks that the router does not know, {who}, by KV events");
        found.evidence(label, view.cluster.blocks(worker).unwrap_or(0), "blocks")
    })
    .fixes("event_planes_mixed")
}
