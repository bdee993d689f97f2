//! What changed in the trees of all tiers during the last seconds, so that it can be known as it was at a decision's time.
//!
//! A look at records before they are folded: the tree must still know what is removed. Only what really changes a
//! worker's holdings is kept. Nothing is kept before somebody tells prompts: everybody else pays one comparison per
//! record. Must not know decisions.

use std::collections::VecDeque;

use hashbrown::HashSet;

use super::gone::GoneBlocks;
use super::stores::Stores;
use radixscope_model::id::{BlockHash, Millis, Slot, TokensHash, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::{Block, GoneBlock, GoneReason, Record, Tier};
use radixscope_router::hash::chain_hash;
use radixscope_state::cluster::Cluster;
use radixscope_state::per_worker::PerWorker;
use radixscope_state::requests::KEPT_MS;
use radixscope_state::tree::{NodeId, Tree};

/// Longest request whose trace shows what was cached when it was chosen: a trace comes when its request is over.
const TRACED_MS: u64 = 60_000;

/// Changes kept: twelve seconds of 20,000 blocks each, 14 MiB. With more of them the past that is known is shorter.
const MAX_CHANGES: usize = 1 << 18;

/// Most blocks of a worker that left or was cleared that are recorded one by one; with more it is unknown what it held before.
const MAX_EMPTIED: u64 = 1 << 16;

/// One block that a worker began or ceased to hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Change {
    /// When, by the publisher's clock where it tells, else when it was received.
    pub(super) at: Micros,
    /// Latest time of this change and all before it: publishers' clocks differ a little, this only rises.
    latest: Micros,
    pub(super) worker: WorkerIx,
    /// Where below its device; `None`: on its device.
    pub(super) tier: Option<Tier>,
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

/// A worker that ceases to hold a block.
#[derive(Clone, Copy)]
struct Leaving<'a> {
    worker: WorkerIx,
    /// All that cease to hold it at once, this one included.
    with: &'a [WorkerIx],
    why: GoneReason,
    /// Who stored blocks of which tokens after it ceased to hold them: that it left is known later than that.
    since: Option<&'a HashSet<(Slot, TokensHash)>>,
}

impl<'a> Leaving<'a> {
    /// No other one does.
    fn new(worker: &'a WorkerIx, why: GoneReason) -> Self {
        Self { worker: *worker, with: std::slice::from_ref(worker), why, since: None }
    }
}

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
    /// Blocks that no worker holds any more.
    gone: GoneBlocks,
    /// What workers stored while they evicted.
    stores: Stores,
    /// Before this time the past is not known.
    known_since: Micros,
    /// The same for single workers, by index.
    workers: PerWorker<Micros>,
    /// Whether prompts are reported when requests are over, so that the past is needed for longer.
    is_traced: bool,
}

impl TreeChanges {
    /// A prompt was reported: from now on the past is needed.
    pub(super) fn need(&mut self) {
        self.begin(Need::Known);
    }

    /// A request that is over reported its prompt.
    pub(super) fn need_for_traces(&mut self) {
        self.is_traced = true;
        self.need();
    }

    const fn kept_ms(&self) -> u64 {
        if self.is_traced { TRACED_MS } else { KEPT_MS }
    }

    /// Blocks that no worker holds any more.
    pub(super) const fn gone(&self) -> &GoneBlocks {
        &self.gone
    }

    /// What workers stored while they evicted.
    pub(super) const fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Whether prompts are visible, so that it is asked what became of their blocks; from now on that is remembered. `true` once.
    pub(super) fn begin_gone(&mut self, now: Millis) -> bool {
        let begins = self.need == Need::Known && !self.gone.is_on();
        if begins {
            self.gone.begin(now);
        }
        begins
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
                let kept_ms = self.kept_ms();
                while self.marks.get(1).is_some_and(|(at, _)| now.since(*at) > kept_ms) {
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
                let above = parent.map_or(Some(NodeId::ROOT), |hash| tree.find(slot, hash));
                self.stored(at, (*worker, None), tree, (*parent, above), blocks);
            }
            Record::TierStored { worker, tier, parent, blocks } => {
                self.latest = self.latest.max(at);
                if !self.is_kept() {
                    return;
                }
                let pool = cluster.pool_of(*worker).unwrap_or_default();
                let (device, tree) = (cluster.tree(pool), cluster.tier_tree(pool, *tier));
                let above =
                    parent.map_or(Some(NodeId::ROOT), |hash| node_in_tier(device, tree, worker.slot(), hash));
                self.stored(at, (*worker, Some(*tier)), tree, (*parent, above), blocks);
            }
            Record::Removed { worker, hashes } => {
                self.latest = self.latest.max(at);
                if !self.is_kept() {
                    return;
                }
                let tree = cluster.tree_of(*worker);
                let leaving = Leaving::new(worker, GoneReason::Evicted);
                if self.gone.is_on() {
                    self.stores.evicted(at.millis(), *worker);
                }
                hashes.iter().for_each(|&hash| self.ceased(at, leaving, None, hash, cluster, tree));
                self.forget_old();
            }
            Record::TierRemoved { worker, tier, hashes } => {
                self.latest = self.latest.max(at);
                if !self.is_kept() {
                    return;
                }
                let tree = cluster.tier_tree(cluster.pool_of(*worker).unwrap_or_default(), *tier);
                let leaving = Leaving::new(worker, GoneReason::Evicted);
                hashes.iter().for_each(|&hash| self.ceased(at, leaving, Some(*tier), hash, cluster, tree));
                self.forget_old();
            }
            Record::Cleared { worker, all_ranks: true } => {
                let process = |worker: WorkerIx| cluster.worker(worker).map(|worker| worker.id.id);
                let is_rank = |of: &WorkerIx| process(*of) == process(*worker);
                let ranks: Vec<WorkerIx> = cluster.workers().indices().filter(is_rank).collect();
                for &of in &ranks {
                    let leaving = Leaving { worker: of, with: &ranks, why: GoneReason::Cleared, since: None };
                    self.emptied(at, leaving, None, cluster, cluster.tree_of(of));
                }
            }
            Record::Cleared { worker, .. } => {
                let leaving = Leaving::new(worker, GoneReason::Cleared);
                self.emptied(at, leaving, None, cluster, cluster.tree_of(*worker));
            }
            Record::TierCleared { worker, tier } => {
                let tree = cluster.tier_tree(cluster.pool_of(*worker).unwrap_or_default(), *tier);
                self.emptied(at, Leaving::new(worker, GoneReason::Cleared), Some(*tier), cluster, tree);
            }
            Record::Left { worker, .. } => {
                let pool = cluster.pool_of(*worker).unwrap_or_default();
                let stored = self.after(at).filter(|change| !change.was_held);
                let since = stored.map(|change| (change.worker.slot(), change.tokens)).collect();
                let leaving = Leaving { since: Some(&since), ..Leaving::new(worker, GoneReason::Left) };
                self.emptied(at, leaving, None, cluster, cluster.tree(pool));
                for tier in Tier::ALL {
                    self.emptied(at, leaving, Some(tier), cluster, cluster.tier_tree(pool, tier));
                }
            }
            // What it held before was not what the tree showed.
            Record::TreeDumpBegan { worker } | Record::TreeDumpStored { worker, .. } => {
                self.unknown_before(*worker, at);
            }
            Record::TreeDumpRemoved { worker, tier, hashes } => {
                self.unknown_before(*worker, at);
                let pool = cluster.pool_of(*worker).unwrap_or_default();
                let tree = tier.map_or(cluster.tree(pool), |tier| cluster.tier_tree(pool, tier));
                let leaving = Leaving::new(worker, GoneReason::NotReported);
                for node in hashes.iter().filter_map(|&hash| tree.find(worker.slot(), hash)) {
                    self.note_gone(at, leaving, node, cluster, tree);
                }
            }
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

    /// Whether a worker of a pool held a block on its device at a time, by what changed since: the one with these hashes of what leads
    /// to it and of itself with that.
    pub(super) fn was_held(
        &self,
        at: Micros,
        (above, chain): (Option<BlockHash>, BlockHash),
        is_in_pool: impl Fn(WorkerIx) -> bool,
    ) -> bool {
        let is_it = |change: &&Change| {
            change.tier.is_none() && is_in_pool(change.worker) && chain_hash(above, change.tokens) == chain
        };
        // The first change of each worker shows how it was before.
        let mut later: Vec<WorkerIx> = Vec::new();
        for change in self.after(at).filter(is_it) {
            if !later.contains(&change.worker) {
                if change.was_held {
                    return true;
                }
                later.push(change.worker);
            }
        }
        false
    }

    /// A worker stores blocks below `above`, which it calls `parent`, in a tier whose tree is `tree`.
    fn stored(
        &mut self,
        at: Micros,
        (worker, tier): (WorkerIx, Option<Tier>),
        tree: &Tree,
        (mut parent, mut above): (Option<BlockHash>, Option<NodeId>),
        blocks: &[Block],
    ) {
        let slot = worker.slot();
        let event_parent = parent;
        // The first block that is new, behind the node before it, and how many are.
        let mut new: Option<(Option<NodeId>, TokensHash, u32)> = None;
        for block in blocks {
            let before = above;
            above = above.and_then(|above| tree.child(above, block.tokens_hash));
            if !above.is_some_and(|node| tree.owners(node).contains(slot)) {
                new.get_or_insert((before, block.tokens_hash, 0)).2 += 1;
                // A name is of one block: held elsewhere, it moves.
                if let Some(node) = tree.find(slot, block.block_hash) {
                    self.removed(at, (worker, tier), (block.block_hash, node), tree);
                }
                self.push(at, (worker, tier), false, parent, block.block_hash, block.tokens_hash);
            }
            parent = Some(block.block_hash);
        }
        if let (Some((before, tokens, count)), Some(last), None, true) =
            (new, parent, tier, self.gone.is_on())
        {
            let first = || match before? {
                NodeId::ROOT => Some(chain_hash(None, tokens)),
                node => tree.chain_hash(node).map(|above| chain_hash(Some(above), tokens)),
            };
            self.stores.stored(at.millis(), worker, (event_parent, last), count, first);
        }
        self.forget_old();
    }

    /// A worker ceases to hold all that it holds in a tier.
    fn emptied(
        &mut self,
        at: Micros,
        leaving: Leaving<'_>,
        tier: Option<Tier>,
        cluster: &Cluster,
        tree: &Tree,
    ) {
        let worker = leaving.worker;
        self.latest = self.latest.max(at);
        let held = tree.holdings(worker.slot());
        if !self.is_kept() || held.is_empty() {
            return;
        }
        let names = || tree.names_of(worker.slot()).into_iter();
        // One worker's blocks must not displace what is known of all others.
        if held.hidden == 0 && held.resident <= MAX_EMPTIED {
            names().for_each(|name| self.ceased(at, leaving, tier, name, cluster, tree));
            self.forget_old();
            return;
        }
        self.unknown_before(worker, at);
        if self.gone.is_on() {
            for node in names().filter_map(|name| tree.find(worker.slot(), name)) {
                self.note_gone(at, leaving, node, cluster, tree);
            }
        }
    }

    /// A worker ceases to hold the block that it calls `name` in a tier whose tree is `tree`.
    fn ceased(
        &mut self,
        at: Micros,
        leaving: Leaving<'_>,
        tier: Option<Tier>,
        name: BlockHash,
        cluster: &Cluster,
        tree: &Tree,
    ) {
        let worker = leaving.worker;
        let Some(node) = tree.find(worker.slot(), name) else { return };
        self.removed(at, (worker, tier), (name, node), tree);
        self.note_gone(at, leaving, node, cluster, tree);
    }

    /// Remembers a block that the worker ceases to hold, if no other one holds it in this tier.
    #[inline]
    fn note_gone(&mut self, at: Micros, leaving: Leaving<'_>, node: NodeId, cluster: &Cluster, tree: &Tree) {
        let Leaving { worker, with, why, since } = leaving;
        let is_leaving = |slot: Slot| {
            with.iter().any(|of| of.slot() == slot)
                || since.is_some_and(|since| since.contains(&(slot, tree.tokens_hash(node))))
        };
        if !self.gone.is_on() || !tree.owners(node).iter().all(is_leaving) {
            return;
        }
        let Some(chain) = tree.chain_hash(node) else { return };
        let held_blocks = cluster.blocks(worker).unwrap_or(0).try_into().unwrap_or(u32::MAX);
        let gone = GoneBlock { worker, at_ms: at.millis(), why, held_blocks };
        self.gone.add(cluster.pool_of(worker).unwrap_or_default(), chain, gone);
    }

    fn removed(
        &mut self,
        at: Micros,
        (worker, tier): (WorkerIx, Option<Tier>),
        (block, node): (BlockHash, NodeId),
        tree: &Tree,
    ) {
        let slot = worker.slot();
        let parent = match tree.parent(node) {
            // It waits for a block that is not known, so that no prompt leads to it.
            None => return,
            Some(NodeId::ROOT) => None,
            Some(above) if tree.owners(above).contains(slot) => Some(tree.block_hash_by(above, slot)),
            Some(above) => Some(tree.block_hash(above)),
        };
        self.push(at, (worker, tier), true, parent, block, tree.tokens_hash(node));
    }

    fn push(
        &mut self,
        at: Micros,
        (worker, tier): (WorkerIx, Option<Tier>),
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
        self.ring.push_back(Change { at, latest, worker, tier, was_held, parent, block, tokens });
    }

    fn unknown_before(&mut self, worker: WorkerIx, at: Micros) {
        let since = self.workers.of(worker);
        *since = at.max(*since);
    }

    fn forget_old(&mut self) {
        let kept_ms = self.kept_ms();
        let retained = self.latest.minus_ms(kept_ms);
        // How many were received so long ago by our clock too. Where that is not known, publishers' clocks alone count.
        let is_old = |at: Millis| self.received_ms.since(at) > kept_ms;
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

/// The block that a worker calls so in the tree of a lower tier, where it may only lead to others: the worker holds it on its device.
fn node_in_tier(device: &Tree, tree: &Tree, worker: Slot, name: BlockHash) -> Option<NodeId> {
    if let Some(node) = tree.find(worker, name) {
        return Some(node);
    }
    let path = std::iter::successors(device.find(worker, name), |&node| device.parent(node));
    let tokens: Vec<TokensHash> =
        path.take_while(|&node| node != NodeId::ROOT).map(|node| device.tokens_hash(node)).collect();
    tokens
        .iter()
        .rev()
        .try_fold(NodeId::ROOT, |at, &tokens| tree.child(at, tokens))
        .filter(|_| !tokens.is_empty())
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
