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

/// A set of workers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct OwnerSet {
    /// Workers 0 … 63, one bit each.
    low: u64,
    /// Workers from 64 on, ascending.
    high: Box<[u16]>,
}

impl OwnerSet {
    /// Whether `worker` is in the set.
    #[inline]
    pub fn contains(&self, worker: Slot) -> bool {
        match worker.0 {
            w @ 0..64 => self.low & (1 << w) != 0,
            w => self.high.binary_search(&w).is_ok(),
        }
    }

    /// How many workers.
    pub fn len(&self) -> usize {
        self.low.count_ones() as usize + self.high.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.low == 0 && self.high.is_empty()
    }

    /// Whether some worker is in both sets.
    pub(super) fn meets(&self, other: &OwnerSet) -> bool {
        self.low & other.low != 0 || self.high.iter().any(|w| other.high.binary_search(w).is_ok())
    }

    /// The workers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        bits(self.low).chain(self.high.iter().map(|&w| Slot(w)))
    }

    /// Workers 0 … 63, one bit each.
    pub(super) fn low(&self) -> u64 {
        self.low
    }

    /// Workers from 64 on, ascending.
    pub(super) fn high(&self) -> &[u16] {
        &self.high
    }

    /// The set with `worker` toggled.
    fn toggled(&self, worker: Slot) -> OwnerSet {
        let mut set = self.clone();
        match worker.0 {
            w @ 0..64 => set.low ^= 1 << w,
            w => {
                let mut high = std::mem::take(&mut set.high).into_vec();
                match high.binary_search(&w) {
                    Ok(i) => {
                        high.remove(i);
                    }
                    Err(i) => high.insert(i, w),
                }
                set.high = high.into_boxed_slice();
            }
        }
        set
    }
}

/// The workers of a word of bits, ascending.
pub(super) fn bits(mut rest: u64) -> impl Iterator<Item = Slot> {
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let w = rest.trailing_zeros() as u16;
            rest &= rest - 1;
            Slot(w)
        })
    })
}

impl FromIterator<Slot> for OwnerSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(workers: I) -> Self {
        let mut set = OwnerSet::default();
        let mut high = Vec::new();
        for w in workers {
            match w.0 {
                w @ 0..64 => set.low |= 1 << w,
                // They come in order, so that this appends; a sort for the rest would cost the page a kilobyte.
                w => {
                    if let Err(i) = high.binary_search(&w) {
                        high.insert(i, w);
                    }
                }
            }
        }
        set.high = high.into_boxed_slice();
        set
    }
}

/// Direct-mapped memory of recent moves; a run of blocks makes the same one again and again.
const RECENT: usize = 256;
/// Unused sets are swept when there are this many more of them than used ones: sweeping is linear in the sets.
const SWEEP_SLACK: usize = 1024;

/// In `uses`: the slot is free.
const SWEPT: u32 = u32::MAX;

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
    uses: Vec<u32>,
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
            uses: vec![0],
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
        let uses = &mut self.uses[id.0 as usize];
        self.unused -= usize::from(*uses == 0);
        *uses += nodes;
    }

    #[inline]
    fn drop_uses(&mut self, id: SetId, nodes: u32) {
        if id == SetId::EMPTY {
            return;
        }
        let uses = &mut self.uses[id.0 as usize];
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
        let id = match self.free.pop() {
            Some(id) => {
                self.sets[id.0 as usize] = set.clone();
                self.uses[id.0 as usize] = 0;
                id
            }
            None => {
                self.sets.push(set.clone());
                self.uses.push(0);
                SetId((self.sets.len() - 1) as u32)
            }
        };
        self.unused += 1;
        self.ids.insert(set, id);
        id
    }

    fn sweep(&mut self) {
        for i in 1..self.sets.len() {
            if self.uses[i] == 0 {
                let set = std::mem::take(&mut self.sets[i]);
                self.ids.remove(&set);
                self.uses[i] = SWEPT;
                self.free.push(SetId(i as u32));
            }
        }
        self.unused = 0;
        self.recent.fill(NO_MOVE);
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let high: usize = self.sets.iter().map(|s| s.high.len() * 2 * 2).sum();
        high + self.sets.capacity() * (size_of::<OwnerSet>() + 4)
            + self.ids.capacity() * (size_of::<(OwnerSet, SetId)>() + 1)
            + self.free.capacity() * 4
            + size_of_val(&*self.recent)
    }
}
