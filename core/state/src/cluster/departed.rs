//! Workers that are forgotten but for who they were: decisions that are retained go on to name them. Must not know what
//! decisions are.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{WorkerState, hash};
use radixscope_model::id::{Worker, WorkerIx};

/// Most departed workers that are named on. Beyond it those that left longest ago are unknown.
pub const MAX_DEPARTED: usize = 1 << 13;
/// Below so many it is not worth while to look which of them are still named.
const FEW: usize = 64;

/// Who departed workers were.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct DepartedWorkers {
    workers: BTreeMap<WorkerIx, WorkerState>,
    /// When there are so many, those that nothing names any more go. Looking through all decisions costs more than a worker.
    full: usize,
    /// Sum of hashes of who has which index: nothing else of them ever changes, and the state's digest is taken often.
    #[serde(skip)]
    digest: u64,
}

impl DepartedWorkers {
    pub(super) fn get(&self, worker: WorkerIx) -> Option<&WorkerState> {
        self.workers.get(&worker)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (WorkerIx, &WorkerState)> {
        self.workers.iter().map(|(&ix, worker)| (ix, worker))
    }

    /// The latest one with this id.
    pub(super) fn find(&self, id: Worker) -> Option<WorkerIx> {
        let of_it = self.workers.iter().filter(|(_, worker)| worker.id == id);
        of_it.max_by_key(|(_, worker)| worker.first_ms).map(|(&ix, _)| ix)
    }

    /// Equal for equal ones.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    /// Changes all of them.
    pub(super) fn each(&mut self, change: impl FnMut(&mut WorkerState)) {
        self.workers.values_mut().for_each(change);
        self.restored();
    }

    /// Works out what is not written into a snapshot.
    pub(super) fn restored(&mut self) {
        self.digest = self.workers.iter().map(hash_of).fold(0, u64::wrapping_add);
    }

    /// A worker is forgotten. `each_named` calls its argument with every worker that is still named somewhere.
    pub(super) fn add(
        &mut self,
        worker: WorkerIx,
        state: &WorkerState,
        each_named: impl FnOnce(&mut dyn FnMut(WorkerIx)),
    ) {
        let mut name = WorkerState::new(state.id, state.pool, state.first_ms);
        (name.departure, name.last_departure) = (state.departure, state.last_departure);
        self.digest = self.digest.wrapping_add(hash_of((&worker, &name)));
        self.workers.insert(worker, name);
        if self.workers.len() >= self.full.max(FEW) {
            let mut named = BTreeSet::new();
            each_named(&mut |worker| {
                named.insert(worker);
            });
            self.workers.retain(|worker, _| named.contains(worker));
            self.forget_oldest();
            self.full = (2 * self.workers.len()).min(MAX_DEPARTED);
            self.restored();
        }
    }

    /// If there are nearly as many as there can be, a quarter of them goes: those that left first.
    fn forget_oldest(&mut self) {
        if self.workers.len() <= MAX_DEPARTED * 3 / 4 {
            return;
        }
        let left_ms = |worker: &WorkerState| worker.departure.map(|departure| departure.at_ms);
        let mut oldest: Vec<_> = self.workers.iter().map(|(&ix, worker)| (left_ms(worker), ix)).collect();
        oldest.sort();
        oldest.truncate(MAX_DEPARTED / 4);
        oldest.iter().for_each(|(_, ix)| {
            self.workers.remove(ix);
        });
    }
}

fn hash_of((ix, worker): (&WorkerIx, &WorkerState)) -> u64 {
    hash(&(ix, worker))
}
