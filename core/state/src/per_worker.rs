//! A value for each worker, found by the worker's index: one table for all that is kept beside the workers, emptied in one
//! way where other workers take their places. Must not know what it holds.

use serde::{Deserialize, Serialize};

use radixscope_model::id::WorkerIx;

/// Values by worker; a worker that was never named has the default. Bounded, because workers are.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PerWorker<T>(Vec<T>);

impl<T: Default> PerWorker<T> {
    /// The value of a worker that was named before.
    pub fn get(&self, worker: WorkerIx) -> Option<&T> {
        self.0.get(worker.at())
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, worker: WorkerIx) -> Option<&mut T> {
        self.0.get_mut(worker.at())
    }

    /// The value of a worker.
    pub fn of(&mut self, worker: WorkerIx) -> &mut T {
        if self.0.len() <= worker.at() {
            self.0.resize_with(worker.at() + 1, T::default);
        }
        &mut self.0[worker.at()]
    }

    /// All values, by index.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (WorkerIx, &mut T)> {
        (0..).map(WorkerIx).zip(&mut self.0)
    }

    /// Whether no worker was named yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Other workers take these places, see [`radixscope_model::record::Record::WorkersReclaimed`].
    pub fn reclaim(&mut self, workers: &[WorkerIx]) {
        for worker in workers {
            if let Some(value) = self.0.get_mut(worker.at()) {
                *value = T::default();
            }
        }
    }
}
