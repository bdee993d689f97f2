//! Decisions and prefixes to ask about: the latest, the next ones, what is known of one, and the settings that it had.

use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_insight::whatif::{deployed, settings_of};
use radixscope_model::id::{BlockHash, DecisionId, Worker, WorkerIx};
use radixscope_router::RouterSettings;
use radixscope_state::cluster::DecisionEntry;

use crate::format::{self, UNKNOWN};
use crate::time_zone::TimeZone;

/// Workers to choose from in a list.
pub const LISTED_WORKERS: usize = 64;

/// The decisions of the pools shown, newest first.
fn in_pool<'a>(shown: &ViewContext<'a>) -> impl DoubleEndedIterator<Item = &'a DecisionEntry> + use<'a> {
    let ViewContext { cluster, only, .. } = *shown;
    cluster.decisions().newest_first().filter(move |decided| only.is_none_or(|only| only == decided.pool))
}

/// The latest decision whose candidates are known, else the latest.
pub fn latest(shown: &ViewContext<'_>) -> Option<DecisionId> {
    let has_candidates = |decided: &&DecisionEntry| !decided.decision.candidates.is_empty();
    let found = in_pool(shown).find(has_candidates).or_else(|| in_pool(shown).next());
    found.map(|decided| decided.decision.id)
}

/// The decision before `now`.
pub fn older(shown: &ViewContext<'_>, now: Option<DecisionId>) -> Option<DecisionId> {
    let Some(now) = now else { return latest(shown) };
    in_pool(shown).map(|decided| decided.decision.id).find(|&id| id < now)
}

/// The decision after `now`.
pub fn newer(shown: &ViewContext<'_>, now: Option<DecisionId>) -> Option<DecisionId> {
    let Some(now) = now else { return latest(shown) };
    in_pool(shown).rev().map(|decided| decided.decision.id).find(|&id| id > now)
}

/// What is known of a decision, in a line.
pub fn describe(decided: &DecisionEntry, zone: TimeZone) -> String {
    let decision = &decided.decision;
    let number = |n: Option<u64>| n.map_or(UNKNOWN.to_owned(), format::count);
    let request = decision.request_id.as_deref().map(|id| format!(", request {id}")).unwrap_or_default();
    format!(
        "{} at {}: {} had {} of {} blocks cached, {}{request}",
        label(decision.worker),
        zone.time_of_day(decided.decided_ms()),
        label(decision.worker),
        number(decided.overlap_blocks()),
        number(decision.isl_blocks),
        format::plural(decision.candidates.len() as u64, "candidate known", "candidates known"),
    )
}

/// The settings of a decision, else those that its pool's router runs with now, else Dynamo's defaults.
pub fn settings_known_for(shown: &ViewContext<'_>, id: Option<DecisionId>) -> RouterSettings {
    let decided = id.and_then(|id| shown.decisions().get(id));
    let pool = decided.map_or(shown.pool, |decided| decided.pool);
    let known = decided.and_then(|decided| settings_of(shown, &decided.decision));
    known.or_else(|| deployed(shown, pool)).unwrap_or_default()
}

/// Workers to choose from for a prefix, each with the value and the title of its option.
pub fn prefix_workers(shown: &ViewContext<'_>, drawn: &[WorkerIx]) -> Vec<(String, String)> {
    let option = |&ix: &WorkerIx| {
        let id = shown.worker(ix)?.id.to_string();
        let title = format!("{} ({id})", label(ix));
        Some((id, title))
    };
    drawn.iter().take(LISTED_WORKERS).filter_map(option).collect()
}

/// Where the cached part of the latest request's prompt ends.
pub fn cached_prefix_of_latest(shown: &ViewContext<'_>) -> Option<(Worker, BlockHash)> {
    let end = in_pool(shown).find_map(|decided| decided.decision.path)?;
    Some((shown.worker(end.worker)?.id, end.block_hash))
}
