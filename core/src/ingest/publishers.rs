//! Sequence numbers of publishers: what is missing between two messages is lost (reference §2.4).
//!
//! A publisher id does not always name one sequence: a restarted pod keeps its id and counts from 0 again, and one
//! process may hold several publishers. So each id has a few *tracks*, and a message continues the one it fits.

use indexmap::IndexMap;

use crate::id::SourceIx;
use crate::record::Topic;

/// Publishers followed at once. A cluster of a thousand workers has a few thousand; beyond it the one heard of first
/// is followed anew, which can hide a loss but never invent one.
const MAX_PUBLISHERS: usize = 16_384;
/// Tracks per publisher id.
const MAX_TRACKS: usize = 4;
/// A jump beyond this is not loss but nonsense: hours of the busiest publisher.
const MAX_GAP: u64 = 10_000_000;

/// What counts up on its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Stream {
    pub(super) source: SourceIx,
    pub(super) topic: Topic,
    pub(super) publisher_id: u64,
}

/// What a sequence number tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heard {
    /// Nothing is missing, or nothing can be known.
    InOrder,
    /// So many messages are missing.
    Gap(u64),
    /// A jump too large to be loss.
    Implausible(u64),
}

#[derive(Default)]
pub(super) struct Publishers {
    next: IndexMap<Stream, Tracks, hashbrown::DefaultHashBuilder>,
}

/// Next sequence number expected on each track, latest first.
#[derive(Clone, Copy, Default)]
struct Tracks {
    next: [u64; MAX_TRACKS],
    len: usize,
}

impl Publishers {
    pub(super) fn heard(&mut self, stream: Stream, sequence: u64) -> Heard {
        if let Some(tracks) = self.next.get_mut(&stream) {
            return tracks.heard(sequence);
        }
        if self.next.len() == MAX_PUBLISHERS {
            self.next.swap_remove_index(0);
        }
        let mut tracks = Tracks::default();
        tracks.start(sequence);
        self.next.insert(stream, tracks);
        Heard::InOrder
    }
}

impl Tracks {
    fn start(&mut self, sequence: u64) {
        self.len = (self.len + 1).min(MAX_TRACKS);
        self.next[..self.len].rotate_right(1);
        self.next[0] = sequence.saturating_add(1);
    }

    fn heard(&mut self, sequence: u64) -> Heard {
        let tracks = &mut self.next[..self.len];
        // The furthest track that is not past this message: it fits there with the smallest gap.
        let Some(best) = tracks.iter_mut().filter(|next| **next <= sequence).max() else {
            // Behind every track: a new count from 0, or a message that came late or twice.
            if sequence == 0 {
                self.start(sequence);
            }
            return Heard::InOrder;
        };
        let gap = sequence - *best;
        *best = sequence.saturating_add(1);
        match gap {
            0 => Heard::InOrder,
            1..=MAX_GAP => Heard::Gap(gap),
            _ => Heard::Implausible(gap),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(sequences: &[u64]) -> Vec<Heard> {
        let mut publishers = Publishers::default();
        let stream = Stream { source: SourceIx(0), topic: Topic::KvEvents, publisher_id: 7 };
        sequences.iter().map(|&s| publishers.heard(stream, s)).collect()
    }

    fn lost(sequences: &[u64]) -> u64 {
        hear(sequences).iter().map(|h| if let Heard::Gap(n) = h { *n } else { 0 }).sum()
    }

    #[test]
    fn a_jump_is_as_many_lost_messages() {
        assert_eq!(lost(&[5, 6, 9, 10]), 2);
    }

    #[test]
    fn joining_late_loses_nothing() {
        assert_eq!(lost(&[1_000, 1_001]), 0);
    }

    #[test]
    fn a_publisher_that_counts_from_zero_again_lost_nothing() {
        assert_eq!(lost(&[10, 11, 0, 1, 2]), 0);
        assert_eq!(lost(&[10, 11, 0, 1, 5]), 3);
    }

    #[test]
    fn two_publishers_under_one_id_are_told_apart() {
        assert_eq!(lost(&[0, 0, 1, 1, 2, 3, 2, 4, 3]), 0);
        assert_eq!(lost(&[100, 0, 101, 1, 102, 4, 103]), 2);
    }

    #[test]
    fn a_message_that_comes_twice_is_no_loss() {
        assert_eq!(lost(&[3, 4, 4, 5]), 0);
    }

    #[test]
    fn a_senseless_jump_is_not_called_loss() {
        assert_eq!(hear(&[1, u64::MAX])[1], Heard::Implausible(u64::MAX - 2));
        assert_eq!(lost(&[1, u64::MAX, u64::MAX]), 0);
    }

    #[test]
    fn memory_stays_bounded_whatever_ids_come() {
        let mut publishers = Publishers::default();
        for publisher_id in 0..3 * MAX_PUBLISHERS as u64 {
            publishers.heard(Stream { source: SourceIx(0), topic: Topic::KvMetrics, publisher_id }, 0);
        }
        assert_eq!(publishers.next.len(), MAX_PUBLISHERS);
    }
}
