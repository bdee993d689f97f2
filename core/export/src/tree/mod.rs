//! The prefix tree as the API tells it: page by page, block by block, its largest prefixes, and as a picture in SVG.
//!
//! Everything is read from a [`Picture`], a copy of the tree: what is asked may take longer than whoever changes the tree
//! can wait. The text is written while walking: a nested value built first would be dropped and serialised by recursion,
//! and depth comes from outside. Knows no request and no clock.
//!
//! # How it works
//!
//! The tree's questions take as long as the tree is large, so none of them is answered in the hub. The hub makes a
//! `Picture`, a copy of the tree that is mostly `memcpy` (25 to 35 ms for a million blocks on a slow core, where one
//! walk took 100), and shares it with all who ask in the next second, or for twenty times as long as it took. Sums
//! over the whole tree are made once per copy, so that a page costs what it holds and the families that it lists;
//! filters, forests and pictures are made per question, two at a time. A copy that nobody asked for in ten seconds
//! goes. A page's cursor names its last element, that element's rank among its siblings, and the block before it:
//! enough to go on in a tree that has changed. Pictures in SVG are drawn by the function that the page calls too; it
//! takes boxes from `Forest::visit`, so its size is bounded by pixels.

mod block;
mod cursor;
mod element;
mod page;
mod prefixes;
mod shown;
mod sums;
pub mod svg;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::sync::OnceLock;

use radixscope_model::id::{BlockHash, Millis, Seq, Worker, WorkerIx};
use radixscope_state::cluster::{Cluster, touch, touched_ms};
use radixscope_state::tree::{HIT_WINDOW, NodeId, Totals, Tree};

pub use block::{Asked, MAX_MATCHES, MAX_PATH};
pub use cursor::{BadCursor, Cursor};
pub use page::{Page, Sort};
pub use prefixes::By;
pub use shown::Shown;
use sums::Sums;

/// How long requests' hits are kept, in milliseconds.
pub const MAX_HITS_WINDOW_MS: u64 = HIT_WINDOW as u64 * radixscope_state::cluster::TOUCH_MS;

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotFound {
    /// The block that was asked for.
    #[error("{0} is no block that any worker holds")]
    Block(String),
    /// The same, of one worker.
    #[error("{0} is no block that that worker holds")]
    WorkersBlock(String),
    /// A block that is in no picture.
    #[error("root={0} is below a parent that was never seen: it has no place in the picture")]
    Unattached(BlockHash),
    /// Where the last page ended.
    #[error(
        "the element that after= names has left the tree, and so has the block before it: begin again without after="
    )]
    Place,
    /// Where the last page ended is not below the root that is asked for.
    #[error(
        "the element that after= names is not below root=: a page goes on with the root that the first one had"
    )]
    Elsewhere,
}

/// The tree as it was after a record, and what answers need beside it.
pub struct Picture {
    seq: Seq,
    at_ms: Millis,
    tree: Tree,
    /// By [`WorkerIx`].
    workers: Vec<Worker>,
    block_size_tokens: Option<u32>,
    /// Sums over everything, of all workers, with all hits that are kept.
    whole: OnceLock<Sums>,
}

impl Picture {
    /// Copies what is needed, and computes nothing.
    pub fn of(cluster: &Cluster, at_ms: Millis) -> Self {
        Self {
            seq: cluster.seq(),
            at_ms,
            tree: cluster.tree().frozen(),
            workers: cluster.workers().iter().map(|worker| worker.id).collect(),
            block_size_tokens: cluster.block_tokens(),
            whole: OnceLock::new(),
        }
    }

    /// The last record that is in it.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// When it was copied.
    pub fn at_ms(&self) -> Millis {
        self.at_ms
    }

    /// The tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    fn totals(&self) -> Totals {
        self.tree.totals()
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
            Some(workers) => workers
                .iter()
                .find_map(|&worker| self.tree.find(worker, hash))
                .ok_or_else(|| NotFound::WorkersBlock(asked())),
            None => self.tree.find_any(hash).ok_or_else(|| NotFound::Block(asked())),
        }
    }

    /// Every place that some worker calls `hash`, in order of the workers.
    fn places(&self, hash: BlockHash) -> Vec<NodeId> {
        let workers = (0..self.workers.len() as u16).map(WorkerIx);
        let mut places: Vec<NodeId> = Vec::new();
        for place in workers.filter_map(|worker| self.tree.find(worker, hash)) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// What everything is worth together: blocks, copies, what they take, how much of it is in the picture.
    fn write_totals(&self, json: &mut String, window_ms: u64, kv_bytes_per_token: Option<u64>) {
        let totals = self.totals();
        let copies = totals.copies();
        let tokens = self.block_size_tokens.map(|size| copies.saturating_mul(size.into()));
        let bytes = tokens.zip(kv_bytes_per_token).map(|(tokens, bytes)| tokens.saturating_mul(bytes));
        let _ = write!(
            json,
            "{{\"blocks\":{},\"shared_blocks\":{},\"copies\":{copies},\"shown\":{},\"total\":{},\"block_size_tokens\":{},\
             \"copies_tokens\":{},\"copies_bytes\":{},\"hits_window_ms\":{window_ms},\"requests\":{}}}",
            totals.nodes,
            totals.shared,
            totals.resident - totals.hidden,
            totals.resident,
            OrNull(self.block_size_tokens),
            OrNull(tokens),
            OrNull(bytes),
            OrNull(self.requests(window_ms)),
        );
    }

    /// `"seq":…,"at_ms":…` of this answer.
    fn write_head(&self, json: &mut String) {
        let _ = write!(json, "\"seq\":{},\"at_ms\":{}", self.seq, self.at_ms.0);
    }

    /// A list of workers.
    fn write_workers(&self, json: &mut String, workers: impl Iterator<Item = WorkerIx>) {
        json.push('[');
        let known = workers.filter_map(|ix| self.workers.get(ix.at()));
        for (i, worker) in known.enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let _ = write!(json, "{comma}{{\"worker_id\":\"{}\",\"dp_rank\":{}}}", worker.id, worker.dp_rank);
        }
        json.push(']');
    }
}

/// A value, or `null`.
struct OrNull<T>(Option<T>);

impl<T: std::fmt::Display> std::fmt::Display for OrNull<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("null"),
        }
    }
}

/// Unix milliseconds of a touch.
fn ms(touched: u32) -> u64 {
    touched_ms(touched).0
}
