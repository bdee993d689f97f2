//! What was measured of the requests that the model plays, by one clock for all of them.

use radixscope_state::cluster::{Cluster, DecisionEntry};
use serde::{Deserialize, Serialize};

use super::played::arrivals_needed;
use super::select::selected;
use super::{DecisionRange, Selection};
use radixscope_model::id::DecisionId;
use radixscope_model::sort::sort_by_key;

/// What was measured of one request.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Observed {
    pub(super) decision: DecisionId,
    pub(super) ttft_ms: Option<f64>,
    pub(super) e2e_ms: Option<f64>,
    /// Blocks of the prompt that the chosen worker held, and of the prompt.
    pub(super) overlap_blocks: Option<(u32, u32)>,
}

/// What a time to the first token counts from: one thing for all requests, what most are known by.
#[derive(Clone, Copy)]
pub(super) enum Clock {
    /// The request's arrival, as the frontend measured it.
    Frontend,
    /// The router's decision.
    Router,
}

impl Clock {
    pub(super) fn of(cluster: &Cluster, selection: Selection) -> Self {
        let known = |clock: Clock| selected(cluster, selection).filter_map(|d| clock.ttft_ms(d)).count();
        if known(Clock::Frontend) >= known(Clock::Router) { Clock::Frontend } else { Clock::Router }
    }

    pub(super) fn ttft_ms(self, decided: &DecisionEntry) -> Option<f64> {
        match self {
            Clock::Frontend => decided.progress.ttft_us.map(|us| us as f64 / 1e3),
            Clock::Router => decided.progress.first_token_ms.map(|at| at.since(decided.decided_ms()) as f64),
        }
    }
}

pub(super) fn e2e_ms(decided: &DecisionEntry) -> Option<f64> {
    decided.progress.ended_ms.map(|at| at.since(decided.decided_ms()) as f64)
}

/// What was measured of the selected requests and of those before that warm the caches. A prompt may be retained with either
/// choice of a request that has two.
pub(super) fn observed(cluster: &Cluster, selection: Selection, clock: Clock) -> Vec<Observed> {
    let played = u32::try_from(arrivals_needed(selection.span)).unwrap_or(u32::MAX);
    let selection = Selection { span: DecisionRange::Last(played), worker: None, ..selection };
    let mut all: Vec<Observed> = selected(cluster, selection)
        .flat_map(|decided| {
            let blocks = |n: u64| u32::try_from(n).ok();
            let overlap = decided.overlap_blocks().and_then(blocks);
            let observed = Observed {
                decision: decided.decision.id,
                ttft_ms: clock.ttft_ms(decided),
                e2e_ms: e2e_ms(decided),
                overlap_blocks: overlap.zip(decided.decision.isl_blocks.and_then(blocks)),
            };
            let other = decided.decision.other_part.map(|decision| Observed { decision, ..observed });
            [Some(observed), other].into_iter().flatten()
        })
        .collect();
    sort_by_key(&mut all, |observed| observed.decision);
    all.dedup_by_key(|observed| observed.decision);
    all
}
