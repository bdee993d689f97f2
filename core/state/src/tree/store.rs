//! Stores, removals and clearances: how the tree changes.

use super::index::Key;
use super::{NodeId, Tree};
use radixscope_model::id::{BlockHash, Slot};
use radixscope_model::record::Block;

/// What a stored event did. All are counts of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreOutcome {
    /// Blocks the worker did not hold before.
    pub new: u32,
    /// Blocks it held already, in the same place under the same name.
    pub known: u32,
    /// Of the new ones, those that other workers held in the same place.
    pub compared: u32,
    /// Of those, the ones that the first of the others calls by another name.
    pub differing: u32,
    /// Whether the parent was unknown, so that the blocks wait for it.
    pub parent_unknown: bool,
}

/// How a worker came to hold a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Acquired {
    /// It held it before, under the same name.
    Known,
    /// It held it under another hash, or no worker did.
    New,
    /// Others held it, under the same name or another one.
    Joined { differs: bool },
}

impl Tree {
    /// `worker` stored `blocks`, each below the one before, the first below the block it calls `parent`.
    ///
    /// With an unknown `parent` the blocks are kept and wait for it. `touched` is the caller's time; [`Tree::TIME_UNKNOWN`] leaves
    /// the times of blocks that are there as they are.
    pub fn store(
        &mut self,
        worker: Slot,
        parent: Option<BlockHash>,
        blocks: &[Block],
        touched: u32,
    ) -> StoreOutcome {
        let mut outcome = StoreOutcome::default();
        let mut above = match parent {
            None => NodeId::ROOT,
            Some(hash) => match self.find(worker, hash) {
                Some(node) => node,
                None => {
                    outcome.parent_unknown = true;
                    if blocks.is_empty() {
                        return outcome;
                    }
                    self.anchor(worker, hash)
                }
            },
        };
        for block in blocks {
            let key = self.index.key(block.block_hash.0);
            let node = match self.families.find(&self.arena, above, block.tokens_hash.0) {
                None => {
                    outcome.new += 1;
                    self.append(worker, above, block.tokens_hash.0, key, touched)
                }
                Some(node) => {
                    if touched != Self::TIME_UNKNOWN {
                        self.arena[node].touched = touched;
                    }
                    let acquired = self.acquire(worker, node, key);
                    outcome.known += u32::from(acquired == Acquired::Known);
                    outcome.new += u32::from(acquired != Acquired::Known);
                    if let Acquired::Joined { differs } = acquired {
                        outcome.compared += 1;
                        outcome.differing += u32::from(differs);
                    }
                    node
                }
            };
            if touched != Self::TIME_UNKNOWN {
                self.tell(|forest, _| forest.touched(node, touched));
            }
            if !self.anchors.is_empty()
                && let Some(&anchor) = self.anchors.get(&(worker, block.block_hash))
            {
                self.join(anchor, node);
            }
            above = node;
        }
        if self.arena.live() > self.limit {
            self.drop_coldest();
        }
        outcome
    }

    /// `worker` stored `blocks` in a tier of its cache, this tree, below `parent`, which may lie in device memory alone: then
    /// the blocks before it, as the tree of the devices has them, lead to these without being held here.
    pub fn store_below(
        &mut self,
        device: &Tree,
        worker: Slot,
        parent: Option<BlockHash>,
        blocks: &[Block],
        touched: u32,
    ) -> StoreOutcome {
        let elsewhere = parent.filter(|&hash| self.find(worker, hash).is_none());
        let Some(last) = elsewhere.and_then(|hash| device.find(worker, hash)) else {
            return self.store(worker, parent, blocks, touched);
        };
        if blocks.is_empty() || !device.is_attached(last) {
            return self.store(worker, parent, blocks, touched);
        }
        let mut path: Vec<Block> = std::iter::successors(Some(last), |&node| device.parent(node))
            .take_while(|&node| node != NodeId::ROOT)
            .map(|node| Block {
                block_hash: device.block_hash_by(node, worker),
                tokens_hash: device.tokens_hash(node),
            })
            .collect();
        path.reverse();
        let leading: Vec<BlockHash> = path
            .iter()
            .map(|block| block.block_hash)
            .filter(|&hash| self.find(worker, hash).is_none())
            .collect();
        path.extend_from_slice(blocks);
        let outcome = self.store(worker, None, &path, touched);
        for hash in leading {
            self.remove(worker, hash);
        }
        outcome
    }

    /// `worker` dropped the block it calls `hash`. `false`: it did not hold such a block.
    pub fn remove(&mut self, worker: Slot, hash: BlockHash) -> bool {
        if !self.twins.is_empty() && self.remove_name(worker, hash.0) {
            return true;
        }
        match self.index.find(&self.arena, &self.sets, worker, self.index.key(hash.0)) {
            Some(node) => {
                self.lose_name(worker, node);
                true
            }
            None => {
                let hidden = &mut self.holdings_mut(worker).hidden;
                let was_hidden = *hidden > 0;
                if was_hidden {
                    *hidden -= 1;
                    self.totals.hidden -= 1;
                    self.totals.resident -= 1;
                }
                was_hidden
            }
        }
    }

    /// `worker` dropped everything. Returns how many blocks that were.
    pub fn clear(&mut self, worker: Slot) -> u64 {
        let before = self.holdings(worker);
        if before.resident > 0 {
            for node in self.arena.ids() {
                let n = &self.arena[node];
                if !n.is_free() && self.sets.get(n.set()).contains(worker) {
                    self.release(worker, node);
                }
            }
        }
        self.holdings_mut(worker).hidden = 0;
        self.totals.hidden -= before.hidden;
        self.totals.resident -= before.hidden;
        before.resident + before.hidden
    }

    /// The blocks of `worker` that the limit keeps out of the picture come again: they no longer count.
    pub fn forget_hidden(&mut self, worker: Slot) {
        let hidden = std::mem::take(&mut self.holdings_mut(worker).hidden);
        self.totals.hidden -= hidden;
        self.totals.resident -= hidden;
    }

    /// A new block below `above`, held by `worker`: what [`Tree::acquire`] does, without all that cannot be.
    #[inline]
    fn append(&mut self, worker: Slot, above: NodeId, tokens: u64, key: Key, touched: u32) -> NodeId {
        if !self.twins.is_empty() {
            self.remove_name(worker, key.hash);
        }
        let elsewhere = self.index.find(&self.arena, &self.sets, worker, key);
        let node = self.arena.add(above, tokens, key.hash, touched);
        self.families.link(&mut self.arena, above, node);
        self.index.enter(&self.arena, node, key);
        self.digest = self.digest.wrapping_add(self.term(worker, node, key.hash));
        self.toggle(worker, node);
        self.count(worker, node, 0, 1);
        self.tell(|forest, ground| forest.added(ground, node));
        if let Some(held) = elsewhere {
            self.lose_name(worker, held);
        }
        node
    }

    /// The place where blocks of `worker` wait for the block it calls `missing`.
    fn anchor(&mut self, worker: Slot, missing: BlockHash) -> NodeId {
        if let Some(&anchor) = self.anchors.get(&(worker, missing)) {
            return anchor;
        }
        let anchor = self.arena.add_anchor(u64::from(worker.0), missing.0);
        self.anchors.insert((worker, missing), anchor);
        anchor
    }

    /// `worker` holds `node` and calls it so.
    pub(super) fn acquire(&mut self, worker: Slot, node: NodeId, key: Key) -> Acquired {
        // A hash names one block of a worker: held elsewhere under this name, it has moved here.
        let elsewhere = match self.index.find(&self.arena, &self.sets, worker, key) {
            Some(held) if held == node => return Acquired::Known,
            other => other,
        };
        if !self.twins.is_empty() {
            if self.twins.find(worker, key.hash) == Some(node) {
                return Acquired::Known;
            }
            self.remove_name(worker, key.hash);
        }
        let mut acquired = Acquired::New;
        let owners = self.sets.get(self.arena[node].set());
        let count = owners.len();
        if owners.contains(worker) {
            // As many as there may be blocks; beyond that only the last name counts.
            if self.twins.len() < self.limit as usize {
                self.add_name(worker, node, key.hash);
            } else {
                self.rename(worker, node, key.hash);
            }
        } else {
            if count == 0 {
                self.arena[node].block = key.hash;
                self.index.enter(&self.arena, node, key);
            } else {
                let differs = self.arena[node].block != key.hash;
                if differs {
                    self.index.set_variant(node, worker, key.hash);
                }
                acquired = Acquired::Joined { differs };
            }
            self.digest = self.digest.wrapping_add(self.term(worker, node, key.hash));
            self.toggle(worker, node);
            self.count(worker, node, count, 1);
            self.tell(|forest, ground| forest.owners_changed(ground, node));
        }
        if let Some(held) = elsewhere {
            self.lose_name(worker, held);
        }
        acquired
    }

    /// `worker` also calls `node`, which it holds, `name`.
    pub(super) fn add_name(&mut self, worker: Slot, node: NodeId, name: u64) {
        self.twins.add(node, worker, name);
        self.holdings_mut(worker).further += 1;
    }

    /// `worker` has no block of this further name any more; whether it had one.
    #[cold]
    pub(super) fn remove_name(&mut self, worker: Slot, name: u64) -> bool {
        let was_there = self.twins.remove(worker, name);
        if was_there {
            self.holdings_mut(worker).further -= 1;
        }
        was_there
    }

    /// `worker` no longer calls `node`, which it holds, by the name that it is known by: it goes unless it has another one.
    #[inline]
    fn lose_name(&mut self, worker: Slot, node: NodeId) {
        match self.twins.another(node, worker) {
            Some(name) => {
                self.remove_name(worker, name);
                self.rename(worker, node, name);
            }
            None => self.release(worker, node),
        }
    }

    /// `worker` already holds `node` and now calls it `hash`.
    fn rename(&mut self, worker: Slot, node: NodeId, hash: u64) {
        let old = self.index.name(&self.arena, node, worker);
        self.digest = self.digest.wrapping_sub(self.term(worker, node, old));
        self.index.drop_variant(node, worker);
        if self.arena[node].block != hash {
            self.index.set_variant(node, worker, hash);
            self.settle_name(node);
        }
        self.digest = self.digest.wrapping_add(self.term(worker, node, hash));
    }

    fn settle_name(&mut self, node: NodeId) {
        let owners = self.sets.get(self.arena[node].set());
        self.index.settle(&mut self.arena, node, owners);
    }

    /// `worker` no longer holds `node`, which it did.
    pub(super) fn release(&mut self, worker: Slot, node: NodeId) {
        if !self.twins.is_empty() {
            let further = self.twins.forget(node, worker);
            self.holdings_mut(worker).further -= further;
        }
        let name = self.index.name(&self.arena, node, worker);
        self.digest = self.digest.wrapping_sub(self.term(worker, node, name));
        self.index.drop_variant(node, worker);
        let count = self.owners(node).len();
        self.toggle(worker, node);
        self.count(worker, node, count, -1);
        if count == 1 {
            self.index.leave(&self.arena, node);
            self.prune(node);
        } else {
            self.settle_name(node);
        }
        if !self.arena[node].is_free() {
            self.tell(|forest, ground| forest.owners_changed(ground, node));
        }
    }

    #[inline]
    fn toggle(&mut self, worker: Slot, node: NodeId) {
        let set = self.sets.toggle(self.arena[node].set(), worker);
        self.arena[node].change_set(set);
    }

    /// Keeps the totals when `node`, which had `owners` owners, gains (`+1`) or loses (`-1`) `worker`.
    #[inline]
    fn count(&mut self, worker: Slot, node: NodeId, owners: usize, step: i64) {
        let add = |total: &mut u64, by: i64| *total = total.wrapping_add_signed(by);
        let unattached = self.arena[node].is_unattached();
        self.turnover.count(step);
        let holdings = self.holdings_mut(worker);
        add(&mut holdings.resident, step);
        if unattached {
            add(&mut holdings.unattached, step);
        }
        add(&mut self.totals.resident, step);
        if unattached {
            add(&mut self.totals.unattached, step);
            return;
        }
        let more = owners.max(owners.wrapping_add_signed(step as isize));
        match more {
            1 => add(&mut self.totals.nodes, step),
            2 => add(&mut self.totals.shared, step),
            _ => {}
        }
    }

    /// Frees `node` and what is above it as far as it has neither owners nor children. Hits at what goes are
    /// hits at what is above it.
    pub(super) fn prune(&mut self, node: NodeId) {
        let mut at = node;
        while at != NodeId::ROOT {
            let n = self.arena[at];
            if n.is_free() || n.child != super::arena::NO_CHILD || !self.owners(at).is_empty() {
                return;
            }
            if n.is_anchor() {
                self.anchors.remove(&(Slot(n.tokens as u16), BlockHash(n.block)));
                self.pass_hits(at, NodeId::ROOT);
                self.arena.free(at);
                return;
            }
            self.pass_hits(at, n.parent);
            self.families.unlink(&mut self.arena, at);
            self.arena.free(at);
            self.tell(|forest, ground| forest.removed(ground, at, n.parent));
            at = n.parent;
        }
    }
}
