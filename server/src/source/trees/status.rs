//! The source's state and its description: how many workers respond to queries, and why others do not.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use radixscope_dynamo::tree_query::{QueryFailed, QueryFault};
use radixscope_model::id::Worker;
use radixscope_model::record::LinkState;

use crate::source::SourceStatus;

/// Maximum workers whose last result is remembered: those that were queried last, because others may have left.
const MAX_WORKERS: usize = 8_192;
/// How long a failure is shown: longer than the interval until the worker is queried again.
const FAILURE_REMEMBERED: Duration = Duration::from_secs(6 * 60);

/// The last result of each worker.
#[derive(Default)]
pub(super) struct QueryStatus {
    last: HashMap<Worker, Last>,
}

struct Last {
    at: Instant,
    has_responded: bool,
    /// `None`: it responded.
    failure: Option<QueryFailed>,
}

impl QueryStatus {
    /// Records the result of a query. Cancelled ones are ignored.
    pub(super) fn note(&mut self, worker: Worker, failure: Option<&QueryFailed>, now: Instant) {
        if failure.is_some_and(|failure| failure.why == QueryFault::Cancelled) {
            return;
        }
        if self.last.len() >= MAX_WORKERS
            && !self.last.contains_key(&worker)
            && let Some(oldest) = self.last.iter().min_by_key(|(_, last)| last.at).map(|(&worker, _)| worker)
        {
            self.last.remove(&oldest);
        }
        let has_responded = self.last.get(&worker).is_some_and(|last| last.has_responded);
        let failure = failure.filter(|failure| {
            // A worker that left is no failure.
            !(has_responded && matches!(failure.why, QueryFault::Unreachable | QueryFault::Truncated))
        });
        let has_responded = has_responded || failure.is_none();
        self.last.insert(worker, Last { at: now, has_responded, failure: failure.cloned() });
    }

    /// How the source is doing.
    pub(super) fn report(&mut self, now: Instant, closed: u64) -> SourceStatus {
        self.last
            .retain(|_, last| last.failure.is_none() || now.duration_since(last.at) < FAILURE_REMEMBERED);
        let failing = self.last.iter().filter_map(|(worker, last)| Some((worker, last.failure.as_ref()?)));
        let (mut count, mut first) = (0, None);
        for (worker, failure) in failing {
            count += 1;
            if first.is_none_or(|(known, _)| worker < known) {
                first = Some((worker, failure));
            }
        }
        let all = self.last.len();
        let (state, mut detail) = match first {
            None if all == 0 => (LinkState::Live, "No block queries needed so far.".to_owned()),
            None if all == 1 => (LinkState::Live, "1 worker answers block queries.".to_owned()),
            None => (LinkState::Live, format!("{all} workers answer block queries.")),
            Some((worker, failure)) => {
                let state = match failure.why {
                    _ if count < all => LinkState::Partial,
                    QueryFault::Unreachable | QueryFault::Truncated => LinkState::Connecting,
                    _ => LinkState::Refused,
                };
                let detail = format!(
                    "{count} of {all} workers did not answer block queries. Worker {worker}: {}",
                    failure.detail
                );
                (state, detail)
            }
        };
        if closed > 0 {
            detail.push_str(" Unexpected connections to the response port were closed.");
        }
        SourceStatus { state, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_does_not_answer_is_named_until_it_does_or_is_forgotten() {
        let mut status = QueryStatus::default();
        let start = Instant::now();
        let [one, two] = [1, 2].map(|id| Worker::new(id, 0));
        assert_eq!(status.report(start, 0).state, LinkState::Live);
        let failure = |why| QueryFailed { why, detail: "Open port 9.".to_owned() };
        status.note(one, Some(&failure(QueryFault::NoCallback)), start);
        let SourceStatus { state, detail } = status.report(start, 0);
        assert_eq!(state, LinkState::Refused);
        assert_eq!(detail, "1 of 1 workers did not answer block queries. Worker 1/0: Open port 9.");
        status.note(two, None, start);
        assert_eq!(status.report(start, 0).state, LinkState::Partial);
        status.note(two, Some(&failure(QueryFault::Cancelled)), start);
        assert_eq!(status.report(start, 0).state, LinkState::Partial, "cancelled");
        let later = start + FAILURE_REMEMBERED;
        assert_eq!(status.report(later, 0).state, LinkState::Live, "it was not queried again");
        status.note(one, Some(&failure(QueryFault::Unreachable)), later);
        status.note(one, None, later);
        status.note(one, Some(&failure(QueryFault::Unreachable)), later);
        let SourceStatus { state, detail } = status.report(later, 3);
        assert_eq!(state, LinkState::Live);
        assert!(detail.starts_with("2 workers answer") && detail.contains("closed"), "{detail}");
    }
}
