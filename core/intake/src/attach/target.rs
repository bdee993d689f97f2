//! What a worker holds by its own response, and how that differs from the tree that is kept of it.
//!
//! A response is replayed into separate trees, with the events received meanwhile, and only differences are recorded: what is
//! equal keeps its times, and a response that agrees changes nothing.

use std::collections::{BTreeMap, HashSet};

use radixscope_model::id::{BlockHash, PoolIx, Slot, WorkerIx};
use radixscope_model::record::{Block, Record, Tier};
use radixscope_state::cluster::Cluster;
use radixscope_state::tree::{NodeId, Step, Tree};

/// Most blocks or hashes of one record: 16 KiB.
const MAX_RUN: usize = 1_024;
/// Nodes of a replayed response: more than is read of one.
const LIMIT: u32 = 1 << 24;
/// Any time will do: it is not looked at.
const SOME_TIME: u32 = 1;

/// What a worker holds by its response.
pub(super) struct Target {
    slot: Slot,
    device: Tree,
    tiers: BTreeMap<Tier, Tree>,
}

/// A run of blocks that the worker holds and the tree does not.
struct Run {
    tier: Option<Tier>,
    parent: Option<BlockHash>,
    blocks: Vec<Block>,
    /// Of those, the first ones: parents of the others, held by no worker.
    leading: usize,
}

/// How trees differ from a response.
#[derive(Default)]
pub(super) struct Difference {
    surplus: Vec<(Option<Tier>, BlockHash)>,
    detached: Vec<(Option<Tier>, BlockHash)>,
    runs: Vec<Run>,
    is_verified: bool,
}

impl Target {
    pub(super) fn new(slot: Slot) -> Self {
        Self { slot, device: Tree::with_limit(LIMIT), tiers: BTreeMap::new() }
    }

    /// Replays an event.
    pub(super) fn replay(&mut self, event: &Record<'_>) {
        let slot = self.slot;
        match event {
            Record::Stored { parent, blocks, .. } => {
                self.device.store(slot, *parent, blocks, SOME_TIME);
            }
            Record::Removed { hashes, .. } => {
                for &hash in hashes.iter() {
                    self.device.remove(slot, hash);
                }
            }
            Record::Cleared { .. } => {
                self.device.clear(slot);
            }
            Record::TierStored { tier, parent, blocks, .. } => {
                let tree = self.tiers.entry(*tier).or_insert_with(|| Tree::with_limit(LIMIT));
                tree.store_below(&self.device, slot, *parent, blocks, SOME_TIME);
            }
            Record::TierRemoved { tier, hashes, .. } => {
                if let Some(tree) = self.tiers.get_mut(tier) {
                    for &hash in hashes.iter() {
                        tree.remove(slot, hash);
                    }
                }
            }
            Record::TierCleared { tier, .. } => {
                if let Some(tree) = self.tiers.get_mut(tier) {
                    tree.clear(slot);
                }
            }
            _ => {}
        }
    }

    /// How the trees that are kept differ. Detached blocks are counted separately only if it `is_verified`: it costs a walk up from each
    /// block that went.
    pub(super) fn difference(&self, cluster: &Cluster, pool: PoolIx, is_verified: bool) -> Difference {
        let mut difference = Difference { is_verified, ..Difference::default() };
        self.compare(None, cluster.tree(pool), &self.device, &mut difference);
        let empty = Tree::empty();
        for tier in Tier::ALL {
            let target = self.tiers.get(&tier).unwrap_or(empty);
            self.compare(Some(tier), cluster.tier_tree(pool, tier), target, &mut difference);
        }
        difference
    }

    fn compare(&self, tier: Option<Tier>, current: &Tree, target: &Tree, to: &mut Difference) {
        let slot = self.slot;
        if current.holdings(slot).resident > 0 {
            let removed =
                current.names_of(slot).into_iter().filter(|&name| target.find(slot, name).is_none());
            for name in removed {
                let is_detached = to.is_verified
                    && current.find(slot, name).is_some_and(|node| is_detached(current, slot, node));
                let list = if is_detached { &mut to.detached } else { &mut to.surplus };
                list.push((tier, name));
            }
        }
        if target.holdings(slot).is_empty() {
            return;
        }
        for top in std::iter::once(NodeId::ROOT).chain(target.orphan_parents()) {
            for step in target.walk(top) {
                let Step::Enter { node, .. } = step else { continue };
                if !target.owners(node).contains(slot) {
                    continue;
                }
                let first = target.block_hash_by(node, slot);
                for name in std::iter::once(first).chain(target.further_names_by(node, slot)) {
                    if !is_same(current, target, slot, node, name) {
                        to.missing(tier, target, slot, node, name);
                    }
                }
            }
        }
    }
}

/// Whether a block hangs below one that the worker does not hold any more.
fn is_detached(tree: &Tree, slot: Slot, node: NodeId) -> bool {
    let above = std::iter::successors(tree.parent(node), |&at| tree.parent(at));
    above.take_while(|&at| at != NodeId::ROOT).any(|at| !tree.owners(at).contains(slot))
}

/// Whether the tree that is kept holds the block `name` at the same place.
fn is_same(current: &Tree, target: &Tree, slot: Slot, node: NodeId, name: BlockHash) -> bool {
    let Some(own) = current.find(slot, name) else { return false };
    if current.tokens_hash(own) != target.tokens_hash(node) {
        return false;
    }
    match target.parent(node) {
        Some(NodeId::ROOT) => current.parent(own) == Some(NodeId::ROOT),
        Some(above) if target.owners(above).contains(slot) => {
            let above = current.find(slot, target.block_hash_by(above, slot));
            above.is_some() && current.parent(own) == above
        }
        Some(_) => current.is_attached(own),
        // The response does not know what is above; the tree may.
        None => true,
    }
}

impl Difference {
    fn missing(&mut self, tier: Option<Tier>, target: &Tree, slot: Slot, node: NodeId, name: BlockHash) {
        let block = Block { block_hash: name, tokens_hash: target.tokens_hash(node) };
        let mut leading = Vec::new();
        let mut at = target.parent(node);
        let mut parent = None;
        while let Some(above) = at.filter(|&above| above != NodeId::ROOT) {
            if target.owners(above).contains(slot) {
                parent = Some(target.block_hash_by(above, slot));
                break;
            }
            leading
                .push(Block { block_hash: target.block_hash(above), tokens_hash: target.tokens_hash(above) });
            if let Some(awaited) = target.awaited(above) {
                parent = Some(awaited);
                break;
            }
            at = target.parent(above);
        }
        let parent = parent.or_else(|| target.awaited(node));
        if let Some(run) = self.runs.last_mut()
            && run.tier == tier
            && leading.is_empty()
            && run.blocks.len() < MAX_RUN
            && run.blocks.last().map(|last| last.block_hash) == parent
        {
            run.blocks.push(block);
            return;
        }
        leading.reverse();
        let count = leading.len();
        leading.push(block);
        self.runs.push(Run { tier, parent, blocks: leading, leading: count });
    }

    /// Whether the trees agree, but for what is detached.
    pub(super) fn is_none(&self) -> bool {
        self.surplus.is_empty() && self.runs.is_empty()
    }

    /// Blocks that the worker holds and the tree does not.
    pub(super) fn missing_names(&self) -> impl Iterator<Item = BlockHash> + '_ {
        self.runs.iter().flat_map(|run| run.blocks.iter().skip(run.leading)).map(|block| block.block_hash)
    }

    /// Blocks that the tree holds and the worker does not.
    pub(super) fn surplus_names(&self) -> impl Iterator<Item = BlockHash> + '_ {
        self.surplus.iter().map(|(_, name)| *name)
    }

    /// Blocks that the tree holds below one that is gone, and the worker's index does not.
    pub(super) fn detached(&self) -> u64 {
        self.detached.len() as u64
    }

    /// All names that differ, but for those that are detached.
    pub(super) fn names(&self) -> HashSet<BlockHash> {
        self.missing_names().chain(self.surplus_names()).collect()
    }

    /// The records that bring the tree in line with the worker's response. Detached blocks stay.
    pub(super) fn record(&self, worker: WorkerIx, to: &mut dyn FnMut(Record<'_>)) {
        for same_tier in self.surplus.chunk_by(|a, b| a.0 == b.0) {
            for chunk in same_tier.chunks(MAX_RUN) {
                let hashes: Vec<BlockHash> = chunk.iter().map(|(_, name)| *name).collect();
                let tier = chunk.first().and_then(|(tier, _)| *tier);
                to(Record::TreeDumpRemoved { worker, tier, hashes: hashes.into() });
            }
        }
        for Run { tier, parent, blocks, leading } in &self.runs {
            let (tier, parent) = (*tier, *parent);
            to(Record::TreeDumpStored { worker, tier, parent, blocks: blocks.into() });
            if *leading > 0 {
                let hashes: Vec<BlockHash> = blocks.iter().take(*leading).map(|b| b.block_hash).collect();
                to(Record::TreeDumpRemoved { worker, tier, hashes: hashes.into() });
            }
        }
    }
}
