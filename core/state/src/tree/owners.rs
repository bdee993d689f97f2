//! Interned sets of workers. A tree of a million blocks has a handful of distinct sets of owners, so a node keeps the
//! id of one; a block that gains or loses an owner moves from one set to another.

use hashbrown::{DefaultHashBuilder, HashMap};

use radixscope_model::id::Slot;

/// Id of a set of owners.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct SetId(pub(super) u32);

impl SetId {
    pub(super) const EMPTY: SetId = SetId(0);
}

/// Workers of a [`WorkerGroup`].
const GROUP: u32 = u64::BITS;

/// Some of 64 neighbouring workers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct WorkerGroup {
    /// The neighbours: workers `64 × number` and the 63 after it.
    pub(super) number: u32,
    /// A bit for each, the lowest for the first.
    pub(super) members: u64,
}

impl WorkerGroup {
    /// The group of `worker`, with it as the only member.
    #[inline]
    fn of(worker: Slot) -> Self {
        let at = u32::from(worker.0);
        Self { number: at / GROUP, members: 1 << (at % GROUP) }
    }

    /// The members, ascending.
    pub(super) fn iter(self) -> impl Iterator<Item = Slot> {
        let mut rest = self.members;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                Slot((self.number * GROUP + bit) as u16)
            })
        })
    }
}

/// A set of workers. It costs as much as it has groups with a member, not as much as it has workers: clusters number
/// their workers in a row.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct OwnerSet {
    /// The lowest group with a member; in an empty set group 0 without one.
    first: WorkerGroup,
    /// The other groups with a member, ascending.
    rest: Box<[WorkerGroup]>,
}

impl OwnerSet {
    /// Whether `worker` is in the set.
    #[inline]
    pub fn contains(&self, worker: Slot) -> bool {
        let WorkerGroup { number, members } = WorkerGroup::of(worker);
        if self.first.number == number {
            return self.first.members & members != 0;
        }
        match self.rest.binary_search_by_key(&number, |group| group.number) {
            Ok(at) => self.rest[at].members & members != 0,
            Err(_) => false,
        }
    }

    /// How many workers.
    #[inline]
    pub fn len(&self) -> usize {
        self.groups().map(|group| group.members.count_ones() as usize).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.first.members == 0
    }

    /// Whether some worker is in both sets.
    pub(super) fn meets(&self, other: &OwnerSet) -> bool {
        self.groups().any(|group| group.members & other.members_of(group.number) != 0)
    }

    /// The workers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        self.groups().flat_map(WorkerGroup::iter)
    }

    /// The groups with a member, ascending; of an empty set one without.
    #[inline]
    pub(super) fn groups(&self) -> impl Iterator<Item = WorkerGroup> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }

    /// Workers 0 … 63, one bit each.
    pub(super) fn low(&self) -> u64 {
        if self.first.number == 0 { self.first.members } else { 0 }
    }

    /// The members in group `number`.
    fn members_of(&self, number: u32) -> u64 {
        self.groups().find(|group| group.number == number).map_or(0, |group| group.members)
    }

    /// The set with `worker` toggled.
    fn toggled(&self, worker: Slot) -> OwnerSet {
        let toggle = WorkerGroup::of(worker);
        let mut groups: Vec<WorkerGroup> = self.groups().collect();
        match groups.binary_search_by_key(&toggle.number, |group| group.number) {
            Ok(at) => groups[at].members ^= toggle.members,
            Err(at) => groups.insert(at, toggle),
        }
        groups.retain(|group| group.members != 0);
        Self::from_groups(&groups)
    }

    /// Of ascending groups, each with a member.
    fn from_groups(groups: &[WorkerGroup]) -> OwnerSet {
        match groups.split_first() {
            Some((&first, rest)) => OwnerSet { first, rest: rest.into() },
            None => OwnerSet::default(),
        }
    }
}

impl FromIterator<Slot> for OwnerSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(workers: I) -> Self {
        let mut groups: Vec<WorkerGroup> = Vec::new();
        for worker in workers {
            let one = WorkerGroup::of(worker);
            match groups.binary_search_by_key(&one.number, |group| group.number) {
                Ok(at) => groups[at].members |= one.members,
                Err(at) => groups.insert(at, one),
            }
        }
        Self::from_groups(&groups)
    }
}

/// Direct-mapped memory of recent moves; a run of blocks makes the same one again and again.
const RECENT: usize = 256;
/// Unused sets are swept when there are this many more of them than used ones: sweeping is linear in the sets.
const SWEEP_SLACK: usize = 1024;

/// In [`Counts::uses`]: the slot is free.
const SWEPT: u32 = u32::MAX;

/// What is counted of a set.
#[derive(Clone, Copy)]
struct Counts {
    /// Nodes that use it.
    uses: u32,
    /// Owners in it.
    owners: u32,
}

#[derive(Clone, Copy)]
struct Move {
    from: SetId,
    worker: Slot,
    to: SetId,
}

const NO_MOVE: Move = Move { from: SetId(u32::MAX), worker: Slot(0), to: SetId(0) };

/// All sets in use, each with the number of nodes that use it.
#[derive(Clone)]
pub(super) struct OwnerSets {
    sets: Vec<OwnerSet>,
    counts: Vec<Counts>,
    ids: HashMap<OwnerSet, SetId, DefaultHashBuilder>,
    free: Vec<SetId>,
    unused: usize,
    recent: Box<[Move; RECENT]>,
}

impl Default for OwnerSets {
    fn default() -> Self {
        let empty = OwnerSet::default();
        let mut ids = HashMap::default();
        ids.insert(empty.clone(), SetId::EMPTY);
        Self {
            sets: vec![empty],
            counts: vec![Counts { uses: 0, owners: 0 }],
            ids,
            free: Vec::new(),
            unused: 0,
            recent: Box::new([NO_MOVE; RECENT]),
        }
    }
}

impl OwnerSets {
    #[inline]
    pub(super) fn get(&self, id: SetId) -> &OwnerSet {
        &self.sets[id.0 as usize]
    }

    /// How many owners a set has.
    #[inline]
    pub(super) fn owners(&self, id: SetId) -> u32 {
        self.counts[id.0 as usize].owners
    }

    /// So many nodes that used `from` use `to`.
    #[inline]
    pub(super) fn move_uses(&mut self, from: SetId, to: SetId, nodes: u32) {
        self.add_uses(to, nodes);
        self.drop_uses(from, nodes);
    }

    /// The set `from` with `worker` toggled; not counted as used yet.
    #[inline]
    pub(super) fn toggled(&mut self, from: SetId, worker: Slot) -> SetId {
        let slot = (from.0 as usize).wrapping_mul(31).wrapping_add(worker.at()) % RECENT;
        let known = self.recent[slot];
        if known.from == from && known.worker == worker {
            return known.to;
        }
        let to = self.intern(self.sets[from.0 as usize].toggled(worker));
        self.recent[slot] = Move { from, worker, to };
        to
    }

    #[inline]
    pub(super) fn add_use(&mut self, id: SetId) {
        self.add_uses(id, 1);
    }

    /// More than no nodes use `id`.
    #[inline]
    pub(super) fn add_uses(&mut self, id: SetId, nodes: u32) {
        if id == SetId::EMPTY {
            return;
        }
        let uses = &mut self.counts[id.0 as usize].uses;
        self.unused -= usize::from(*uses == 0);
        *uses += nodes;
    }

    #[inline]
    fn drop_uses(&mut self, id: SetId, nodes: u32) {
        if id == SetId::EMPTY {
            return;
        }
        let uses = &mut self.counts[id.0 as usize].uses;
        *uses -= nodes;
        if *uses == 0 {
            self.unused += 1;
            if self.unused > self.ids.len() / 2 + SWEEP_SLACK {
                self.sweep();
            }
        }
    }

    /// Id of `set`; not counted as used yet.
    pub(super) fn intern(&mut self, set: OwnerSet) -> SetId {
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let counts = Counts { uses: 0, owners: set.len() as u32 };
        let id = match self.free.pop() {
            Some(id) => {
                self.sets[id.0 as usize] = set.clone();
                self.counts[id.0 as usize] = counts;
                id
            }
            None => {
                self.sets.push(set.clone());
                self.counts.push(counts);
                SetId((self.sets.len() - 1) as u32)
            }
        };
        self.unused += 1;
        self.ids.insert(set, id);
        id
    }

    fn sweep(&mut self) {
        for i in 1..self.sets.len() {
            if self.counts[i].uses == 0 {
                let set = std::mem::take(&mut self.sets[i]);
                self.ids.remove(&set);
                self.counts[i].uses = SWEPT;
                self.free.push(SetId(i as u32));
            }
        }
        self.unused = 0;
        self.recent.fill(NO_MOVE);
    }

    pub(super) fn heap_bytes(&self) -> usize {
        // Each set is there twice: in `sets` and as a key of `ids`.
        let groups: usize = self.sets.iter().map(|set| 2 * size_of_val(&*set.rest)).sum();
        groups
            + self.sets.capacity() * size_of::<OwnerSet>()
            + self.counts.capacity() * size_of::<Counts>()
            + self.ids.capacity() * (size_of::<(OwnerSet, SetId)>() + 1)
            + self.free.capacity() * 4
            + size_of_val(&*self.recent)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_owners_is_a_set(
            toggled in proptest::collection::vec(0_u16..400, 0..200),
            others in proptest::collection::btree_set(0_u16..400, 0..6),
        ) {
            let (mut set, mut model) = (OwnerSet::default(), BTreeSet::new());
            for &worker in &toggled {
                set = set.toggled(Slot(worker));
                if !model.remove(&worker) {
                    model.insert(worker);
                }
            }
            prop_assert!(set.iter().map(|worker| worker.0).eq(model.iter().copied()));
            prop_assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
            for worker in 0..400 {
                prop_assert_eq!(set.contains(Slot(worker)), model.contains(&worker));
            }
            prop_assert_eq!(&set, &toggled_once(&model));
            let other = toggled_once(&others);
            prop_assert_eq!(set.meets(&other), model.intersection(&others).next().is_some());
            let low = model.iter().filter(|&&worker| worker < 64).fold(0, |bits, worker| bits | 1 << worker);
            prop_assert_eq!(set.low(), low);
        }
    }

    /// In descending order, so that groups are also put before others.
    fn toggled_once(workers: &BTreeSet<u16>) -> OwnerSet {
        workers.iter().rev().map(|&worker| Slot(worker)).collect()
    }
}
