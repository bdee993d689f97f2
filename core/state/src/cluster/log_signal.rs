//! What logs reported of the event path, added up.

use serde::{Deserialize, Serialize};

use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::LogSignal;

/// Most workers named beside one sign.
const MAX_NAMED: usize = 64;

/// One sign.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LogSignalState {
    /// Which.
    pub sign: LogSignal,
    /// How many times it was reported.
    pub count: u64,
    /// First time.
    pub first_ms: Millis,
    /// Last time.
    pub last_ms: Millis,
    /// Workers it was reported of, as far as it names them.
    pub workers: Vec<WorkerIx>,
}

impl LogSignalState {
    pub(super) fn new(sign: LogSignal, at: Millis) -> Self {
        Self { sign, count: 0, first_ms: at, last_ms: at, workers: Vec::new() }
    }

    pub(super) fn add(&mut self, at: Millis, worker: Option<WorkerIx>, count: u64) {
        self.count = self.count.saturating_add(count);
        self.last_ms = self.last_ms.max(at);
        if let Some(worker) = worker.filter(|w| !self.workers.contains(w) && self.workers.len() < MAX_NAMED) {
            self.workers.push(worker);
        }
    }
}
