//! Siblings in their order, from left to right.
//!
//! There may be a million siblings. So that neither a change of a few of them nor a visit of all of them touches each, a large
//! set of them is cut into *groups* of a few dozen neighbours, each with what the group sums up to. A change makes the groups
//! anew that it falls into; the others move as they are.

use super::{Chain, ChainId, Order, Sums};

/// Most siblings in a group; more are cut in two.
const GROUP: usize = if cfg!(test) { 4 } else { 32 };
/// Up to so many siblings have no groups.
const SMALL: usize = if cfg!(test) { 6 } else { 96 };

/// A mark for each chain, a bit each: a million siblings are looked through for those that changed.
#[derive(Clone, Default)]
pub(super) struct Marks(Vec<u64>);

impl Marks {
    pub(super) fn has(&self, id: ChainId) -> bool {
        self.0.get(id.at() / 64).is_some_and(|word| word >> (id.at() % 64) & 1 != 0)
    }

    /// Whether it was not set before.
    pub(super) fn set(&mut self, id: ChainId) -> bool {
        let (word, bit) = (id.at() / 64, 1 << (id.at() % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let was = self.0[word];
        self.0[word] = was | bit;
        was & bit == 0
    }

    pub(super) fn unset(&mut self, id: ChainId) {
        if let Some(word) = self.0.get_mut(id.at() / 64) {
            *word &= !(1 << (id.at() % 64));
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }
}

/// Where a sibling stands among the others: compared first by units, then by tokens hash, which no two share.
type SiblingKey = (u32, u64);

fn key(chain: &Chain, order: Order) -> SiblingKey {
    let units = match order {
        Order::LeftHeavy => u32::MAX - chain.width,
        Order::Stable => u32::from(chain.width == 0),
    };
    (units, chain.tokens)
}

/// Neighbours among many siblings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// What stands at this key or behind it, and before the next group's, belongs here.
    key: SiblingKey,
    /// Index of the first one among the siblings.
    pub(super) from: u32,
    pub(super) len: u32,
    /// Units of the groups to the left.
    pub(super) before: u32,
    /// Units of all of them.
    pub(super) width: u32,
    /// Units of the narrowest and of the widest.
    pub(super) narrowest: u32,
    pub(super) widest: u32,
    pub(super) sums: Sums,
}

#[derive(Clone, Debug)]
struct Groups(Vec<Group>);

/// The chains below one, or those at the top.
#[derive(Clone, Default, Debug)]
pub(super) struct Siblings {
    /// From left to right as of the last update; what came since is at the end. May name what died or moved away since.
    pub(super) ids: Vec<ChainId>,
    groups: Option<Box<Groups>>,
}

/// What the layout of siblings needs of the forest.
pub(super) struct SiblingContext<'a> {
    pub(super) parent: ChainId,
    pub(super) chains: &'a mut [Chain],
    pub(super) marks: &'a Marks,
    pub(super) order: Order,
}

impl SiblingContext<'_> {
    fn has(&self, id: ChainId) -> bool {
        let chain = &self.chains[id.at()];
        chain.parent == self.parent && !chain.is_dead()
    }

    fn key(&self, id: ChainId) -> SiblingKey {
        key(&self.chains[id.at()], self.order)
    }

    /// Puts siblings side by side. Gives their units.
    fn place(&mut self, ids: &[ChainId], mut each: impl FnMut(&Chain)) -> u32 {
        let mut before = 0;
        for id in ids {
            let chain = &mut self.chains[id.at()];
            chain.before = before;
            before += chain.width;
            each(chain);
        }
        before
    }
}

impl Siblings {
    /// Groups of many siblings, which cover the first of them; none of few.
    pub(super) fn groups(&self) -> &[Group] {
        self.groups.as_deref().map_or(&[], |groups| &groups.0)
    }

    pub(super) fn members(&self, group: &Group) -> &[ChainId] {
        let from = group.from as usize;
        self.ids.get(from..from + group.len as usize).unwrap_or_default()
    }

    /// Units left of the group that `chain`, one of the siblings, is in.
    pub(super) fn group_before(&self, chain: &Chain, order: Order) -> u32 {
        let groups = self.groups();
        let behind = groups.partition_point(|group| group.key <= key(chain, order));
        groups.get(behind.saturating_sub(1)).map_or(0, |group| group.before)
    }

    /// Those around `x` units from the left edge of the first, and the units to the left of them.
    pub(super) fn near(&self, x: f64) -> (&[ChainId], u32) {
        let groups = self.groups();
        let behind = groups.partition_point(|group| f64::from(group.before) <= x && group.width > 0);
        match groups.get(behind.saturating_sub(1)) {
            None => (&self.ids, 0),
            Some(group) => (self.members(group), group.before),
        }
    }

    /// Cleans the list of those that are there no more, puts the others into their order and place and adds their sums to
    /// `sums`. Gives the units of all of them.
    pub(super) fn lay_out(&mut self, context: &mut SiblingContext<'_>, sums: &mut Sums) -> u32 {
        if self.groups.is_some() && self.ids.len() > SMALL / 2 {
            return self.refresh(context, sums);
        }
        self.groups = None;
        self.lay_out_all(context, sums)
    }

    fn lay_out_all(&mut self, context: &mut SiblingContext<'_>, sums: &mut Sums) -> u32 {
        self.ids.retain(|&id| context.has(id));
        let is_large = self.ids.len() > SMALL;
        if is_large || !self.ids.is_sorted_by_key(|&id| context.key(id)) {
            let mut all: Vec<(SiblingKey, ChainId)> =
                self.ids.iter().map(|&id| (context.key(id), id)).collect();
            // A sort that profits from what is in order already.
            all.sort();
            if is_large {
                // What moved away and back is listed twice.
                all.dedup();
                self.ids.clear();
                let mut groups = Vec::with_capacity(all.len() * 4 / GROUP / 3 + 1);
                self.group(context, &all, &mut groups);
                return self.close(groups, sums);
            }
            self.ids.iter_mut().zip(&all).for_each(|(id, entry)| *id = entry.1);
        }
        self.ids.dedup();
        context.place(&self.ids, |chain| sums.add(&chain.sums))
    }

    /// [`Siblings::lay_out`] for siblings in groups, of which only a few have changed.
    fn refresh(&mut self, context: &mut SiblingContext<'_>, sums: &mut Sums) -> u32 {
        let Some(groups) = self.groups.take() else { return 0 };
        let groups = groups.0;
        let mut moved: Vec<(SiblingKey, ChainId)> = Vec::new();
        let mut note = |context: &SiblingContext<'_>, id: ChainId| {
            if context.has(id) {
                moved.push((context.key(id), id));
            }
        };
        let covered = groups.last().map_or(0, |group| (group.from + group.len) as usize);
        let mut is_hit = vec![false; groups.len()];
        for (group, is_hit) in groups.iter().zip(&mut is_hit) {
            for &id in self.members(group) {
                if context.marks.has(id) {
                    *is_hit = true;
                    note(context, id);
                }
            }
        }
        self.ids[covered..].iter().for_each(|&id| note(context, id));
        if moved.len() > covered / 4 {
            return self.lay_out_all(context, sums);
        }
        moved.sort();
        moved.dedup();
        let old = std::mem::replace(&mut self.ids, Vec::with_capacity(covered + moved.len()));
        let mut anew = Vec::with_capacity(groups.len() + moved.len() / GROUP + 1);
        let (mut rest, mut some) = (&moved[..], Vec::new());
        for (i, group) in groups.iter().enumerate() {
            let limit = groups.get(i + 1).map(|next| next.key);
            let behind = rest.iter().take_while(|moved| limit.is_none_or(|limit| moved.0 < limit)).count();
            let (here, later) = rest.split_at(behind);
            rest = later;
            let members = &old[group.from as usize..(group.from + group.len) as usize];
            if here.is_empty() && !is_hit[i] {
                anew.push(Group { from: self.ids.len() as u32, ..*group });
                self.ids.extend_from_slice(members);
                continue;
            }
            some.clear();
            some.extend(
                members.iter().filter(|&&id| !context.marks.has(id)).map(|&id| (context.key(id), id)),
            );
            some.extend_from_slice(here);
            // Few are left: they join the group before.
            if some.len() < GROUP / 4
                && let Some(last) = anew.pop_if(|last: &mut Group| last.len as usize + some.len() <= GROUP)
            {
                some.extend(self.ids.drain(last.from as usize..).map(|id| (context.key(id), id)));
            }
            some.sort();
            self.group(context, &some, &mut anew);
        }
        self.close(anew, sums)
    }

    /// Appends siblings in order, as groups.
    fn group(
        &mut self,
        context: &mut SiblingContext<'_>,
        all: &[(SiblingKey, ChainId)],
        groups: &mut Vec<Group>,
    ) {
        // Room for some more in each; none where they fit into one.
        let size = if all.len() <= GROUP { GROUP } else { GROUP * 3 / 4 };
        for some in all.chunks(size) {
            let from = self.ids.len();
            self.ids.extend(some.iter().map(|&(_, id)| id));
            let (mut sums, mut narrowest, mut widest) = (Sums::default(), u32::MAX, 0);
            let width = context.place(&self.ids[from..], |chain| {
                sums.add(&chain.sums);
                narrowest = narrowest.min(chain.width);
                widest = widest.max(chain.width);
            });
            let (key, from, len) = (some[0].0, from as u32, some.len() as u32);
            groups.push(Group { key, from, len, before: 0, width, narrowest, widest, sums });
        }
    }

    /// Places the groups side by side. Gives their units.
    fn close(&mut self, mut groups: Vec<Group>, sums: &mut Sums) -> u32 {
        let mut before = 0;
        for group in &mut groups {
            group.before = before;
            before += group.width;
            sums.add(&group.sums);
        }
        self.groups = Some(Box::new(Groups(groups)));
        before
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let groups = self.groups.as_ref().map_or(0, |groups| groups.0.capacity() * size_of::<Group>());
        self.ids.capacity() * size_of::<ChainId>() + groups
    }
}
