//! Choices whose line does not name the request, pending until the line that follows does (Dynamo 1.3): two alike choices
//! of one worker could else be taken for one another. Must not know what a choice says.

use std::collections::VecDeque;

use super::book::FOLLOWS_MS;
use radixscope_model::id::{Millis, SourceIx, WorkerIx};
use radixscope_model::micros::Micros;

/// A log of a source.
pub(super) type Log<'a> = (SourceIx, &'a str);

/// Most pending choices of all logs: the line that names one is written within a millisecond, so that more than a frontend has
/// threads are never pending, except queries, which are never named.
const MAX_PENDING: usize = 256;
/// So long a choice stays pending, by the clock of who receives: a log is read twice a second, and one read may end between the
/// two lines.
const PENDING_MS: u64 = 1_000;

/// A choice `T`.
struct PendingChoice<T> {
    source: SourceIx,
    log: Box<str>,
    worker: WorkerIx,
    /// When it was written and when it was read.
    at: Micros,
    read_ms: Millis,
    choice: T,
}

/// Choices that wait for their names.
pub(super) struct Unidentified<T> {
    pending: VecDeque<PendingChoice<T>>,
}

impl<T> Default for Unidentified<T> {
    fn default() -> Self {
        Self { pending: VecDeque::new() }
    }
}

impl<T> Unidentified<T> {
    /// Holds a choice of `worker` that was written at `at`. Gives the one that has to make room.
    pub(super) fn push(
        &mut self,
        log: Log<'_>,
        worker: WorkerIx,
        (at, read_ms): (Micros, Millis),
        choice: T,
    ) -> Option<(WorkerIx, T)> {
        let is_full = self.pending.len() == MAX_PENDING;
        let oldest = is_full.then(|| self.pending.pop_front()).flatten();
        self.pending.push_back(PendingChoice {
            source: log.0,
            log: log.1.into(),
            worker,
            at,
            read_ms,
            choice,
        });
        oldest.map(|pending| (pending.worker, pending.choice))
    }

    /// The choice that a line of this log, written at `at`, names: the first one that it fits, because the router answers
    /// in the order in which it chose.
    pub(super) fn take(
        &mut self,
        log: Log<'_>,
        worker: WorkerIx,
        at: Micros,
        fits: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let earliest = at.minus_ms(FOLLOWS_MS);
        let place = self.pending.iter().position(|pending| {
            (pending.source, &*pending.log) == log
                && pending.worker == worker
                && (earliest..=at).contains(&pending.at)
                && fits(&pending.choice)
        })?;
        self.pending.remove(place).map(|pending| pending.choice)
    }

    /// The first choice that was not named in time, if there is one.
    pub(super) fn overdue(&mut self, now: Millis) -> Option<(WorkerIx, T)> {
        let is_overdue = self.pending.front().is_some_and(|pending| now.since(pending.read_ms) >= PENDING_MS);
        is_overdue.then(|| self.pending.pop_front()).flatten().map(|pending| (pending.worker, pending.choice))
    }

    /// The choices of a log, all of them.
    pub(super) fn of_log(&mut self, log: Log<'_>) -> Vec<(WorkerIx, T)> {
        let (of_it, others) =
            self.pending.drain(..).partition(|pending| (pending.source, &*pending.log) == log);
        self.pending = others;
        let of_it: VecDeque<PendingChoice<T>> = of_it;
        of_it.into_iter().map(|pending| (pending.worker, pending.choice)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: Log<'static> = (SourceIx(1), "frontend");
    const W: WorkerIx = WorkerIx(1);

    fn at(ms: u64) -> (Micros, Millis) {
        (Micros::of(Millis(ms)), Millis(ms))
    }

    #[test]
    fn a_choice_is_named_by_the_next_line_of_its_log_and_worker() {
        let mut unidentified = Unidentified::default();
        for (worker, ms, choice) in [(0, 10, "query"), (1, 100, "a"), (1, 101, "b"), (0, 102, "c")] {
            assert!(unidentified.push(LOG, WorkerIx(worker), at(ms), choice).is_none());
        }
        assert_eq!(unidentified.take((SourceIx(2), "frontend"), W, at(102).0, |_| true), None);
        assert_eq!(unidentified.take(LOG, W, at(102).0, |choice| *choice != "a"), Some("b"));
        assert_eq!(
            unidentified.take(LOG, WorkerIx(0), at(103).0, |_| true),
            Some("c"),
            "not the query long before"
        );
        assert_eq!(unidentified.overdue(Millis(10 + PENDING_MS)), Some((WorkerIx(0), "query")));
        assert_eq!(unidentified.overdue(Millis(10 + PENDING_MS)), None);
        assert_eq!(unidentified.of_log((SourceIx(2), "frontend")), []);
        unidentified.push(LOG, WorkerIx(0), at(900), "d");
        assert_eq!(unidentified.of_log(LOG), [(W, "a"), (WorkerIx(0), "d")]);
        assert_eq!(unidentified.take(LOG, W, at(102).0, |_| true), None);
    }

    #[test]
    fn of_too_many_the_oldest_goes_without_a_name() {
        let mut unidentified = Unidentified::default();
        let given_up: Vec<_> =
            (0..=MAX_PENDING).filter_map(|n| unidentified.push(LOG, W, at(1), n)).collect();
        assert_eq!(given_up, [(W, 0)]);
    }
}
