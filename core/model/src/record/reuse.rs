//! How much of a prompt could have been used again, step by step from what was ever cached to what the chosen worker held, and why
//! the next block was gone.

use serde::{Deserialize, Serialize, Serializer};

use crate::id::{DecisionId, Millis, WorkerIx};

/// How much of a request's prompt was cached where when the router decided: full blocks of the router's size, counted without a
/// hole from the beginning of the prompt, in all tiers of the cache. Computed here from the trees as of that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reuse {
    /// Of which decision.
    pub decision: DecisionId,
    /// Full blocks of the prompt.
    pub prompt_blocks: u32,
    /// Of those, cached then or known to have been cached before.
    pub seen_blocks: u32,
    /// Most that any worker of the pool held.
    pub held_blocks: u32,
    /// Most that any worker held that the router could choose.
    pub eligible_blocks: u32,
    /// What the chosen worker held.
    pub chosen_blocks: u32,
    /// Who held `eligible_blocks`: the chosen worker if it did, else of several the one with the lowest index. `None`: no worker
    /// held any.
    pub holder: Option<WorkerIx>,
    /// What became of the first block that no worker held any more. `None`: it was never seen, or went before `known_since_ms`.
    pub gone: Option<GoneBlock>,
    /// Blocks that were gone before this are not known to have been seen.
    pub known_since_ms: Millis,
    /// The pool's tree lacked blocks then, so that what was not seen may have been cached.
    pub lacked_blocks: bool,
    /// What the worker of `gone` stored on its device around then, where its engine evicted the block. `None`: it did not, nothing was
    /// stored, or it was too long ago.
    pub displaced_by: Option<DisplacedBy>,
}

/// Blocks that a worker stored on its device from ten seconds before it evicted others until a second after. That it evicted for them
/// no event says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DisplacedBy {
    /// All.
    pub stored_blocks: u32,
    /// The decision of the request that most of them are of. `None`: its prompt is not visible, or was not yet.
    pub decision: Option<DecisionId>,
    /// How many are of that request.
    pub decision_blocks: u32,
}

/// A block that left the caches of all workers of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GoneBlock {
    /// The last worker that held it.
    pub worker: WorkerIx,
    /// When it ceased to hold it, by its own clock where that is known.
    pub at_ms: Millis,
    /// Why.
    pub why: GoneReason,
    /// Blocks that the worker held at that moment, this one included.
    pub held_blocks: u32,
}

/// Why a worker ceased to hold a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum GoneReason {
    /// Its engine removed the block.
    Evicted,
    /// Its engine removed all blocks at once.
    Cleared,
    /// The worker left.
    Left,
    /// Its removal was not received: a list of all its blocks showed that it is not there.
    NotReported,
}

str_names! {
    /// Name in JSON.
    GoneReason { Evicted => "evicted", Cleared => "cleared", Left => "worker_left", NotReported => "not_reported" }
}
