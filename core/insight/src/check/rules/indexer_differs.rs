//! The index of a standalone KV indexer differs from the tree for good: whoever routes by that index counts hits wrongly.

use super::prelude::*;
use radixscope_model::record::{IndexComparison, IndexedWorker};
use radixscope_state::cluster::IndexerState;

/// An indexer that was not read for so long says nothing of the present.
const FRESH_MS: u64 = 3 * 60_000;

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 0, ..Rule::new("indexer_differs", "Standalone indexer's index vs KV events", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let read = || view.cluster.indexers().iter().filter(|of| view.now.since(of.read_ms) <= FRESH_MS);
    if read().next().is_none() {
        return RuleOutcome::no_data(
            "No standalone KV indexer was read: --indexer URL does, for those who run one.",
        );
    }
    let differing = |state: &IndexerState| differing(state).next().is_some();
    if let Some(state) = read().find(|state| differing(state)) {
        return found(view, state).into();
    }
    let compared = |of: &IndexedWorker| of.compared.is_some();
    let all = || read().flat_map(|state| &state.report.workers);
    match all().filter(|of| compared(of)).count() {
        0 => RuleOutcome::no_data(
            "None of the workers that the indexer lists is known completely here: listen to the same engines with --engine-events.",
        ),
        compared if compared < all().count() => RuleOutcome::Noted(
            format!("{} of {} workers are compared.", count(compared as u64), count(all().count() as u64))
                .into(),
        ),
        _ => RuleOutcome::Ok,
    }
}

/// The workers whose blocks differed in two readings in a row.
fn differing(state: &IndexerState) -> impl Iterator<Item = (WorkerIx, IndexComparison)> {
    let compared = state.report.workers.iter().filter_map(|of| Some((of.worker?, of.compared?)));
    compared.filter(|(_, compared)| compared.lasting_blocks() > 0)
}

fn found(view: &View<'_>, state: &IndexerState) -> Finding {
    let workers: Vec<WorkerIx> = differing(state).map(|(worker, _)| worker).collect();
    Finding::new(
        Severity::Warning,
        format!("The index of {} differs from KV events: {}", state.report.name, view.names(&workers)),
        "In two readings in a row the indexer held other blocks of these workers than the tree built from the same engines' events. Who routes \
         by its index counts hits wrongly.",
    )
    .about(PanelRef::Tree, &workers)
    .each(view, &workers, |found, worker, who| {
        let Some((_, compared)) = differing(state).find(|(of, _)| *of == worker) else { return found };
        let both = compared.same_blocks + compared.index_only_blocks + compared.tree_only_blocks;
        let rows = [
            ("Blocks that only the tree has", compared.tree_only_twice_blocks),
            ("Blocks that only the index has", compared.index_only_twice_blocks),
        ];
        rows.into_iter().filter(|(_, blocks)| *blocks > 0).fold(found, |found, (what, blocks)| {
            found.evidence(format!("{what}, {who}, in two readings"), part(blocks, both), "blocks")
        })
    })
    .fixes("indexer_differs")
}
