//! The tree as an icicle: which box stands where, in shares of the width and in block positions downward.
//!
//! A run of blocks with one child each and the same owners is one box. A box's share of its parent's width is its
//! share of the blocks below that parent, so the picture has no holes; at the top the width is simply the blocks in
//! the subtree. Pure arithmetic over a [`Tree`]: knows nothing of pixels, colours or zoom, and copies what drawing
//! needs, so that a layout may be drawn after its tree has changed.

use std::cmp::Reverse;

use hashbrown::HashMap;

use super::{NodeId, OwnerSet, Tree};
use crate::id::{BlockHash, TokensHash, WorkerIx};

/// In which order siblings stand, left to right.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Most blocks first, then by tokens hash.
    #[default]
    LeftHeavy,
    /// By tokens hash alone: a box changes its width but never its neighbours.
    Stable,
}

/// Who holds the blocks of a subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// Nobody.
    Nobody,
    /// This worker alone holds every held block.
    One(WorkerIx),
    /// Two workers or more.
    Several,
}

impl Holder {
    fn of(owners: &OwnerSet) -> Self {
        let mut workers = owners.iter();
        match (workers.next(), workers.next()) {
            (None, _) => Holder::Nobody,
            (Some(only), None) => Holder::One(only),
            _ => Holder::Several,
        }
    }

    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Holder::Nobody, any) | (any, Holder::Nobody) => any,
            (a, b) if a == b => a,
            _ => Holder::Several,
        }
    }
}

/// A chain of blocks, drawn as one box.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChainBox {
    /// Its first block. Valid until the tree changes.
    pub first: NodeId,
    /// Engine hash of the first block; outlives the tree's change.
    pub first_hash: BlockHash,
    /// Router's hash of the first block's tokens.
    pub first_tokens: TokensHash,
    /// Position of the first block in its prompt, from 0.
    pub position: u32,
    /// Blocks in the chain.
    pub len: u32,
    /// Left edge, 0 … 1 of the whole picture.
    pub x0: f64,
    /// Right edge.
    pub x1: f64,
    /// Held blocks in the chain and everything below it.
    pub blocks: u32,
    /// Position behind the deepest block of the subtree.
    pub bottom: u32,
    /// Index behind the last box of the subtree; children begin right after the box itself.
    pub end: u32,
    /// Index of the box above.
    pub parent: Option<u32>,
    /// Which of [`Layout::owners`] holds the chain.
    pub owners: u32,
    /// Who holds the chain and everything below it.
    pub holder: Holder,
}

/// Where every box stands: parents before children, siblings from left to right.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    boxes: Vec<ChainBox>,
    owners: Vec<OwnerSet>,
}

const NO_PARENT: u32 = u32::MAX;

impl Layout {
    /// Lays out everything attached in `tree`. A chain ends before each of `cuts`, so that these begin a box.
    pub fn new(tree: &Tree, order: Order, cuts: &[NodeId]) -> Self {
        let (mut found, owners) = compress(tree, cuts);
        sum_up(&mut found);
        Self { boxes: place(&found, order), owners }
    }

    /// The boxes in pre-order.
    pub fn boxes(&self) -> &[ChainBox] {
        &self.boxes
    }

    /// Who holds the chain of `of`.
    pub fn owners(&self, of: &ChainBox) -> &OwnerSet {
        &self.owners[of.owners as usize]
    }

    /// Position behind the deepest block.
    pub fn bottom(&self) -> u32 {
        self.siblings(None).map(|i| self.boxes[i].bottom).max().unwrap_or(0)
    }

    /// Held blocks in the picture.
    pub fn blocks(&self) -> u64 {
        self.siblings(None).map(|i| u64::from(self.boxes[i].blocks)).sum()
    }

    /// Children of a box, or the boxes at the top, from left to right.
    pub fn siblings(&self, parent: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        let (first, end) = match parent {
            None => (0, self.boxes.len()),
            Some(p) => (p + 1, self.boxes[p].end as usize),
        };
        let valid = move |i: usize| (i < end).then_some(i);
        std::iter::successors(valid(first), move |&i| valid(self.boxes[i].end as usize))
    }

    /// The box at `x` (0 … 1) that covers the block position `position`.
    pub fn at(&self, x: f64, position: f64) -> Option<usize> {
        let mut above = None;
        loop {
            let here = self.siblings(above).find(|&i| x >= self.boxes[i].x0 && x < self.boxes[i].x1)?;
            let b = &self.boxes[here];
            if position < f64::from(b.position) {
                return None;
            }
            if position < f64::from(b.position + b.len) {
                return Some(here);
            }
            above = Some(here);
        }
    }

    /// The box that begins with the node `first`.
    pub fn beginning_with(&self, first: NodeId) -> Option<usize> {
        self.boxes.iter().position(|b| b.first == first)
    }
}

/// Chains in order of discovery, parents before children; places are not known yet.
fn compress(tree: &Tree, cuts: &[NodeId]) -> (Vec<ChainBox>, Vec<OwnerSet>) {
    let mut boxes: Vec<ChainBox> = Vec::new();
    let mut owners: Vec<OwnerSet> = Vec::new();
    let mut known: HashMap<u32, (u32, Holder)> = HashMap::new();
    let mut todo: Vec<(NodeId, u32)> = tree.children(NodeId::ROOT).map(|n| (n, NO_PARENT)).collect();
    while let Some((first, parent)) = todo.pop() {
        let key = tree.owners_key(first);
        let &mut (set, holder) = known.entry(key).or_insert_with(|| {
            owners.push(tree.owners(first).clone());
            ((owners.len() - 1) as u32, Holder::of(tree.owners(first)))
        });
        let mut last = first;
        let mut len = 1;
        let me = boxes.len() as u32;
        loop {
            let mut children = tree.children(last);
            if children.len() == 1
                && let Some(only) = children.next()
                && tree.owners_key(only) == key
                && !cuts.contains(&only)
            {
                last = only;
                len += 1;
                continue;
            }
            break;
        }
        todo.extend(tree.children(last).map(|child| (child, me)));
        let parent = (parent != NO_PARENT).then_some(parent);
        let position = parent.map_or(0, |p| boxes[p as usize].position + boxes[p as usize].len);
        boxes.push(ChainBox {
            first,
            first_hash: tree.block_hash(first),
            first_tokens: tree.tokens_hash(first),
            position,
            len,
            x0: 0.0,
            x1: 0.0,
            blocks: if holder == Holder::Nobody { 0 } else { len },
            bottom: position + len,
            end: 0,
            parent,
            owners: set,
            holder,
        });
    }
    (boxes, owners)
}

/// Adds up subtrees, from the last box to the first: a child always comes after its parent.
fn sum_up(boxes: &mut [ChainBox]) {
    for i in (0..boxes.len()).rev() {
        let ChainBox { parent, blocks, bottom, holder, .. } = boxes[i];
        if let Some(p) = parent {
            let above = &mut boxes[p as usize];
            above.blocks += blocks;
            above.bottom = above.bottom.max(bottom);
            above.holder = above.holder.with(holder);
        }
    }
}

/// Puts siblings in order and gives every box its place; returns them in pre-order.
fn place(found: &[ChainBox], order: Order) -> Vec<ChainBox> {
    // Children of box p are `family[starts[p + 1]..starts[p + 2]]`; those at the top `family[0..starts[1]]`.
    let slot = |b: &ChainBox| b.parent.map_or(0, |p| p as usize + 1);
    let mut starts = vec![0u32; found.len() + 2];
    found.iter().for_each(|b| starts[slot(b) + 1] += 1);
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut next = starts.clone();
    let mut family = vec![0u32; found.len()];
    for (i, b) in found.iter().enumerate() {
        let at = &mut next[slot(b)];
        family[*at as usize] = i as u32;
        *at += 1;
    }
    let mut placed: Vec<ChainBox> = Vec::with_capacity(found.len());
    // What is still to be placed: index in `found`, index of the parent in `placed`, edges.
    let mut todo: Vec<(u32, Option<u32>, f64, f64)> = Vec::new();
    let mut spread = |slot: usize, parent: Option<u32>, x0: f64, x1: f64, todo: &mut Vec<_>| {
        let children = &mut family[starts[slot] as usize..starts[slot + 1] as usize];
        let key = |i: &u32| &found[*i as usize];
        // One sort for both orders: each costs the page a kilobyte.
        let weight = |b: &ChainBox| if order == Order::LeftHeavy { b.blocks } else { 0 };
        children.sort_unstable_by_key(|i| (Reverse(weight(key(i))), key(i).first_tokens));
        let total: f64 = children.iter().map(|i| f64::from(key(i).blocks)).sum();
        let begin = todo.len();
        let mut before = 0.0;
        for &i in children.iter() {
            let left = x0 + (x1 - x0) * (before / total);
            before += f64::from(found[i as usize].blocks);
            let right = x0 + (x1 - x0) * (before / total);
            todo.push((i, parent, left, right));
        }
        todo[begin..].reverse();
    };
    spread(0, None, 0.0, 1.0, &mut todo);
    while let Some((i, parent, x0, x1)) = todo.pop() {
        let me = placed.len() as u32;
        placed.push(ChainBox { x0, x1, parent, end: me + 1, ..found[i as usize] });
        spread(i as usize + 1, Some(me), x0, x1, &mut todo);
    }
    for i in (0..placed.len()).rev() {
        let ChainBox { parent, end, .. } = placed[i];
        if let Some(p) = parent {
            let above = &mut placed[p as usize];
            above.end = above.end.max(end);
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Block;

    fn blocks(tokens: impl IntoIterator<Item = u64>, salt: u64) -> Vec<Block> {
        let block = |t| Block { block_hash: BlockHash(t * 1000 + salt), tokens_hash: TokensHash(t) };
        tokens.into_iter().map(block).collect()
    }

    fn w(i: u16) -> WorkerIx {
        WorkerIx(i)
    }

    /// Worker 0 holds 1 2 3 4 5, worker 1 holds 1 2 6 7, worker 2 holds 9.
    fn forked() -> Tree {
        let mut tree = Tree::default();
        tree.store(w(0), None, &blocks(1..=5, 0), 0);
        tree.store(w(1), None, &blocks([1, 2, 6, 7], 0), 0);
        tree.store(w(2), None, &blocks([9], 0), 0);
        tree
    }

    fn shapes(layout: &Layout) -> Vec<(u64, u32, u32, u32)> {
        layout.boxes().iter().map(|b| (b.first_tokens.0, b.position, b.len, b.blocks)).collect()
    }

    #[test]
    fn runs_with_the_same_owners_are_one_box_and_larger_siblings_stand_left() {
        let layout = Layout::new(&forked(), Order::LeftHeavy, &[]);
        assert_eq!(shapes(&layout), [(1, 0, 2, 7), (3, 2, 3, 3), (6, 2, 2, 2), (9, 0, 1, 1)]);
        assert_eq!(layout.boxes().iter().map(|b| b.end).collect::<Vec<_>>(), [3, 2, 3, 4]);
        assert_eq!(layout.bottom(), 5);
        assert_eq!(layout.blocks(), 8);
    }

    #[test]
    fn siblings_share_the_whole_width_by_their_blocks() {
        let layout = Layout::new(&forked(), Order::LeftHeavy, &[]);
        let edges: Vec<(f64, f64)> = layout.boxes().iter().map(|b| (b.x0, b.x1)).collect();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(edges[0].1, 7.0 / 8.0) && close(edges[3].1, 1.0));
        assert!(close(edges[1].1, 7.0 / 8.0 * 0.6));
        assert_eq!(edges[2], (edges[1].1, edges[0].1));
    }

    #[test]
    fn a_change_of_owners_ends_a_box_and_names_its_holders() {
        let layout = Layout::new(&forked(), Order::LeftHeavy, &[]);
        let boxes = layout.boxes();
        assert_eq!(layout.owners(&boxes[0]).iter().collect::<Vec<_>>(), [w(0), w(1)]);
        assert_eq!(boxes[0].holder, Holder::Several);
        assert_eq!(boxes[1].holder, Holder::One(w(0)));
    }

    #[test]
    fn blocks_that_only_lead_to_held_ones_take_no_width_of_their_own() {
        let mut tree = forked();
        tree.remove(w(0), BlockHash(3000));
        let layout = Layout::new(&tree, Order::LeftHeavy, &[]);
        let hole = layout.boxes().iter().find(|b| b.first_tokens.0 == 3).copied();
        let hole = hole.expect("the block leads to held ones");
        assert_eq!((hole.len, hole.blocks), (1, 2));
        assert!(layout.owners(&hole).is_empty());
        assert_eq!(hole.holder, Holder::One(w(0)));
    }

    #[test]
    fn stable_order_ignores_sizes() {
        let layout = Layout::new(&forked(), Order::Stable, &[]);
        assert_eq!(shapes(&layout).iter().map(|s| s.0).collect::<Vec<_>>(), [1, 3, 6, 9]);
        let mut tree = forked();
        tree.store(w(2), None, &blocks([9, 10, 11, 12, 13, 14, 15, 16, 17, 18], 0), 0);
        let stable = Layout::new(&tree, Order::Stable, &[]);
        assert_eq!(shapes(&stable)[0].0, 1);
        let heavy = Layout::new(&tree, Order::LeftHeavy, &[]);
        assert_eq!(shapes(&heavy)[0].0, 9);
    }

    #[test]
    fn the_order_does_not_depend_on_who_came_first() {
        let mut other = Tree::default();
        other.store(w(2), None, &blocks([9], 0), 0);
        other.store(w(1), None, &blocks([1, 2, 6, 7], 0), 0);
        other.store(w(0), None, &blocks(1..=5, 0), 0);
        let (a, b) =
            (Layout::new(&forked(), Order::LeftHeavy, &[]), Layout::new(&other, Order::LeftHeavy, &[]));
        assert_eq!(shapes(&a), shapes(&b));
    }

    #[test]
    fn a_cut_begins_a_box() {
        let tree = forked();
        let cut = tree.find(w(0), BlockHash(4000)).expect("stored");
        let layout = Layout::new(&tree, Order::LeftHeavy, &[cut]);
        let i = layout.beginning_with(cut).expect("begins a box");
        assert_eq!((layout.boxes()[i].position, layout.boxes()[i].len), (3, 2));
    }

    #[test]
    fn a_point_finds_its_box() {
        let layout = Layout::new(&forked(), Order::LeftHeavy, &[]);
        assert_eq!(layout.at(0.1, 0.5), Some(0));
        assert_eq!(layout.at(0.1, 4.5), Some(1));
        assert_eq!(layout.at(0.8, 3.9), Some(2));
        assert_eq!(layout.at(0.8, 4.1), None);
        assert_eq!(layout.at(0.99, 0.0), Some(3));
        assert_eq!(Layout::new(&Tree::default(), Order::LeftHeavy, &[]).at(0.5, 0.0), None);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_blocks_is_one_box() {
        let mut tree = Tree::default();
        tree.store(w(0), None, &blocks(1..=100_000, 0), 0);
        let layout = Layout::new(&tree, Order::LeftHeavy, &[]);
        assert_eq!(shapes(&layout), [(1, 0, 100_000, 100_000)]);
    }
}
