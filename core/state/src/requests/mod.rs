//! The requests that run and those that came last, and which workers could have taken them: what scoring and replay need
//! beside the tree. Kept by who joins decisions; must not know where a request was read.

mod active;
mod arrivals;
mod prompt;

use crate::cluster::Cluster;
use radixscope_model::id::WorkerIx;

pub use active::{ActiveSequences, EXPIRE_MS, LoadTime, PastLoad, SequenceLoad};
pub use arrivals::{Arrival, Arrivals, MAX_ARRIVAL_BLOCKS, MAX_ARRIVALS};
pub use prompt::Prompt;

/// How far back tree and loads are known: so long by the publishers' clocks, and what was received during so long by ours. A log
/// is read half a second after it was written, and its decisions wait half a second for late events. What was written together
/// may come before and after a stall: those of ten seconds change no decision.
pub const KEPT_MS: u64 = 12_000;

/// As the router of 0.8 to 1.1 knows it: the size of a worker's index, 0 without overlap.
pub fn tree_size_blocks(cluster: &Cluster, worker: WorkerIx, overlap_blocks: u32) -> u64 {
    if overlap_blocks > 0 { cluster.blocks(worker).unwrap_or(0) } else { 0 }
}
