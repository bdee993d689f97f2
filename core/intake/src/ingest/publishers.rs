//! Sequence numbers of publishers: what is missing between two messages is lost (reference §2.4).
//!
//! A publisher id does not always name one sequence: a restarted pod keeps its id and counts from 0 again, and one
//! process may hold several publishers. So each id has a few *tracks*, and a message continues the one it fits.
//!
//! No loss is counted twice. What this program dropped itself is passed as [`Publishers::skipped`], so no jump is seen
//! where it was dropped; [`Publishers::jumped_at`] reports the events of a worker that were in lost messages.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use indexmap::IndexMap;

use radixscope_model::id::{SourceIx, WorkerIx};
use radixscope_model::record::Topic;

/// Publishers followed at once. A cluster of a thousand workers has a few thousand; beyond it those that were silent
/// longest are followed anew, which can hide a loss but never invent one: counts are lower bounds from then on.
const MAX_PUBLISHERS: usize = 16_384;
/// So many are forgotten at once, so that the search for them costs little.
const FORGET: usize = MAX_PUBLISHERS / 16;
/// Tracks per publisher id.
const MAX_TRACKS: usize = 4;
/// A jump beyond this is not loss but nonsense: hours of the busiest publisher.
const MAX_GAP: u64 = 10_000_000;

/// What counts up on its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stream {
    pub(super) source: SourceIx,
    pub(super) topic: Topic,
    pub(super) publisher_id: u64,
}

impl Hash for Stream {
    /// In one piece: it is looked up for every message.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let line = u128::from(self.source.0) << 8 | self.topic as u128;
        state.write_u128(line << 64 | u128::from(self.publisher_id));
    }
}

/// A message as its number places it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SequencePosition {
    pub(super) continuity: Continuity,
    /// Whether it is the publisher's first.
    pub(super) is_new: bool,
    /// Whether it is its first only as far as is known: publishers have been forgotten.
    pub(super) may_be_forgotten: bool,
    /// Whether it is the publisher's first after the source's connection broke.
    pub(super) is_first_after_break: bool,
    /// Whether it is the publisher's first after its own connection broke.
    pub(super) is_first_after_own_break: bool,
}

impl SequencePosition {
    const fn in_order() -> Self {
        let continuity = Continuity::InOrder;
        Self {
            continuity,
            is_new: false,
            may_be_forgotten: false,
            is_first_after_break: false,
            is_first_after_own_break: false,
        }
    }
}

/// What a sequence number shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Continuity {
    /// Nothing is missing, or nothing can be known.
    InOrder,
    /// These are missing, as far as they do not come late.
    Gap(Missing),
    /// A jump too large to be loss.
    Implausible(u64),
}

/// Sequence numbers that did not come, `from` up to but not including `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Missing {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// Gaps that may still be filled; beyond it the oldest is believed at once. A healthy system has none to a few.
const MAX_OPEN: usize = 256;

/// A gap that may still be filled: one process publishes from several tasks, and two messages of it may overtake
/// each other on the way.
struct Open {
    stream: Stream,
    worker: Option<WorkerIx>,
    missing: Missing,
    /// Number of the gap, as whoever opened it counts.
    gap: u64,
    /// Whether it was open at the last check already.
    old: bool,
}

/// A loss that is certain.
pub(super) struct Lost {
    pub(super) stream: Stream,
    pub(super) worker: Option<WorkerIx>,
    pub(super) count: u64,
    /// Number of the gap.
    pub(super) gap: u64,
}

/// Places in which it is remembered where publishers are.
const RECENT: usize = 256;

#[derive(Default)]
pub(super) struct Publishers {
    next: IndexMap<Stream, Tracks, hashbrown::DefaultHashBuilder>,
    /// Where in `next` publishers were found last, by the low bits of their ids, so that a message costs no hash. Only a hint: who
    /// stands there is compared.
    recent: Vec<u32>,
    open: VecDeque<Open>,
    /// Breaks of each source's connection so far; bounded by the number of sources.
    breaks: Vec<u32>,
    /// Whether any publisher was forgotten for want of room.
    has_forgotten: bool,
}

/// Next sequence number expected on each track, latest first.
#[derive(Clone, Copy, Default)]
struct Tracks {
    next: [u64; MAX_TRACKS],
    len: usize,
    /// Breaks of the connection before its last message.
    breaks: u32,
    /// Whether its own connection broke after its last message.
    has_own_break: bool,
    /// Whether its worker left: nothing more is awaited from it.
    has_left: bool,
    /// Whether a message of it was received, not only dropped.
    is_received: bool,
    /// The latest message, by the count of all.
    last: u64,
    /// The last message, counted over all publishers, before which one of this publisher was missing or dropped.
    jumped_at: u64,
}

impl Publishers {
    /// A message came, which is number `at` of all. `true`: it is the next one of its publisher, and nothing else is awaited, so that
    /// there is no more to it. `false`: it is still to be [`Publishers::received`].
    #[inline]
    pub(super) fn goes_on(&mut self, stream: Stream, sequence: u64, at: u64) -> bool {
        let breaks = self.breaks.get(stream.source.at()).copied().unwrap_or(0);
        if !self.open.is_empty() {
            return false;
        }
        let Some(tracks) = self.find(stream) else { return false };
        let is_plain = tracks.is_received && !tracks.has_own_break && !tracks.has_left;
        let goes_on = is_plain && tracks.breaks == breaks && tracks.goes_on(sequence);
        if goes_on {
            tracks.last = at;
        }
        goes_on
    }

    /// The tracks of a publisher that is known.
    #[inline]
    fn find(&mut self, stream: Stream) -> Option<&mut Tracks> {
        let place = stream.publisher_id as usize % RECENT;
        let hint = self.recent.get(place).map_or(0, |&at| at as usize);
        let at = match self.next.get_index(hint) {
            Some((known, _)) if *known == stream => hint,
            _ => self.find_elsewhere(stream, place)?,
        };
        self.next.get_index_mut(at).map(|(_, tracks)| tracks)
    }

    fn find_elsewhere(&mut self, stream: Stream, place: usize) -> Option<usize> {
        let at = self.next.get_index_of(&stream)?;
        self.recent.resize(RECENT, 0);
        self.recent[place] = at as u32;
        Some(at)
    }

    /// A message came, which is number `at` of all.
    pub(super) fn received(&mut self, stream: Stream, sequence: u64, at: u64) -> SequencePosition {
        let position = self.pass(stream, sequence, sequence.saturating_add(1), at);
        if let Some(tracks) = self.next.get_mut(&stream) {
            tracks.is_received = true;
        }
        position
    }

    /// Messages `from` up to but not including `to` were there and dropped unopened, before message `at` of all.
    pub(super) fn skipped(&mut self, stream: Stream, from: u64, to: u64, at: u64) -> SequencePosition {
        let place = if self.open.is_empty() {
            self.pass(stream, from, to, at)
        } else {
            // Some may have overtaken others: each may fill a gap.
            let first = self.pass(stream, from, from.saturating_add(1), at);
            (from.saturating_add(1)..to).for_each(|sequence| {
                self.pass(stream, sequence, sequence.saturating_add(1), at);
            });
            first
        };
        if let Some(tracks) = self.next.get_mut(&stream) {
            tracks.jumped_at = at;
        }
        place
    }

    fn pass(&mut self, stream: Stream, sequence: u64, next: u64, at: u64) -> SequencePosition {
        if !self.open.is_empty() && self.came_late(stream, sequence) {
            return SequencePosition::in_order();
        }
        let breaks = self.breaks.get(stream.source.at()).copied().unwrap_or(0);
        if let Some(tracks) = self.next.get_mut(&stream) {
            tracks.last = at;
            tracks.has_left = false;
            let is_first_after_break = std::mem::replace(&mut tracks.breaks, breaks) != breaks;
            let is_first_after_own_break = std::mem::take(&mut tracks.has_own_break);
            let continuity = tracks.follow(sequence, next, is_first_after_break || is_first_after_own_break);
            if matches!(continuity, Continuity::Gap(_)) {
                tracks.jumped_at = at;
            }
            return SequencePosition {
                continuity,
                is_first_after_break,
                is_first_after_own_break,
                ..SequencePosition::in_order()
            };
        }
        if self.next.len() == MAX_PUBLISHERS {
            self.forget_silent();
        }
        let mut tracks = Tracks { breaks, last: at, ..Tracks::default() };
        tracks.start(next);
        self.next.insert(stream, tracks);
        SequencePosition {
            is_new: true,
            may_be_forgotten: self.has_forgotten,
            ..SequencePosition::in_order()
        }
    }

    /// The source's connection broke.
    pub(super) fn broke(&mut self, source: SourceIx) {
        if self.breaks.len() <= source.at() {
            self.breaks.resize(source.at() + 1, 0);
        }
        self.breaks[source.at()] += 1;
    }

    /// The connection to one publisher broke. `true`: its next message shows what that cost, and it was not awaited
    /// for that yet.
    pub(super) fn broke_of(&mut self, stream: Stream) -> bool {
        self.next.get_mut(&stream).is_some_and(|tracks| !std::mem::replace(&mut tracks.has_own_break, true))
    }

    /// Whether a publisher is known.
    pub(super) fn knows(&self, stream: Stream) -> bool {
        self.next.contains_key(&stream)
    }

    /// How many publishers of a topic are known whose workers did not leave.
    pub(super) fn count(&self, source: SourceIx, topic: Topic) -> usize {
        let is_its = |stream: &Stream| stream.source == source && stream.topic == topic;
        self.next.iter().filter(|(stream, tracks)| is_its(stream) && !tracks.has_left).count()
    }

    /// The worker of this publisher left.
    pub(super) fn left(&mut self, stream: Stream) {
        if let Some(tracks) = self.next.get_mut(&stream) {
            tracks.has_left = true;
        }
    }

    /// The last message, counted over all, before which one of this publisher was missing or dropped; 0: none was.
    pub(super) fn jumped_at(&self, stream: Stream) -> u64 {
        self.next.get(&stream).map_or(0, |tracks| tracks.jumped_at)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.next.len()
    }

    fn forget_silent(&mut self) {
        let mut last: Vec<u64> = self.next.values().map(|tracks| tracks.last).collect();
        let (_, &mut newest, _) = last.select_nth_unstable(FORGET - 1);
        self.has_forgotten = true;
        self.next.retain(|_, tracks| tracks.last > newest);
    }

    /// Keeps a gap open for a while. Gives back the oldest one if there are too many.
    pub(super) fn open(
        &mut self,
        stream: Stream,
        worker: Option<WorkerIx>,
        missing: Missing,
        gap: u64,
    ) -> Option<Lost> {
        self.open.push_back(Open { stream, worker, missing, gap, old: false });
        (self.open.len() > MAX_OPEN).then(|| self.open.pop_front()).flatten().map(Open::lost)
    }

    /// Returns the gaps that were open at the previous check too: no message arrives that late.
    pub(super) fn close_gaps(&mut self) -> Vec<Lost> {
        let (old, young): (VecDeque<Open>, VecDeque<Open>) =
            std::mem::take(&mut self.open).into_iter().partition(|open| open.old);
        self.open = young;
        self.open.iter_mut().for_each(|open| open.old = true);
        old.into_iter().map(Open::lost).collect()
    }

    /// Whether `sequence` fills an open gap, which is then smaller, gone, or in two.
    fn came_late(&mut self, stream: Stream, sequence: u64) -> bool {
        let fits = |o: &Open| o.stream == stream && (o.missing.from..o.missing.to).contains(&sequence);
        let Some(at) = self.open.iter().position(fits) else { return false };
        let Some(open) = self.open.remove(at) else { return false };
        let Missing { from, to } = open.missing;
        for (from, to) in [(from, sequence), (sequence + 1, to)] {
            if from < to {
                self.open.insert(at, Open { missing: Missing { from, to }, ..open });
            }
        }
        true
    }
}

impl Open {
    fn lost(self) -> Lost {
        let Self { stream, worker, missing, gap, .. } = self;
        Lost { stream, worker, count: missing.to - missing.from, gap }
    }
}

impl Tracks {
    fn start(&mut self, next: u64) {
        self.len = (self.len + 1).min(MAX_TRACKS);
        self.next[..self.len].rotate_right(1);
        self.next[0] = next;
    }

    /// Whether `sequence` is what comes next on a track, which then expects the one after it.
    #[inline]
    fn goes_on(&mut self, sequence: u64) -> bool {
        let track = self.next[..self.len].iter_mut().find(|next| **next == sequence);
        track.map(|next| *next = sequence.saturating_add(1)).is_some()
    }

    /// Messages from `sequence` up to but not including `next` came, the first of them after a break if `is_after_break`.
    fn follow(&mut self, sequence: u64, next: u64, is_after_break: bool) -> Continuity {
        let tracks = &mut self.next[..self.len];
        // The furthest track that is not past this message: it fits there with the smallest gap.
        let Some(best) = tracks.iter_mut().filter(|next| **next <= sequence).max() else {
            // Behind every track: a new count from 0, or a message that came late or twice. Nothing comes late across a
            // break: the count began anew while nothing was received.
            if sequence == 0 || is_after_break {
                self.start(next);
            }
            return match sequence {
                1..=MAX_GAP if is_after_break => Continuity::Gap(Missing { from: 0, to: sequence }),
                _ => Continuity::InOrder,
            };
        };
        let missing = Missing { from: *best, to: sequence };
        *best = next;
        match missing.to - missing.from {
            0 => Continuity::InOrder,
            1..=MAX_GAP => Continuity::Gap(missing),
            jump => Continuity::Implausible(jump),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Stream = Stream { source: SourceIx(0), topic: Topic::KvEvents, publisher_id: 7 };

    /// What is lost for certain two checks after the last message.
    fn lost(sequences: &[u64]) -> u64 {
        let mut publishers = Publishers::default();
        let mut lost = Vec::new();
        for &sequence in sequences {
            if let Continuity::Gap(missing) = publishers.received(STREAM, sequence, 1).continuity {
                lost.extend(publishers.open(STREAM, None, missing, 1));
            }
        }
        assert!(publishers.close_gaps().is_empty(), "a gap may be filled until the second check");
        lost.extend(publishers.close_gaps());
        lost.iter().map(|lost| lost.count).sum()
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
    fn two_publishers_under_one_id_are_distinguished() {
        assert_eq!(lost(&[0, 0, 1, 1, 2, 3, 2, 4, 3]), 0);
        assert_eq!(lost(&[100, 0, 101, 1, 102, 4, 103]), 2);
    }

    #[test]
    fn a_message_that_comes_twice_is_no_loss() {
        assert_eq!(lost(&[3, 4, 4, 5]), 0);
    }

    #[test]
    fn a_senseless_jump_is_not_called_loss() {
        let mut publishers = Publishers::default();
        publishers.received(STREAM, 1, 1);
        assert_eq!(
            publishers.received(STREAM, u64::MAX, 2).continuity,
            Continuity::Implausible(u64::MAX - 2)
        );
        assert_eq!(lost(&[1, u64::MAX, u64::MAX]), 0);
    }

    #[test]
    fn messages_that_overtake_each_other_are_no_loss() {
        assert_eq!(lost(&[142, 144, 143, 145]), 0);
        assert_eq!(lost(&[10, 16, 13, 11, 15, 17]), 2, "12 and 14 never came");
    }

    #[test]
    fn what_was_dropped_here_is_no_gap_and_what_is_missing_beside_it_is() {
        let mut publishers = Publishers::default();
        publishers.received(STREAM, 4, 1);
        assert_eq!(publishers.skipped(STREAM, 5, 100, 2).continuity, Continuity::InOrder);
        assert_eq!(publishers.received(STREAM, 100, 2).continuity, Continuity::InOrder);
        let Continuity::Gap(missing) = publishers.skipped(STREAM, 103, 110, 3).continuity else {
            panic!("101, 102")
        };
        assert_eq!((missing.from, missing.to), (101, 103));
        assert_eq!(publishers.received(STREAM, 110, 3).continuity, Continuity::InOrder);
        assert_eq!(publishers.jumped_at(STREAM), 3);
    }

    #[test]
    fn a_dropped_message_may_fill_a_gap() {
        let mut publishers = Publishers::default();
        publishers.received(STREAM, 1, 1);
        let Continuity::Gap(missing) = publishers.received(STREAM, 4, 2).continuity else { panic!("2, 3") };
        publishers.open(STREAM, None, missing, 1);
        publishers.skipped(STREAM, 2, 4, 3);
        publishers.close_gaps();
        assert!(publishers.close_gaps().is_empty());
    }

    #[test]
    fn the_first_message_after_a_break_is_known_once() {
        let mut publishers = Publishers::default();
        publishers.received(STREAM, 1, 1);
        publishers.broke(SourceIx(0));
        assert!(publishers.received(STREAM, 9, 2).is_first_after_break);
        assert!(!publishers.received(STREAM, 10, 3).is_first_after_break);
    }

    #[test]
    fn a_count_that_began_anew_during_a_break_lost_its_first_messages() {
        let mut publishers = Publishers::default();
        publishers.received(STREAM, 100, 1);
        publishers.broke(SourceIx(0));
        let first = Continuity::Gap(Missing { from: 0, to: 7 });
        assert_eq!(publishers.received(STREAM, 7, 2).continuity, first);
        let next = Continuity::Gap(Missing { from: 8, to: 10 });
        assert_eq!(publishers.received(STREAM, 10, 3).continuity, next, "it is followed from there");
    }

    #[test]
    fn publishers_whose_workers_left_are_not_awaited() {
        let mut publishers = Publishers::default();
        let streams = [1, 2].map(|publisher_id| Stream { publisher_id, ..STREAM });
        for stream in streams {
            publishers.received(stream, 0, 1);
        }
        publishers.left(streams[0]);
        assert_eq!(publishers.count(SourceIx(0), Topic::KvEvents), 1);
        publishers.received(streams[0], 1, 2);
        assert_eq!(publishers.count(SourceIx(0), Topic::KvEvents), 2, "it is there after all");
    }

    #[test]
    fn more_open_gaps_than_are_kept_are_believed() {
        let every_second: Vec<u64> = (0..4 * MAX_OPEN as u64).step_by(2).collect();
        assert_eq!(lost(&every_second), every_second.len() as u64 - 1);
    }

    #[test]
    fn memory_stays_bounded_whatever_ids_come() {
        let mut publishers = Publishers::default();
        for publisher_id in 0..3 * MAX_PUBLISHERS as u64 {
            let stream = Stream { source: SourceIx(0), topic: Topic::KvMetrics, publisher_id };
            publishers.received(stream, 0, publisher_id + 1);
        }
        assert!((MAX_PUBLISHERS - FORGET..=MAX_PUBLISHERS).contains(&publishers.next.len()));
    }

    #[test]
    fn those_that_speak_are_followed_however_many_came_before_them() {
        let mut publishers = Publishers::default();
        let stream = |publisher_id| Stream { publisher_id, ..STREAM };
        let mut at = 0;
        let mut receive = |publisher_id, sequence| {
            at += 1;
            publishers.received(stream(publisher_id), sequence, at).continuity
        };
        for publisher_id in 0..3 * MAX_PUBLISHERS as u64 {
            receive(publisher_id, 0);
        }
        for publisher_id in (0..64).map(|id| u64::MAX - id) {
            receive(publisher_id, 0);
        }
        for publisher_id in (0..64).map(|id| u64::MAX - id) {
            let continuity = receive(publisher_id, 2);
            assert_eq!(continuity, Continuity::Gap(Missing { from: 1, to: 2 }), "of {publisher_id}");
        }
    }
}
