//! What logs say of the path of KV events, summed up until the next flush.
//!
//! Whether a line is of the present shows only at the flush: a log is read from its beginning, and its last line comes
//! after the old ones.

use std::collections::BTreeMap;

use super::FRESH_MS;
use radixscope_model::id::{Millis, Worker};
use radixscope_model::record::LogSignal;

/// Sums kept apart. Beyond it lines that younger ones have made old are dropped, and others are added up without the
/// worker that they name.
const MAX_SUMS: usize = 1 << 14;
/// Beyond this, which takes sizes that no engine has, nothing new is taken.
const MAX_ALL: usize = 2 * MAX_SUMS;
/// Lines of one second are summed up together.
const SECOND_MS: u64 = 1_000;
/// In place of the second, for what stays true.
const ALWAYS: u64 = u64::MAX;

#[derive(Default)]
pub(super) struct LogSignals {
    /// By second, so that the oldest come first.
    sums: BTreeMap<(u64, LogSignal, Option<Worker>), u64>,
    /// Latest line since the last flush.
    latest: Millis,
    /// When the last of them was received.
    received: Millis,
}

/// The second before which lines are old.
fn oldest_second(now: Millis) -> u64 {
    now.0.saturating_sub(FRESH_MS) / SECOND_MS
}

/// Whether it is still true however old the line is: sizes and options do not change while a process runs.
fn stays_true(sign: LogSignal) -> bool {
    let is_size =
        matches!(sign, LogSignal::PublisherSize { .. } | LogSignal::Oversize { .. } | LogSignal::CardSizes);
    is_size || matches!(sign, LogSignal::KvEventsOff | LogSignal::PredictsOnRoute { .. })
}

impl LogSignals {
    /// A line written at `at` and received at `received` reported it.
    pub(super) fn add(&mut self, at: Millis, received: Millis, sign: LogSignal, worker: Option<Worker>) {
        self.latest = self.latest.max(at);
        self.received = self.received.max(received);
        let second = if stays_true(sign) { ALWAYS } else { at.0 / SECOND_MS };
        let is_new = !self.sums.contains_key(&(second, sign, worker));
        if is_new && self.sums.len() >= MAX_SUMS {
            let oldest = (oldest_second(self.latest), LogSignal::RouterStarted, None);
            self.sums = self.sums.split_off(&oldest);
        }
        let worker = worker.filter(|_| !is_new || self.sums.len() < MAX_SUMS);
        if self.sums.len() < MAX_ALL || !is_new {
            *self.sums.entry((second, sign, worker)).or_default() += 1;
        }
    }

    /// What was added since the last flush, without what is old at `now`, and when the last of it was received: a source that
    /// catches up delivers the past, which is over by the time of the flush.
    pub(super) fn flush(&mut self, now: Millis) -> (Millis, BTreeMap<(LogSignal, Option<Worker>), u64>) {
        let oldest = oldest_second(now);
        self.latest = Millis::default();
        let received = std::mem::take(&mut self.received);
        let mut fresh = BTreeMap::new();
        for ((second, sign, worker), count) in std::mem::take(&mut self.sums) {
            if second >= oldest {
                *fresh.entry((sign, worker)).or_default() += count;
            }
        }
        (received, fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_800_000_000_000);

    fn ago(ms: u64) -> Millis {
        Millis(NOW.0 - ms)
    }

    #[test]
    fn an_old_line_is_no_sign_of_the_present_unless_it_reports_a_size() {
        let mut signs = LogSignals::default();
        let size = LogSignal::PublisherSize { publisher: 16, engine: 32 };
        signs.add(ago(FRESH_MS + 1_000), ago(0), LogSignal::ParentUnknown, None);
        signs.add(ago(FRESH_MS), ago(9), LogSignal::BlockUnknown, None);
        signs.add(ago(FRESH_MS * 1_000), ago(1), size, None);
        signs.add(ago(0), ago(2), size, None);
        let (received, sums) = signs.flush(NOW);
        assert_eq!(Vec::from_iter(sums), [((LogSignal::BlockUnknown, None), 1), ((size, None), 2)]);
        assert_eq!(received, ago(0), "of the last line");
        assert!(signs.flush(NOW).1.is_empty(), "reported once");
    }

    #[test]
    fn memory_stays_bounded_and_no_line_of_the_present_goes_uncounted() {
        let mut signs = LogSignals::default();
        for i in 0..3 * MAX_SUMS as u64 {
            signs.add(ago(FRESH_MS * 1_000 - i), NOW, LogSignal::ParentUnknown, Some(Worker::new(i, 0)));
            signs.add(ago(0), NOW, LogSignal::BlockUnknown, Some(Worker::new(i, 0)));
        }
        assert!(signs.sums.len() <= MAX_SUMS + 1, "{}", signs.sums.len());
        let (_, sums) = signs.flush(NOW);
        assert_eq!(sums.values().sum::<u64>(), 3 * MAX_SUMS as u64);
        assert!(sums.keys().all(|(sign, _)| *sign == LogSignal::BlockUnknown));
        for publisher in 0..3 * MAX_ALL as u32 {
            signs.add(NOW, NOW, LogSignal::PublisherSize { publisher, engine: 1 }, None);
        }
        assert_eq!(signs.sums.len(), MAX_ALL);
    }
}
