//! Steps in the life of requests whose decision was not reported yet: the log with the decision is read later than the
//! message of its first token arrives. Must not know what a step means.

use std::collections::VecDeque;

use hashbrown::HashMap;

use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::moment::Moment;

/// Requests remembered: more than a router begins in the time that a log is read late. Where no log is given at all
/// every request comes by here, and 1 MiB is what that costs.
const MAX_REQUESTS: usize = 1 << 13;
/// Pools that a request is routed in.
const MAX_POOLS: usize = 3;
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
    fn fill(&mut self, more: Self) {
        self.first_token = self.first_token.or(more.first_token);
        self.freed = self.freed.or(more.freed);
    }
}

/// Steps by the router's request id, for each pool that the request was routed in.
#[derive(Default)]
pub(super) struct Early {
    requests: HashMap<Box<str>, Vec<(PoolIx, Steps)>>,
    /// In order of their first step. Those taken since are passed over.
    order: VecDeque<(Millis, Box<str>)>,
}

impl Early {
    /// Takes steps in `pool` of a request whose decision there is not known; `received` is when the message was.
    pub(super) fn fill(&mut self, request: &str, pool: PoolIx, received: Millis, more: Steps) {
        if !self.requests.contains_key(request) {
            while self.order.len() >= MAX_REQUESTS
                || self.order.front().is_some_and(|(at, _)| received.since(*at) > KEPT_MS)
            {
                let Some((_, oldest)) = self.order.pop_front() else { break };
                self.requests.remove(&oldest);
            }
            self.order.push_back((received, request.into()));
        }
        let parts = self.requests.entry(request.into()).or_default();
        match parts.iter().position(|(of, _)| *of == pool) {
            Some(at) => parts[at].1.fill(more),
            None if parts.len() < MAX_POOLS => parts.push((pool, more)),
            None => {}
        }
    }

    /// Takes what was reported in `pool` of a request whose decision there is known from now on.
    pub(super) fn take(&mut self, request: &str, pool: PoolIx) -> Option<Steps> {
        let parts = self.requests.get_mut(request)?;
        let at = parts.iter().position(|(of, _)| *of == pool)?;
        let (_, steps) = parts.swap_remove(at);
        if parts.is_empty() {
            self.requests.remove(request);
        }
        Some(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: PoolIx = PoolIx(0);

    #[test]
    fn steps_wait_for_their_decision_but_not_for_ever() {
        let mut early = Early::default();
        let first_token = Steps { first_token: Some(Moment(5)), ..Steps::default() };
        let freed = Steps { freed: Some((Moment(9), WorkerIx(2))), ..Steps::default() };
        early.fill("a", POOL, Millis(0), first_token);
        early.fill("a", POOL, Millis(1), freed);
        early.fill("a", PoolIx(1), Millis(1), freed);
        let both = Steps { freed: freed.freed, ..first_token };
        assert_eq!(early.take("a", POOL), Some(both));
        assert_eq!(early.take("a", POOL), None);
        assert_eq!(early.take("a", PoolIx(1)), Some(freed), "the other part of the request");
        early.fill("b", POOL, Millis(2), first_token);
        early.fill("c", POOL, Millis(3 + KEPT_MS), first_token);
        assert_eq!(early.take("b", POOL), None, "too long ago");
    }

    #[test]
    fn a_flood_of_requests_without_a_decision_costs_the_oldest() {
        let mut early = Early::default();
        for n in 0..2 * MAX_REQUESTS {
            let first_token = Steps { first_token: Some(Moment(1)), ..Steps::default() };
            early.fill(&n.to_string(), POOL, Millis(0), first_token);
        }
        assert!(early.requests.len() <= MAX_REQUESTS && early.order.len() <= MAX_REQUESTS);
        assert!(
            early.take("0", POOL).is_none()
                && early.take(&(2 * MAX_REQUESTS - 1).to_string(), POOL).is_some()
        );
    }
}
