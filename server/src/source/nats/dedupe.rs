//! Deduplicates messages by the hash of their content: worker, event id and body are all in the payload. It is a multiset,
//! because a worker may publish the same content twice.

use std::collections::{HashMap, VecDeque};

use xxhash_rust::xxh3::xxh3_128;

/// Hash of a message's content. With 128 bits, collisions do not occur in practice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Content(u128);

impl Content {
    pub(super) fn of(payload: &[u8]) -> Self {
        Self(xxh3_128(payload))
    }
}

/// How many further occurrences of each content are expected.
#[derive(Default, Debug)]
pub(super) struct Multiset {
    counts: HashMap<Content, u32>,
}

impl Multiset {
    pub(super) fn add(&mut self, content: Content) {
        *self.counts.entry(content).or_default() += 1;
    }

    /// Removes one occurrence. `false`: there is none.
    pub(super) fn remove(&mut self, content: Content) -> bool {
        let Some(count) = self.counts.get_mut(&content) else { return false };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&content);
        }
        true
    }

    /// Whether it is expected.
    pub(super) fn has(&self, content: Content) -> bool {
        self.counts.contains_key(&content)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// The contents of the most recently delivered messages, oldest first.
#[derive(Clone, Debug)]
pub(super) struct RecentMessages {
    contents: VecDeque<Content>,
    most: usize,
}

impl Default for RecentMessages {
    fn default() -> Self {
        Self::with_capacity(REMEMBERED)
    }
}

/// Contents remembered per stream (half a megabyte): more than [`OVERLAP`], so that everything read twice is recognised, and
/// more than a server can have delivered but not stored when it crashes.
const REMEMBERED: usize = 32_768;
/// Messages read again after a lost connection: more than can be in transit.
pub(super) const OVERLAP: u64 = 4_096;
const _: () = assert!(REMEMBERED as u64 >= OVERLAP);

impl RecentMessages {
    /// Remembers up to `most` contents.
    pub(super) const fn with_capacity(most: usize) -> Self {
        Self { contents: VecDeque::new(), most }
    }

    pub(super) fn push(&mut self, content: Content) {
        if self.contents.len() == self.most {
            self.contents.pop_front();
        }
        self.contents.push_back(content);
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> u64 {
        self.contents.len() as u64
    }

    /// As a multiset.
    pub(super) fn multiset(&self) -> Multiset {
        let mut all = Multiset::default();
        self.contents.iter().for_each(|&content| all.add(content));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_occurrence_is_taken_once() {
        let mut set = Multiset::default();
        let content = Content::of(b"a");
        set.add(content);
        set.add(content);
        assert!(set.remove(content) && set.remove(content));
        assert!(!set.remove(content) && set.is_empty());
        assert!(!set.remove(Content::of(b"b")));
    }

    #[test]
    fn the_latest_are_bounded() {
        let mut recent = RecentMessages::default();
        (0..REMEMBERED as u64 + 1).for_each(|i| recent.push(Content::of(&i.to_le_bytes())));
        let mut set = recent.multiset();
        assert!(!set.remove(Content::of(&0u64.to_le_bytes())));
        assert!(set.remove(Content::of(&1u64.to_le_bytes())));
    }
}
