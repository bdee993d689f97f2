//! Which pieces are of one decision.
//!
//! Where a request id is reported it decides. There are two: the router's, and that of the HTTP span around it, which some
//! lines tell alone; others tell both and so make them one. `kv-hit-rate` and the logs of Dynamo up to 1.0, and the
//! choices of 1.3, tell none: pieces are of one decision if worker, overlap and prompt length agree and the router's
//! clock says nearly the same in both. Messages of 0.8 bear no time: theirs is that of their receipt, less what they
//! usually need to come.

use std::collections::VecDeque;

use hashbrown::HashMap;

use radixscope_model::id::{DecisionId, Millis, WorkerIx};
use radixscope_model::record::DecisionSource;

/// Most by which the times of two pieces of one decision differ. Both are the frontend's clock: what lies between is
/// the time from its decision to its publishing or logging it, under load some tens of milliseconds.
const WINDOW_MS: u64 = 1_000;
/// A line that names the request follows the line of its choice, which does not, within this time. Of several choices
/// that such a line may follow, it follows the first: the router answers in the order in which it chose.
pub(super) const FOLLOWS_MS: u64 = 50;
/// Decisions that pieces without a request id may still belong to.
const MAX_RECENT: usize = 2_048;
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
}

/// What the id of an HTTP span stands for.
#[derive(Default)]
struct Span {
    request_id: Option<Box<str>>,
    placed: Option<Placed>,
}

/// Gives every piece the id of its decision.
#[derive(Default)]
pub(super) struct Joiner {
    last: u64,
    by_request: Bounded<Placed>,
    by_http: Bounded<Span>,
    recent: VecDeque<Recent>,
    /// How long after the decision pieces without a time were received, as the last one showed that could be of one
    /// decision only.
    delay_ms: u64,
}

impl Joiner {
    /// Other workers take these places: nothing that is reported of those continues what was reported of these.
    pub(super) fn vacate(&mut self, workers: &[WorkerIx]) {
        self.recent.retain(|recent| !workers.contains(&recent.worker));
        self.by_request.known.retain(|_, placed| !workers.contains(&placed.worker));
        for span in self.by_http.known.values_mut() {
            span.placed = span.placed.filter(|placed| !workers.contains(&placed.worker));
        }
    }

    /// The decision of a request, if one is known.
    pub(super) fn of_request(&self, request_id: &str) -> Option<DecisionId> {
        self.placed(Some(request_id), None).map(|placed| placed.id)
    }

    /// The decision of a request that is known by either id, and its worker.
    pub(super) fn placed(&self, request_id: Option<&str>, http_id: Option<&str>) -> Option<Placed> {
        let by_request = |id: &str| self.by_request.get(id).copied();
        let by_http = || {
            let span = self.by_http.get(http_id?)?;
            // A client may send the same id twice: it then stands for the latest request.
            let is_other =
                request_id.is_some() && span.request_id.is_some() && span.request_id.as_deref() != request_id;
            span.placed.filter(|_| !is_other).or_else(|| by_request(span.request_id.as_deref()?))
        };
        request_id.and_then(by_request).or_else(by_http)
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
            Some(_) => *span = Span { request_id: Some(request_id.into()), placed: None },
            None => span.request_id = Some(request_id.into()),
        }
        if let Some(placed) = span.placed {
            self.by_request.entry_or(request_id, placed);
        }
    }

    /// The decision that a piece is of: one that is known, or a new one.
    pub(super) fn decision(&mut self, key: &CorrelationKey<'_>) -> DecisionId {
        if let (Some(request_id), Some(http_id)) = (key.request_id, key.http_id) {
            self.same(request_id, http_id);
        }
        let known = self.placed(key.request_id, key.http_id).map(|placed| placed.id);
        let id = known.or_else(|| self.anonymous(key)).unwrap_or_else(|| self.begin(key));
        let placed = Placed { id, worker: key.worker };
        if let Some(http_id) = key.http_id {
            self.by_http.entry(http_id).placed.get_or_insert(placed);
        }
        let in_span = key.http_id.and_then(|http_id| self.by_http.get(http_id)?.request_id.clone());
        if let Some(request_id) = key.request_id.or(in_span.as_deref()) {
            self.by_request.entry_or(request_id, placed);
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
        self.by_request.entry_or(request_id, placed);
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

    /// The place of `id`, with `first` in it if it is new.
    fn entry_or(&mut self, id: &str, first: T) -> &mut T {
        if !self.known.contains_key(id) {
            if self.order.len() == MAX_REQUESTS
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
            self.order.push_back(id.into());
        }
        self.known.entry(id.into()).or_insert(first)
    }
}

impl<T: Default> Bounded<T> {
    fn entry(&mut self, id: &str) -> &mut T {
        self.entry_or(id, T::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DecisionSource::{ActiveSequences, KvHitRate, Log};

    fn marks(source: DecisionSource, at_ms: u64) -> CorrelationKey<'static> {
        CorrelationKey {
            source,
            at_ms: Millis(at_ms),
            is_received: false,
            is_query: false,
            worker: WorkerIx(0),
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
        assert_eq!(joiner.of_request("b"), Some(b));
        assert_eq!(joiner.of_request("c"), None);
    }

    #[test]
    fn lines_that_name_the_http_span_alone_are_of_the_request_that_others_name_with_it() {
        let mut joiner = Joiner::default();
        joiner.same("r1", "h1");
        let of = |request_id, http_id, at_ms| CorrelationKey { request_id, http_id, ..marks(Log, at_ms) };
        let a = joiner.decision(&of(None, Some("h1"), 1_000));
        assert_eq!(joiner.of_request("r1"), Some(a));
        // Attached in between: the names come behind the choice.
        let b = joiner.decision(&of(None, Some("h2"), 1_001));
        assert_eq!(joiner.of_request("r2"), None);
        joiner.same("r2", "h2");
        assert_eq!(joiner.of_request("r2"), Some(b));
        assert_eq!(joiner.decision(&of(Some("r2"), None, 60_000)), b);
        // An id of the client's that comes again is another request.
        joiner.same("r3", "h2");
        let c = joiner.decision(&of(None, Some("h2"), 70_000));
        assert_ne!(b, c);
        assert_eq!((joiner.of_request("r2"), joiner.of_request("r3")), (Some(b), Some(c)));
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
