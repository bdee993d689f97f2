//! Engines' own publishers that are listened to directly, without Dynamo.

use super::{Cluster, Head};
use radixscope_model::id::{PoolIx, WorkerIx};
use radixscope_model::record::{EngineFeed, EventTransport, LinkState};

/// Most publishers that are kept; as many as workers.
pub const MAX_ENGINES: usize = super::MAX_WORKERS;

impl Cluster {
    /// Publishers of engines that are not gone for good, in the order in which they were first recorded.
    pub fn engines(&self) -> &[EngineFeed] {
        &self.head.engines
    }

    /// The publisher of a worker. `None`: its events come by Dynamo.
    pub fn engine_of(&self, worker: WorkerIx) -> Option<&EngineFeed> {
        self.head.engines.iter().find(|feed| feed.worker == Some(worker))
    }

    /// Whether the workers of a pool are engines whose events come from themselves, so that nothing is known of a router.
    pub fn is_without_router(&self, pool: PoolIx) -> bool {
        let of_pool = self.head.workers.iter().filter(|state| state.pool == pool);
        let mut lines = of_pool.flat_map(|state| &state.lines).peekable();
        !self.head.engines.is_empty()
            && lines.peek().is_some()
            && lines.all(|by| by.line == EventTransport::Engine)
    }

    /// Whether all that is known are engines by their own KV events, and no decision of any router.
    pub fn has_no_router(&self) -> bool {
        let pools = self.pools_in_use();
        !pools.is_empty()
            && pools.iter().all(|&pool| self.is_without_router(pool))
            && self.decisions().totals().count == 0
    }

    pub(super) fn fold_engine(&mut self, feed: &EngineFeed) {
        let Head { engines, workers, .. } = &mut self.head;
        if feed.link == LinkState::Ended {
            engines.retain(|known| known.name != feed.name);
            return;
        }
        let mut feed = feed.clone();
        feed.worker = feed.worker.filter(|&worker| workers.get(worker).is_some());
        match engines.iter().position(|known| known.name == feed.name) {
            Some(at) => engines[at] = feed,
            None if engines.len() < MAX_ENGINES => engines.push(feed),
            None => {}
        }
    }
}
