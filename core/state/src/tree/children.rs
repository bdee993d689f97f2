//! Children of a node: none, one (kept in the node itself, as nearly everywhere), or a family of several.

use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;

use super::NodeId;
use super::arena::{Arena, NO_CHILD};

/// Set in `Node::child` when the rest is the index of a family.
const FAMILY: u32 = 1 << 31;

type Family = IndexMap<u64, NodeId, DefaultHashBuilder>;

/// The children of every node that has two or more, by tokens hash, in order of first sight.
#[derive(Clone, Default)]
pub(super) struct Families {
    families: Vec<Family>,
    free: Vec<u32>,
}

enum Kids {
    None,
    One(NodeId),
    Family(usize),
}

#[inline]
fn kids(child: u32) -> Kids {
    if child == NO_CHILD {
        Kids::None
    } else if child & FAMILY != 0 {
        Kids::Family((child & !FAMILY) as usize)
    } else {
        Kids::One(NodeId(child))
    }
}

impl Families {
    #[inline]
    pub(super) fn find(&self, arena: &Arena, parent: NodeId, tokens: u64) -> Option<NodeId> {
        match kids(arena[parent].child) {
            Kids::None => None,
            Kids::One(only) => (arena[only].tokens == tokens).then_some(only),
            Kids::Family(f) => self.families[f].get(&tokens).copied(),
        }
    }

    /// Puts `child` below `parent`, which has no child with the same tokens hash.
    pub(super) fn link(&mut self, arena: &mut Arena, parent: NodeId, child: NodeId) {
        arena[child].parent = parent;
        let tokens = arena[child].tokens;
        match kids(arena[parent].child) {
            Kids::None => arena[parent].child = child.0,
            Kids::One(first) => {
                let mut family = Family::with_capacity_and_hasher(2, DefaultHashBuilder::default());
                family.insert(arena[first].tokens, first);
                family.insert(tokens, child);
                let f = match self.free.pop() {
                    Some(f) => {
                        self.families[f as usize] = family;
                        f
                    }
                    None => {
                        self.families.push(family);
                        (self.families.len() - 1) as u32
                    }
                };
                arena[parent].child = FAMILY | f;
            }
            Kids::Family(f) => {
                self.families[f].insert(tokens, child);
            }
        }
    }

    /// Takes `child` out of its parent's children; does nothing if it is no longer among them.
    #[inline]
    pub(super) fn unlink(&mut self, arena: &mut Arena, child: NodeId) {
        let above = arena[child].parent;
        let parent = &mut arena[above];
        match kids(parent.child) {
            Kids::None => {}
            Kids::One(only) => {
                if only == child {
                    parent.child = NO_CHILD;
                }
            }
            Kids::Family(f) => self.unlink_of_family(arena, above, f, child),
        }
    }

    #[inline(never)]
    fn unlink_of_family(&mut self, arena: &mut Arena, parent: NodeId, f: usize, child: NodeId) {
        let tokens = arena[child].tokens;
        let family = &mut self.families[f];
        if family.get(&tokens) != Some(&child) {
            return;
        }
        // Keeps the order of the others: the picture must not jump. Families are small except at the
        // root, where a swap is the price of not moving every prompt of the cluster.
        if family.len() <= 64 {
            family.shift_remove(&tokens);
        } else {
            family.swap_remove(&tokens);
        }
        if family.len() == 1 {
            let (_, only) = family.pop().unwrap_or((0, NodeId::NONE));
            arena[parent].child = only.0;
            self.families[f] = Family::default();
            self.free.push(f as u32);
        }
    }

    /// Children of `parent`, in order of first sight.
    pub(super) fn of<'a>(&'a self, arena: &Arena, parent: NodeId) -> Children<'a> {
        match kids(arena[parent].child) {
            Kids::None => Children { one: None, family: None },
            Kids::One(only) => Children { one: Some(only), family: None },
            Kids::Family(f) => Children { one: None, family: Some(self.families[f].values()) },
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        // An IndexMap entry is key, value and hash; its table holds one usize per bucket.
        let per_child = size_of::<(u64, NodeId, usize)>() + size_of::<usize>() + 1;
        let children: usize = self.families.iter().map(Family::capacity).sum();
        children * per_child + self.families.capacity() * size_of::<Family>() + self.free.capacity() * 4
    }
}

/// Iterator over the children of a node.
#[derive(Clone)]
pub struct Children<'a> {
    one: Option<NodeId>,
    family: Option<indexmap::map::Values<'a, u64, NodeId>>,
}

impl Iterator for Children<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        self.one.take().or_else(|| self.family.as_mut()?.next().copied())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = usize::from(self.one.is_some()) + self.family.as_ref().map_or(0, ExactSizeIterator::len);
        (n, Some(n))
    }
}

impl ExactSizeIterator for Children<'_> {}
