//! Stores, removals and clearances: how the tree changes.

use super::arena::NO_CHILD;
use super::moves::Moves;
use super::owners::SetId;
use super::{NodeId, Tree};
use radixscope_model::id::{BlockHash, Slot, TokensHash};
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
        match &mut self.changed {
            None => self.store_noting::<false>(worker, parent, blocks, touched),
            Some(changed) => {
                changed.begin();
                self.store_noting::<true>(worker, parent, blocks, touched)
            }
        }
    }

    /// `NOTES`: whether somebody asked for what changes. Compiled once without, where it costs nothing a block.
    fn store_noting<const NOTES: bool>(
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
                    self.orphan_parent(worker, hash)
                }
            },
        };
        // What the worker calls the block before the first one of these.
        let name_before = |rest: &[Block]| match (blocks.len() - rest.len()).checked_sub(1) {
            Some(before) => blocks.get(before).map(|block| block.block_hash),
            None => parent,
        };
        let (mut moves, mut rest) = (Moves::new(worker), blocks);
        let mut above_in_digest = self.above(above);
        while let Some((block, after)) = rest.split_first() {
            let (hash, tokens) = (block.block_hash, block.tokens_hash.0);
            let Some(node) = self.child_index.find(&self.arena, above, tokens) else {
                self.apply_moves(&mut moves);
                let before = if NOTES { name_before(rest) } else { None };
                (above, rest) = self.append(worker, (above, before), rest, touched, &mut outcome);
                above_in_digest = self.above(above);
                continue;
            };
            let n = &mut self.arena[node];
            if touched != Self::TIME_UNKNOWN {
                n.touched = touched;
            }
            let (owners, is_unattached) = (n.set(), n.is_unattached());
            // Where no other block and no other name can be meant the node alone decides, as for most blocks that are stored again.
            let is_plain = n.block == hash.0 && self.index.is_plain() && self.duplicate_hashes.is_empty();
            let looked = if is_plain { self.move_from(&mut moves, owners) } else { (false, false) };
            let acquired = match looked {
                (true, _) => Acquired::Known,
                (false, true) => {
                    let to = self.move_to(&mut moves, is_unattached);
                    self.arena[node].change_set(to);
                    let term = super::term(worker, tokens, above_in_digest, hash.0);
                    self.digest = self.digest.wrapping_add(term);
                    self.notify(|forest, nodes| forest.owners_changed(nodes, node));
                    if NOTES {
                        self.note_stored(node, hash, name_before(rest));
                    }
                    Acquired::Joined { differs: false }
                }
                (false, false) => {
                    self.apply_moves(&mut moves);
                    let is_new = NOTES && !self.owners(node).contains(worker);
                    let acquired = self.acquire(worker, node, hash.0);
                    if is_new {
                        self.note_stored(node, hash, name_before(rest));
                    }
                    acquired
                }
            };
            match acquired {
                Acquired::Known => outcome.known += 1,
                Acquired::New => outcome.new += 1,
                Acquired::Joined { differs } => {
                    outcome.new += 1;
                    outcome.compared += 1;
                    outcome.differing += u32::from(differs);
                }
            }
            if touched != Self::TIME_UNKNOWN {
                self.notify(|forest, _| forest.touched(node, touched));
            }
            if let Some(orphan_parent) = self.awaiting(worker, hash) {
                self.apply_moves(&mut moves);
                self.join(orphan_parent, node);
            }
            (above, above_in_digest, rest) = (node, tokens, after);
        }
        self.apply_moves(&mut moves);
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
        // They only lead to the others, and are no change.
        let changed = self.changed.take();
        self.store(worker, None, &path, touched);
        self.changed = changed;
        let outcome = self.store(worker, parent, blocks, touched);
        let changed = self.changed.take();
        for hash in leading {
            self.remove(worker, hash);
        }
        self.changed = changed;
        outcome
    }

    /// `worker` dropped the block it calls `hash`. `false`: it did not hold such a block.
    pub fn remove(&mut self, worker: Slot, hash: BlockHash) -> bool {
        self.remove_all(worker, &[hash]) == 0
    }

    /// `worker` dropped the blocks that it calls so. Gives how many of them it did not hold.
    pub fn remove_all(&mut self, worker: Slot, hashes: &[BlockHash]) -> usize {
        if let Some(changed) = &mut self.changed {
            changed.begin();
        }
        // As where engine and router cut prompts into blocks of different sizes: every block stored is refused, and every removal
        // comes for nothing.
        if self.holdings(worker).is_empty() {
            return hashes.len();
        }
        let (mut moves, mut unknown) = (Moves::new(worker), 0);
        for &BlockHash(hash) in hashes {
            let was_held = match self.index.has_no_variants() && self.duplicate_hashes.is_empty() {
                true => self.remove_plain(&mut moves, hash),
                false => self.remove_named(&mut moves, hash),
            };
            if !was_held {
                unknown += usize::from(self.totals.hidden == 0 || !self.remove_hidden(worker));
            }
        }
        self.apply_moves(&mut moves);
        unknown
    }

    /// The worker of `moves` dropped the block that it calls `name`, whatever names there are. `false`: it did not hold such a block.
    #[cold]
    fn remove_named(&mut self, moves: &mut Moves, name: u64) -> bool {
        let worker = moves.worker();
        if self.remove_name(worker, name) {
            return true;
        }
        // Sets and totals are looked at below.
        self.apply_moves(moves);
        let key = self.index.key(name);
        let found = self.index.locate(&self.arena, worker, key, |set| self.sets.get(set).contains(worker));
        found.inspect(|&(node, bucket)| self.lose_name(worker, node, bucket)).is_some()
    }

    /// The same where each owner of a block calls it by one name, the same: what [`Tree::release`] does then.
    #[inline]
    fn remove_plain(&mut self, moves: &mut Moves, name: u64) -> bool {
        let worker = moves.worker();
        let is_owned = |set| moves.are_with_worker(set) || self.sets.get(set).contains(worker);
        let Some((node, bucket)) = self.index.locate_plain(&self.arena, self.index.key(name), is_owned)
        else {
            return false;
        };
        let n = self.arena[node];
        let (_, has_others) = self.move_from(moves, n.set());
        let to = self.move_to(moves, n.is_unattached());
        let above = &mut self.arena[n.parent];
        let term = super::term(worker, n.tokens, above.as_above(), name);
        self.digest = self.digest.wrapping_sub(term);
        if let Some(changed) = &mut self.changed
            && !above.is_orphan_parent()
        {
            let parent = (n.parent != NodeId::ROOT).then_some(BlockHash(above.block));
            let chains = self.chain_hashes.as_ref().filter(|_| !has_others);
            let chain = chains.and_then(|chains| chains.get(node));
            changed.removed(BlockHash(name), TokensHash(n.tokens), parent, chain);
        }
        if has_others || n.child != NO_CHILD {
            if !has_others {
                self.index.leave(&self.arena, node, Some(bucket));
            }
            self.arena[node].change_set(to);
            self.notify(|forest, nodes| forest.owners_changed(nodes, node));
            return true;
        }
        // Nobody holds it and nothing is below it: it goes, and with it what only led to it.
        let leads_nowhere = above.child == node.0;
        let is_empty = leads_nowhere && above.set() == SetId::EMPTY;
        if leads_nowhere {
            above.child = NO_CHILD;
        } else {
            self.child_index.unlink(&mut self.arena, node);
        }
        self.index.leave(&self.arena, node, Some(bucket));
        self.pass_hits(node, n.parent);
        self.arena.free(node);
        self.notify(|forest, nodes| forest.removed(nodes, node, n.parent));
        if is_empty {
            self.prune(n.parent);
        }
        true
    }

    /// One of the blocks that the limit keeps out of the picture is gone, if there is one.
    #[cold]
    fn remove_hidden(&mut self, worker: Slot) -> bool {
        let hidden = &mut self.holdings_mut(worker).hidden;
        let was_hidden = *hidden > 0;
        if was_hidden {
            *hidden -= 1;
            self.totals.hidden -= 1;
            self.totals.resident -= 1;
        }
        was_hidden
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

    /// New blocks below `above`, which has no child with the tokens of the first of them, held by `worker`: what
    /// [`Tree::acquire`] does, without all that cannot be, and counted once. Gives the last one and the blocks that are left: what
    /// lies below the last one may not be new, if a subtree waited for it or another block left its name to it.
    #[inline(never)]
    fn append<'b>(
        &mut self,
        worker: Slot,
        (above, name_before): (NodeId, Option<BlockHash>),
        blocks: &'b [Block],
        touched: u32,
        outcome: &mut StoreOutcome,
    ) -> (NodeId, &'b [Block]) {
        self.index.make_first_room();
        let own = self.sets.toggled(SetId::EMPTY, worker);
        let is_unattached = self.arena[above].is_unattached();
        let (mut last, mut above_tokens) = (above, self.above(above));
        let (mut rest, mut held, mut first) = (blocks, None, above);
        while let Some((block, after)) = rest.split_first() {
            let (tokens, key) = (block.tokens_hash.0, self.index.key(block.block_hash.0));
            if !self.duplicate_hashes.is_empty() {
                self.remove_name(worker, key.hash);
            }
            let node = self.arena.add_owned(last, is_unattached, tokens, key.hash, touched, own);
            if last == above {
                first = node;
                self.child_index.link(&mut self.arena, last, node);
            } else {
                self.arena[last].child = node.0;
            }
            held = self.index.enter_new(&self.arena, &self.sets, worker, node, key);
            self.digest = self.digest.wrapping_add(super::term(worker, tokens, above_tokens, key.hash));
            self.notify(|forest, nodes| forest.added(nodes, node));
            if touched != Self::TIME_UNKNOWN {
                self.notify(|forest, _| forest.touched(node, touched));
            }
            (last, above_tokens, rest) = (node, tokens, after);
            if held.is_some() || self.awaiting(worker, block.block_hash).is_some() {
                break;
            }
        }
        let appended = &blocks[..blocks.len() - rest.len()];
        if self.chain_hashes.is_some() || self.changed.is_some() {
            self.note_appended(first, name_before, appended);
        }
        outcome.new += appended.len() as u32;
        let count = appended.len() as i64;
        let (attached, unattached) = if is_unattached { (0, count) } else { (count, 0) };
        self.sets.add_uses(own, count as u32);
        self.count(worker, 0, attached, unattached);
        if let Some(held) = held {
            self.lose_name(worker, held, None);
        }
        if let Some(block) = appended.last()
            && let Some(orphan_parent) = self.awaiting(worker, block.block_hash)
        {
            self.join(orphan_parent, last);
        }
        (last, rest)
    }

    /// Below what blocks wait for the block that `worker` calls so.
    #[inline]
    fn awaiting(&self, worker: Slot, hash: BlockHash) -> Option<NodeId> {
        if self.orphan_parents.is_empty() { None } else { self.orphan_parents.get(&(worker, hash)).copied() }
    }

    /// The place where blocks of `worker` wait for the block it calls `missing`.
    fn orphan_parent(&mut self, worker: Slot, missing: BlockHash) -> NodeId {
        if let Some(&orphan_parent) = self.orphan_parents.get(&(worker, missing)) {
            return orphan_parent;
        }
        let orphan_parent = self.arena.add_orphan_parent(u64::from(worker.0), missing.0);
        self.orphan_parents.insert((worker, missing), orphan_parent);
        if let Some(chains) = &mut self.chain_hashes {
            chains.forget(orphan_parent);
        }
        orphan_parent
    }

    /// `worker` holds `node` and calls it so.
    pub(super) fn acquire(&mut self, worker: Slot, node: NodeId, name: u64) -> Acquired {
        let key = self.index.key(name);
        // A hash names one block of a worker: held elsewhere under this name, it has moved here.
        let elsewhere = match self.index.find(&self.arena, &self.sets, worker, key) {
            Some(held) if held == node => return Acquired::Known,
            other => other,
        };
        if !self.duplicate_hashes.is_empty() {
            if self.duplicate_hashes.find(worker, key.hash) == Some(node) {
                return Acquired::Known;
            }
            self.remove_name(worker, key.hash);
        }
        let mut acquired = Acquired::New;
        let owners = self.sets.get(self.arena[node].set());
        let count = owners.len();
        if owners.contains(worker) {
            // As many as there may be blocks; beyond that only the last name counts.
            if self.duplicate_hashes.len() < self.limit as usize {
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
            let term = self.move_alone(worker, node, key.hash);
            self.digest = self.digest.wrapping_add(term);
            self.notify(|forest, nodes| forest.owners_changed(nodes, node));
        }
        if let Some(held) = elsewhere {
            self.lose_name(worker, held, None);
        }
        acquired
    }

    /// `worker` also calls `node`, which it holds, `name`.
    pub(super) fn add_name(&mut self, worker: Slot, node: NodeId, name: u64) {
        self.duplicate_hashes.add(node, worker, name);
        self.holdings_mut(worker).further += 1;
    }

    /// `worker` has no block of this further name any more; whether it had one.
    #[cold]
    pub(super) fn remove_name(&mut self, worker: Slot, name: u64) -> bool {
        let was_there = self.duplicate_hashes.remove(worker, name);
        if was_there {
            self.holdings_mut(worker).further -= 1;
        }
        was_there
    }

    /// `worker` no longer calls `node`, which it holds, by the name that it is known by: it goes unless it has another one.
    /// `bucket` as in [`super::index::BlockIndex::leave`].
    #[inline]
    fn lose_name(&mut self, worker: Slot, node: NodeId, bucket: Option<usize>) {
        match self.duplicate_hashes.another(node, worker) {
            Some(name) => {
                self.remove_name(worker, name);
                self.rename(worker, node, name);
            }
            None => {
                if self.changed.is_some() {
                    let name = self.index.name(&self.arena, node, worker);
                    self.note_removed(worker, node, BlockHash(name));
                }
                self.release_at(worker, node, bucket);
            }
        }
    }

    /// `worker` already holds `node` and now calls it `hash`.
    fn rename(&mut self, worker: Slot, node: NodeId, hash: u64) {
        let old = self.index.name(&self.arena, node, worker);
        self.digest = self.digest.wrapping_sub(self.term(worker, node, old));
        self.index.drop_variant(node, worker);
        if self.arena[node].block != hash {
            self.index.set_variant(node, worker, hash);
            self.update_primary_name(node);
        }
        self.digest = self.digest.wrapping_add(self.term(worker, node, hash));
    }

    fn update_primary_name(&mut self, node: NodeId) {
        let owners = self.sets.get(self.arena[node].set());
        self.index.replace_primary(&mut self.arena, node, owners);
    }

    /// `worker` no longer holds `node`, which it did.
    pub(super) fn release(&mut self, worker: Slot, node: NodeId) {
        self.release_at(worker, node, None);
    }

    fn release_at(&mut self, worker: Slot, node: NodeId, bucket: Option<usize>) {
        if !self.duplicate_hashes.is_empty() {
            let further = self.duplicate_hashes.forget(node, worker);
            self.holdings_mut(worker).further -= further;
        }
        let name = self.index.name(&self.arena, node, worker);
        self.index.drop_variant(node, worker);
        let count = self.owners(node).len();
        let term = self.move_alone(worker, node, name);
        self.digest = self.digest.wrapping_sub(term);
        if count == 1 {
            self.index.leave(&self.arena, node, bucket);
            self.prune(node);
        } else {
            self.update_primary_name(node);
        }
        if !self.arena[node].is_free() {
            self.notify(|forest, nodes| forest.owners_changed(nodes, node));
        }
    }

    /// `worker` becomes an owner of `node` or ceases to be one. Gives what both are in the digest if it calls the block `name`.
    fn move_alone(&mut self, worker: Slot, node: NodeId, name: u64) -> u64 {
        let mut moves = Moves::new(worker);
        self.move_from(&mut moves, self.arena[node].set());
        let term = self.move_owner(&mut moves, node, name);
        self.apply_moves(&mut moves);
        term
    }

    /// Frees `node` and what is above it as far as it has neither owners nor children. Hits at what goes are
    /// hits at what is above it.
    pub(super) fn prune(&mut self, node: NodeId) {
        let mut at = node;
        while at != NodeId::ROOT {
            let n = self.arena[at];
            if n.is_free() || n.child != NO_CHILD || n.set() != SetId::EMPTY {
                return;
            }
            if n.is_orphan_parent() {
                self.orphan_parents.remove(&(Slot(n.tokens as u16), BlockHash(n.block)));
                self.pass_hits(at, NodeId::ROOT);
                self.arena.free(at);
                return;
            }
            self.pass_hits(at, n.parent);
            self.child_index.unlink(&mut self.arena, at);
            self.arena.free(at);
            self.notify(|forest, nodes| forest.removed(nodes, at, n.parent));
            at = n.parent;
        }
    }
}
