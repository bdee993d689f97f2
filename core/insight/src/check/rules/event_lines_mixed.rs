//! Some workers publish over JetStream and some over plain NATS (0.9): a router hears only one kind (reference §2.7).

use super::event_path::{WINDOW_MS, each, line_of, link, name, names, part};
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{EventLine, LogSign, Severity};

/// Workers that published within this time count; an old stream may tell of workers that are long gone.
const RECENT_MS: u64 = 600_000;

/// See the module.
pub(in crate::check) struct EventLinesMixed;

impl Rule for EventLinesMixed {
    fn code(&self) -> &'static str {
        "event_lines_mixed"
    }

    fn subject(&self) -> &'static str {
        "Same event plane on all workers"
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let (jetstream, core) = (on_line(view, EventLine::JetStream), on_line(view, EventLine::Core));
        if jetstream.is_empty() && core.is_empty() {
            return RuleOutcome::Unknown("No KV event was received lately.".into());
        }
        if jetstream.is_empty() || core.is_empty() {
            RuleOutcome::Ok
        } else {
            RuleOutcome::Found(found(view, jetstream, core))
        }
    }
}

/// Whether that is the case, for rules that see its consequences.
pub(super) fn is_mixed(view: &View<'_>) -> bool {
    !on_line(view, EventLine::JetStream).is_empty() && !on_line(view, EventLine::Core).is_empty()
}

fn on_line(view: &View<'_>, line: EventLine) -> Vec<WorkerIx> {
    let is_recent = |w: &radixscope_state::cluster::WorkerState| {
        w.last_event_ms.is_some_and(|last| view.now.since(last) <= RECENT_MS)
    };
    let wanted = |worker: &WorkerIx| {
        view.cluster.worker(*worker).is_some_and(|w| is_recent(w) && line_of(w) == Some(line))
    };
    view.present().filter(wanted).collect()
}

/// Overlap of the decisions for some workers: blocks held of blocks asked.
fn overlap(view: &View<'_>, workers: &[WorkerIx]) -> (u64, u64) {
    let rises = workers.iter().map(|&worker| view.history.rise(view.cluster, worker, view.now, WINDOW_MS));
    rises.fold((0, 0), |sum, rise| (sum.0 + rise.overlap_blocks, sum.1 + rise.isl_blocks))
}

fn found(view: &View<'_>, jetstream: Vec<WorkerIx>, core: Vec<WorkerIx>) -> Finding {
    let (by_stream, by_core) = (overlap(view, &jetstream), overlap(view, &core));
    // A router takes JetStream unless every worker it saw at its start has a local indexer. What it matches tells.
    let says_stream = view.cluster.sign(|sign| *sign == LogSign::UsesJetStream).is_some();
    let matches_core_only = by_core.0 > 0 && by_stream.0 == 0 && by_stream.1 > 0;
    let unheard = if matches_core_only && !says_stream { &jetstream } else { &core };
    let title =
        format!("KV events come two ways, and the router hears one: {} unheard", names(view, unheard));
    let count = view.present().count() as u64;
    let found = Finding::new(
        Severity::Critical,
        title,
        "A 0.9 router decides once, at its start, whether it listens to JetStream or to plain NATS, and never hears \
         workers of the other kind. The caches of those workers are not in its tree, so their hits come by chance.",
    )
    .workers(unheard.iter().copied())
    .link(link(view, "tree", unheard))
    .evidence("Workers that publish over JetStream, by NATS, of those present", part(jetstream.len() as u64, count), "workers")
    .evidence("Workers that publish over plain NATS, by NATS, of those present", part(core.len() as u64, count), "workers")
    .evidence("Overlap of prompts routed to JetStream's workers, by the router, last 60 s", part(by_stream.0, by_stream.1), "blocks")
    .evidence("Overlap of prompts routed to plain NATS's workers, by the router, last 60 s", part(by_core.0, by_core.1), "blocks");
    each(found, view, unheard, |found, worker| {
        let held = view.cluster.blocks(worker).unwrap_or(0);
        found.evidence(
            format!("Blocks that the router does not know, {}, by KV events", name(view, worker)),
            held,
            "blocks",
        )
    })
    .fix("0.9: the same on all workers or on none, then restart the frontends", "--enable-local-indexer", "")
    .fix("1.x: run one version; from 1.0 on all workers publish over plain NATS or ZMQ", "", "")
}
