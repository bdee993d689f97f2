//! What the tree tells of its changes: chains grow, split, merge and go.
//!
//! Invariant between two calls: every attached node is in exactly one chain; a chain ends where a block has no child,
//! or several, or one with other owners, or at [`MAX_CHAIN`] blocks. Children of a chain are listed lazily: a list may
//! still name chains that died or moved away, until [`Forest::settle`] cleans it.

use super::super::arena::Arena;
use super::super::children::Families;
use super::super::{NodeId, Tree};
use super::{Chain, ChainId, Forest, MAX_CHAIN, Sums};

/// What the tree shows of itself while it changes.
#[derive(Clone, Copy)]
pub(in crate::tree) struct Ground<'a> {
    pub(in crate::tree) arena: &'a Arena,
    pub(in crate::tree) families: &'a Families,
}

impl Ground<'_> {
    fn parent(self, node: NodeId) -> NodeId {
        self.arena[node].parent
    }

    fn only_child(self, node: NodeId) -> Option<NodeId> {
        let mut children = self.families.of(self.arena, node);
        if children.len() == 1 { children.next() } else { None }
    }

    fn owners(self, node: NodeId) -> u32 {
        self.arena[node].set().0
    }
}

impl Forest {
    /// Takes in a whole tree.
    pub(super) fn plant(&mut self, tree: &Tree) {
        let ground = Ground { arena: &tree.arena, families: &tree.families };
        let tops: Vec<NodeId> = tree.children(NodeId::ROOT).collect();
        tops.into_iter().for_each(|top| self.grafted(ground, top));
    }

    /// `top` and everything below it have become attached.
    pub(in crate::tree) fn grafted(&mut self, ground: Ground<'_>, top: NodeId) {
        let mut todo = vec![top];
        while let Some(node) = todo.pop() {
            self.added(ground, node);
            self.touched(node, ground.arena[node].touched);
            todo.extend(ground.families.of(ground.arena, node));
        }
    }

    /// `node` hangs below its parent now and has its owners; nothing below it is in the forest.
    pub(in crate::tree) fn added(&mut self, ground: Ground<'_>, node: NodeId) {
        if ground.arena[node].is_unattached() {
            return;
        }
        let above = ground.parent(node);
        if above == NodeId::ROOT {
            self.begin(ground, node, ChainId::NONE, 0);
            return;
        }
        let Some(mut upper) = self.chain_of(above) else { return };
        let chain = &mut self.chains[upper.at()];
        if ground.only_child(above) == Some(node)
            && chain.owners == ground.owners(node)
            && chain.len < MAX_CHAIN
        {
            chain.last = node;
            chain.len += 1;
            self.label(node, upper);
            self.mark(upper);
            return;
        }
        if chain.last != above {
            let next =
                ground.families.of(ground.arena, above).find(|&child| self.chain_of(child) == Some(upper));
            if let Some(next) = next {
                self.split(ground, upper, above, next);
                upper = self.of_node[above.at()];
            }
        }
        let position = self.chains[upper.at()].end();
        self.begin(ground, node, upper, position);
    }

    /// A worker stored `node`, or a request used it.
    #[inline]
    pub(in crate::tree) fn touched(&mut self, node: NodeId, at: u32) {
        let Some(id) = self.chain_of(node) else { return };
        let chain = &mut self.chains[id.at()];
        if chain.own_touched < at {
            chain.own_touched = at;
            self.mark(id);
        }
    }

    /// The owners of `node` have changed.
    pub(in crate::tree) fn owners_changed(&mut self, ground: Ground<'_>, node: NodeId) {
        let Some(mut id) = self.chain_of(node) else { return };
        let owners = ground.owners(node);
        if self.chains[id.at()].owners == owners {
            return;
        }
        if self.chains[id.at()].first != node {
            self.split(ground, id, ground.parent(node), node);
            id = self.of_node[node.at()];
        }
        if self.chains[id.at()].len > 1
            && let Some(next) = ground.only_child(node)
        {
            self.split(ground, id, node, next);
            id = self.of_node[node.at()];
        }
        self.chains[id.at()].owners = owners;
        self.mark(id);
        let above = ground.parent(node);
        if above != NodeId::ROOT {
            self.merge_below(ground, above);
        }
        let last = self.chains[self.of_node[node.at()].at()].last;
        self.merge_below(ground, last);
    }

    /// `node`, which had no child, is gone; it was below `above`.
    pub(in crate::tree) fn removed(&mut self, ground: Ground<'_>, node: NodeId, above: NodeId) {
        let Some(id) = self.chain_of(node) else { return };
        self.of_node[node.at()] = ChainId::NONE;
        let chain = &mut self.chains[id.at()];
        debug_assert_eq!(chain.last, node, "what goes has no child, so it is a chain's last block");
        chain.len -= 1;
        if chain.len == 0 {
            self.kill(id);
        } else {
            chain.last = above;
            self.mark(id);
        }
        if above != NodeId::ROOT {
            self.merge_below(ground, above);
        }
    }

    /// Makes one chain of the one that ends with `last` and the only one below it, if they fit.
    fn merge_below(&mut self, ground: Ground<'_>, last: NodeId) {
        let Some(first) = ground.only_child(last) else { return };
        let (Some(upper), Some(lower)) = (self.chain_of(last), self.chain_of(first)) else { return };
        let (u, l) = (&self.chains[upper.at()], &self.chains[lower.at()]);
        if upper == lower || u.owners != l.owners || u.len + l.len > MAX_CHAIN {
            return;
        }
        let (len, touched) = (u.len + l.len, u.own_touched.max(l.own_touched));
        self.hits_moved |= u.own_hits + l.own_hits > 0;
        if (u.len as usize) < l.len as usize + l.children.len() {
            let (begin, tokens, position, parent) = (u.first, u.tokens, u.position, u.parent);
            self.relabel(ground, begin, last, lower);
            let l = &mut self.chains[lower.at()];
            (l.first, l.tokens, l.position, l.len, l.own_touched) = (begin, tokens, position, len, touched);
            self.hang(lower, parent);
            self.mark(lower);
            self.kill(upper);
        } else {
            let end = l.last;
            self.relabel(ground, first, end, upper);
            self.move_children(lower, upper);
            let u = &mut self.chains[upper.at()];
            (u.last, u.len, u.own_touched) = (end, len, touched);
            self.mark(upper);
            self.kill(lower);
        }
    }

    /// Parts a chain between `last` and `first`, which follows it. The smaller part becomes a new chain.
    fn split(&mut self, ground: Ground<'_>, id: ChainId, last: NodeId, first: NodeId) {
        let chain = &self.chains[id.at()];
        let (mut up, mut down, mut len) = (last, first, 1);
        let is_upper_smaller = loop {
            if up == chain.first {
                break true;
            }
            if down == chain.last {
                break false;
            }
            up = ground.parent(up);
            let Some(next) = ground.only_child(down) else { break true };
            down = next;
            len += 1;
        };
        let whole = chain.clone_without_children();
        self.hits_moved |= whole.own_hits > 0;
        if is_upper_smaller {
            let upper = self.put(Chain { last, len, ..whole.clone_without_children() });
            self.relabel(ground, whole.first, last, upper);
            let lower = &mut self.chains[id.at()];
            lower.first = first;
            lower.tokens = ground.arena[first].tokens;
            lower.position += len;
            lower.len -= len;
            self.hang(upper, whole.parent);
            self.hang(id, upper);
            self.mark(upper);
        } else {
            let rest = whole.len - len;
            let lower = self.put(Chain {
                first,
                len,
                position: whole.position + rest,
                tokens: ground.arena[first].tokens,
                ..whole
            });
            self.relabel(ground, first, down, lower);
            self.move_children(id, lower);
            let upper = &mut self.chains[id.at()];
            (upper.last, upper.len) = (last, rest);
            self.hang(lower, id);
            self.mark(lower);
        }
        self.mark(id);
    }

    /// A chain of one block.
    fn begin(&mut self, ground: Ground<'_>, node: NodeId, parent: ChainId, position: u32) {
        let id = self.put(Chain {
            first: node,
            last: node,
            len: 1,
            position,
            tokens: ground.arena[node].tokens,
            parent: ChainId::NONE,
            before: 0,
            width: 0,
            owners: ground.owners(node),
            own_hits: 0,
            own_touched: 0,
            sums: Sums::default(),
            children: Vec::new(),
            is_stale: false,
            is_dead: false,
        });
        self.label(node, id);
        self.hang(id, parent);
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

    /// Lists `id` below `parent`; where it was listed before is cleaned at the next settling.
    fn hang(&mut self, id: ChainId, parent: ChainId) {
        self.chains[id.at()].parent = parent;
        if parent == ChainId::NONE {
            self.top.push(id);
            self.top_is_stale = true;
        } else {
            self.chains[parent.at()].children.push(id);
            self.mark(parent);
        }
    }

    fn move_children(&mut self, from: ChainId, to: ChainId) {
        let mut children = std::mem::take(&mut self.chains[from.at()].children);
        children.retain(|child| {
            let child = &mut self.chains[child.at()];
            let is_here = child.parent == from && !child.is_dead;
            if is_here {
                child.parent = to;
            }
            is_here
        });
        self.chains[to.at()].children = children;
    }

    fn kill(&mut self, id: ChainId) {
        let chain = &mut self.chains[id.at()];
        chain.is_dead = true;
        chain.children = Vec::new();
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
    fn relabel(&mut self, ground: Ground<'_>, first: NodeId, last: NodeId, id: ChainId) {
        let mut at = last;
        loop {
            self.label(at, id);
            if at == first {
                return;
            }
            at = ground.parent(at);
        }
    }
}

impl Chain {
    fn clone_without_children(&self) -> Chain {
        Chain { children: Vec::new(), is_stale: false, ..*self }
    }
}
