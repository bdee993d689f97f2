//! Children of a node: none, one (kept in the node itself, as nearly everywhere), or several, as a map.

use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;

use super::NodeId;
use super::arena::{Arena, NO_CHILD};

/// Set in `Node::child` when the rest is an index into [`ChildIndex::sibling_sets`].
const SIBLINGS: u32 = 1 << 31;

type Siblings = IndexMap<u64, NodeId, DefaultHashBuilder>;

/// The children of every node that has two or more, by tokens hash, in order of first sight.
#[derive(Clone, Default)]
pub(super) struct ChildIndex {
    sibling_sets: Vec<Siblings>,
    free: Vec<u32>,
}

enum ChildRef {
    None,
    One(NodeId),
    Siblings(usize),
}

#[inline]
fn child_ref(child: u32) -> ChildRef {
    if child == NO_CHILD {
        ChildRef::None
    } else if child & SIBLINGS != 0 {
        ChildRef::Siblings((child & !SIBLINGS) as usize)
    } else {
        ChildRef::One(NodeId(child))
    }
}

impl ChildIndex {
    #[inline]
    pub(super) fn find(&self, arena: &Arena, parent: NodeId, tokens: u64) -> Option<NodeId> {
        match child_ref(arena[parent].child) {
            ChildRef::None => None,
            ChildRef::One(only) => (arena[only].tokens == tokens).then_some(only),
            ChildRef::Siblings(f) => self.sibling_sets[f].get(&tokens).copied(),
        }
    }

    /// Puts `child` below `parent`, which has no child with the same tokens hash.
    pub(super) fn link(&mut self, arena: &mut Arena, parent: NodeId, child: NodeId) {
        arena[child].parent = parent;
        let tokens = arena[child].tokens;
        match child_ref(arena[parent].child) {
            ChildRef::None => arena[parent].child = child.0,
            ChildRef::One(first) => {
                let mut siblings = Siblings::with_capacity_and_hasher(2, DefaultHashBuilder::default());
                siblings.insert(arena[first].tokens, first);
                siblings.insert(tokens, child);
                let f = match self.free.pop() {
                    Some(f) => {
                        self.sibling_sets[f as usize] = siblings;
                        f
                    }
                    None => {
                        self.sibling_sets.push(siblings);
                        (self.sibling_sets.len() - 1) as u32
                    }
                };
                arena[parent].child = SIBLINGS | f;
            }
            ChildRef::Siblings(f) => {
                self.sibling_sets[f].insert(tokens, child);
            }
        }
    }

    /// Takes `child` out of its parent's children; does nothing if it is no longer among them.
    #[inline]
    pub(super) fn unlink(&mut self, arena: &mut Arena, child: NodeId) {
        let above = arena[child].parent;
        let parent = &mut arena[above];
        match child_ref(parent.child) {
            ChildRef::None => {}
            ChildRef::One(only) => {
                if only == child {
                    parent.child = NO_CHILD;
                }
            }
            ChildRef::Siblings(f) => self.unlink_from_siblings(arena, above, f, child),
        }
    }

    #[inline(never)]
    fn unlink_from_siblings(&mut self, arena: &mut Arena, parent: NodeId, f: usize, child: NodeId) {
        let tokens = arena[child].tokens;
        let siblings = &mut self.sibling_sets[f];
        if siblings.get(&tokens) != Some(&child) {
            return;
        }
        // Keeps the order of the others: the picture must not jump. Sets of siblings are small except at the
        // root, where a swap is the price of not moving every prompt of the cluster.
        if siblings.len() <= 64 {
            siblings.shift_remove(&tokens);
        } else {
            siblings.swap_remove(&tokens);
        }
        if siblings.len() == 1 {
            let (_, only) = siblings.pop().unwrap_or((0, NodeId::NONE));
            arena[parent].child = only.0;
            self.sibling_sets[f] = Siblings::default();
            self.free.push(f as u32);
        }
    }

    /// Children of `parent`, in order of first sight.
    pub(super) fn of<'a>(&'a self, arena: &Arena, parent: NodeId) -> Children<'a> {
        match child_ref(arena[parent].child) {
            ChildRef::None => Children { one: None, siblings: None },
            ChildRef::One(only) => Children { one: Some(only), siblings: None },
            ChildRef::Siblings(f) => Children { one: None, siblings: Some(self.sibling_sets[f].values()) },
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        // An IndexMap entry is key, value and hash; its table holds one usize per bucket.
        let per_child = size_of::<(u64, NodeId, usize)>() + size_of::<usize>() + 1;
        let children: usize = self.sibling_sets.iter().map(Siblings::capacity).sum();
        children * per_child + self.sibling_sets.capacity() * size_of::<Siblings>() + self.free.capacity() * 4
    }
}

/// Iterator over the children of a node.
#[derive(Clone)]
pub struct Children<'a> {
    one: Option<NodeId>,
    siblings: Option<indexmap::map::Values<'a, u64, NodeId>>,
}

impl Iterator for Children<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        self.one.take().or_else(|| self.siblings.as_mut()?.next().copied())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = usize::from(self.one.is_some()) + self.siblings.as_ref().map_or(0, ExactSizeIterator::len);
        (n, Some(n))
    }
}

impl ExactSizeIterator for Children<'_> {}
