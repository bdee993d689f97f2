//! Recent encoded batches for viewers that reconnect, bounded by bytes and age.

use std::collections::VecDeque;

use bytes::Bytes;
use radixscope_model::id::{Millis, Seq};

/// Maximum age of a batch: after a longer absence a snapshot is better.
const MAX_AGE_MS: u64 = 120_000;

/// A published batch.
#[derive(Clone, Debug)]
pub struct Published {
    /// Sequence number of its first record.
    pub first: Seq,
    /// Sequence number of the first record after it.
    pub next: Seq,
    /// Time of publication.
    pub at_ms: Millis,
    /// The encoded frame.
    pub frame: Bytes,
}

/// Recent batches without gaps.
pub(super) struct RecentLog {
    batches: VecDeque<Published>,
    bytes: usize,
    max_bytes: usize,
    /// First record that is not published yet.
    next: Seq,
}

impl RecentLog {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { batches: VecDeque::new(), bytes: 0, max_bytes, next: Seq(1) }
    }

    /// An empty log whose first batch begins with `next`.
    pub(super) fn beginning(max_bytes: usize, next: Seq) -> Self {
        Self { next, ..Self::new(max_bytes) }
    }

    /// Appends the next batch and drops the oldest ones beyond the limits.
    pub(super) fn push(&mut self, batch: Published) {
        debug_assert_eq!(batch.first, self.next);
        let now = batch.at_ms;
        self.next = batch.next;
        self.bytes += batch.frame.len();
        self.batches.push_back(batch);
        while let Some(oldest) = self.batches.front() {
            let is_old = now.since(oldest.at_ms) > MAX_AGE_MS;
            if !is_old && self.bytes <= self.max_bytes {
                break;
            }
            self.bytes -= oldest.frame.len();
            self.batches.pop_front();
        }
    }

    /// First record that is not published yet.
    pub(super) fn next(&self) -> Seq {
        self.next
    }

    /// Bytes kept.
    pub(super) fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// The frames with all published records after `after`; the first may begin earlier. `None` if some were dropped.
    pub(super) fn after(&self, after: Seq) -> Option<impl Iterator<Item = &Bytes>> {
        let oldest = self.batches.front().map_or(self.next, |batch| batch.first);
        let wanted = Seq(after.0.checked_add(1)?);
        let from = self.batches.partition_point(move |batch| batch.next <= wanted);
        (wanted >= oldest).then(move || self.batches.range(from..).map(|batch| &batch.frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(first: u64, next: u64, at_ms: u64) -> Published {
        Published {
            first: Seq(first),
            next: Seq(next),
            at_ms: Millis(at_ms),
            frame: Bytes::from(format!("{first}..{next}")),
        }
    }

    fn log() -> RecentLog {
        let mut log = RecentLog::new(1_000);
        log.push(batch(1, 4, 10));
        log.push(batch(4, 6, 20));
        log.push(batch(6, 9, 30));
        log
    }

    fn after(log: &RecentLog, seq: u64) -> Option<Vec<String>> {
        log.after(Seq(seq)).map(|frames| frames.map(|f| String::from_utf8_lossy(f).into_owned()).collect())
    }

    #[test]
    fn resuming_sends_every_batch_with_a_newer_record() {
        let log = log();
        assert_eq!(after(&log, 0).unwrap(), ["1..4", "4..6", "6..9"]);
        assert_eq!(after(&log, 3).unwrap(), ["4..6", "6..9"]);
        assert_eq!(after(&log, 4).unwrap(), ["4..6", "6..9"]);
        assert_eq!(after(&log, 8).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn an_empty_log_resumes_only_from_its_end() {
        let log = RecentLog::new(10);
        assert_eq!(after(&log, 0).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_was_forgotten_cannot_be_resumed() {
        let mut log = RecentLog::new(8);
        log.push(batch(1, 4, 10));
        log.push(batch(4, 6, 20));
        log.push(batch(6, 9, 30));
        assert_eq!(log.len_bytes(), 8);
        assert_eq!(after(&log, 2), None);
        assert_eq!(after(&log, 3).unwrap(), ["4..6", "6..9"]);
    }

    #[test]
    fn old_batches_are_forgotten() {
        let mut log = log();
        log.push(batch(9, 10, 30 + MAX_AGE_MS));
        assert_eq!(after(&log, 0), None);
        assert_eq!(after(&log, 5).unwrap(), ["6..9", "9..10"]);
    }
}
