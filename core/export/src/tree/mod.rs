//! The prefix tree in the API: page by page, block by block, its largest prefixes, and as a picture in SVG.
//!
//! Everything is read from a [`TreeSnapshot`], a copy of the tree: what is asked may take longer than whoever changes the tree
//! can wait. Answers are plain rows that serialise themselves; a page is flat, each row with its level, because depth comes
//! from outside. Knows no request and no clock.
//!
//! # How it works
//!
//! The tree's questions take as long as the tree is large, so none of them is answered in the hub. The hub makes a
//! `TreeSnapshot`, a copy of the tree that is mostly `memcpy` (25 to 35 ms for a million blocks on a slow core, where one
//! walk took 100), and shares it with all who ask in the next second, or for twenty times as long as it took. Sums
//! over the whole tree are made once per copy, so that a page costs what it holds and the families that it lists;
//! filters, forests and pictures are made per question, two at a time. A copy that no request needed in ten seconds
//! goes. A page's cursor names its last element, that element's rank among its siblings, and the block before it:
//! enough to go on in a tree that has changed. Pictures in SVG are drawn by the function that the page calls too; it
//! takes boxes from `Forest::visit`, so its size is bounded by pixels.

mod block;
mod cursor;
mod element;
mod options;
mod page;
mod prefixes;
pub mod recency;
pub mod sessions;
mod sums;
pub mod svg;

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use serde::{Serialize, Serializer};

use radixscope_model::id::{BlockHash, Millis, PoolIx, Seq, Slot, TokensHash, Worker, WorkerIx};
use radixscope_state::cluster::{Cluster, PoolState, touch};
use radixscope_state::tree::{HIT_WINDOW, NodeId, Tree};

pub use block::{BlockQuery, BlockResponse, MAX_MATCHES, MAX_PATH};
pub use cursor::{BadCursor, Cursor};
pub use options::DrawOptions;
pub use page::{Page, PageResponse, Sort};
pub use prefixes::{PrefixOrder, PrefixesResponse};
use sums::Sums;

/// How long requests' hits are kept, in milliseconds.
pub const MAX_HITS_WINDOW_MS: u64 = HIT_WINDOW as u64 * radixscope_state::cluster::TOUCH_MS;

/// Why there is no response.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotFound {
    /// The block that was asked for.
    #[error("{0} is not a cached block")]
    Block(String),
    /// The same, of one worker.
    #[error("{0} is not a cached block of that worker")]
    WorkersBlock(String),
    /// A block that is in no picture.
    #[error("root={0} is unattached, below a parent that was never received: it has no place in the tree")]
    Unattached(BlockHash),
    /// Where the last page ended.
    #[error(
        "the element of after= has left the tree, and so has the block before it: begin again without after="
    )]
    Place,
    /// Where the last page ended is not below the root that is asked for.
    #[error("the element of after= is not below root=: all pages take the root of the first one")]
    Elsewhere,
}

/// The tree as it was after a record, and what answers need beside it.
pub struct TreeSnapshot {
    seq: Seq,
    at_ms: Millis,
    /// The pool whose tree it is, and its name.
    pool: PoolIx,
    pool_name: String,
    tree: Tree,
    /// By [`Slot`].
    workers: Vec<Option<(WorkerIx, Worker)>>,
    /// Workers of the pool that have not left.
    pool_workers: usize,
    block_size_tokens: Option<u32>,
    /// Sums over everything, of all workers, with all hits that are kept.
    whole: OnceLock<Sums>,
}

impl TreeSnapshot {
    /// Copies what is needed of the tree of a pool, and computes nothing.
    pub fn of(cluster: &Cluster, pool: PoolIx, at_ms: Millis) -> Self {
        Self {
            seq: cluster.seq(),
            at_ms,
            pool,
            pool_name: cluster.pool(pool).map(PoolState::name).unwrap_or_default(),
            tree: cluster.tree(pool).copy_without_forest(),
            workers: (0..cluster.workers().slots() as u16)
                .map(|slot| {
                    let worker = cluster.workers().in_slot(Slot(slot))?;
                    Some((worker, cluster.worker(worker)?.id))
                })
                .collect(),
            pool_workers: cluster.pool_workers(pool),
            block_size_tokens: cluster.block_tokens(pool),
            whole: OnceLock::new(),
        }
    }

    /// The last record that is in it.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The pool whose tree it is.
    pub fn pool(&self) -> PoolIx {
        self.pool
    }

    /// When it was copied.
    pub fn at_ms(&self) -> Millis {
        self.at_ms
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Requests of the last `window_ms`; `None`: of none is known what was held of its prompt, so hits are unknown.
    fn requests(&self, window_ms: u64) -> Option<u32> {
        Some(self.tree.requests(self.since(window_ms))).filter(|&requests| requests > 0)
    }

    /// The oldest touch within the last `window_ms`.
    fn since(&self, window_ms: u64) -> u32 {
        touch(Millis(self.at_ms.0.saturating_sub(window_ms)))
    }

    /// The block that one of `workers`, or anyone, calls `hash`.
    fn find(&self, hash: BlockHash, workers: Option<&[WorkerIx]>, name: &str) -> Result<NodeId, NotFound> {
        let asked = || format!("{name}={hash}");
        match workers {
            Some(workers) => self
                .slots(workers)
                .into_iter()
                .find_map(|slot| self.tree.find(slot, hash))
                .ok_or_else(|| NotFound::WorkersBlock(asked())),
            None => self.tree.find_any(hash).ok_or_else(|| NotFound::Block(asked())),
        }
    }

    /// Who has a slot.
    fn worker(&self, slot: Slot) -> Option<Worker> {
        self.workers.get(slot.at())?.map(|(_, id)| id)
    }

    /// The slots of those of the workers that are there.
    fn slots(&self, workers: &[WorkerIx]) -> Vec<Slot> {
        let has_slot = |worker: &WorkerIx| matches!(self.workers.get(worker.slot().at()), Some(Some((known, _))) if known == worker);
        workers.iter().filter(|worker| has_slot(worker)).map(|worker| worker.slot()).collect()
    }

    /// Every place that some worker calls `hash`, in order of the workers.
    fn places(&self, hash: BlockHash) -> Vec<NodeId> {
        let slots = (0..self.workers.len() as u16).map(Slot);
        let mut places: Vec<NodeId> = Vec::new();
        for place in slots.filter_map(|slot| self.tree.find(slot, hash)) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// What everything is worth together: blocks, copies, what they take, how much of it is in the picture.
    fn sums_of_all(&self, window_ms: u64, kv_bytes_per_token: Option<u64>) -> SumsOfAll {
        let totals = self.tree.totals();
        let copies = totals.copies();
        let tokens = self.tokens(copies);
        SumsOfAll {
            blocks: totals.nodes,
            shared_blocks: totals.shared,
            copies,
            shown: totals.resident - totals.hidden,
            total: totals.resident,
            block_size_tokens: self.block_size_tokens,
            copies_tokens: tokens,
            copies_bytes: tokens.zip(kv_bytes_per_token).map(|(tokens, bytes)| tokens.saturating_mul(bytes)),
            hits_window_ms: window_ms,
            requests: self.requests(window_ms),
        }
    }

    /// Tokens of so many blocks, where their size is known.
    fn tokens(&self, blocks: u64) -> Option<u64> {
        self.block_size_tokens.map(|size| blocks.saturating_mul(size.into()))
    }

    fn hashes(&self, node: NodeId) -> Hashes {
        Hashes { block_hash: self.tree.block_hash(node), tokens_hash: self.tree.tokens_hash(node) }
    }
}

/// Sums over the whole tree.
#[derive(Serialize)]
struct SumsOfAll {
    blocks: u64,
    shared_blocks: u64,
    copies: u64,
    /// Resident blocks that are in the picture, of `total`.
    shown: u64,
    total: u64,
    block_size_tokens: Option<u32>,
    copies_tokens: Option<u64>,
    copies_bytes: Option<u64>,
    hits_window_ms: u64,
    /// Requests that `hits` are a part of.
    requests: Option<u32>,
}

/// What names a block.
#[derive(Serialize)]
struct Hashes {
    /// By the engine.
    block_hash: BlockHash,
    /// By the router.
    tokens_hash: TokensHash,
}

/// Who holds a block.
struct BlockWorkers<'p> {
    picture: &'p TreeSnapshot,
    node: NodeId,
}

impl Serialize for BlockWorkers<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let owners = self.picture.tree.owners(self.node);
        to.collect_seq(owners.iter().filter_map(|slot| self.picture.worker(slot)))
    }
}
