//! Looking at the tree: children and walks in pre-order, without recursion.

use super::{Children, NodeId, Tree};
use radixscope_model::id::{BlockHash, Slot, TokensHash};
use radixscope_model::record::Block;

/// One step of a [`Walk`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A node, before everything below it. `depth` is 0 for the node the walk began at.
    Enter {
        /// The node.
        node: NodeId,
        /// Blocks below the walk's beginning.
        depth: u32,
    },
    /// The same node, after everything below it.
    Leave {
        /// The node.
        node: NodeId,
        /// Blocks below the walk's beginning.
        depth: u32,
    },
}

/// Walks a subtree in pre-order, children in order of first sight.
pub struct Walk<'a> {
    tree: &'a Tree,
    path: Vec<(NodeId, Children<'a>)>,
    next: Option<NodeId>,
}

impl Iterator for Walk<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if let Some(node) = self.next.take() {
            let depth = self.path.len() as u32;
            self.path.push((node, self.tree.children(node)));
            return Some(Step::Enter { node, depth });
        }
        let (node, children) = self.path.last_mut()?;
        if let Some(child) = children.next() {
            let depth = self.path.len() as u32;
            self.path.push((child, self.tree.children(child)));
            return Some(Step::Enter { node: child, depth });
        }
        let node = *node;
        self.path.pop();
        Some(Step::Leave { node, depth: self.path.len() as u32 })
    }
}

impl Tree {
    /// Children of `node`, in order of first sight.
    pub fn children(&self, node: NodeId) -> Children<'_> {
        self.child_index.of(&self.arena, node)
    }

    /// Every block that `worker` holds, with the name of the one before it and when it was stored, each after those before
    /// it. Of a block below one that another worker holds and this one does not, the position could not be found again: it
    /// comes as one whose parent is unknown.
    pub fn held_by(&self, worker: Slot) -> Vec<(Option<BlockHash>, Block, u32)> {
        let mut held = Vec::new();
        for top in std::iter::once(NodeId::ROOT).chain(self.orphan_parents()) {
            for step in self.walk(top) {
                let Step::Enter { node, .. } = step else { continue };
                if !self.owners(node).contains(worker) {
                    continue;
                }
                let above = self.arena[node].parent;
                let parent = match self.parent(node) {
                    Some(NodeId::ROOT) => None,
                    Some(parent) => Some(self.block_hash_by(parent, worker)),
                    None => Some(BlockHash(self.arena[above].block)),
                };
                let block = Block {
                    block_hash: self.block_hash_by(node, worker),
                    tokens_hash: self.tokens_hash(node),
                };
                held.push((parent, block, self.touched(node)));
            }
        }
        held
    }

    /// All names by which `worker` holds blocks, in no order. Linear in the tree.
    pub fn names_of(&self, worker: Slot) -> Vec<BlockHash> {
        let mut names = Vec::with_capacity(self.holdings(worker).resident as usize);
        for node in self.arena.ids().skip(1) {
            if !self.arena[node].is_free() && self.owners(node).contains(worker) {
                names.push(self.block_hash_by(node, worker));
                names.extend(self.further_names_by(node, worker));
            }
        }
        names
    }

    /// The same of several workers in one walk: gives each name to `to`.
    pub fn names_of_all(&self, workers: &[Slot], mut to: impl FnMut(Slot, BlockHash)) {
        for node in self.arena.ids().skip(1) {
            if self.arena[node].is_free() {
                continue;
            }
            let owners = self.owners(node);
            for &worker in workers.iter().filter(|&&worker| owners.contains(worker)) {
                to(worker, self.block_hash_by(node, worker));
                self.further_names_by(node, worker).for_each(|name| to(worker, name));
            }
        }
    }

    /// What `worker`, which holds `node`, calls its block beside [`Tree::block_hash_by`].
    pub fn further_names_by(&self, node: NodeId, worker: Slot) -> impl Iterator<Item = BlockHash> + use<> {
        let names = if self.duplicate_hashes.is_empty() {
            Vec::new()
        } else {
            self.duplicate_hashes.names(node, worker)
        };
        names.into_iter().map(BlockHash)
    }

    /// The block that what hangs at `node` waits for, as its worker calls it; `None`: it waits for none.
    pub fn awaited(&self, node: NodeId) -> Option<BlockHash> {
        let above = self.arena[node].parent;
        (above != NodeId::NONE && self.arena[above].is_orphan_parent())
            .then(|| BlockHash(self.arena[above].block))
    }

    /// Walks `from` and everything below it.
    pub fn walk(&self, from: NodeId) -> Walk<'_> {
        Walk { tree: self, path: Vec::new(), next: Some(from) }
    }

    /// Roots of what waits for a parent that was never seen: each holds no block, its children wait. Order is
    /// unspecified.
    pub fn orphan_parents(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.orphan_parents.values().copied()
    }

    /// Blocks that somebody holds and whose tokens have this hash, wherever they are: at most `most`, those of known
    /// paths first, else in no order. Linear in the tree.
    pub fn find_tokens(&self, tokens: TokensHash, most: usize) -> Vec<NodeId> {
        let (mut found, mut waiting) = (Vec::new(), Vec::new());
        for node in self.arena.ids().skip(1) {
            if found.len() == most {
                break;
            }
            let n = &self.arena[node];
            if n.tokens != tokens.0 || n.is_free() || n.is_orphan_parent() || self.owners(node).is_empty() {
                continue;
            }
            match n.is_unattached() {
                false => found.push(node),
                true if waiting.len() < most => waiting.push(node),
                true => {}
            }
        }
        waiting.truncate(most - found.len());
        found.append(&mut waiting);
        found
    }

    /// Every hash of every block that somebody holds: its tokens' (`true`) and each name that it has. Linear in the tree; in
    /// no order.
    pub fn each_hash(&self, mut each: impl FnMut(NodeId, u64, bool)) {
        for node in self.arena.ids().skip(1) {
            let n = &self.arena[node];
            if !n.is_free() && !n.is_orphan_parent() && !self.owners(node).is_empty() {
                each(node, n.tokens, true);
                each(node, n.block, false);
            }
        }
        self.index
            .variant_names()
            .chain(self.duplicate_hashes.all_names())
            .for_each(|(node, name)| each(node, name, false));
    }

    /// Length in blocks of the longest attached path that ends in a held block. Linear in the tree.
    pub fn max_depth(&self) -> u32 {
        let mut deepest = 0;
        for step in self.walk(NodeId::ROOT) {
            if let Step::Enter { node, depth } = step
                && depth > deepest
                && !self.owners(node).is_empty()
            {
                deepest = depth;
            }
        }
        deepest
    }
}
