//! After a restart a router finds nothing for prompts that workers still hold: its tree was not recovered.

use super::prelude::*;
use super::router_restarted::restarts;
use radixscope_model::id::PoolIx;
use radixscope_model::record::LogSignal;

/// Decisions after the restart that can be judged.
const MIN_DECISIONS: u64 = 10;
/// A router may begin before its tree is there.
const RECOVERS_MS: u64 = 5_000;
/// How far back we look.
const REACH_MS: u64 = 300_000;
/// The router finds less than one in so many blocks …
const FINDS_ONE_IN: u64 = 20;
/// … while the workers hold at least one in so many.
const HELD_ONE_IN: u64 = 4;

pub(in crate::check) const RULE: Rule = Rule::new("cold_tree", "The router's tree after a restart", evaluate);

fn evaluate(view: &View<'_>) -> RuleOutcome {
    cold(view).map_or(RuleOutcome::Ok, |cold| found(view, &cold).into())
}

/// Whether this fault is there, for rules that see its consequences.
pub(super) fn is_there(view: &View<'_>) -> bool {
    cold(view).is_some()
}

struct Cold {
    pool: PoolIx,
    decisions: u64,
    /// Blocks that the router found, of those asked, after the restart.
    after: (u64, u64),
    /// The same before it.
    before: (u64, u64),
    /// Blocks of the prompts after the restart that some worker held, where that is known: held, asked.
    held: (u64, u64),
}

/// A router has an index for each pool.
fn cold(view: &View<'_>) -> Option<Cold> {
    let restarted = restarts(view).into_iter().map(|restart| restart.at_ms).max()?;
    view.cluster.pools_in_use().into_iter().find_map(|pool| cold_in(view, pool, restarted))
}

fn cold_in(view: &View<'_>, pool: PoolIx, restarted: Millis) -> Option<Cold> {
    let from = Millis(restarted.0 + RECOVERS_MS);
    let mut cold = Cold { pool, decisions: 0, after: (0, 0), before: (0, 0), held: (0, 0) };
    for decided in view.decisions(REACH_MS).filter(|d| d.pool == pool && !d.ignores_cache) {
        let Some((isl, overlap)) = decided.decision.isl_blocks.zip(decided.decision.overlap_blocks) else {
            continue;
        };
        if decided.at_ms < restarted {
            cold.before = (cold.before.0 + overlap, cold.before.1 + isl);
        } else if decided.at_ms >= from {
            cold.decisions += 1;
            cold.after = (cold.after.0 + overlap, cold.after.1 + isl);
            if let Some(path) = decided.decision.path {
                cold.held = (cold.held.0 + u64::from(path.blocks), cold.held.1 + isl);
            }
        }
    }
    let finds_nothing = cold.after.0 * FINDS_ONE_IN < cold.after.1;
    let found_before = cold.before.1 > 0 && cold.before.0 * HELD_ONE_IN >= cold.before.1;
    let is_held = cold.held.1 > 0 && cold.held.0 * HELD_ONE_IN >= cold.held.1;
    (cold.decisions >= MIN_DECISIONS && finds_nothing && (found_before || is_held)).then_some(cold)
}

fn found(view: &View<'_>, cold: &Cold) -> Finding {
    let held = (cold.held.1 > 0).then(|| part(cold.held.0, cold.held.1));
    Finding::new(
        Severity::Warning,
        format!("The restarted router finds no cached blocks although caches are warm{}", view.of_pool(cold.pool).replacen(" of ", ": ", 1)),
        "Its tree was not recovered, so it counts prompts as new that workers still have cached. That lasts until those \
         blocks are stored again; stores below them are rejected because their parents are unknown.",
    )
    .evidence("Overlap since the restart, by the router, of prompt blocks", part(cold.after.0, cold.after.1), "blocks")
    .evidence("Decisions behind it, by the router, since the restart", cold.decisions, "decisions")
    .evidence("Overlap before the restart, by the router, last 5 min", part(cold.before.0, cold.before.1), "blocks")
    .evidence_if("Prompt blocks cached on any worker, by our tree, since the restart", held, "blocks")
    .log_lines(
        view,
        "Lines \"does not have local indexer enabled\", by the router's log, since we listen",
        LogSignal::NoLocalIndexer,
    )
    .fixes("cold_tree")
    .panel(PanelRef::Decisions)
}
