//! Applies the changes of the tree: chains grow, split, merge and disappear.
//!
//! Invariant between two calls: every attached node is in exactly one chain; a chain ends where a block has no child,
//! or several, or one with other owners, or at [`MAX_CHAIN`] blocks. Children of a chain are listed lazily: a list may
//! still name chains that died or moved away, until [`Forest::update`] cleans it.

use super::super::arena::Arena;
use super::super::children::ChildIndex;
use super::super::owners::{OwnerSet, OwnerSets, SetId};
use super::super::{NodeId, Tree};
use super::siblings::Siblings;
use super::{Chain, ChainId, Forest, MAX_CHAIN, Sums};

/// The nodes of a tree while it changes.
#[derive(Clone, Copy)]
pub(in crate::tree) struct TreeNodes<'a> {
    pub(in crate::tree) arena: &'a Arena,
    pub(in crate::tree) child_index: &'a ChildIndex,
    pub(in crate::tree) sets: &'a OwnerSets,
}

impl<'a> TreeNodes<'a> {
    fn parent(self, node: NodeId) -> NodeId {
        self.arena[node].parent
    }

    fn only_child(self, node: NodeId) -> Option<NodeId> {
        let mut children = self.child_index.of(self.arena, node);
        if children.len() == 1 { children.next() } else { None }
    }

    fn owners(self, node: NodeId) -> u32 {
        self.arena[node].set().0
    }

    pub(super) fn set(self, owners: u32) -> &'a OwnerSet {
        self.sets.get(SetId(owners))
    }
}

impl Forest {
    /// Takes in a whole tree.
    pub(super) fn build(&mut self, tree: &Tree) {
        let nodes = tree.nodes();
        let tops: Vec<NodeId> = tree.children(NodeId::ROOT).collect();
        tops.into_iter().for_each(|top| self.grafted(nodes, top));
        for (node, at) in tree.hits() {
            self.hit(node, at);
        }
    }

    /// It is `at` now, in units of `touched`.
    pub(in crate::tree) fn advance_to(&mut self, at: u32) {
        self.now = self.now.max(at);
    }

    /// A request's held beginning ended at `node`.
    pub(in crate::tree) fn hit(&mut self, node: NodeId, at: u32) {
        self.touched(node, at);
        self.hits_moved = true;
    }

    /// Hits are elsewhere now, or forgotten.
    pub(in crate::tree) fn hits_moved(&mut self) {
        self.hits_moved = true;
    }

    /// `top` and everything below it have become attached.
    pub(in crate::tree) fn grafted(&mut self, nodes: TreeNodes<'_>, top: NodeId) {
        self.hits_moved = true;
        let mut todo = vec![top];
        while let Some(node) = todo.pop() {
            self.added(nodes, node);
            self.touched(node, nodes.arena[node].touched);
            let last = self.extended(nodes, node);
            todo.extend(nodes.child_index.of(nodes.arena, last));
        }
    }

    /// Takes what follows `node` without a branch and with its owners into its chain, which ends with `node`; gives the new
    /// last block. Block by block [`Self::added`] makes the same of it, and looks for the block above each time.
    fn extended(&mut self, nodes: TreeNodes<'_>, node: NodeId) -> NodeId {
        let Some(id) = self.chain_of(node) else { return node };
        let chain = &self.chains[id.at()];
        let (owners, before) = (chain.owners, chain.len);
        let (mut last, mut len, mut touched) = (node, before, chain.own_touched);
        while len < MAX_CHAIN
            && let Some(next) = nodes.only_child(last)
            && nodes.owners(next) == owners
        {
            self.label(next, id);
            (last, len, touched) = (next, len + 1, touched.max(nodes.arena[next].touched));
        }
        if len > before {
            let chain = &mut self.chains[id.at()];
            (chain.last, chain.len, chain.own_touched) = (last, len, touched);
            chain.new += len - before;
            self.advance_to(touched);
            self.mark(id);
        }
        last
    }

    /// `node` hangs below its parent now and has its owners; nothing below it is in the forest.
    pub(in crate::tree) fn added(&mut self, nodes: TreeNodes<'_>, node: NodeId) {
        if nodes.arena[node].is_unattached() {
            return;
        }
        let above = nodes.parent(node);
        if above == NodeId::ROOT {
            self.begin(nodes, node, ChainId::NONE, 0);
            return;
        }
        let Some(mut upper) = self.chain_of(above) else { return };
        let chain = &mut self.chains[upper.at()];
        if nodes.only_child(above) == Some(node)
            && chain.owners == nodes.owners(node)
            && chain.len < MAX_CHAIN
        {
            chain.last = node;
            chain.len += 1;
            chain.new += 1;
            self.label(node, upper);
            self.mark(upper);
            return;
        }
        if chain.last != above {
            let next =
                nodes.child_index.of(nodes.arena, above).find(|&child| self.chain_of(child) == Some(upper));
            if let Some(next) = next {
                self.split(nodes, upper, above, next);
                upper = self.of_node[above.at()];
            }
        }
        let position = self.chains[upper.at()].end();
        self.begin(nodes, node, upper, position);
    }

    /// A worker stored `node`, or a request used it.
    #[inline]
    pub(in crate::tree) fn touched(&mut self, node: NodeId, at: u32) {
        self.advance_to(at);
        let Some(id) = self.chain_of(node) else { return };
        let chain = &mut self.chains[id.at()];
        if chain.own_touched < at {
            chain.own_touched = at;
            self.mark(id);
        }
    }

    /// The owners of `node` have changed.
    pub(in crate::tree) fn owners_changed(&mut self, nodes: TreeNodes<'_>, node: NodeId) {
        let Some(mut id) = self.chain_of(node) else { return };
        let owners = nodes.owners(node);
        if self.chains[id.at()].owners == owners {
            return;
        }
        if self.shift(nodes, id, node, owners) {
            return;
        }
        if self.chains[id.at()].first != node {
            self.split(nodes, id, nodes.parent(node), node);
            id = self.of_node[node.at()];
        }
        if self.chains[id.at()].len > 1
            && let Some(next) = nodes.only_child(node)
        {
            self.split(nodes, id, node, next);
            id = self.of_node[node.at()];
        }
        self.chains[id.at()].owners = owners;
        self.mark(id);
        let above = nodes.parent(node);
        if above != NodeId::ROOT {
            self.merge_below(nodes, above);
        }
        let last = self.chains[self.of_node[node.at()].at()].last;
        self.merge_below(nodes, last);
    }

    /// Lets the chain right above or right below have `node`, which is at that end of its chain `id` and has the owners of
    /// that one now: so it goes block by block where a worker comes to hold, or ceases to hold, a path that others hold.
    fn shift(&mut self, nodes: TreeNodes<'_>, id: ChainId, node: NodeId, owners: u32) -> bool {
        let chain = &self.chains[id.at()];
        if chain.len == 1 {
            return false;
        }
        let above = nodes.parent(node);
        if chain.first == node && nodes.only_child(above) == Some(node) {
            let Some(upper) = self.chain_of(above).filter(|&upper| self.takes(upper, owners)) else {
                return false;
            };
            let Some(next) = nodes.only_child(node) else { return false };
            self.note_split(id);
            let chain = &mut self.chains[id.at()];
            let is_new = u32::from(chain.new == chain.len);
            (chain.first, chain.tokens) = (next, nodes.arena[next].tokens);
            (chain.position, chain.len, chain.new) = (chain.position + 1, chain.len - 1, chain.new - is_new);
            let to = &mut self.chains[upper.at()];
            (to.last, to.len, to.new) = (node, to.len + 1, to.new + is_new);
            self.shifted(nodes, id, node, upper);
            return true;
        }
        if chain.last == node {
            let below = nodes.only_child(node).and_then(|below| self.chain_of(below));
            let Some(lower) = below.filter(|&lower| self.takes(lower, owners)) else { return false };
            self.note_split(lower);
            let chain = &mut self.chains[id.at()];
            let is_new = u32::from(chain.new > 0);
            (chain.last, chain.len, chain.new) = (above, chain.len - 1, chain.new - is_new);
            let to = &mut self.chains[lower.at()];
            (to.first, to.tokens) = (node, nodes.arena[node].tokens);
            (to.position, to.len, to.new) = (to.position - 1, to.len + 1, to.new + is_new);
            self.shifted(nodes, id, node, lower);
            return true;
        }
        false
    }

    fn takes(&self, id: ChainId, owners: u32) -> bool {
        let chain = &self.chains[id.at()];
        chain.owners == owners && chain.len < MAX_CHAIN
    }

    fn shifted(&mut self, nodes: TreeNodes<'_>, from: ChainId, node: NodeId, to: ChainId) {
        self.hits_moved |= self.chains[from.at()].own_hits > 0;
        self.label(node, to);
        let touched = &mut self.chains[to.at()].own_touched;
        *touched = nodes.arena[node].touched.max(*touched);
        self.mark(from);
        self.mark(to);
    }

    /// `node`, which had no child, was removed; it was below `above`.
    pub(in crate::tree) fn removed(&mut self, nodes: TreeNodes<'_>, node: NodeId, above: NodeId) {
        let Some(id) = self.chain_of(node) else { return };
        self.of_node[node.at()] = ChainId::NONE;
        self.note_removed(nodes, id);
        let chain = &mut self.chains[id.at()];
        debug_assert_eq!(chain.last, node, "what goes has no child, so it is a chain's last block");
        chain.len -= 1;
        chain.new = chain.new.saturating_sub(1);
        if chain.len == 0 {
            self.drop_chain(id);
        } else {
            chain.last = above;
            self.mark(id);
        }
        if above != NodeId::ROOT {
            self.merge_below(nodes, above);
        }
    }

    /// Makes one chain of the one that ends with `last` and the only one below it, if they fit.
    fn merge_below(&mut self, nodes: TreeNodes<'_>, last: NodeId) {
        let Some(first) = nodes.only_child(last) else { return };
        let (Some(upper), Some(lower)) = (self.chain_of(last), self.chain_of(first)) else { return };
        let (u, l) = (&self.chains[upper.at()], &self.chains[lower.at()]);
        if upper == lower || u.owners != l.owners || u.len + l.len > MAX_CHAIN {
            return;
        }
        let (len, touched) = (u.len + l.len, u.own_touched.max(l.own_touched));
        let new = u.new + l.new;
        self.hits_moved |= u.own_hits + l.own_hits > 0;
        let is_upper_smaller = (u.len as usize) < l.len as usize + l.siblings.ids.len();
        self.note_merge(upper, lower, if is_upper_smaller { lower } else { upper });
        let (u, l) = (&self.chains[upper.at()], &self.chains[lower.at()]);
        if is_upper_smaller {
            let (begin, tokens, position, parent) = (u.first, u.tokens, u.position, u.parent);
            self.relabel(nodes, begin, last, lower);
            let l = &mut self.chains[lower.at()];
            (l.first, l.tokens, l.position) = (begin, tokens, position);
            (l.len, l.own_touched, l.new) = (len, touched, new);
            self.set_parent(lower, parent);
            self.mark(lower);
            self.drop_chain(upper);
        } else {
            let end = l.last;
            self.relabel(nodes, first, end, upper);
            self.move_children(lower, upper);
            let u = &mut self.chains[upper.at()];
            (u.last, u.len, u.own_touched, u.new) = (end, len, touched, new);
            self.mark(upper);
            self.drop_chain(lower);
        }
    }

    /// Parts a chain between `last` and `first`, which follows it. The part that is less to move becomes a new chain.
    fn split(&mut self, nodes: TreeNodes<'_>, id: ChainId, last: NodeId, first: NodeId) {
        self.note_split(id);
        let chain = &self.chains[id.at()];
        let (mut up, mut down, mut walked) = (last, first, 1);
        let (is_upper_smaller, len) = loop {
            if up == chain.first {
                break (true, walked);
            }
            if down == chain.last {
                let (upper, children) = (chain.len - walked, chain.siblings.ids.len());
                break ((upper as usize) < walked as usize + children, upper);
            }
            up = nodes.parent(up);
            let Some(next) = nodes.only_child(down) else { break (true, walked) };
            down = next;
            walked += 1;
        };
        let whole = chain.clone_without_children();
        let new_above = whole.new.saturating_sub(whole.len - len);
        self.hits_moved |= whole.own_hits > 0;
        let added = if is_upper_smaller {
            let upper =
                self.put(Chain { last, len, new: new_above, own_hits: 0, ..whole.clone_without_children() });
            self.relabel(nodes, whole.first, last, upper);
            let lower = &mut self.chains[id.at()];
            lower.first = first;
            lower.tokens = nodes.arena[first].tokens;
            lower.position += len;
            lower.len -= len;
            lower.new -= new_above;
            self.set_parent(upper, whole.parent);
            self.set_parent(id, upper);
            upper
        } else {
            let lower = self.put(Chain {
                first,
                len: whole.len - len,
                position: whole.position + len,
                tokens: nodes.arena[first].tokens,
                new: whole.new - new_above,
                own_hits: 0,
                ..whole
            });
            self.relabel(nodes, first, whole.last, lower);
            self.move_children(id, lower);
            let upper = &mut self.chains[id.at()];
            (upper.last, upper.len, upper.new) = (last, len, new_above);
            self.set_parent(lower, id);
            lower
        };
        self.note_parted(id, added);
        self.mark(added);
        self.mark(id);
    }

    /// A chain of one block.
    fn begin(&mut self, nodes: TreeNodes<'_>, node: NodeId, parent: ChainId, position: u32) {
        let id = self.put(Chain {
            first: node,
            last: node,
            len: 1,
            position,
            tokens: nodes.arena[node].tokens,
            parent: ChainId::NONE,
            before: 0,
            width: 0,
            owners: nodes.owners(node),
            own_hits: 0,
            own_touched: 0,
            new: 1,
            pending: 0,
            sums: Sums::default(),
            siblings: Siblings::default(),
        });
        self.label(node, id);
        self.set_parent(id, parent);
        self.mark(id);
    }

    fn put(&mut self, chain: Chain) -> ChainId {
        match self.free.pop() {
            Some(id) => {
                self.chains[id.at()] = chain;
                id
            }
            None => {
                self.chains.push(chain);
                ChainId((self.chains.len() - 1) as u32)
            }
        }
    }

    /// Lists `id` below `parent`; where it was listed before is cleaned at the next update.
    fn set_parent(&mut self, id: ChainId, parent: ChainId) {
        self.chains[id.at()].parent = parent;
        if parent == ChainId::NONE {
            self.top.ids.push(id);
            self.top_is_stale = true;
        } else {
            self.chains[parent.at()].siblings.ids.push(id);
            self.mark(parent);
        }
    }

    /// What is listed but no longer there is cleaned at the next update, as anywhere.
    fn move_children(&mut self, from: ChainId, to: ChainId) {
        let siblings = std::mem::take(&mut self.chains[from.at()].siblings);
        for child in &siblings.ids {
            let child = &mut self.chains[child.at()];
            if child.parent == from {
                child.parent = to;
            }
        }
        self.chains[to.at()].siblings = siblings;
    }

    fn drop_chain(&mut self, id: ChainId) {
        self.mark(id);
        let chain = &mut self.chains[id.at()];
        chain.len = 0;
        chain.siblings = Siblings::default();
        self.hits_moved |= chain.own_hits > 0;
        let parent = chain.parent;
        self.dead.push(id);
        if parent == ChainId::NONE {
            self.top_is_stale = true;
        } else {
            self.mark(parent);
        }
    }

    fn label(&mut self, node: NodeId, id: ChainId) {
        if self.of_node.len() <= node.at() {
            self.of_node.resize(node.at() + 1, ChainId::NONE);
        }
        self.of_node[node.at()] = id;
    }

    /// Says of `first` … `last`, one below the other, that they are in `id`. Walks up: there the way is always known.
    fn relabel(&mut self, nodes: TreeNodes<'_>, first: NodeId, last: NodeId, id: ChainId) {
        let mut at = last;
        loop {
            self.label(at, id);
            if at == first {
                return;
            }
            at = nodes.parent(at);
        }
    }
}

impl Chain {
    fn clone_without_children(&self) -> Chain {
        Chain { siblings: Siblings::default(), ..*self }
    }
}
