//! The requests of the minute before a moment: of a worker, or of a pool. Each figure with what it was taken over.

use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_state::cluster::{DecisionEntry, DecisionTotals};

use super::ComparedState;
use crate::latency::{Quantity, Times, WINDOW_MS, figure, requests_of};

/// Requests of the last [`WINDOW_MS`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Requests {
    /// Decisions that are retained one by one, with their prompt blocks and those cached where the request went.
    pub decisions: DecisionTotals,
    /// How far back the decisions that are retained reach, milliseconds, [`WINDOW_MS`] at most.
    pub reach_ms: u64,
    /// Times to first token, milliseconds; `None`: not reported.
    pub ttft: Option<Times>,
}

impl Requests {
    /// Those routed to a worker.
    pub(super) fn of_worker(state: ComparedState<'_>, worker: Option<WorkerIx>) -> Self {
        let Some(worker) = worker else { return Self::default() };
        Self {
            ttft: requests_of(state.cluster, Quantity::Ttft, worker, state.at, WINDOW_MS),
            ..Self::counted(state, |decided| decided.decision.worker == worker)
        }
    }

    /// Those of a pool. Times are known by pool only where there is one.
    pub(super) fn of_pool(state: ComparedState<'_>, pool: Option<PoolIx>) -> Self {
        let Some(pool) = pool else { return Self::default() };
        let is_only = state.cluster.pools_in_use().iter().all(|used| *used == pool);
        Self {
            ttft: if is_only { figure(state.cluster, Quantity::Ttft, state.at) } else { None },
            ..Self::counted(state, |decided| decided.pool == pool)
        }
    }

    fn counted(state: ComparedState<'_>, is_meant: impl Fn(&DecisionEntry) -> bool) -> Self {
        let all = state.cluster.decisions();
        let mut decisions = DecisionTotals::default();
        for decided in all.newest_first().take_while(|decided| state.at.since(decided.at_ms) <= WINDOW_MS) {
            if is_meant(decided) {
                decisions.add(decided);
            }
        }
        // Older ones are forgotten only where there are too many.
        let are_all_kept = all.newest_first().len() as u64 == all.totals().count;
        let oldest = all.newest_first().next_back().map_or(state.at, |oldest| oldest.at_ms);
        let reach_ms = if are_all_kept { WINDOW_MS } else { state.at.since(oldest).min(WINDOW_MS) };
        Self { decisions, reach_ms, ttft: None }
    }

    /// From when on they are counted before `at`.
    pub fn since(&self, at: Millis) -> Millis {
        Millis(at.0.saturating_sub(self.reach_ms))
    }
}
