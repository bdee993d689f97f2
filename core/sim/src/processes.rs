//! The processes of one pool as others see them: what they publish, log and suffer.
//! Must not know the other pools, nor how requests are served.

use rustc_hash::FxHashMap;

use super::engine::Engine;
use super::fault::{Fault, Faults, HashSeeds};
use super::log::Log;
use super::topology::Pool;
use super::wire::{Wire, WireOut};
use radixscope_model::id::Millis;

/// Least time between two load reports of a worker, in microseconds.
const LOAD_EVERY_US: u64 = 100_000;

/// A worker's last load report.
#[derive(Clone, Copy, Debug, Default)]
struct LoadReport {
    blocks: u64,
    /// When the next may follow.
    next_us: u64,
    due: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Processes {
    pub(super) pool: Pool,
    pub(super) wire: Wire,
    pub(super) log: Log,
    pub(super) faults: Faults,
    /// Who stored each block first, where engines hash each in its own way.
    pub(super) seeds: Option<HashSeeds>,
    /// The router's id of each user's request.
    pub(super) request_ids: Vec<String>,
    /// Blocks of each user's request that the router found on the worker it chose.
    pub(super) overlaps: Vec<u32>,
    /// Which worker each conversation under way is bound to, and the number of the binding, where sessions are bound.
    pub(super) bindings: FxHashMap<u64, (u16, u64)>,
    loads: Vec<LoadReport>,
}

impl Processes {
    pub(super) fn new(pool: Pool) -> Self {
        let config = &pool.config;
        Self {
            wire: Wire::new(&pool),
            log: Log::new(&pool),
            faults: Faults::new(config),
            seeds: config.has(Fault::HashSeed).then(HashSeeds::default),
            request_ids: vec![String::new(); config.concurrency as usize],
            overlaps: vec![0; config.concurrency as usize],
            bindings: FxHashMap::default(),
            loads: vec![LoadReport::default(); usize::from(config.workers)],
            pool,
        }
    }

    /// There may be requests with numbers below `requests`.
    pub(super) fn make_room(&mut self, requests: usize) {
        self.request_ids.resize(requests, String::new());
        self.overlaps.resize(requests, 0);
    }

    /// A worker may report its load again.
    pub(super) fn load_due(&mut self, worker: u16) {
        self.loads[usize::from(worker)].due = false;
    }

    /// A worker's own load: on change, but not too often. Returns after how many microseconds it may report it, if not now.
    pub(super) fn report_load(
        &mut self,
        worker: u16,
        engine: &Engine,
        (at_ms, now_us): (Millis, u64),
        out: WireOut<'_>,
    ) -> Option<u64> {
        let blocks = u64::from(engine.cache().in_use());
        let load = &mut self.loads[usize::from(worker)];
        if blocks == load.blocks || load.due {
            return None;
        }
        if now_us < load.next_us {
            load.due = true;
            return Some(load.next_us - now_us);
        }
        *load = LoadReport { blocks, next_us: now_us + LOAD_EVERY_US, due: false };
        self.wire.worker_load(at_ms, worker, blocks, out);
        None
    }
}
