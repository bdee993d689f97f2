//! A copy of the tree that a reader looks at while the tree itself goes on: what came and went since, and which of its
//! blocks that no worker holds any more.

use super::forest::Chain;
use super::{NodeId, Tree};
use radixscope_model::id::Slot;

/// Blocks that workers came to hold and ceased to hold, each worker's counted, since the tree was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turnover {
    /// Stored.
    pub stored: u64,
    /// Removed, cleared, or left out at the limit.
    pub evicted: u64,
}

impl Turnover {
    #[inline]
    /// So many blocks more (`> 0`) or fewer.
    pub(super) fn count(&mut self, step: i64) {
        let which = if step > 0 { &mut self.stored } else { &mut self.evicted };
        *which += step.unsigned_abs();
    }

    /// What there was since an earlier moment of the same tree.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            stored: self.stored.saturating_sub(earlier.stored),
            evicted: self.evicted.saturating_sub(earlier.evicted),
        }
    }
}

impl Tree {
    /// A copy with its forest, as of the last update. It takes as much memory as the tree.
    #[must_use]
    pub fn copy_with_forest(&self) -> Self {
        Self { forest: self.forest.clone(), ..self.copy_without_forest() }
    }

    /// Blocks stored and evicted so far.
    pub fn turnover(&self) -> Turnover {
        self.turnover
    }

    /// Whether a block of an earlier copy of this tree, which had an owner then, has none now.
    pub fn has_evicted(&self, earlier: &Tree, node: NodeId) -> bool {
        !earlier.owners(node).is_empty()
            && !self.same(earlier, node).is_some_and(|now| self.is_held(now, None))
    }

    /// The blocks of a chain of an earlier copy without an owner now, or without `worker` as owner, as stretches of
    /// positions: the first, and the one behind the last. Walks the chain only where something in it has changed.
    pub fn evicted_in(
        &self,
        earlier: &Tree,
        chain: &Chain,
        worker: Option<Slot>,
        mut each: impl FnMut(u32, u32),
    ) {
        if earlier.chain_owners(chain).is_empty() || self.holds_all(earlier, chain, worker) {
            return;
        }
        let (mut then, mut now) = (chain.first, self.same(earlier, chain.first));
        let mut from = None;
        for position in chain.position..chain.end() {
            let is_held = now.is_some_and(|now| self.is_held(now, worker));
            match from {
                None if !is_held => from = Some(position),
                Some(from) if is_held => each(from, position),
                _ => {}
            }
            from = from.filter(|_| !is_held);
            let Some(next) = earlier.children(then).next() else { break };
            now = now.and_then(|now| self.child(now, earlier.tokens_hash(next)));
            then = next;
        }
        if let Some(from) = from {
            each(from, chain.end());
        }
    }

    /// Whether the ends of a chain stand in one chain still: then all between them has the same holders.
    fn holds_all(&self, earlier: &Tree, chain: &Chain, worker: Option<Slot>) -> bool {
        let Some((forest, first)) = self.forest().zip(self.same(earlier, chain.first)) else { return false };
        let last = self.same(earlier, chain.last);
        last.and_then(|last| forest.chain_of(last)) == forest.chain_of(first) && self.is_held(first, worker)
    }

    fn is_held(&self, node: NodeId, worker: Option<Slot>) -> bool {
        let owners = self.owners(node);
        worker.map_or(!owners.is_empty(), |worker| owners.contains(worker))
    }

    /// Where a block of an earlier copy is now, if it or at least the one before it is where it was.
    fn same(&self, earlier: &Tree, node: NodeId) -> Option<NodeId> {
        let stays = |node: NodeId| {
            let (now, then) = (&self.arena[node], &earlier.arena[node]);
            !now.is_free() && now.tokens == then.tokens && now.parent == then.parent
        };
        if stays(node) {
            return Some(node);
        }
        let above = earlier.arena[node].parent;
        (above != NodeId::NONE && stays(above))
            .then(|| self.child(above, earlier.tokens_hash(node)))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::super::forest::Arrangement;
    use super::*;
    use radixscope_model::id::{BlockHash, TokensHash};
    use radixscope_model::record::Block;

    fn store(tree: &mut Tree, worker: u16, tokens: impl IntoIterator<Item = u64>) {
        let block = |t| Block { block_hash: BlockHash(t), tokens_hash: TokensHash(t) };
        let blocks: Vec<Block> = tokens.into_iter().map(block).collect();
        tree.store(Slot(worker), None, &blocks, 1);
    }

    fn remove(tree: &mut Tree, worker: u16, tokens: impl IntoIterator<Item = u64>) {
        tokens.into_iter().for_each(|t| assert!(tree.remove(Slot(worker), BlockHash(t))));
    }

    /// Worker 0 holds 1 … 8, worker 1 holds 1 … 4 of them.
    fn tree() -> Tree {
        let mut tree = Tree::default();
        store(&mut tree, 0, 1..=8);
        store(&mut tree, 1, 1..=4);
        tree.build_forest(Arrangement::default());
        tree
    }

    /// Stretches of all chains of `earlier` that are gone from `tree`.
    fn evicted(tree: &Tree, earlier: &Tree, worker: Option<u16>) -> Vec<(u32, u32)> {
        let forest = earlier.forest().expect("kept");
        let mut evicted = Vec::new();
        for row in forest.rows(Default::default(), 100, |_| true) {
            let chain = forest.chain(row.id);
            tree.evicted_in(earlier, chain, worker.map(Slot), |from, to| evicted.push((from, to)));
        }
        evicted
    }

    #[test]
    fn a_copy_stays_as_it_was() {
        let mut tree = tree();
        let then = tree.copy_with_forest();
        let before = then.forest().expect("kept").rows(Default::default(), 100, |_| true);
        remove(&mut tree, 0, (1..=8).rev());
        store(&mut tree, 2, 20..30);
        tree.update_forest();
        assert_eq!(then.forest().expect("kept").rows(Default::default(), 100, |_| true), before);
        assert_eq!(tree.turnover().since(then.turnover()), Turnover { stored: 10, evicted: 8 });
    }

    #[test]
    fn evicted_blocks_are_identified_by_position() {
        let mut tree = tree();
        let then = tree.copy_with_forest();
        assert_eq!(evicted(&tree, &then, None), []);
        remove(&mut tree, 0, [8, 7]);
        tree.update_forest();
        assert_eq!(evicted(&tree, &then, None), [(6, 8)]);
        remove(&mut tree, 0, [5]);
        tree.update_forest();
        assert_eq!(evicted(&tree, &then, None), [(4, 5), (6, 8)], "block 6 leads on, and is held");
        let node = |t| then.find_any(BlockHash(t)).expect("it was there");
        assert!(tree.has_evicted(&then, node(8)) && !tree.has_evicted(&then, node(6)));
    }

    #[test]
    fn a_lane_shows_what_its_worker_lost() {
        let mut tree = tree();
        let then = tree.copy_with_forest();
        remove(&mut tree, 1, [4, 3]);
        tree.update_forest();
        assert_eq!(evicted(&tree, &then, None), []);
        assert_eq!(evicted(&tree, &then, Some(0)), []);
        let forest = then.forest().expect("kept");
        let chain = forest.chain(forest.children(None)[0]);
        let mut lost = Vec::new();
        tree.evicted_in(&then, chain, Some(Slot(1)), |from, to| lost.push((from, to)));
        assert_eq!(lost, [(2, 4)]);
    }

    #[test]
    fn a_place_that_another_block_took_is_evicted_and_one_stored_again_is_not() {
        let mut tree = tree();
        let then = tree.copy_with_forest();
        remove(&mut tree, 0, [8, 7, 6]);
        store(&mut tree, 0, 100..=103);
        tree.update_forest();
        assert_eq!(evicted(&tree, &then, None), [(5, 8)]);
        store(&mut tree, 0, 1..=8);
        tree.update_forest();
        assert_eq!(evicted(&tree, &then, None), []);
    }

    #[test]
    fn what_came_since_is_none_of_the_copy() {
        let mut tree = tree();
        let then = tree.copy_with_forest();
        store(&mut tree, 2, 1..=12);
        tree.update_forest();
        assert_eq!(evicted(&tree, &then, None), []);
    }
}
