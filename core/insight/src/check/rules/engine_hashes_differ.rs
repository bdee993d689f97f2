//! Engines name the same tokens differently: harmless while a router runs, harmful when it restores a tree.

use super::prelude::*;
use radixscope_model::record::LogSignal;

/// Blocks, or lines of a log, that are more than a coincidence.
const MIN_BLOCKS: u64 = 10;
/// A log signal counts for this long.
const SIGN_MS: u64 = 300_000;

pub(in crate::check) const RULE: Rule =
    Rule::new("engine_hashes_differ", "Same hash for the same tokens on all engines", evaluate);

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let pools = view.cluster.pools_in_use().into_iter();
    let trees: Vec<_> = pools.map(|pool| (pool, view.cluster.tree(pool))).collect();
    // Where a worker has several names for one path, its names carry what tokens do not: a salt, or an adapter that Dynamo
    // does not hash. Those of two workers then need not agree.
    let (mixed, plain): (Vec<_>, Vec<_>) = trees.into_iter().partition(|(_, tree)| tree.further_names() > 0);
    let sign = view.cluster.sign(|sign| *sign == LogSignal::HashMismatch);
    let logged = sign.filter(|sign| view.now.since(sign.last_ms) <= SIGN_MS).map_or(0, |sign| sign.count);
    let worst = plain.iter().max_by_key(|(_, tree)| tree.differing_names());
    let differing = worst.map_or(0, |(_, tree)| tree.differing_names());
    let shared = worst.map_or(0, |(_, tree)| tree.totals().shared);
    if differing < MIN_BLOCKS && (logged < MIN_BLOCKS || !mixed.is_empty()) {
        let further: u64 = mixed.iter().map(|(_, tree)| tree.further_names()).sum();
        if further > 0 {
            return RuleOutcome::Noted(
                format!(
                    "Engines have several hashes for {} blocks that the router counts as one: a salt or an adapter is in \
                     them, so hashes of two workers are not compared there.",
                    count(further)
                )
                .into(),
            );
        }
        return match shared {
            0 => RuleOutcome::no_data("No block was stored by two workers yet."),
            _ => RuleOutcome::Ok,
        };
    }
    let pool = worst.map_or_else(String::new, |(pool, _)| view.of_pool(*pool));
    Finding::new(
        Severity::Warning,
        format!("Engines{pool} hash the same tokens differently"),
        "The running router copes, because it keeps each worker's names apart. A tree dump or snapshot keeps only the \
         first worker's names, so after a restore the removals of the others miss and their blocks stay for ever.",
    )
    .evidence("Blocks with another hash on a second worker, by KV events, of those on several", part(differing, shared.max(differing)), "blocks")
    .evidence_if(
        "Lines \"block_hash mismatch\", by the router's log, since we listen",
        (logged > 0).then_some(logged),
        "lines",
    )
    .fixes("engine_hashes_differ")
    .panel(PanelRef::Tree)
    .into()
}
