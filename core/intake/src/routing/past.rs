//! How much of a prompt each worker held at an earlier time: the tree as it is now, less what changed since.
//!
//! A change is found by the worker, by what the worker calls the block before it and by the block's tokens: exact, also
//! where the tree no longer has the block. One case is not found: a worker dropped a block long before the one that follows
//! it, which engines do the other way round, and names its blocks as no other worker does.

use hashbrown::{HashMap, HashSet};

use super::changes::TreeChanges;
use super::paths::path_end;
use radixscope_model::id::{BlockHash, PoolIx, Slot, TokensHash, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::{PathEnd, Tier};
use radixscope_router::hash::chain_hash;
use radixscope_state::cluster::{Cluster, TierPaths};
use radixscope_state::requests::Prompt;
use radixscope_state::tree::{ChangedBlock, NodeId, OverlapRule, Tree};

/// A worker, what it calls the block before, and the block's tokens: one place in its prompts.
type Place = (Slot, Option<BlockHash>, TokensHash);

/// What a block is called, by the name of the one before and its tokens.
type Names = HashMap<(Option<BlockHash>, TokensHash), BlockHash>;

/// A block of the prompt that a worker began or ceased to hold, in a tier or on its device (`None`).
#[derive(Clone, Copy)]
struct Change {
    at: Micros,
    worker: WorkerIx,
    tier: Option<Tier>,
    block: ChangedBlock,
}

impl Change {
    fn place(&self) -> Place {
        (self.worker.slot(), self.block.parent(), self.block.tokens)
    }
}

/// A prompt with all that changed along it; memory to be used again.
#[derive(Default)]
pub(super) struct Past {
    /// Hashes of each block alone.
    local: Vec<TokensHash>,
    /// Nodes along the prompt as far as the tree has them now.
    path: Vec<NodeId>,
    /// Changes of blocks with tokens of the prompt, in all tiers.
    changes: Vec<Change>,
    tokens: HashSet<TokensHash>,
    /// What any worker called the block after a named one, of blocks that changed.
    names: Names,
    /// What a worker had at a place before the first change after the moment asked for, and how it called it.
    before: HashMap<Place, (bool, BlockHash)>,
    affected: Vec<Slot>,
    /// Holders more or fewer than now, by position.
    holders: Vec<i32>,
    /// Who held which position then and does not now (`true`), or the other way round.
    corrections: Vec<(Slot, u32, bool)>,
    /// The same for each lower tier, in order.
    tier_corrections: [Vec<(Slot, u32, bool)>; Tier::ALL.len()],
}

impl Past {
    /// Loads `prompt`, with what changed in the tree of `pool` after `since`.
    pub(super) fn load(
        &mut self,
        cluster: &Cluster,
        pool: PoolIx,
        changes: &TreeChanges,
        prompt: Prompt<'_>,
        since: Micros,
    ) {
        let tree = cluster.tree(pool);
        let is_in_pool = |worker| cluster.pool_of(worker) == Some(pool);
        let changes = || changes.after(since).filter(|(change, _)| is_in_pool(change.worker));
        prompt.local_in(cluster.trees_in(pool), &mut self.local);
        if let Prompt::Chain(chain) = prompt {
            self.extend_local(chain, || changes().flat_map(|(_, blocks)| blocks));
        }
        self.path.clear();
        let mut at = NodeId::ROOT;
        self.path.extend(self.local.iter().map_while(|&tokens| {
            at = tree.child(at, tokens)?;
            Some(at)
        }));
        self.changes.clear();
        self.tokens.clear();
        if changes().next().is_some() {
            self.tokens.extend(&self.local);
            let Self { tokens, changes: along, .. } = self;
            for (change, blocks) in changes() {
                let (at, worker, tier) = (change.at, change.worker, change.tier);
                let blocks = blocks.filter(|block| tokens.contains(&block.tokens));
                along.extend(blocks.map(|&block| Change { at, worker, tier, block }));
            }
        }
    }

    /// Chain hashes name no tokens: where the tree has lost a block since, the changes still know them.
    fn extend_local<'c, B>(&mut self, chain: &[u64], changed: impl Fn() -> B)
    where
        B: Iterator<Item = &'c ChangedBlock>,
    {
        while let Some(&link) = chain.get(self.local.len()) {
            let above =
                self.local.len().checked_sub(1).and_then(|at| chain.get(at)).map(|&hash| BlockHash(hash));
            let is_next =
                |block: &&ChangedBlock| block.was_held && chain_hash(above, block.tokens) == BlockHash(link);
            let Some(found) = changed().find(is_next) else { break };
            self.local.push(found.tokens);
        }
    }

    /// Hashes of each block of the prompt alone, as far as they are known.
    pub(super) fn prompt(&self) -> &[TokensHash] {
        &self.local
    }

    /// Times at which something changed along the prompt.
    pub(super) fn times(&self) -> impl Iterator<Item = Micros> + '_ {
        self.changes.iter().map(|change| change.at)
    }

    /// Overlap with every worker at a time, which must not be before the `since` of [`Past::load`], written to `out`
    /// by slot. Gives how many blocks of the prompt anybody held without a hole.
    pub(super) fn overlap(&mut self, tree: &Tree, rule: OverlapRule, at: Micros, out: &mut Vec<u32>) -> u32 {
        let Self { local, path, changes, names, before, affected, holders, corrections, .. } = self;
        before.clear();
        names.clear();
        affected.clear();
        for change in changes.iter().filter(|change| change.at > at && change.tier.is_none()) {
            let ChangedBlock { block, was_held, .. } = change.block;
            before.entry(change.place()).or_insert((was_held, block));
            names.entry((change.block.parent(), change.block.tokens)).or_insert(block);
            affected.push(change.worker.slot());
        }
        affected.sort_unstable();
        affected.dedup();
        holders.clear();
        holders.resize(local.len(), 0);
        corrections.clear();
        tree.overlap(rule, local.iter().copied(), out);
        if let Some(last) = affected.last().filter(|last| out.len() <= last.at()) {
            out.resize(last.at() + 1, 0);
        }
        for &worker in affected.iter() {
            let prefix = walk(tree, worker, (local, path), (before, names), corrections);
            if rule == OverlapRule::Prefix {
                out[worker.at()] = prefix;
            }
        }
        for &(_, at, held) in corrections.iter() {
            holders[at as usize] += if held { 1 } else { -1 };
        }
        let owners_now = |at: usize| path.get(at).map_or(0, |&node| tree.owners(node).len() as i32);
        let depth = (0..local.len()).take_while(|&at| owners_now(at) + holders[at] > 0).count();
        if rule == OverlapRule::PathNodes && !affected.is_empty() {
            let depth_now = (0..local.len()).take_while(|&at| owners_now(at) > 0).count();
            tree.overlap(rule, local[..depth.min(depth_now)].iter().copied(), out);
            out.resize(out.len().max(affected.last().map_or(0, |last| last.at() + 1)), 0);
            for &node in path.get(depth_now..depth.min(path.len())).unwrap_or_default() {
                tree.owners(node).iter().for_each(|worker| out[worker.at()] += 1);
            }
            for &(worker, at, held) in corrections.iter().filter(|(_, at, _)| (*at as usize) < depth) {
                let _ = at;
                let count = &mut out[worker.at()];
                *count = if held { *count + 1 } else { count.saturating_sub(1) };
            }
        }
        depth as u32
    }

    /// Writes to `out`, by position, whether any worker held a block of the prompt at the time of the latest [`Past::overlap`], also
    /// behind blocks that none did.
    pub(super) fn held(&self, tree: &Tree, out: &mut Vec<bool>) {
        let owners_now = |at: usize| self.path.get(at).map_or(0, |&node| tree.owners(node).len() as i32);
        out.clear();
        out.extend(self.holders.iter().enumerate().map(|(at, more)| owners_now(at) + more > 0));
    }

    /// Whether anything changed along the prompt in the lower tiers.
    pub(super) fn has_tier_changes(&self) -> bool {
        self.changes.iter().any(|change| change.tier.is_some())
    }

    /// Whether a worker held a position of the prompt in a tier at the time of [`Past::load_tiers`], where that is another than now.
    pub(super) fn was_in_tier(&self, tier: Tier, worker: Slot, position: usize) -> Option<bool> {
        let all = &self.tier_corrections[tier as usize];
        let found = all.binary_search_by_key(&(worker, position), |&(of, at, _)| (of, at as usize)).ok()?;
        Some(all[found].2)
    }

    /// Works out what workers held of the prompt in the lower tiers at a time, for [`Past::was_in_tier`]. `tiers`: the prompt's way
    /// through their trees now.
    pub(super) fn load_tiers(&mut self, cluster: &Cluster, pool: PoolIx, tiers: &TierPaths, at: Micros) {
        self.tier_corrections.iter_mut().for_each(Vec::clear);
        if !self.has_tier_changes() {
            return;
        }
        let Self { local, path, changes, names, before, affected, tier_corrections, .. } = self;
        let device = cluster.tree(pool);
        for (tier, corrections) in Tier::ALL.into_iter().zip(tier_corrections) {
            before.clear();
            names.clear();
            affected.clear();
            for change in changes.iter().filter(|change| change.at > at) {
                // Blocks that only lead to those of the tier are called as on the device.
                let ChangedBlock { block, was_held, .. } = change.block;
                names.entry((change.block.parent(), change.block.tokens)).or_insert(block);
                if change.tier == Some(tier) {
                    before.entry(change.place()).or_insert((was_held, block));
                    affected.push(change.worker.slot());
                }
            }
            if affected.is_empty() {
                continue;
            }
            affected.sort_unstable();
            affected.dedup();
            let mut above = None;
            for (&tokens, &node) in local.iter().zip(path.iter()) {
                let name = device.block_hash(node);
                names.entry((above, tokens)).or_insert(name);
                above = Some(name);
            }
            let (tree, path) = (cluster.tier_tree(pool, tier), tiers.path(tier));
            for &worker in affected.iter() {
                walk(tree, worker, (local, path), (before, names), corrections);
            }
        }
    }

    /// The last of the first `blocks` blocks that somebody still holds.
    pub(super) fn end(&self, cluster: &Cluster, pool: PoolIx, blocks: u32) -> Option<PathEnd> {
        path_end(cluster, pool, &self.local[..(blocks as usize).min(self.local.len())])
    }
}

/// Follows the prompt as `worker` held it; gives how many blocks it held without a hole.
fn walk(
    tree: &Tree,
    worker: Slot,
    (local, path): (&[TokensHash], &[NodeId]),
    (before, names): (&HashMap<Place, (bool, BlockHash)>, &Names),
    corrections: &mut Vec<(Slot, u32, bool)>,
) -> u32 {
    let mut prefix = None;
    let mut parent = None;
    let mut seen = 0;
    for (at, &tokens) in local.iter().enumerate() {
        let node = path.get(at).copied();
        let holds_now = node.filter(|&node| tree.owners(node).contains(worker));
        let change = before.get(&(worker, parent, tokens));
        let held = change.map_or(holds_now.is_some(), |(held, _)| *held);
        if held != holds_now.is_some() {
            corrections.push((worker, at as u32, held));
        }
        if !held && prefix.is_none() {
            prefix = Some(at as u32);
        }
        let name = change
            .map(|(_, name)| *name)
            .or_else(|| holds_now.map(|node| tree.block_hash_by(node, worker)))
            .or_else(|| node.map(|node| tree.block_hash(node)))
            // Where the tree has lost the block too: engines mostly name alike.
            .or_else(|| names.get(&(parent, tokens)).copied());
        seen = at as u32 + 1;
        // Without a name for this block nothing below it can be found.
        let Some(name) = name else { break };
        parent = Some(name);
    }
    prefix.unwrap_or(seen)
}
