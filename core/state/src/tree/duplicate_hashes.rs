//! Further names of blocks. A worker that mixes something into its engine's hashes that the router does not hash (a salt,
//! an adapter of old versions) holds the same tokens at the same place more than once, each under a name of its own. The
//! picture shows one block; each name is kept, because each is removed by itself.

use hashbrown::{DefaultHashBuilder, HashMap};

use super::{NodeId, mix};
use radixscope_model::id::Slot;

/// Names beyond the first that a worker has for a node it holds.
#[derive(Clone, Default)]
pub(super) struct DuplicateHashes {
    by_name: HashMap<(Slot, u64), NodeId, DefaultHashBuilder>,
    by_node: HashMap<(NodeId, Slot), Vec<u64>, DefaultHashBuilder>,
    digest: u64,
}

impl DuplicateHashes {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The node that `worker` also calls `name`.
    #[inline]
    pub(super) fn find(&self, worker: Slot, name: u64) -> Option<NodeId> {
        if self.is_empty() { None } else { self.by_name.get(&(worker, name)).copied() }
    }

    /// A node that anybody also calls `name`. Linear in the names.
    pub(super) fn find_any(&self, name: u64) -> Option<NodeId> {
        let mut named = self.by_name.iter().filter(|((_, known), _)| *known == name);
        named.next().map(|(_, &node)| node)
    }

    /// Nodes and what a worker also calls them. In no order.
    pub(super) fn all_names(&self) -> impl Iterator<Item = (NodeId, u64)> + '_ {
        self.by_name.iter().map(|(&(_, name), &node)| (node, name))
    }

    /// `worker` also calls `node` so; it has no other node of this name.
    pub(super) fn add(&mut self, node: NodeId, worker: Slot, name: u64) {
        self.by_name.insert((worker, name), node);
        self.by_node.entry((node, worker)).or_default().push(name);
        self.digest = self.digest.wrapping_add(term(worker, name));
    }

    /// `worker` no longer has a block of this name; whether it had one.
    pub(super) fn remove(&mut self, worker: Slot, name: u64) -> bool {
        let Some(node) = self.by_name.remove(&(worker, name)) else { return false };
        if let Some(names) = self.by_node.get_mut(&(node, worker)) {
            names.retain(|known| *known != name);
            if names.is_empty() {
                self.by_node.remove(&(node, worker));
            }
        }
        self.digest = self.digest.wrapping_sub(term(worker, name));
        true
    }

    /// Another name of `node` by `worker`, the smallest: the same on every machine.
    #[inline]
    pub(super) fn another(&self, node: NodeId, worker: Slot) -> Option<u64> {
        if self.is_empty() { None } else { self.by_node.get(&(node, worker))?.iter().min().copied() }
    }

    /// Forgets all further names of `node` by `worker`; gives how many there were.
    pub(super) fn forget(&mut self, node: NodeId, worker: Slot) -> u64 {
        let names = self.by_node.remove(&(node, worker)).unwrap_or_default();
        for &name in &names {
            self.by_name.remove(&(worker, name));
            self.digest = self.digest.wrapping_sub(term(worker, name));
        }
        names.len() as u64
    }

    /// All further names of `node` by `worker`, the smallest first.
    pub(super) fn names(&self, node: NodeId, worker: Slot) -> Vec<u64> {
        let mut names = self.by_node.get(&(node, worker)).cloned().unwrap_or_default();
        names.sort();
        names
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.by_name.capacity() * size_of::<((Slot, u64), NodeId)>()
            + self.by_node.capacity() * size_of::<((NodeId, Slot), Vec<u64>)>()
    }
}

fn term(worker: Slot, name: u64) -> u64 {
    mix(name, u64::from(worker.0).wrapping_add(0x7477_696e))
}
