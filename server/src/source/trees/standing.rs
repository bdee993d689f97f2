//! Where asking workers stands, in words: who answers, who does not, and what to do.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use radixscope_dynamo::tree_query::{QueryFailed, QueryFault};
use radixscope_model::id::Worker;
use radixscope_model::record::LinkState;

/// Workers whose last query is remembered: those that were queried last, because others may have left.
const MAX_WORKERS: usize = 8_192;
/// How long a failure counts: longer than until a worker that is still there is asked again.
const KEPT: Duration = Duration::from_secs(6 * 60);

/// What came of the last query of each worker.
#[derive(Default)]
pub(super) struct TargetComparison {
    last: HashMap<Worker, Last>,
}

struct Last {
    at: Instant,
    has_answered: bool,
    /// `None`: it answered.
    failure: Option<QueryFailed>,
}

impl TargetComparison {
    /// A query came to its end. One that nobody waited for says nothing.
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
        let has_answered = self.last.get(&worker).is_some_and(|last| last.has_answered);
        let failure = failure.filter(|failure| {
            // One that went away is no fault of asking.
            !(has_answered && matches!(failure.why, QueryFault::Unreachable | QueryFault::Truncated))
        });
        let has_answered = has_answered || failure.is_none();
        self.last.insert(worker, Last { at: now, has_answered, failure: failure.cloned() });
    }

    /// The state, and in words.
    pub(super) fn to_text(&mut self, now: Instant, closed: u64) -> (LinkState, String) {
        self.last.retain(|_, last| last.failure.is_none() || now.duration_since(last.at) < KEPT);
        let failing = self.last.iter().filter_map(|(worker, last)| Some((worker, last.failure.as_ref()?)));
        let (mut count, mut first) = (0, None);
        for (worker, failure) in failing {
            count += 1;
            if first.is_none_or(|(known, _)| worker < known) {
                first = Some((worker, failure));
            }
        }
        let all = self.last.len();
        let (state, mut words) = match first {
            None if all == 0 => {
                (LinkState::Live, "No worker had to be asked for its blocks so far.".to_owned())
            }
            None if all == 1 => {
                (LinkState::Live, "1 worker answers when it is asked for its blocks.".to_owned())
            }
            None => (LinkState::Live, format!("{all} workers answer when they are asked for their blocks.")),
            Some((worker, failure)) => {
                let state = match failure.why {
                    _ if count < all => LinkState::Partial,
                    QueryFault::Unreachable | QueryFault::Truncated => LinkState::Connecting,
                    _ => LinkState::Refused,
                };
                let words = format!(
                    "{count} of {all} workers did not answer when they were asked for their blocks. Worker {worker}: {}",
                    failure.words
                );
                (state, words)
            }
        };
        if closed > 0 {
            words.push_str(" Connections of others to the port for answers were closed.");
        }
        (state, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_does_not_answer_is_named_until_it_does_or_is_forgotten() {
        let mut standing = TargetComparison::default();
        let start = Instant::now();
        let [one, two] = [1, 2].map(|id| Worker::new(id, 0));
        assert_eq!(standing.to_text(start, 0).0, LinkState::Live);
        let failure = |why| QueryFailed { why, words: "Open port 9.".to_owned() };
        standing.note(one, Some(&failure(QueryFault::NoCallback)), start);
        let (state, words) = standing.to_text(start, 0);
        assert_eq!(state, LinkState::Refused);
        assert_eq!(
            words,
            "1 of 1 workers did not answer when they were asked for their blocks. Worker 1/0: Open port 9."
        );
        standing.note(two, None, start);
        assert_eq!(standing.to_text(start, 0).0, LinkState::Partial);
        standing.note(two, Some(&failure(QueryFault::Cancelled)), start);
        assert_eq!(standing.to_text(start, 0).0, LinkState::Partial, "nobody waited for it");
        let later = start + KEPT;
        assert_eq!(standing.to_text(later, 0).0, LinkState::Live, "it was not asked any more");
        standing.note(one, Some(&failure(QueryFault::Unreachable)), later);
        standing.note(one, None, later);
        standing.note(one, Some(&failure(QueryFault::Unreachable)), later);
        let (state, words) = standing.to_text(later, 3);
        assert_eq!(state, LinkState::Live);
        assert!(words.starts_with("2 workers answer") && words.contains("closed"), "{words}");
    }
}
