//! Whether a jump of a worker's event ids is explained by messages that are counted as lost already.
//!
//! A lost message shows twice where its publisher numbers messages and events: in the envelope's sequence and in the
//! ids of the events it held. The message is counted as lost; its events are reported separately.

use radixscope_model::id::WorkerIx;
use radixscope_state::per_worker::PerWorker;

/// Which message each worker's last event was in, counted over all sources.
#[derive(Default)]
pub(super) struct EventIds {
    last: PerWorker<u64>,
}

impl EventIds {
    /// An event of `worker` is in message number `now`; gives the number of the message that its last one was in.
    pub(super) fn received(&mut self, worker: WorkerIx, now: u64) -> u64 {
        std::mem::replace(self.last.of(worker), now)
    }
}
