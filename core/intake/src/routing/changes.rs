//! What changed in the tree during the last seconds, so that it can be known as it was at a decision's time.
//!
//! A look at records before they are folded: the tree must still know what is removed. Only what really changes a
//! worker's holdings is kept. Nothing is kept before somebody tells prompts: everybody else pays one comparison per
//! record. Must not know decisions.

use std::collections::VecDeque;

use radixscope_model::id::{BlockHash, Millis, TokensHash, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::Record;
use radixscope_state::cluster::Cluster;
use radixscope_state::per_worker::PerWorker;
use radixscope_state::requests::KEPT_MS;
use radixscope_state::tree::{NodeId, Tree};

/// Changes kept: twelve seconds of 20,000 blocks each, 14 MiB. With more of them the past that is known is shorter.
const MAX_CHANGES: usize = 1 << 18;

/// One block that a worker began or ceased to hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Change {
    /// When, by the publisher's clock where it tells, else when it was received.
    pub(super) at: Micros,
    /// Latest time of this change and all before it: publishers' clocks differ a little, this only rises.
    latest: Micros,
    pub(super) worker: WorkerIx,
    /// Whether the worker held the block before.
    pub(super) was_held: bool,
    /// Block before it, as the worker calls it; `None`: it begins a prompt.
    pub(super) parent: Option<BlockHash>,
    pub(super) block: BlockHash,
    pub(super) tokens: TokensHash,
}

/// How exactly it is known when a change was received.
const MARK_EVERY_MS: u64 = 100;

const _: () = assert!(size_of::<Change>() <= 56, "the bound above counts on it");

/// Whether anybody needs the past.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Need {
    /// Prompts are not visible.
    #[default]
    None,
    /// A log has begun that may tell prompts: its first choice will show.
    Expected,
    /// It reported a choice without its prompt.
    Declined,
    /// Prompts were reported.
    Known,
}

/// The latest changes, oldest first.
#[derive(Default)]
pub(super) struct TreeChanges {
    ring: VecDeque<Change>,
    need: Need,
    /// Latest time of any change.
    latest: Micros,
    /// Latest time of our clock, and at which times of it how many changes had ever been received.
    received_ms: Millis,
    marks: VecDeque<(Millis, u64)>,
    /// Changes ever received.
    count: u64,
    /// Before this time the past is not known.
    known_since: Micros,
    /// The same for single workers, by index.
    workers: PerWorker<Micros>,
}

impl TreeChanges {
    /// A prompt was reported: from now on the past is needed.
    pub(super) fn need(&mut self) {
        self.begin(Need::Known);
    }

    /// A router that starts writes to its log.
    pub(super) fn expect(&mut self) {
        if self.need == Need::None {
            self.begin(Need::Expected);
        }
    }

    /// A log reported a choice without its prompt, or a request that was finished without any.
    pub(super) fn forgo(&mut self) {
        if self.need == Need::Expected {
            (self.ring, self.need) = (VecDeque::new(), Need::Declined);
        }
    }

    fn is_kept(&self) -> bool {
        matches!(self.need, Need::Expected | Need::Known)
    }

    fn begin(&mut self, need: Need) {
        if !self.is_kept() {
            self.known_since = self.known_since.max(self.latest);
        }
        self.need = need;
    }

    /// Our clock's time. What was received during the last seconds is kept, whatever its publisher's clock says: a backlog of minutes
    /// may be received at once, and a log that belongs to it a little later.
    #[inline]
    pub(super) fn pass_received(&mut self, now: Millis) {
        if now > self.received_ms {
            self.received_ms = now;
            if self.is_kept() && self.marks.back().is_none_or(|(at, _)| now.since(*at) >= MARK_EVERY_MS) {
                self.marks.push_back((now, self.count));
                while self.marks.get(1).is_some_and(|(at, _)| now.since(*at) > KEPT_MS) {
                    self.marks.pop_front();
                }
            }
        }
    }

    /// A record of `at` passes, on its way to `cluster`.
    pub(super) fn observe(&mut self, at: Micros, record: &Record<'_>, cluster: &Cluster) {
        match record {
            Record::Stored { worker, parent, blocks } => {
                self.latest = self.latest.max(at);
                if !self.is_kept() {
                    return;
                }
                let (tree, slot) = (cluster.tree_of(*worker), worker.slot());
                let mut above = parent.map_or(Some(NodeId::ROOT), |hash| tree.find(slot, hash));
                let mut parent = *parent;
                for block in blocks.iter() {
                    above = above.and_then(|above| tree.child(above, block.tokens_hash));
                    if !above.is_some_and(|node| tree.owners(node).contains(slot)) {
                        // A name is of one block: held elsewhere, it moves.
                        self.removed(at, *worker, block.block_hash, tree);
                        let (block, tokens) = (block.block_hash, block.tokens_hash);
                        self.push(at, *worker, false, parent, block, tokens);
                    }
                    parent = Some(block.block_hash);
                }
                self.forget_old();
            }
            Record::Removed { worker, hashes } => {
                self.latest = self.latest.max(at);
                if !self.is_kept() {
                    return;
                }
                for &hash in hashes.iter() {
                    self.removed(at, *worker, hash, cluster.tree_of(*worker));
                }
                self.forget_old();
            }
            Record::Cleared { worker, all_ranks: true } => {
                let process = |worker: WorkerIx| cluster.worker(worker).map(|worker| worker.id.id);
                for of in cluster.workers().indices().filter(|&of| process(of) == process(*worker)) {
                    self.unknown_before(of, at);
                }
            }
            // What it held before was not what the tree showed.
            Record::Cleared { worker, .. }
            | Record::Left { worker, .. }
            | Record::TreeDumpBegan { worker }
            | Record::TreeDumpStored { worker, .. }
            | Record::TreeDumpRemoved { worker, .. } => self.unknown_before(*worker, at),
            _ => {}
        }
    }

    /// Whether it is known what `worker` held at a time.
    pub(super) fn knows(&self, worker: WorkerIx, at: Micros) -> bool {
        at >= self.known_since && self.workers.get(worker).is_none_or(|&since| at >= since)
    }

    /// Changes after a time, in the order in which they were received.
    pub(super) fn after(&self, at: Micros) -> impl Iterator<Item = &Change> {
        let first = self.ring.partition_point(|change| change.latest <= at);
        self.ring.range(first..).filter(move |change| change.at > at)
    }

    fn removed(&mut self, at: Micros, worker: WorkerIx, block: BlockHash, tree: &Tree) {
        let slot = worker.slot();
        let Some(node) = tree.find(slot, block) else { return };
        let parent = match tree.parent(node) {
            // It waits for a block that is not known, so that no prompt leads to it.
            None => return,
            Some(NodeId::ROOT) => None,
            Some(above) if tree.owners(above).contains(slot) => Some(tree.block_hash_by(above, slot)),
            Some(above) => Some(tree.block_hash(above)),
        };
        self.push(at, worker, true, parent, block, tree.tokens_hash(node));
    }

    fn push(
        &mut self,
        at: Micros,
        worker: WorkerIx,
        was_held: bool,
        parent: Option<BlockHash>,
        block: BlockHash,
        tokens: TokensHash,
    ) {
        if self.ring.len() == MAX_CHANGES {
            self.forget_oldest();
        }
        let latest = self.latest;
        self.count += 1;
        self.ring.push_back(Change { at, latest, worker, was_held, parent, block, tokens });
    }

    fn unknown_before(&mut self, worker: WorkerIx, at: Micros) {
        let since = self.workers.of(worker);
        *since = at.max(*since);
    }

    fn forget_old(&mut self) {
        let retained = self.latest.minus_ms(KEPT_MS);
        // How many were received so long ago by our clock too. Where that is not known, publishers' clocks alone count.
        let is_old = |at: Millis| self.received_ms.since(at) > KEPT_MS;
        let old = match self.marks.front() {
            Some(&(at, count)) => {
                if is_old(at) {
                    count
                } else {
                    0
                }
            }
            None => u64::MAX,
        };
        let first = self.count - self.ring.len() as u64;
        let mut old = old.saturating_sub(first);
        while old > 0 && self.ring.front().is_some_and(|change| change.latest < retained) {
            self.forget_oldest();
            old -= 1;
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(change) = self.ring.pop_front() {
            self.known_since = self.known_since.max(change.at);
        }
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
