//! How many requests run on each worker: from choice to end, as far as both are reported.
//!
//! Counts requests alone; what they load a worker with is [`super::ActiveSequences`], which needs their prompts.
//!
//! # How it works
//!
//! A request runs on a worker from its choice to its end, and only workers of which an end was ever received have a
//! number: others would add up for ever. A query that runs nothing ends with its `request completed` line. Of blocks,
//! those whose engine hash is divisible by 16 are followed from stored to removed and to stored again: a mask on the
//! way to the fold, some 3 % of decoding and folding together. Dropping everything at once (cleared, gone) is no end
//! of a life. Whether engines name one path differently costs nothing: the tree sees it when a worker comes to hold a
//! block that another holds.

use std::collections::VecDeque;

use hashbrown::HashMap;

use radixscope_model::id::{DecisionId, Millis, WorkerIx};
use radixscope_model::record::Record;
use radixscope_state::per_worker::PerWorker;
use radixscope_state::requests::EXPIRE_MS;

/// Requests remembered, those that ended included: the line of a choice may be read after the message of its end.
const MAX_REQUESTS: usize = 1 << 16;
/// Workers that one request is on at a time: one that prefills and one that decodes.
const MAX_PARTS: usize = 2;

/// Requests by worker.
#[derive(Default)]
pub(super) struct InFlight {
    /// Where each request was sent, with whether it still runs there.
    requests: HashMap<DecisionId, Vec<(WorkerIx, bool)>>,
    /// In order of choice, for expiry.
    order: VecDeque<(Millis, DecisionId)>,
    workers: PerWorker<OfWorker>,
}

#[derive(Default)]
struct OfWorker {
    now: u32,
    most: u32,
    /// Numbers reported last.
    reported: (u32, u32),
    /// Whether an end was ever received. Without, requests would only add up.
    ends: bool,
}

impl InFlight {
    /// A router chose `worker`; received at `at`.
    pub(super) fn begin(&mut self, at: Millis, request: DecisionId, worker: WorkerIx) {
        if self.order.len() == MAX_REQUESTS {
            self.forget_oldest();
        }
        let parts = self.requests.entry(request).or_insert_with(|| {
            self.order.push_back((at, request));
            Vec::new()
        });
        if parts.len() == MAX_PARTS || parts.iter().any(|(known, _)| *known == worker) {
            return;
        }
        parts.push((worker, true));
        let of = self.workers.of(worker);
        of.now += 1;
        of.most = of.most.max(of.now);
    }

    /// A request is over: on `worker`, or everywhere.
    pub(super) fn end(&mut self, request: DecisionId, worker: Option<WorkerIx>) {
        for worker in self.stop(request, |at| worker.is_none_or(|worker| worker == at)) {
            self.workers.of(worker).ends = true;
        }
    }

    /// Reports every worker's numbers that changed. Those of a worker that is gone are gone.
    pub(super) fn flush(
        &mut self,
        at: Millis,
        has_left: impl Fn(WorkerIx) -> bool,
        records: &mut Vec<Record<'static>>,
    ) {
        while self.order.front().is_some_and(|(begun, _)| at.since(*begun) > EXPIRE_MS) {
            self.forget_oldest();
        }
        let busy = self.workers.iter_mut().filter(|(_, of)| of.now > 0).map(|(worker, _)| worker);
        let departed: Vec<WorkerIx> = busy.filter(|&worker| has_left(worker)).collect();
        if !departed.is_empty() {
            let requests: Vec<DecisionId> = self.requests.keys().copied().collect();
            for request in requests {
                self.stop(request, |worker| departed.contains(&worker));
            }
        }
        for (worker, of) in self.workers.iter_mut() {
            let (now, most) = (of.now, of.most);
            of.most = now;
            if of.ends && of.reported != (now, most) {
                of.reported = (now, most);
                records.push(Record::InFlight { worker, now, most });
            }
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, request)) = self.order.pop_front() {
            self.stop(request, |_| true);
            self.requests.remove(&request);
        }
    }

    /// Takes a request from the workers where it still runs and that are `meant`; gives which.
    fn stop(&mut self, request: DecisionId, meant: impl Fn(WorkerIx) -> bool) -> Vec<WorkerIx> {
        let Self { requests, workers, .. } = self;
        let mut stopped = Vec::new();
        for (worker, runs) in requests.get_mut(&request).into_iter().flatten() {
            if *runs && meant(*worker) {
                *runs = false;
                if let Some(of) = workers.get_mut(*worker) {
                    of.now -= 1;
                }
                stopped.push(*worker);
            }
        }
        stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: WorkerIx = WorkerIx(1);

    #[derive(Default)]
    struct RequestObservation(InFlight);

    impl RequestObservation {
        fn flush(&mut self, at: u64) -> Vec<(u32, u32, u32)> {
            self.flush_without(at, None)
        }

        fn flush_without(&mut self, at: u64, departed: Option<WorkerIx>) -> Vec<(u32, u32, u32)> {
            let mut records = Vec::new();
            self.0.flush(Millis(at), |worker| departed == Some(worker), &mut records);
            let numbers = |record| match record {
                Record::InFlight { worker, now, most } => (worker.0, now, most),
                other => panic!("{other:?}"),
            };
            records.into_iter().map(numbers).collect()
        }

        fn begin(&mut self, at: u64, request: u64, worker: WorkerIx) {
            self.0.begin(Millis(at), DecisionId(request), worker);
        }

        fn end(&mut self, request: u64, worker: Option<WorkerIx>) {
            self.0.end(DecisionId(request), worker);
        }
    }

    #[test]
    fn numbers_are_reported_when_they_change_with_the_most_at_once_in_between() {
        let mut counts = RequestObservation::default();
        counts.begin(0, 1, W);
        counts.begin(0, 2, W);
        counts.end(1, Some(W));
        assert_eq!(counts.flush(1_000), [(1, 1, 2)]);
        assert_eq!(counts.flush(2_000), [(1, 1, 1)]);
        assert_eq!(counts.flush(3_000), []);
        counts.end(2, None);
        assert_eq!(counts.flush(4_000), [(1, 0, 1)]);
        assert_eq!(counts.flush(5_000), [(1, 0, 0)]);
    }

    #[test]
    fn without_any_received_end_there_is_no_number() {
        let mut counts = RequestObservation::default();
        counts.begin(0, 1, W);
        counts.end(7, Some(W));
        assert_eq!(counts.flush(1_000), [], "the end of a request that began before us");
        counts.begin(0, 2, W);
        counts.end(2, Some(W));
        assert_eq!(counts.flush(2_000), [(1, 1, 2)], "now the first one counts as well");
    }

    #[test]
    fn a_choice_that_is_read_after_its_end_does_not_begin_again() {
        let mut counts = RequestObservation::default();
        counts.begin(0, 1, W);
        counts.end(1, None);
        counts.begin(1, 1, W);
        assert_eq!(counts.flush(1_000), [(1, 0, 1)]);
    }

    #[test]
    fn a_request_on_two_workers_ends_on_each() {
        let mut counts = RequestObservation::default();
        counts.begin(0, 1, WorkerIx(0));
        counts.begin(0, 1, W);
        counts.end(1, Some(WorkerIx(0)));
        assert_eq!(counts.flush(1_000), [(0, 0, 1)]);
        counts.end(1, None);
        assert_eq!(counts.flush(2_000), [(0, 0, 0), (1, 0, 1)]);
    }

    #[test]
    fn requests_that_never_end_expire_and_those_of_a_worker_that_left_go_with_it() {
        let mut counts = RequestObservation::default();
        counts.begin(0, 1, W);
        counts.begin(0, 2, W);
        counts.begin(EXPIRE_MS, 3, W);
        counts.end(1, None);
        assert_eq!(counts.flush(EXPIRE_MS), [(1, 2, 3)]);
        assert_eq!(counts.flush(EXPIRE_MS + 1), [(1, 1, 2)]);
        assert_eq!(counts.flush_without(EXPIRE_MS + 2, Some(W)), [(1, 0, 1)]);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut counts = RequestObservation::default();
        for request in 0..2 * MAX_REQUESTS as u64 {
            counts.begin(0, request, W);
        }
        assert_eq!((counts.0.requests.len(), counts.0.order.len()), (MAX_REQUESTS, MAX_REQUESTS));
        counts.end(2 * MAX_REQUESTS as u64 - 1, None);
        assert_eq!(counts.flush(1).first().map(|counts| counts.1), Some(MAX_REQUESTS as u32 - 1));
    }
}
