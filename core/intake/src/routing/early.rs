//! Steps in the life of requests whose decision was not reported yet: the log with the decision is read later than the
//! message of its first token arrives. Must not know what a step means.

use std::collections::VecDeque;

use hashbrown::HashMap;

use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::moment::Moment;

/// Requests remembered: more than a router begins in the time that a log is read late. Where no log is given at all
/// every request comes by here, and 1 MiB is what that costs.
const MAX_REQUESTS: usize = 1 << 13;
/// A decision that is not reported after this long is never reported.
const KEPT_MS: u64 = 60_000;

/// What was reported of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Steps {
    /// First output token.
    pub(super) first_token: Option<Moment>,
    /// Its end, and the worker that it was on.
    pub(super) freed: Option<(Moment, WorkerIx)>,
}

impl Steps {
    /// Takes what else is reported; what was reported first counts.
    pub(super) fn fill(&mut self, more: Self) {
        self.first_token = self.first_token.or(more.first_token);
        self.freed = self.freed.or(more.freed);
    }
}

/// Steps by the router's request id.
#[derive(Default)]
pub(super) struct Early {
    requests: HashMap<Box<str>, Steps>,
    /// In order of their first step. Those taken since are passed over.
    order: VecDeque<(Millis, Box<str>)>,
}

impl Early {
    /// What is known of a request that is not known; `received` is when the message was received.
    pub(super) fn of(&mut self, request: &str, received: Millis) -> &mut Steps {
        if !self.requests.contains_key(request) {
            while self.order.len() >= MAX_REQUESTS
                || self.order.front().is_some_and(|(at, _)| received.since(*at) > KEPT_MS)
            {
                let Some((_, oldest)) = self.order.pop_front() else { break };
                self.requests.remove(&oldest);
            }
            self.order.push_back((received, request.into()));
        }
        self.requests.entry(request.into()).or_default()
    }

    /// Other workers take these places: an end on one who had them is an end on nobody.
    pub(super) fn vacate(&mut self, workers: &[WorkerIx]) {
        self.requests.values_mut().for_each(|steps| {
            steps.freed = steps.freed.filter(|(_, worker)| !workers.contains(worker));
        });
    }

    /// Takes what was reported of a request that is known from now on.
    pub(super) fn take(&mut self, request: &str) -> Option<Steps> {
        self.requests.remove(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_wait_for_their_decision_but_not_for_ever() {
        let mut early = Early::default();
        early.of("a", Millis(0)).first_token = Some(Moment(5));
        early.of("a", Millis(1)).freed = Some((Moment(9), WorkerIx(2)));
        let both = Steps { first_token: Some(Moment(5)), freed: Some((Moment(9), WorkerIx(2))) };
        assert_eq!(early.take("a"), Some(both));
        assert_eq!(early.take("a"), None);
        early.of("b", Millis(2)).first_token = Some(Moment(5));
        early.of("c", Millis(3 + KEPT_MS)).first_token = Some(Moment(5));
        assert_eq!(early.take("b"), None, "too long ago");
    }

    #[test]
    fn a_flood_of_requests_without_a_decision_costs_the_oldest() {
        let mut early = Early::default();
        for n in 0..2 * MAX_REQUESTS {
            early.of(&n.to_string(), Millis(0)).first_token = Some(Moment(1));
        }
        assert!(early.requests.len() <= MAX_REQUESTS && early.order.len() <= MAX_REQUESTS);
        assert!(early.take("0").is_none() && early.take(&(2 * MAX_REQUESTS - 1).to_string()).is_some());
    }
}
