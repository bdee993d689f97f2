//! Which messages were read already, by the hash of their content: worker, event id and body are all in the payload.
//!
//! A multiset, because a worker may truly say the same thing twice.

use std::collections::{HashMap, VecDeque};

use xxhash_rust::xxh3::xxh3_128;

/// Hash of a message's content. 128 bits: no two different messages ever share it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Content(u128);

impl Content {
    pub(super) fn of(payload: &[u8]) -> Self {
        Self(xxh3_128(payload))
    }
}

/// How often each content is expected once more.
#[derive(Default, Debug)]
pub(super) struct Multiset {
    counts: HashMap<Content, u32>,
}

impl Multiset {
    pub(super) fn add(&mut self, content: Content) {
        *self.counts.entry(content).or_default() += 1;
    }

    /// Takes one occurrence out. `false`: there is none.
    pub(super) fn take(&mut self, content: Content) -> bool {
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

/// The last contents that were handed over, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Latest {
    contents: VecDeque<Content>,
    most: usize,
}

impl Default for Latest {
    fn default() -> Self {
        Self::keeping(REMEMBERED)
    }
}

/// Contents remembered per stream, half a megabyte of them: more than [`OVERLAP`], so that everything read twice is known,
/// and more than a server that died had sent on and not yet stored.
const REMEMBERED: usize = 32_768;
/// Messages read once more after a lost connection: more than can be under way in one direction and not the other.
pub(super) const OVERLAP: u64 = 4_096;
const _: () = assert!(REMEMBERED as u64 >= OVERLAP);

impl Latest {
    /// Remembers so many.
    pub(super) const fn keeping(most: usize) -> Self {
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
        assert!(set.take(content) && set.take(content));
        assert!(!set.take(content) && set.is_empty());
        assert!(!set.take(Content::of(b"b")));
    }

    #[test]
    fn the_latest_are_bounded() {
        let mut latest = Latest::default();
        (0..REMEMBERED as u64 + 1).for_each(|i| latest.push(Content::of(&i.to_le_bytes())));
        let mut set = latest.multiset();
        assert!(!set.take(Content::of(&0u64.to_le_bytes())));
        assert!(set.take(Content::of(&1u64.to_le_bytes())));
    }
}
