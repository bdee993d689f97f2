//! What changed in the trees of all tiers during the last seconds, so that it can be known as it was at a decision's time.
//!
//! What one event changed is taken from the tree that folded it. What a worker loses all at once is looked up before that. Only what
//! really changes a worker's holdings is retained, and nothing before prompts may be visible: without them it costs one comparison a
//! record. Must not know decisions.

use std::collections::VecDeque;

use hashbrown::HashSet;

use super::gone::GoneBlocks;
use super::stores::Stores;
use radixscope_model::id::{BlockHash, Millis, Slot, TokensHash, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::{GoneBlock, GoneReason, Record, Tier};
use radixscope_state::cluster::{Cluster, Follow};
use radixscope_state::per_worker::PerWorker;
use radixscope_state::requests::KEPT_MS;
use radixscope_state::tree::{ChangedBlock, ChangedBlocks, NodeId, Tree};

/// Longest request whose trace shows what was cached when it was chosen: a trace comes when its request is over.
const TRACED_MS: u64 = 60_000;

/// Changed blocks retained: twelve seconds of 20,000 each, 8 MiB, and as much again if each is an event of its own. With more of them
/// the past that is known is shorter.
const MAX_CHANGES: usize = 1 << 18;

/// Room for blocks at the beginning: a small deployment moves none of them.
const FIRST_CHANGES: usize = 1 << 12;

/// Most blocks of a worker that left or was cleared that are recorded one by one; with more it is unknown what it held before.
const MAX_EMPTIED: u64 = 1 << 16;

/// What changed at once of what one worker holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// When, by the publisher's clock where it tells, else when it was received.
    pub(super) at: Micros,
    /// Latest time of this change and all before it: publishers' clocks differ a little, this only rises.
    latest: Micros,
    /// Blocks that ever changed before these.
    first: u64,
    pub(super) worker: WorkerIx,
    /// Where below its device; `None`: on its device.
    pub(super) tier: Option<Tier>,
}

/// How exactly it is known when a change was received.
const MARK_EVERY_MS: u64 = 100;

const _: () = assert!(size_of::<Change>() <= 32, "the bound above counts on it");

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

/// An event that is about to be folded.
#[derive(Clone, Copy)]
struct Expected {
    at: Micros,
    worker: WorkerIx,
    tier: Option<Tier>,
    /// What the worker held before on its device.
    held_blocks: u32,
}

/// The latest changes, oldest first.
#[derive(Default)]
pub(super) struct TreeChanges {
    changes: VecDeque<Change>,
    /// The blocks of all of them.
    blocks: VecDeque<ChangedBlock>,
    expected: Option<Expected>,
    need: Need,
    /// Latest time of any change.
    latest: Micros,
    /// Latest time of our clock, and at which times of it how many blocks had ever changed.
    received_ms: Millis,
    marks: VecDeque<(Millis, u64)>,
    /// Blocks that ever changed.
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

    /// If prompts are visible it is asked what became of their blocks: from now on that is remembered.
    #[inline]
    pub(super) fn begin_gone(&mut self, now: Millis) {
        if self.need == Need::Known {
            self.gone.begin(now);
        }
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
            (self.changes, self.blocks) = (VecDeque::new(), VecDeque::new());
            self.need = Need::Declined;
        }
    }

    fn is_kept(&self) -> bool {
        matches!(self.need, Need::Expected | Need::Known)
    }

    /// What trees have to note for this.
    #[inline]
    pub(super) const fn follow(&self) -> Follow {
        match (self.need, self.gone.is_on()) {
            (Need::None | Need::Declined, _) => Follow::Nothing,
            (_, false) => Follow::Blocks,
            (_, true) => Follow::Chains,
        }
    }

    fn begin(&mut self, need: Need) {
        if !self.is_kept() {
            self.known_since = self.known_since.max(self.latest);
            self.blocks.reserve(FIRST_CHANGES);
        }
        self.need = need;
    }

    /// Our clock's time. What was received during the last seconds is kept, whatever its publisher's clock says: a backlog of minutes
    /// may be received at once, and a log that belongs to it a little later.
    #[inline]
    pub(super) fn pass_received(&mut self, now: Millis) {
        if now > self.received_ms {
            self.received_ms = now;
            if self.is_kept() {
                self.mark_received(now);
            }
        }
    }

    fn mark_received(&mut self, now: Millis) {
        if self.marks.back().is_none_or(|(at, _)| now.since(*at) >= MARK_EVERY_MS) {
            self.marks.push_back((now, self.count));
            let kept_ms = self.kept_ms();
            while self.marks.get(1).is_some_and(|(at, _)| now.since(*at) > kept_ms) {
                self.marks.pop_front();
            }
        }
    }

    /// A record of `at` passes, on its way to `cluster`. What it changes of single blocks is asked for when it is folded:
    /// [`TreeChanges::folded`].
    #[inline]
    pub(super) fn observe(&mut self, at: Micros, record: &Record<'_>, cluster: &Cluster) {
        match record {
            Record::Stored { worker, .. } => self.expect_event(at, *worker, None, cluster),
            Record::Removed { worker, .. } => {
                self.expect_event(at, *worker, None, cluster);
                if self.gone.is_on() {
                    self.stores.evicted(at.millis(), *worker);
                }
            }
            _ => self.observe_rare(at, record, cluster),
        }
    }

    /// The same of a record that is no event of a worker's blocks in device memory.
    fn observe_rare(&mut self, at: Micros, record: &Record<'_>, cluster: &Cluster) {
        match record {
            Record::TierStored { worker, tier, .. } => self.expect_event(at, *worker, Some(*tier), cluster),
            Record::TierRemoved { worker, tier, .. } => self.expect_event(at, *worker, Some(*tier), cluster),
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
                let stored = self.after(at).flat_map(|(change, blocks)| {
                    blocks.filter(|of| !of.was_held).map(|of| (change.worker.slot(), of.tokens))
                });
                let since = stored.collect();
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

    /// Changes after a time with the blocks of each, in the order in which they were received.
    pub(super) fn after(
        &self,
        at: Micros,
    ) -> impl Iterator<Item = (&Change, impl Iterator<Item = &ChangedBlock> + Clone)> {
        let first = self.changes.partition_point(|change| change.latest <= at);
        let begin = self.count - self.blocks.len() as u64;
        let blocks = move |at: usize| {
            let (from, until) = (self.changes[at].first, self.first_after(at));
            self.blocks.range((from - begin) as usize..(until - begin) as usize)
        };
        let later = self.changes.iter().enumerate().skip(first).filter(move |(_, change)| change.at > at);
        later.map(move |(at, change)| (change, blocks(at)))
    }

    /// Writes to `out` the tokens of each block that a worker of a pool held on its device at a time and has removed since.
    pub(super) fn removed_since(
        &self,
        at: Micros,
        is_in_pool: impl Fn(WorkerIx) -> bool,
        out: &mut Vec<TokensHash>,
    ) {
        out.clear();
        // The first change of a worker's block shows how it was before.
        let mut changed: HashSet<(WorkerIx, Option<BlockHash>, TokensHash)> = HashSet::new();
        let is_of = |change: &Change| change.tier.is_none() && is_in_pool(change.worker);
        for (change, blocks) in self.after(at).filter(|(change, _)| is_of(change)) {
            for block in blocks {
                if changed.insert((change.worker, block.parent(), block.tokens)) && block.was_held {
                    out.push(block.tokens);
                }
            }
        }
        out.sort_unstable();
        out.dedup();
    }

    /// Where the blocks of the change behind that one begin.
    fn first_after(&self, change: usize) -> u64 {
        self.changes.get(change + 1).map_or(self.count, |next| next.first)
    }

    #[inline]
    fn expect_event(&mut self, at: Micros, worker: WorkerIx, tier: Option<Tier>, cluster: &Cluster) {
        self.latest = self.latest.max(at);
        if self.is_kept() {
            self.expect_changes(at, worker, tier, cluster);
        }
    }

    fn expect_changes(&mut self, at: Micros, worker: WorkerIx, tier: Option<Tier>, cluster: &Cluster) {
        let held_blocks = cluster.blocks(worker).unwrap_or(0).try_into().unwrap_or(u32::MAX);
        self.expected = Some(Expected { at, worker, tier, held_blocks });
    }

    /// The record that [`TreeChanges::observe`] was told of last is folded.
    #[inline]
    pub(super) fn folded(&mut self, record: &Record<'_>, cluster: &Cluster) {
        if let Some(expected) = self.expected.take() {
            self.add(expected, record, cluster);
        }
    }

    fn add(&mut self, expected: Expected, record: &Record<'_>, cluster: &Cluster) {
        let Expected { at, worker, tier, held_blocks } = expected;
        if let Some(changed) = cluster.changed_blocks() {
            self.push(at, worker, tier, changed.blocks());
            match record {
                Record::Stored { parent, blocks, .. } => {
                    self.stored(at, worker, *parent, blocks.last().map(|block| block.block_hash), changed);
                }
                Record::Removed { .. } | Record::TierRemoved { .. } if self.gone.is_on() => {
                    let why = GoneReason::Evicted;
                    let gone = GoneBlock { worker, at_ms: at.millis(), why, held_blocks };
                    let pool = cluster.pool_of(worker).unwrap_or_default();
                    changed.gone().iter().for_each(|&chain| self.gone.add(pool, chain, gone));
                }
                _ => {}
            }
        }
        self.forget_old();
    }

    /// A worker stored blocks on its device, the last of which it calls `last`.
    fn stored(
        &mut self,
        at: Micros,
        worker: WorkerIx,
        parent: Option<BlockHash>,
        last: Option<BlockHash>,
        changed: &ChangedBlocks,
    ) {
        let new = changed.blocks().iter().filter(|block| !block.was_held).count() as u32;
        if let (1.., Some(last), true) = (new, last, self.gone.is_on()) {
            self.stores.stored(at.millis(), worker, (parent, last), new, || changed.first_stored());
        }
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
            let mut lost = Vec::with_capacity(held.resident as usize);
            for (name, node) in names().filter_map(|name| Some((name, tree.find(worker.slot(), name)?))) {
                if let Ok(parent) = tree.name_before(node, worker.slot()) {
                    lost.push(ChangedBlock::new(name, tree.tokens_hash(node), parent, true));
                }
                self.note_gone(at, leaving, node, cluster, tree);
            }
            self.push(at, worker, tier, &lost);
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

    /// Of so many blocks that not even they are retained it is not known what the worker held before.
    fn push(&mut self, at: Micros, worker: WorkerIx, tier: Option<Tier>, blocks: &[ChangedBlock]) {
        if blocks.is_empty() {
            return;
        }
        if blocks.len() > MAX_CHANGES {
            self.unknown_before(worker, at);
            return;
        }
        while self.blocks.len() + blocks.len() > MAX_CHANGES {
            self.forget_oldest();
        }
        self.changes.push_back(Change { at, latest: self.latest, first: self.count, worker, tier });
        self.blocks.extend(blocks);
        self.count += blocks.len() as u64;
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
        while self.changes.front().is_some_and(|change| change.latest < retained)
            && self.first_after(0) <= old
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(change) = self.changes.pop_front() else { return };
        let count = match self.changes.front() {
            Some(next) => next.first - change.first,
            None => self.blocks.len() as u64,
        };
        self.blocks.drain(..count as usize);
        self.known_since = self.known_since.max(change.at);
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
