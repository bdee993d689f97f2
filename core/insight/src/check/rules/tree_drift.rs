//! A worker that was asked twice holds other blocks than its events say: events are lost or wrong though none is missing.

use super::prelude::*;
use radixscope_model::record::Divergence;

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 0, ..Rule::new("tree_drift", "Workers' own blocks vs their KV events", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let drift = |worker: WorkerIx| view.worker(worker)?.knowledge.drift;
    let diverged: Vec<WorkerIx> =
        view.present().filter(|&worker| drift(worker).is_some_and(|drift| drift.is_fault())).collect();
    if !diverged.is_empty() {
        return found(view, &diverged, drift).into();
    }
    let is_asked = |worker| view.worker(worker).is_some_and(|state| state.knowledge.queries.applied > 0);
    if !view.present().any(is_asked) {
        return RuleOutcome::no_data(
            "No worker was queried for its blocks: --tree-dumps auto does, with --discovery or a frontend in --prometheus.",
        );
    }
    match view.present().filter_map(drift).map(|drift| drift.detached_blocks).sum::<u64>() {
        0 => RuleOutcome::Ok,
        detached => RuleOutcome::Noted(
            format!(
                "{} blocks whose parents were removed are in no router's index any more, although no event reported their removal.",
                count(detached)
            )
            .into(),
        ),
    }
}

fn found(view: &View<'_>, diverged: &[WorkerIx], drift: impl Fn(WorkerIx) -> Option<Divergence>) -> Finding {
    Finding::new(
        Severity::Warning,
        format!("KV events differ from the worker's own blocks: {}", view.names(diverged)),
        "Two responses of the worker with all its blocks differ from the tree built from its events, though no event is \
         missing by their ids. A router that follows the same events counts hits wrongly in the same way.",
    )
    .about(PanelRef::Tree, diverged)
    .each(view, diverged, |found, worker, who| {
        let Some(drift) = drift(worker) else { return found };
        let held = view.cluster.known_of_used(worker).0;
        let rows = [
            ("Blocks that it has and its events did not store", drift.missing_blocks),
            ("Blocks that its events stored and it does not have", drift.surplus_blocks),
            ("Blocks below a block that it removed, which is no fault of the events", drift.detached_blocks),
        ];
        rows.into_iter().filter(|(_, blocks)| *blocks > 0).fold(found, |found, (what, blocks)| {
            found.evidence(format!("{what}, {who}, by its second response"), part(blocks, held), "blocks")
        })
    })
    .fixes("tree_drift")
}
