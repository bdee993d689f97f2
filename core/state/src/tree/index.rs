//! From an engine's hash to its node.
//!
//! Engines that hash alike give one path one hash, so the hash is kept once, in the node, and the table holds node
//! ids only. Where a worker calls a path otherwise (engines with different seeds), that name is a *variant*, kept
//! aside per worker: a block hash means something only within its worker.

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use super::arena::Arena;
use super::owners::{OwnerSet, OwnerSets, SetId};
use super::{NodeId, table_hash};
use radixscope_model::id::{BlockHash, Slot};

/// Entries that the table has room for once there are any: it would be filled anew nine times until then.
const FIRST_ENTRIES: usize = 3_584;

#[derive(Clone, Default)]
pub(super) struct BlockIndex {
    hasher: DefaultHashBuilder,
    /// Every node with owners, by `Node::block`.
    table: HashTable<NodeId>,
    /// Entries of `table` beyond the first of each hash. While there are none, a node that has a hash is the only one.
    duplicates: usize,
    /// Names that differ from `Node::block`.
    by_name: HashMap<(Slot, u64), NodeId, DefaultHashBuilder>,
    by_node: HashMap<(NodeId, Slot), u64, DefaultHashBuilder>,
    /// How many variants a node has.
    per_node: HashMap<NodeId, u32, DefaultHashBuilder>,
}

/// An engine hash and its place in the table: hashed once for all that is done with it.
#[derive(Clone, Copy)]
pub(super) struct NameKey {
    pub(super) hash: u64,
    place: u64,
}

impl BlockIndex {
    /// Makes room for the first entries. Called before new nodes are entered.
    #[inline]
    pub(super) fn make_first_room(&mut self) {
        if self.table.capacity() == 0 {
            // There is no entry yet that would have to be hashed.
            self.table.reserve(FIRST_ENTRIES, |_| 0);
        }
    }

    /// Where to look for `hash`; for [`BlockIndex::find`] and [`BlockIndex::enter`].
    #[inline]
    pub(super) fn key(&self, hash: u64) -> NameKey {
        NameKey { hash, place: table_hash(&self.hasher, hash) }
    }

    #[inline]
    pub(super) fn find(&self, arena: &Arena, sets: &OwnerSets, worker: Slot, key: NameKey) -> Option<NodeId> {
        self.locate(arena, worker, key, |set| sets.get(set).contains(worker)).map(|(node, _)| node)
    }

    /// The same, with the bucket of the table in which the node is, if it is called so by `Node::block`: for
    /// [`BlockIndex::leave`]. Valid until the next entry. `is_owned`: whether the worker is in a set of owners.
    #[inline]
    pub(super) fn locate(
        &self,
        arena: &Arena,
        worker: Slot,
        key: NameKey,
        is_owned: impl Fn(SetId) -> bool,
    ) -> Option<(NodeId, Option<usize>)> {
        let by_primary = self.table.find_bucket_index(key.place, |&n| {
            let node = &arena[n];
            node.block == key.hash
                && is_owned(node.set())
                && (self.by_node.is_empty() || !self.by_node.contains_key(&(n, worker)))
        });
        match by_primary {
            Some(bucket) => self.table.get_bucket(bucket).map(|&n| (n, Some(bucket))),
            None if self.by_name.is_empty() => None,
            None => self.by_name.get(&(worker, key.hash)).map(|&n| (n, None)),
        }
    }

    /// The same where no node has variants: the node and its bucket.
    #[inline]
    pub(super) fn locate_plain(
        &self,
        arena: &Arena,
        key: NameKey,
        is_owned: impl Fn(SetId) -> bool,
    ) -> Option<(NodeId, usize)> {
        let bucket = self.table.find_bucket_index(key.place, |&n| {
            let node = &arena[n];
            node.block == key.hash && is_owned(node.set())
        })?;
        self.table.get_bucket(bucket).map(|&node| (node, bucket))
    }

    /// Whether a hash names one node, the same for all workers that have it.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.duplicates == 0 && self.by_node.is_empty()
    }

    /// Whether all owners of a node call it by `Node::block`.
    #[inline]
    pub(super) fn has_no_variants(&self) -> bool {
        self.by_node.is_empty()
    }

    pub(super) fn find_any(&self, arena: &Arena, hash: BlockHash) -> Option<NodeId> {
        self.find_primary(arena, hash.0)
            .or_else(|| self.by_name.iter().find(|((_, h), _)| *h == hash.0).map(|(_, &n)| n))
    }

    /// Whether an owner of `node`, which is not entered yet, uses `Node::block` for a node entered before.
    pub(super) fn is_taken(&self, arena: &Arena, sets: &OwnerSets, node: NodeId) -> bool {
        let hash = arena[node].block;
        let owners = sets.get(arena[node].set());
        let says = |n: NodeId, worker| self.name(arena, n, worker) == hash;
        let by_primary = |n: NodeId| {
            let theirs = sets.get(arena[n].set());
            theirs.meets(owners)
                && (self.by_node.is_empty()
                    || owners.iter().any(|w| theirs.contains(w) && says(n, w) && says(node, w)))
        };
        let by_variant = |w| self.by_name.contains_key(&(w, hash)) && says(node, w);
        let key = table_hash(&self.hasher, hash);
        self.table.find(key, |&n| arena[n].block == hash && by_primary(n)).is_some()
            || (!self.by_name.is_empty() && owners.iter().any(by_variant))
    }

    /// Enters a node that has its first owner and is called `key`.
    #[inline]
    pub(super) fn enter(&mut self, arena: &Arena, node: NodeId, key: NameKey) {
        debug_assert_eq!(arena[node].block, key.hash);
        let hasher = &self.hasher;
        let hash_of = |n: &NodeId| table_hash(hasher, arena[*n].block);
        match self.table.entry(key.place, |&n| arena[n].block == key.hash, hash_of) {
            Entry::Vacant(new) => {
                new.insert(node);
            }
            Entry::Occupied(_) => {
                self.duplicates += 1;
                self.table.insert_unique(key.place, node, hash_of);
            }
        }
    }

    /// The same with one look into the table for a new node of `worker`. Gives the node that the worker called so before.
    #[inline]
    pub(super) fn enter_new(
        &mut self,
        arena: &Arena,
        sets: &OwnerSets,
        worker: Slot,
        node: NodeId,
        key: NameKey,
    ) -> Option<NodeId> {
        let hasher = &self.hasher;
        let hash_of = |n: &NodeId| table_hash(hasher, arena[*n].block);
        match self.table.entry(key.place, |&n| arena[n].block == key.hash, hash_of) {
            Entry::Vacant(new) => {
                new.insert(node);
                if self.by_name.is_empty() { None } else { self.by_name.get(&(worker, key.hash)).copied() }
            }
            Entry::Occupied(_) => {
                let before = self.find(arena, sets, worker, key);
                self.duplicates += 1;
                let hasher = &self.hasher;
                self.table.insert_unique(key.place, node, |&n| table_hash(hasher, arena[n].block));
                before
            }
        }
    }

    /// Takes out a node that has lost its last owner, from its `bucket` if that is known.
    #[inline]
    pub(super) fn leave(&mut self, arena: &Arena, node: NodeId, bucket: Option<usize>) {
        match bucket {
            Some(bucket) => {
                if let Ok(entry) = self.table.get_bucket_entry(bucket) {
                    debug_assert_eq!(*entry.get(), node);
                    entry.remove();
                }
            }
            None => {
                let place = table_hash(&self.hasher, arena[node].block);
                if let Ok(entry) = self.table.find_entry(place, |&n| n == node) {
                    entry.remove();
                }
            }
        }
        if self.duplicates > 0 && self.find_primary(arena, arena[node].block).is_some() {
            self.duplicates -= 1;
        }
    }

    fn find_primary(&self, arena: &Arena, hash: u64) -> Option<NodeId> {
        self.table.find(table_hash(&self.hasher, hash), |&n| arena[n].block == hash).copied()
    }

    /// What `worker`, an owner of `node`, calls it.
    #[inline]
    pub(super) fn name(&self, arena: &Arena, node: NodeId, worker: Slot) -> u64 {
        if self.by_node.is_empty() {
            return arena[node].block;
        }
        self.by_node.get(&(node, worker)).copied().unwrap_or(arena[node].block)
    }

    pub(super) fn set_variant(&mut self, node: NodeId, worker: Slot, hash: u64) {
        self.by_name.insert((worker, hash), node);
        self.by_node.insert((node, worker), hash);
        *self.per_node.entry(node).or_default() += 1;
    }

    /// Forgets the variant name of `worker` for `node`, if it has one.
    #[inline]
    pub(super) fn drop_variant(&mut self, node: NodeId, worker: Slot) {
        if self.by_node.is_empty() {
            return;
        }
        if let Some(hash) = self.by_node.remove(&(node, worker)) {
            // A name that moved belongs to another node by now.
            if self.by_name.get(&(worker, hash)) == Some(&node) {
                self.by_name.remove(&(worker, hash));
            }
            if let Some(n) = self.per_node.get_mut(&node) {
                *n -= 1;
                if *n == 0 {
                    self.per_node.remove(&node);
                }
            }
        }
    }

    /// Gives `node` the name that one of its `owners` uses where none uses `Node::block` any more.
    pub(super) fn replace_primary(&mut self, arena: &mut Arena, node: NodeId, owners: &OwnerSet) {
        if self.uses_primary(node, owners.len()) {
            return;
        }
        let Some(hash) = owners.iter().next().map(|first| self.name(arena, node, first)) else { return };
        self.leave(arena, node, None);
        arena[node].block = hash;
        self.enter(arena, node, self.key(hash));
        for worker in owners.iter() {
            if self.by_node.get(&(node, worker)) == Some(&hash) {
                self.drop_variant(node, worker);
            }
        }
    }

    /// The first of `owners`, those of `node`, that calls it by `Node::block`.
    pub(super) fn first_to_use_primary(
        &self,
        arena: &Arena,
        node: NodeId,
        owners: &OwnerSet,
    ) -> Option<Slot> {
        owners.iter().find(|&w| self.name(arena, node, w) == arena[node].block)
    }

    /// Whether some owner of `node`, which has `owners`, calls it by `Node::block`.
    pub(super) fn uses_primary(&self, node: NodeId, owners: usize) -> bool {
        self.per_node.get(&node).is_none_or(|&variants| (variants as usize) < owners)
    }

    /// Nodes and what a worker calls them otherwise. In no order.
    pub(super) fn variant_names(&self) -> impl Iterator<Item = (NodeId, u64)> + '_ {
        self.by_name.iter().map(|(&(_, name), &node)| (node, name))
    }

    pub(super) fn variants(&self) -> u64 {
        self.by_node.len() as u64
    }

    pub(super) fn has_variant(&self, node: NodeId) -> bool {
        self.per_node.contains_key(&node)
    }

    pub(super) fn reserve(&mut self, arena: &Arena, additional: usize) {
        let hasher = &self.hasher;
        self.table.reserve(additional, |&n| table_hash(hasher, arena[n].block));
    }

    pub(super) fn heap_bytes(&self) -> usize {
        // capacity() counts what fits at the maximal load of 7/8; a bucket costs its value and a control byte.
        let buckets = |capacity: usize| capacity * 8 / 7;
        buckets(self.table.capacity()) * (size_of::<NodeId>() + 1)
            + buckets(self.by_name.capacity()) * (size_of::<((Slot, u64), NodeId)>() + 1)
            + buckets(self.by_node.capacity()) * (size_of::<((NodeId, Slot), u64)>() + 1)
            + buckets(self.per_node.capacity()) * (size_of::<(NodeId, u32)>() + 1)
    }
}
