//! Which pieces are of one decision. A request has a decision in each pool that it is routed in: one, or one for prefill
//! and one for decode.
//!
//! Where a request id is reported it decides. There are two: the router's, and that of the HTTP span around it, which some
//! lines tell alone; others tell both and so make them one. `kv-hit-rate` and the logs of Dynamo up to 1.0, and the
//! choices of 1.3, tell none: pieces are of one decision if worker, overlap and prompt length agree and the router's
//! clock says nearly the same in both. Messages of 0.8 bear no time: theirs is that of their receipt, less what they
//! usually need to come.

use std::collections::VecDeque;

use hashbrown::HashMap;

use radixscope_model::id::{DecisionId, Millis, PoolIx, WorkerIx};
use radixscope_model::record::DecisionSource;

/// Most by which the times of two pieces of one decision differ. Both are the frontend's clock: what lies between is
/// the time from its decision to its publishing or logging it, under load some tens of milliseconds.
const WINDOW_MS: u64 = 1_000;
/// A line that names the request follows the line of its choice, which does not, within this time. Of several choices
/// that such a line may follow, it follows the first: the router answers in the order in which it chose.
pub(super) const FOLLOWS_MS: u64 = 50;
/// Decisions that pieces without a request id may still belong to.
const MAX_RECENT: usize = 2_048;
/// Pools that one request is routed in: prefill and decode, with one to spare.
const MAX_PARTS: usize = 3;
/// Request ids remembered, and as many ids of HTTP spans.
const MAX_REQUESTS: usize = 1 << 16;

/// What a piece tells that shows which decision it is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct CorrelationKey<'a> {
    /// What kind of piece. A decision has one of each.
    pub(super) source: DecisionSource,
    /// When the router decided, as the piece tells it.
    pub(super) at_ms: Millis,
    /// Whether the piece tells no time, so that `at_ms` is when it was received.
    pub(super) is_received: bool,
    /// Whether its log names every request that runs, and named none here: a query, which other sources do not tell.
    pub(super) is_query: bool,
    /// The chosen worker.
    pub(super) worker: WorkerIx,
    /// The pool it is in.
    pub(super) pool: PoolIx,
    /// The router's id of the request.
    pub(super) request_id: Option<&'a str>,
    /// The id of the HTTP span of the request.
    pub(super) http_id: Option<&'a str>,
    /// Blocks that the worker held, by the router's count.
    pub(super) overlap_blocks: Option<u64>,
    /// Prompt length in blocks, rounded up.
    pub(super) isl_blocks: Option<u64>,
}

struct Recent {
    id: DecisionId,
    at_ms: Millis,
    is_received: bool,
    is_query: bool,
    worker: WorkerIx,
    overlap_blocks: Option<u64>,
    isl_blocks: Option<u64>,
    sources: u8,
    has_request_id: bool,
}

/// A decision and where it sent its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Placed {
    pub(super) id: DecisionId,
    pub(super) worker: WorkerIx,
    pub(super) pool: PoolIx,
}

/// The decisions of one request, in the order in which they were received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Parts([Option<Placed>; MAX_PARTS]);

impl Parts {
    pub(super) fn iter(&self) -> impl Iterator<Item = Placed> + '_ {
        self.0.iter().flatten().copied()
    }

    /// The one on `worker`, else the one in `pool`: a request that failed on one worker goes to another of its pool.
    pub(super) fn part(&self, worker: WorkerIx, pool: PoolIx) -> Option<Placed> {
        let on_worker = self.iter().find(|placed| placed.worker == worker);
        on_worker.or_else(|| self.iter().find(|placed| placed.pool == pool))
    }

    /// Takes a decision in; one that is known, or too many, changes nothing.
    fn add(&mut self, placed: Placed) {
        if self.iter().all(|known| known.id != placed.id)
            && let Some(free) = self.0.iter_mut().find(|place| place.is_none())
        {
            *free = Some(placed);
        }
    }
}

/// What the id of an HTTP span stands for.
#[derive(Default)]
struct Span {
    request_id: Option<Box<str>>,
    parts: Parts,
}

/// Gives every piece the id of its decision.
#[derive(Default)]
pub(super) struct Joiner {
    last: u64,
    by_request: Bounded<Parts>,
    by_http: Bounded<Span>,
    recent: VecDeque<Recent>,
    /// How long after the decision pieces without a time were received, as the last one showed that could be of one
    /// decision only.
    delay_ms: u64,
}

impl Joiner {
    /// Goes on counting after this decision.
    pub(super) fn resume(&mut self, last: DecisionId) {
        self.last = last.0;
    }

    /// The decisions of a request that is known by either id; empty: none is.
    pub(super) fn parts(&self, request_id: Option<&str>, http_id: Option<&str>) -> Parts {
        let is_known = |parts: &Parts| parts.iter().next().is_some();
        let by_request = |id: &str| self.by_request.get(id).copied().filter(is_known);
        let by_http = || {
            let span = self.by_http.get(http_id?)?;
            // A client may send the same id twice: it then stands for the latest request.
            let is_other =
                request_id.is_some() && span.request_id.is_some() && span.request_id.as_deref() != request_id;
            let own = Some(span.parts).filter(|parts| !is_other && is_known(parts));
            own.or_else(|| by_request(span.request_id.as_deref()?))
        };
        request_id.and_then(by_request).or_else(by_http).unwrap_or_default()
    }

    /// The router's id of the request in an HTTP span.
    pub(super) fn request_in(&self, http_id: &str) -> Option<&str> {
        self.by_http.get(http_id)?.request_id.as_deref()
    }

    /// Both ids are of one request.
    pub(super) fn same(&mut self, request_id: &str, http_id: &str) {
        let span = self.by_http.entry(http_id);
        match span.request_id.as_deref() {
            Some(known) if known == request_id => {}
            Some(_) => *span = Span { request_id: Some(request_id.into()), parts: Parts::default() },
            None => span.request_id = Some(request_id.into()),
        }
        let parts = span.parts;
        if parts.iter().next().is_some() {
            let known = self.by_request.entry(request_id);
            parts.iter().for_each(|placed| known.add(placed));
        }
    }

    /// The decision that a piece is of: one that is known, or a new one.
    pub(super) fn decision(&mut self, key: &CorrelationKey<'_>) -> DecisionId {
        if let (Some(request_id), Some(http_id)) = (key.request_id, key.http_id) {
            self.same(request_id, http_id);
        }
        let known =
            self.parts(key.request_id, key.http_id).part(key.worker, key.pool).map(|placed| placed.id);
        let id = known.or_else(|| self.anonymous(key)).unwrap_or_else(|| self.begin(key));
        let placed = Placed { id, worker: key.worker, pool: key.pool };
        if let Some(http_id) = key.http_id {
            self.by_http.entry(http_id).parts.add(placed);
        }
        let in_span = key.http_id.and_then(|http_id| self.by_http.get(http_id)?.request_id.clone());
        if let Some(request_id) = key.request_id.or(in_span.as_deref()) {
            self.by_request.entry(request_id).add(placed);
        }
        id
    }

    /// The only choice of `worker` within a time that no request is known of: it may be that of a request whose own lines
    /// do not name it otherwise.
    pub(super) fn only_nameless(&mut self, worker: WorkerIx, from: Millis, to: Millis) -> Option<DecisionId> {
        let mut fitting = self.recent.iter_mut().rev().filter(|recent| {
            recent.worker == worker && !recent.has_request_id && recent.at_ms >= from && recent.at_ms <= to
        });
        let only = fitting.next()?;
        if fitting.next().is_some() {
            return None;
        }
        only.has_request_id = true;
        Some(only.id)
    }

    /// From now on a decision is that of a request.
    pub(super) fn name(&mut self, request_id: &str, placed: Placed) {
        self.by_request.entry(request_id).add(placed);
    }

    fn anonymous(&mut self, key: &CorrelationKey<'_>) -> Option<DecisionId> {
        let bit = 1 << key.source as u8;
        let agree = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
        let has_id = key.request_id.is_some() || key.http_id.is_some();
        // Up to 1.3 only the second line of a choice names the request.
        let is_later_line = key.source == DecisionSource::Log && key.request_id.is_some();
        let far = |recent: &Recent| recent.at_ms.0.abs_diff(key.at_ms.0);
        let delay_ms = self.delay_ms;
        let off = |recent: &Recent| match (recent.is_received, key.is_received) {
            (false, true) => key.at_ms.0.abs_diff(recent.at_ms.0 + delay_ms),
            (true, false) => recent.at_ms.0.abs_diff(key.at_ms.0 + delay_ms),
            _ => far(recent),
        };
        let follows = |recent: &Recent| {
            is_later_line
                && recent.sources & bit != 0
                && recent.at_ms <= key.at_ms
                && far(recent) <= FOLLOWS_MS
        };
        let fitting = self.recent.iter_mut().filter(|recent| {
            recent.worker == key.worker
                && (recent.sources & bit == 0 || is_later_line)
                && !(recent.has_request_id && (has_id || key.is_query))
                && !(recent.is_query && has_id && !is_later_line)
                && agree(recent.overlap_blocks, key.overlap_blocks)
                && agree(recent.isl_blocks, key.isl_blocks)
                && far(recent) <= WINDOW_MS
        });
        let mut count = 0;
        let (_, found) = fitting.inspect(|_| count += 1).enumerate().min_by_key(|(place, recent)| {
            match follows(recent) {
                true => (0, *place as u64),
                false => (1, off(recent)),
            }
        })?;
        if count == 1 && found.is_received != key.is_received {
            let (received, decided) =
                if key.is_received { (key.at_ms, found.at_ms) } else { (found.at_ms, key.at_ms) };
            self.delay_ms = received.since(decided);
        }
        found.sources |= bit;
        found.has_request_id |= has_id;
        found.overlap_blocks = found.overlap_blocks.or(key.overlap_blocks);
        found.isl_blocks = found.isl_blocks.or(key.isl_blocks);
        Some(found.id)
    }

    fn begin(&mut self, key: &CorrelationKey<'_>) -> DecisionId {
        self.last += 1;
        let id = DecisionId(self.last);
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Recent {
            id,
            at_ms: key.at_ms,
            is_received: key.is_received,
            is_query: key.is_query,
            worker: key.worker,
            overlap_blocks: key.overlap_blocks,
            isl_blocks: key.isl_blocks,
            sources: 1 << key.source as u8,
            has_request_id: key.request_id.is_some() || key.http_id.is_some(),
        });
        id
    }
}

/// What is known by an id, of the latest [`MAX_REQUESTS`] ids.
struct Bounded<T> {
    known: HashMap<Box<str>, T>,
    order: VecDeque<Box<str>>,
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self { known: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> Bounded<T> {
    fn get(&self, id: &str) -> Option<&T> {
        self.known.get(id)
    }
}

impl<T: Default> Bounded<T> {
    /// The place of `id`.
    fn entry(&mut self, id: &str) -> &mut T {
        if !self.known.contains_key(id) {
            if self.order.len() == MAX_REQUESTS
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
            self.order.push_back(id.into());
        }
        self.known.entry(id.into()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DecisionSource::{ActiveSequences, KvHitRate, Log};

    fn of_request(joiner: &Joiner, request_id: &str) -> Option<DecisionId> {
        joiner.parts(Some(request_id), None).iter().next().map(|placed| placed.id)
    }

    fn marks(source: DecisionSource, at_ms: u64) -> CorrelationKey<'static> {
        CorrelationKey {
            source,
            at_ms: Millis(at_ms),
            is_received: false,
            is_query: false,
            worker: WorkerIx(0),
            pool: PoolIx(0),
            request_id: None,
            http_id: None,
            overlap_blocks: Some(3),
            isl_blocks: None,
        }
    }

    #[test]
    fn a_log_line_and_a_message_of_one_decision_meet_in_either_order() {
        let mut joiner = Joiner::default();
        let a = joiner.decision(&marks(KvHitRate, 1_000));
        assert_eq!(joiner.decision(&marks(Log, 1_003)), a);
        let b = joiner.decision(&marks(Log, 5_000));
        assert_ne!(a, b);
        assert_eq!(joiner.decision(&CorrelationKey { isl_blocks: Some(9), ..marks(KvHitRate, 4_990) }), b);
    }

    #[test]
    fn two_alike_decisions_stay_two() {
        let mut joiner = Joiner::default();
        let a = joiner.decision(&marks(KvHitRate, 1_000));
        let b = joiner.decision(&marks(KvHitRate, 1_100));
        assert_ne!(a, b);
        assert_eq!(joiner.decision(&marks(Log, 1_101)), b, "the nearer one");
        assert_eq!(joiner.decision(&marks(Log, 1_001)), a);
    }

    #[test]
    fn a_message_without_a_time_is_of_the_decision_from_which_it_took_as_long_as_others() {
        let mut joiner = Joiner::default();
        let received = |at_ms| CorrelationKey { is_received: true, ..marks(KvHitRate, at_ms) };
        let first = joiner.decision(&marks(Log, 1_000));
        assert_eq!(joiner.decision(&received(1_050)), first);
        let (a, b) = (joiner.decision(&marks(Log, 5_000)), joiner.decision(&marks(Log, 5_010)));
        assert_eq!((joiner.decision(&received(5_049)), joiner.decision(&received(5_061))), (a, b));
        // Lines that are read behind their messages bear their own times.
        let (a, b) = (joiner.decision(&received(9_050)), joiner.decision(&received(9_060)));
        assert_eq!((joiner.decision(&marks(Log, 9_001)), joiner.decision(&marks(Log, 9_011))), (a, b));
    }

    #[test]
    fn a_query_is_of_no_request_that_a_message_names() {
        let mut joiner = Joiner::default();
        let with = |id, at_ms| CorrelationKey { request_id: Some(id), ..marks(ActiveSequences, at_ms) };
        let query = |at_ms| CorrelationKey { is_query: true, ..marks(Log, at_ms) };
        let a = joiner.decision(&with("a", 1_002));
        let asked = joiner.decision(&query(1_000));
        assert_ne!(asked, a);
        let b = joiner.decision(&with("b", 1_004));
        assert!(b != asked && b != a);
        assert_eq!(joiner.only_nameless(WorkerIx(0), Millis(999), Millis(1_001)), Some(asked));
    }

    #[test]
    fn pieces_that_contradict_each_other_or_lie_far_apart_are_of_two_decisions() {
        let mut joiner = Joiner::default();
        let a = joiner.decision(&marks(KvHitRate, 1_000));
        assert_ne!(joiner.decision(&CorrelationKey { overlap_blocks: Some(4), ..marks(Log, 1_000) }), a);
        assert_ne!(joiner.decision(&CorrelationKey { worker: WorkerIx(1), ..marks(Log, 1_000) }), a);
        assert_ne!(joiner.decision(&marks(Log, 1_000 + WINDOW_MS + 1)), a);
    }

    #[test]
    fn a_request_id_decides_over_everything_else() {
        let mut joiner = Joiner::default();
        let with = |source, at_ms, id| CorrelationKey { request_id: Some(id), ..marks(source, at_ms) };
        let a = joiner.decision(&with(Log, 1_000, "a"));
        let b = joiner.decision(&with(ActiveSequences, 1_001, "b"));
        assert_ne!(a, b);
        assert_eq!(joiner.decision(&with(ActiveSequences, 90_000, "a")), a);
        assert_eq!(of_request(&joiner, "b"), Some(b));
        assert_eq!(of_request(&joiner, "c"), None);
    }

    #[test]
    fn a_request_has_a_decision_in_each_pool() {
        let mut joiner = Joiner::default();
        let on = |worker, pool| CorrelationKey {
            request_id: Some("a"),
            worker: WorkerIx(worker),
            pool: PoolIx(pool),
            ..marks(ActiveSequences, 1_000)
        };
        let (prefill, decode) = (joiner.decision(&on(0, 0)), joiner.decision(&on(2, 1)));
        assert_ne!(prefill, decode);
        assert_eq!(joiner.decision(&on(0, 0)), prefill);
        assert_eq!(joiner.decision(&on(3, 1)), decode, "tried again on another worker of the pool");
        let parts: Vec<_> = joiner.parts(Some("a"), None).iter().map(|placed| placed.id).collect();
        assert_eq!(parts, [prefill, decode]);
    }

    #[test]
    fn lines_that_name_the_http_span_alone_are_of_the_request_that_others_name_with_it() {
        let mut joiner = Joiner::default();
        joiner.same("r1", "h1");
        let of = |request_id, http_id, at_ms| CorrelationKey { request_id, http_id, ..marks(Log, at_ms) };
        let a = joiner.decision(&of(None, Some("h1"), 1_000));
        assert_eq!(of_request(&joiner, "r1"), Some(a));
        // Attached in between: the names come behind the choice.
        let b = joiner.decision(&of(None, Some("h2"), 1_001));
        assert_eq!(of_request(&joiner, "r2"), None);
        joiner.same("r2", "h2");
        assert_eq!(of_request(&joiner, "r2"), Some(b));
        assert_eq!(joiner.decision(&of(Some("r2"), None, 60_000)), b);
        // An id of the client's that comes again is another request.
        joiner.same("r3", "h2");
        let c = joiner.decision(&of(None, Some("h2"), 70_000));
        assert_ne!(b, c);
        assert_eq!((of_request(&joiner, "r2"), of_request(&joiner, "r3")), (Some(b), Some(c)));
    }

    #[test]
    fn of_several_nameless_choices_of_a_worker_the_first_is_named_first() {
        let mut joiner = Joiner::default();
        let choice = |at_ms| CorrelationKey { overlap_blocks: None, ..marks(Log, at_ms) };
        let named = |id, at_ms| CorrelationKey { request_id: Some(id), ..marks(Log, at_ms) };
        let probe = joiner.decision(&choice(100));
        let (a, b) = (joiner.decision(&choice(1_000)), joiner.decision(&choice(1_001)));
        assert_eq!(joiner.decision(&named("a", 1_001)), a);
        assert_eq!(joiner.decision(&named("b", 1_001)), b);
        assert_eq!(joiner.only_nameless(WorkerIx(0), Millis(99), Millis(101)), Some(probe));
        assert_eq!(joiner.only_nameless(WorkerIx(0), Millis(99), Millis(101)), None, "it has a name now");
    }
}
