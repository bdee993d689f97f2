//! Sums over a subtree, per block of it, in three passes over flat memory.

use radixscope_model::id::Slot;
use radixscope_state::tree::{NodeId, Tree};

/// One block and what is at and below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubtreeSums {
    pub(super) node: NodeId,
    /// Place of the block before it; its own for the first.
    above: u32,
    /// Nodes in its subtree, itself included: where its own place ends.
    nodes: u32,
    /// Position in the prompt, counted from where the walk began.
    depth: u32,
    /// Blocks that a worker in question holds.
    pub(super) blocks: u32,
    /// Of those, held by two workers or more.
    pub(super) shared: u32,
    /// Children with at least one such block at or below them.
    pub(super) branches: u32,
    /// Depth behind the deepest of them.
    pub(super) bottom: u32,
    /// Requests of the window that ended here or below.
    pub(super) hits: u32,
    /// Latest touch of a block at or below it.
    pub(super) touched: u32,
    /// Holders beyond the first of those blocks.
    pub(super) copies: u64,
}

/// The blocks of a subtree in pre-order, siblings in no order.
pub(super) struct Sums(Vec<SubtreeSums>);

/// A run of blocks with one child each and the same owners.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    /// Its last block.
    pub(super) end: Place,
    /// Its blocks.
    pub(super) len: u32,
    /// Latest touch of one of them.
    pub(super) touched: u32,
}

/// A block's place in [`Sums`].
pub(super) type Place = u32;

impl Sums {
    /// Of `root` and everything below it, counting what one of `workers` (`None`: anyone) holds and hits since `since`.
    pub(super) fn below(tree: &Tree, root: NodeId, workers: Option<&[Slot]>, since: u32) -> Self {
        // Only the whole tree is worth a guess at how many nodes there are.
        let expected = if root == NodeId::ROOT { tree.allocated() as usize + 1 } else { 0 };
        let mut rows: Vec<SubtreeSums> = Vec::with_capacity(expected);
        let mut todo = vec![(root, 0, 0)];
        while let Some((node, above, depth)) = todo.pop() {
            let place = rows.len() as Place;
            let owners = tree.owners(node);
            let is_held =
                workers.map_or(!owners.is_empty(), |workers| workers.iter().any(|&w| owners.contains(w)));
            let holders = owners.len();
            rows.push(SubtreeSums {
                node,
                above,
                nodes: 1,
                depth,
                blocks: is_held.into(),
                shared: (is_held && holders > 1).into(),
                branches: 0,
                bottom: if is_held { depth + 1 } else { 0 },
                hits: tree.hits_at(node, since),
                touched: tree.touched(node),
                copies: if is_held { holders as u64 - 1 } else { 0 },
            });
            // The root stands before the first position, so that what follows it begins at 0.
            let below = if node == NodeId::ROOT { 0 } else { depth + 1 };
            todo.extend(tree.children(node).map(|child| (child, place, below)));
        }
        for place in (1..rows.len()).rev() {
            let row = rows[place];
            let above = &mut rows[row.above as usize];
            above.nodes += row.nodes;
            above.blocks += row.blocks;
            above.shared += row.shared;
            above.branches += u32::from(row.blocks > 0);
            above.bottom = above.bottom.max(row.bottom);
            above.hits += row.hits;
            above.touched = above.touched.max(row.touched);
            above.copies += row.copies;
        }
        Self(rows)
    }

    pub(super) fn row(&self, place: Place) -> &SubtreeSums {
        &self.0[place as usize]
    }

    /// Places of the blocks below `place`.
    pub(super) fn children(&self, place: Place) -> impl Iterator<Item = Place> + '_ {
        let end = place + self.row(place).nodes;
        let next = move |at: Place| (at < end).then_some(at);
        std::iter::successors(next(place + 1), move |&at| next(at + self.row(at).nodes))
    }

    /// Those that lead to a block in question.
    pub(super) fn branches(&self, place: Place) -> impl Iterator<Item = Place> + '_ {
        self.children(place).filter(|&child| self.row(child).blocks > 0)
    }

    /// The chain that begins at `first`.
    pub(super) fn chain(&self, tree: &Tree, first: Place) -> Chain {
        let node = self.row(first).node;
        let owners = tree.owners_key(node);
        let mut chain = Chain { end: first, len: 1, touched: tree.touched(node) };
        while let Some(next) = self.continuation(tree, chain.end, owners) {
            let touched = chain.touched.max(tree.touched(self.row(next).node));
            chain = Chain { end: next, len: chain.len + 1, touched };
        }
        chain
    }

    /// The block after `place` in the same chain, whose blocks have these owners.
    fn continuation(&self, tree: &Tree, place: Place, owners: u32) -> Option<Place> {
        if self.row(place).branches != 1 {
            return None;
        }
        self.branches(place).next().filter(|&next| tree.owners_key(self.row(next).node) == owners)
    }

    /// Whether a new element begins at `place`, whose block before is at `above`.
    pub(super) fn begins(&self, tree: &Tree, above: Place, place: Place) -> bool {
        let owners = tree.owners_key(self.row(above).node);
        self.row(above).node == NodeId::ROOT || self.continuation(tree, above, owners) != Some(place)
    }

    /// Position of a block, if that of the walk's beginning is `begin`.
    pub(super) fn position(&self, place: Place, begin: u32) -> u32 {
        begin + self.row(place).depth
    }
}
