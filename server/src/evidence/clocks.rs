//! By how much the clocks of files differ, from requests that several of them know. Pure.
//!
//! A client sends before the frontend has the request, and gets the last token after the frontend has sent it: so of two files that
//! know a request's begin and end, the difference of the begins and that of the ends bound the difference of their clocks. Within these
//! bounds, give or take [`TOLERANCE_MS`], clocks agree, and nothing is changed.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use radixscope_model::id::Millis;

/// Requests that are noted of a file: those of the smallest hashes, so that files which know the same requests note the same.
const MAX_NOTED: usize = 4_096;
/// Requests that two files must have in common.
const MIN_SHARED: usize = 3;
/// Clocks that differ by less are left alone: requests are joined by ids, and order within a second is no evidence.
const TOLERANCE_MS: i64 = 1_000;
/// Rounds of comparison: files that only others know are reached through these.
const MAX_ROUNDS: usize = 8;

/// A time of a clock that is ahead by so much.
pub(super) fn put_right(at: Millis, ahead_ms: i64) -> Millis {
    Millis(at.0.saturating_add_signed(ahead_ms.saturating_neg()))
}

/// When a request began and ended, by the clock of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Moments {
    begin: Option<Millis>,
    end: Option<Millis>,
}

/// What a file says of the times of requests.
#[derive(Default, Debug)]
pub(super) struct Noted(BTreeMap<u64, Moments>);

impl Noted {
    /// Notes when the request with this id began or ended.
    pub(super) fn note(&mut self, id: &str, begin: Option<Millis>, end: Option<Millis>) {
        let key = xxh3_64(id.as_bytes());
        let is_full = self.0.len() == MAX_NOTED;
        if is_full && self.0.last_key_value().is_some_and(|(&last, _)| key > last) {
            return;
        }
        let moments = self.0.entry(key).or_default();
        moments.begin = moments.begin.or(begin);
        // Of a request that was tried again the last end counts.
        moments.end = end.or(moments.end);
        if self.0.len() > MAX_NOTED {
            self.0.pop_last();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// What is known of a file's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Clock {
    /// No other file knows enough of its requests.
    #[default]
    Unchecked,
    /// Others are compared with it.
    Reference,
    /// It was compared by so many requests.
    Compared {
        /// Requests in common.
        requests: usize,
        /// By how much it is ahead, the middle of what is possible.
        ahead_ms: i64,
        /// How far from the middle it may be.
        within_ms: i64,
    },
}

impl Clock {
    /// By how much its times are put right.
    pub(crate) fn ahead_ms(self) -> i64 {
        match self {
            Self::Compared { ahead_ms, within_ms, .. } if ahead_ms.abs() > within_ms + TOLERANCE_MS => {
                ahead_ms
            }
            _ => 0,
        }
    }
}

/// The clocks of files. The one that comes first of those with the least `rank`, and notes most, is the reference.
pub(super) fn clocks(files: &[(u8, &Noted)]) -> Vec<Clock> {
    let mut clocks = vec![Clock::Unchecked; files.len()];
    let by_rank = |&(_, &(rank, noted)): &(usize, &(u8, &Noted))| (std::cmp::Reverse(rank), noted.len());
    let noted = files.iter().enumerate().filter(|(_, (_, noted))| noted.len() >= MIN_SHARED);
    // `rev`: of equal ones the first.
    let Some((reference, &(_, noted))) = noted.rev().max_by_key(by_rank) else { return clocks };
    clocks[reference] = Clock::Reference;
    let mut known = noted.0.clone();
    for _ in 0..MAX_ROUNDS {
        let mut more = Vec::new();
        for (ix, (_, noted)) in files.iter().enumerate() {
            if clocks[ix] == Clock::Unchecked
                && let Some(clock) = compared(&known, noted)
            {
                clocks[ix] = clock;
                more.push(ix);
            }
        }
        if more.is_empty() {
            break;
        }
        for ix in more {
            let ahead_ms = clocks[ix].ahead_ms();
            let right = |at| put_right(at, ahead_ms);
            for (&key, moments) in &files[ix].1.0 {
                let known = known.entry(key).or_default();
                known.begin = known.begin.or(moments.begin.map(right));
                known.end = known.end.or(moments.end.map(right));
            }
        }
    }
    if !clocks.iter().any(|clock| matches!(clock, Clock::Compared { .. })) {
        clocks[reference] = Clock::Unchecked;
    }
    clocks
}

fn compared(known: &BTreeMap<u64, Moments>, noted: &Noted) -> Option<Clock> {
    let (mut begins, mut ends, mut requests) = (Vec::new(), Vec::new(), 0);
    for (key, theirs) in &noted.0 {
        let Some(ours) = known.get(key) else { continue };
        let begin = difference(theirs.begin, ours.begin);
        let end = difference(theirs.end, ours.end);
        requests += usize::from(begin.is_some() || end.is_some());
        begins.extend(begin);
        ends.extend(end);
    }
    if requests < MIN_SHARED {
        return None;
    }
    let (low, high) = match (median(&mut begins), median(&mut ends)) {
        (Some(begin), Some(end)) => (begin.min(end), begin.max(end)),
        (Some(one), None) | (None, Some(one)) => (one, one),
        (None, None) => return None,
    };
    let within_ms = (high - low) / 2;
    Some(Clock::Compared { requests, ahead_ms: low + within_ms, within_ms })
}

fn difference(theirs: Option<Millis>, ours: Option<Millis>) -> Option<i64> {
    // A hostile time differs by more than any clock: half the range keeps sums of two in it.
    let bound = i64::MAX / 4;
    let difference = i128::from(theirs?.0) - i128::from(ours?.0);
    i64::try_from(difference).ok().map(|ms| ms.clamp(-bound, bound))
}

fn median(values: &mut [i64]) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose clock is ahead, and sees requests so much earlier and later than the frontend.
    fn noted(ids: std::ops::Range<u64>, ahead_ms: i64, outside_ms: i64) -> Noted {
        let mut noted = Noted::default();
        for id in ids {
            let begin = 10_000_000 + id * 100;
            let at = |at: u64, more: i64| Some(Millis(at.saturating_add_signed(ahead_ms + more)));
            noted.note(&format!("request-{id}"), at(begin, -outside_ms), at(begin + 50, outside_ms));
        }
        noted
    }

    #[test]
    fn a_clock_that_is_an_hour_ahead_is_found_also_through_a_third_file() {
        let hour = 3_600_000;
        let (log, client, other) = (noted(0..100, 0, 0), noted(90..200, hour, 30), noted(195..300, -hour, 0));
        let clocks = clocks(&[(2, &client), (1, &log), (3, &other)]);
        assert_eq!(clocks[1], Clock::Reference);
        assert_eq!(clocks[0], Clock::Compared { requests: 10, ahead_ms: hour, within_ms: 30 });
        assert_eq!(clocks[2].ahead_ms(), -hour);
    }

    #[test]
    fn a_client_far_away_has_no_wrong_clock() {
        // Each request waited for five seconds before the frontend had it.
        let (log, mut client) = (noted(0..10, 0, 0), Noted::default());
        for id in 0..10 {
            let begin = 10_000_000 + id * 100;
            client.note(&format!("request-{id}"), Some(Millis(begin - 5_000)), Some(Millis(begin + 60)));
        }
        let clocks = clocks(&[(1, &log), (2, &client)]);
        assert!(matches!(clocks[1], Clock::Compared { requests: 10, .. }));
        assert_eq!(clocks[1].ahead_ms(), 0);
    }

    #[test]
    fn without_requests_in_common_nothing_is_said_of_a_clock() {
        let (one, two) = (noted(0..50, 0, 0), noted(48..90, 5_000, 0));
        assert_eq!(clocks(&[(1, &one), (1, &two)]), [Clock::Unchecked; 2]);
        assert_eq!(clocks(&[(1, &one), (1, &Noted::default())]), [Clock::Unchecked; 2]);
    }

    #[test]
    fn of_many_requests_files_note_the_same_ones() {
        let (one, two) = (noted(0..20_000, 0, 0), noted(0..20_000, 2_000, 0));
        assert_eq!(one.len(), MAX_NOTED);
        let clocks = clocks(&[(1, &one), (1, &two)]);
        assert_eq!(clocks[1], Clock::Compared { requests: MAX_NOTED, ahead_ms: 2_000, within_ms: 0 });
    }

    #[test]
    fn times_at_the_ends_of_their_range_do_no_harm() {
        let mut wild = Noted::default();
        for id in 0..10 {
            wild.note(&format!("request-{id}"), Some(Millis(u64::MAX)), Some(Millis(0)));
        }
        let clocks = clocks(&[(1, &noted(0..10, 0, 0)), (2, &wild)]);
        assert_eq!(clocks.len(), 2);
        let _ = clocks[1].ahead_ms();
    }
}
