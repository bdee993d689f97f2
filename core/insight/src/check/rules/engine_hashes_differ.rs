//! Engines name the same tokens differently: harmless while a router runs, harmful when it restores a tree.

use super::prelude::*;
use radixscope_model::record::LogSign;

/// Blocks, or lines of a log, that are more than a coincidence.
const MIN_BLOCKS: u64 = 10;
/// What a log says is believed for this long.
const SIGN_MS: u64 = 300_000;

pub(in crate::check) const RULE: Rule =
    Rule::new("engine_hashes_differ", "One hash for the same tokens on all engines", look);

fn look(view: &View<'_>) -> RuleOutcome {
    let totals = view.cluster.totals();
    let sign = view.cluster.sign(|sign| *sign == LogSign::HashMismatch);
    let logged = sign.filter(|sign| view.now.since(sign.last_ms) <= SIGN_MS).map_or(0, |sign| sign.count);
    let differing = view.cluster.trees().map(|(_, tree)| tree.differing_names()).sum();
    if differing < MIN_BLOCKS && logged < MIN_BLOCKS {
        return match totals.shared {
            0 => RuleOutcome::no_data("No block was stored by two workers yet."),
            _ => RuleOutcome::Ok,
        };
    }
    Finding::new(
        Severity::Warning,
        "Engines hash the same tokens differently",
        "The running router copes, because it keeps each worker's names apart. A tree dump or snapshot keeps only the \
         first worker's names, so after a restore the removals of the others miss and their blocks stay for ever.",
    )
    .evidence("Blocks that a second worker names otherwise, by KV events, of those that several hold", part(differing, totals.shared.max(differing)), "blocks")
    .evidence_if(
        "Lines \"block_hash mismatch\", by the router's log, since we listen",
        (logged > 0).then_some(logged),
        "lines",
    )
    .fixes("engine_hashes_differ")
    .panel(PanelRef::Tree)
    .into()
}
