//! Hits: requests that the router sent to a worker that already held the beginning of their prompt, kept as the places
//! where those held beginnings ended.
//!
//! ```text
//! ring     ends in order of time, the oldest first
//! groups   the ends at one node, linked in a circle: when the node goes, all of them pass to its parent at once
//! ```
//!
//! A request of which the chosen worker held nothing has its end at the root, and so has one whose block went with
//! everything above it. A block's hits are the ends at it or below it.

use std::collections::VecDeque;

use hashbrown::{DefaultHashBuilder, HashMap};

use super::{NodeId, Tree, mix};

/// How long an end is kept, in units of `touched`: 15 minutes as the state's fold counts time.
pub const HIT_WINDOW: u32 = 9_000;
/// Most ends kept; of more, the oldest go.
pub const MAX_HITS: usize = 1 << 16;

/// Where one request's held beginning ended.
#[derive(Clone, Copy)]
struct End {
    touch: u32,
    group: u32,
    /// Its neighbours in the circle of its group, by their number.
    before: u32,
    after: u32,
}

/// All ends at one node.
#[derive(Clone, Copy)]
struct Group {
    node: NodeId,
    /// Hash of what the node is, the same in every tree.
    place: u64,
    /// Number of one of the ends.
    any: u32,
    ends: u32,
    /// Sum of the hashes of their times.
    times: u64,
}

impl Group {
    fn term(&self) -> u64 {
        mix(self.place, self.times)
    }
}

/// The ends of a tree.
#[derive(Clone, Default)]
pub(super) struct Hits {
    ring: VecDeque<End>,
    /// Number of the oldest end. Ends are numbered as they come; numbers may wrap.
    first: u32,
    groups: Vec<Group>,
    free: Vec<u32>,
    at: HashMap<NodeId, u32, DefaultHashBuilder>,
    digest: u64,
}

impl Hits {
    pub(super) fn len(&self) -> usize {
        self.ring.len()
    }

    /// Order-independent digest of the ends.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeId, u32)> + ExactSizeIterator {
        self.ring.iter().map(|end| (self.groups[end.group as usize].node, end.touch))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.ring.capacity() * size_of::<End>()
            + self.groups.capacity() * size_of::<Group>()
            + self.free.capacity() * size_of::<u32>()
            + self.at.capacity() * (size_of::<(NodeId, u32)>() + 1)
    }

    fn end(&self, number: u32) -> &End {
        &self.ring[number.wrapping_sub(self.first) as usize]
    }

    fn end_mut(&mut self, number: u32) -> &mut End {
        &mut self.ring[number.wrapping_sub(self.first) as usize]
    }

    /// Adds an end no older than the last one.
    fn push(&mut self, node: NodeId, place: u64, touch: u32) {
        let number = self.first.wrapping_add(self.ring.len() as u32);
        let alone = Group { node, place, any: number, ends: 1, times: mix(touch.into(), 0) };
        let group = self.open(alone);
        self.ring.push_back(End { touch, group, before: number, after: number });
        match self.at.get(&node) {
            None => self.register(group),
            Some(&there) => self.merge(group, there),
        }
    }

    /// Takes the oldest end away. Gives the node that it was the last one of.
    fn pop(&mut self) -> Option<NodeId> {
        let End { touch, group: slot, before, after } = *self.ring.front()?;
        let number = self.first;
        self.end_mut(before).after = after;
        self.end_mut(after).before = before;
        self.ring.pop_front();
        self.first = self.first.wrapping_add(1);
        let group = &mut self.groups[slot as usize];
        self.digest = self.digest.wrapping_sub(group.term());
        group.ends -= 1;
        group.times = group.times.wrapping_sub(mix(touch.into(), 0));
        if group.ends == 0 {
            let node = group.node;
            self.at.remove(&node);
            self.free.push(slot);
            return Some(node);
        }
        if group.any == number {
            group.any = after;
        }
        self.digest = self.digest.wrapping_add(group.term());
        None
    }

    /// All ends at `from` are at `to` from now on.
    fn pass(&mut self, from: NodeId, to: NodeId, place: u64) {
        let Some(group) = self.at.remove(&from) else { return };
        let moved = &mut self.groups[group as usize];
        self.digest = self.digest.wrapping_sub(moved.term());
        (moved.node, moved.place) = (to, place);
        match self.at.get(&to) {
            None => self.register(group),
            Some(&there) => self.merge(group, there),
        }
    }

    fn open(&mut self, group: Group) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.groups[slot as usize] = group;
                slot
            }
            None => {
                self.groups.push(group);
                (self.groups.len() - 1) as u32
            }
        }
    }

    /// `slot` is the group of its node.
    fn register(&mut self, slot: u32) {
        let group = &self.groups[slot as usize];
        self.at.insert(group.node, slot);
        self.digest = self.digest.wrapping_add(group.term());
    }

    /// Makes one group of `new`, which is not counted, and `there`, which is. The ends of the smaller one are moved
    /// to the larger one, so that an end is moved a few times in its life at most, however deep its block was.
    fn merge(&mut self, new: u32, there: u32) {
        let known = self.groups[there as usize];
        self.digest = self.digest.wrapping_sub(known.term());
        let (small, large) =
            if self.groups[new as usize].ends < known.ends { (new, there) } else { (there, new) };
        let from = self.groups[small as usize];
        let mut number = from.any;
        for _ in 0..from.ends {
            let end = self.end_mut(number);
            end.group = large;
            number = end.after;
        }
        self.join_circles(from.any, self.groups[large as usize].any);
        let into = &mut self.groups[large as usize];
        into.ends += from.ends;
        into.times = into.times.wrapping_add(from.times);
        self.free.push(small);
        self.register(large);
    }

    fn join_circles(&mut self, one: u32, other: u32) {
        let (after_one, after_other) = (self.end(one).after, self.end(other).after);
        self.end_mut(one).after = after_other;
        self.end_mut(after_other).before = one;
        self.end_mut(other).after = after_one;
        self.end_mut(after_one).before = other;
    }
}

impl Tree {
    /// A request was routed `at`, in units of `touched`, and what the chosen worker held of its prompt ended at `node`;
    /// [`NodeId::ROOT`]: it held nothing. A time before that of the latest end counts as the latest.
    pub fn hit(&mut self, node: NodeId, at: u32) {
        debug_assert!(!self.arena[node].is_free());
        let at = self.hits.ring.back().map_or(at, |latest| at.max(latest.touch));
        self.expire_hits(at);
        if self.hits.len() == MAX_HITS {
            self.drop_oldest_hit();
        }
        self.arena[node].change_hit(true);
        let place = self.place(node);
        self.hits.push(node, place, at);
        self.notify(|forest, _| forest.hit(node, at));
    }

    /// Forgets the ends that are more than [`HIT_WINDOW`] older than `now`.
    pub fn expire_hits(&mut self, now: u32) {
        self.notify(|forest, _| forest.advance_to(now));
        while self.hits.ring.front().is_some_and(|oldest| now.saturating_sub(oldest.touch) > HIT_WINDOW) {
            self.drop_oldest_hit();
        }
    }

    /// Every end that is kept, the oldest first: where what the chosen worker held of a request's prompt ended, and
    /// when the request was routed.
    pub fn hits(&self) -> impl DoubleEndedIterator<Item = (NodeId, u32)> + ExactSizeIterator {
        self.hits.iter()
    }

    /// Ends exactly at `node`, not older than `since`.
    pub fn hits_at(&self, node: NodeId, since: u32) -> u32 {
        if !self.arena[node].is_hit() {
            return 0;
        }
        let Some(&group) = self.hits.at.get(&node) else { return 0 };
        let Group { any, ends, .. } = self.hits.groups[group as usize];
        let circle = std::iter::successors(Some(any), |&number| Some(self.hits.end(number).after));
        circle.take(ends as usize).filter(|&number| self.hits.end(number).touch >= since).count() as u32
    }

    /// Requests routed at `since` or later of which it is known how much of the prompt the chosen worker held, those of
    /// which it held nothing included.
    pub fn requests(&self, since: u32) -> u32 {
        let older = self.hits.ring.partition_point(|end| end.touch < since);
        (self.hits.len() - older) as u32
    }

    /// The ends at `from`, whose block goes, are at `to` from now on.
    #[inline]
    pub(super) fn pass_hits(&mut self, from: NodeId, to: NodeId) {
        if self.arena[from].is_hit() {
            self.pass_known_hits(from, to);
        }
    }

    /// Out of the way: nearly no block that goes has any.
    #[cold]
    fn pass_known_hits(&mut self, from: NodeId, to: NodeId) {
        self.arena[from].change_hit(false);
        self.arena[to].change_hit(true);
        let place = self.place(to);
        self.hits.pass(from, to, place);
        self.notify(|forest, _| forest.hits_moved());
    }

    fn drop_oldest_hit(&mut self) {
        self.notify(|forest, _| forest.hits_moved());
        if let Some(node) = self.hits.pop() {
            self.arena[node].change_hit(false);
        }
    }

    /// What `node` is, whatever its id and whatever is above it.
    fn place(&self, node: NodeId) -> u64 {
        let n = &self.arena[node];
        mix(n.tokens, if n.is_orphan_parent() { n.block } else { 0 })
    }
}
