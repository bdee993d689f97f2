//! Which workers lack blocks in our tree, and how much of what workers hold is in it: the one place that decides it, for
//! figures, rules and marks alike. Knows nothing of how workers are asked.

use super::{Cluster, WorkerState};
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::record::{Asking, KnowledgeWhy, TreeKnowledge};

/// How much of what the workers of some pools hold is known. Workers that publish no KV events by design do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Workers that are there.
    pub workers: u32,
    /// Of those, the ones of which every block is known.
    pub complete: u32,
    /// Of those, the ones of which blocks are known to be missing.
    pub incomplete: u32,
    /// Blocks known, of the workers of which anything is known.
    pub known_blocks: u64,
    /// Blocks that they hold; `None`: of one of them nothing tells.
    pub used_blocks: Option<u64>,
}

impl Coverage {
    /// Known ÷ held blocks, 0 … 1; `None`: it is not known how many are held, or none is.
    pub fn share(&self) -> Option<f64> {
        let used = self.used_blocks.filter(|&used| used > 0)?;
        Some((self.known_blocks as f64 / used as f64).min(1.0))
    }

    /// Whether no worker is known to lack blocks.
    pub const fn is_whole(&self) -> bool {
        self.incomplete == 0
    }
}

impl Cluster {
    /// Whether a worker may be expected to publish KV events: one that did may; decode workers in a pool where nobody does need
    /// not, and others may say in their cards that they do not.
    pub fn publishes(&self, worker: WorkerIx) -> bool {
        let Some(state) = self.worker(worker) else { return false };
        let decodes = self.pool(state.pool).is_some_and(|pool| pool.ignores_cache);
        let is_silent = || {
            self.workers_in(state.pool)
                .filter_map(|peer| self.worker(peer))
                .all(|peer| peer.last_event_ms.is_none())
        };
        state.last_event_ms.is_some() || !(state.publishes_events == Some(false) || (decodes && is_silent()))
    }

    /// Workers of a pool that are there.
    fn present(&self, pool: PoolIx) -> impl Iterator<Item = (WorkerIx, &WorkerState)> {
        let workers = self.workers_in(pool).filter_map(|ix| Some((ix, self.worker(ix)?)));
        workers.filter(|(_, state)| state.gone.is_none())
    }

    /// The workers of a pool of which blocks are known to be missing: those known in part, and those of which nothing is known
    /// though somebody else was there before us, or though they were asked.
    pub fn incomplete_in(&self, pool: PoolIx) -> Vec<WorkerIx> {
        let mut came_late = None;
        let mut lacks = |state: &WorkerState| match state.knowledge.state {
            TreeKnowledge::Complete => false,
            TreeKnowledge::Partial => true,
            TreeKnowledge::Unknown => {
                let is_partial =
                    |(_, peer): (WorkerIx, &WorkerState)| peer.knowledge.state == TreeKnowledge::Partial;
                matches!(state.knowledge.asking, Asking::Failed { .. })
                    || *came_late.get_or_insert_with(|| self.present(pool).any(is_partial))
            }
        };
        let lacking: Vec<WorkerIx> =
            self.present(pool).filter(|(_, state)| lacks(state)).map(|(ix, _)| ix).collect();
        lacking.into_iter().filter(|&ix| self.publishes(ix)).collect()
    }

    /// How much of what the workers of `pools` hold is known.
    pub fn coverage(&self, pools: impl IntoIterator<Item = PoolIx>) -> Coverage {
        let mut sum = Coverage { used_blocks: Some(0), ..Coverage::default() };
        for pool in pools {
            let lacking = self.incomplete_in(pool);
            for (ix, state) in self.present(pool).filter(|(ix, _)| self.publishes(*ix)) {
                let is_incomplete = lacking.contains(&ix);
                sum.workers += 1;
                sum.complete += u32::from(state.knowledge.is_complete());
                sum.incomplete += u32::from(is_incomplete);
                if state.knowledge.is_complete() || is_incomplete {
                    let (known, used) = self.known_of_used(ix);
                    sum.known_blocks += known;
                    sum.used_blocks = sum.used_blocks.zip(used).map(|(sum, used)| sum + used.value);
                }
            }
        }
        sum
    }

    /// Whether the tree of a pool lacked blocks at a moment of the last seconds: it does now, or got them after that moment.
    pub(super) fn was_incomplete(&self, pool: PoolIx, at: Millis) -> bool {
        let came_after = |state: &WorkerState| {
            let is_late = matches!(state.knowledge.why, KnowledgeWhy::Dump | KnowledgeWhy::Cleared);
            state.knowledge.is_complete() && is_late && state.knowledge.since_ms > at
        };
        self.present(pool).any(|(_, state)| came_after(state)) || !self.incomplete_in(pool).is_empty()
    }
}
