//! What a line of Dynamo's log can say about routing; knows nothing of how it is written.

use std::borrow::Cow;

use super::endpoint_picker::PickerLine;
use super::printed::Printed;
use super::sglang_gateway::GatewayChoice;
use radixscope_model::id::{Worker, WorkerId};
#[cfg(doc)]
use radixscope_model::record::MAX_SESSION_BYTES;
use radixscope_model::record::{LogSignal, Role, RouterNumbers, RoutingMode};

/// The contents of a line.
#[derive(Clone, PartialEq, Debug)]
pub enum LogEvent<'a> {
    /// The cost of one candidate (INFO up to 0.9, DEBUG 1.0 – 1.5).
    Formula(Formula<'a>),
    /// The cheapest candidates cost the same; the tree's size decides (0.8 – 1.1). Stands between the formulas and
    /// the selection of one decision.
    Tie(Tie<'a>),
    /// A decision.
    Selected(Selected<'a>),
    /// A worker was chosen by another mode than by KV (≥ 1.5).
    SelectedWithoutKv(SelectedWithoutKv<'a>),
    /// The router looked for the worker that a session is bound to (≥ 1.6, DEBUG).
    SessionLookup(SessionLookup<'a>),
    /// The chosen worker is given the request (1.3, 1.4). Not written for a query that runs nothing.
    Dispatched(Dispatched<'a>),
    /// The overlap of the chosen worker (≥ 1.0, DEBUG).
    RoutingBest(RoutingBest<'a>),
    /// What the router looked up (≥ 1.1, DEBUG).
    RoutingInput(RoutingInput<'a>),
    /// The end of a routed request, as the router saw it (≥ 1.5). Not written for a query that runs nothing.
    RouteDone(RouteDone<'a>),
    /// A worker could not be reached for a request that was not routed by KV (≥ 1.5); of one routed by KV
    /// [`RouteDone::unreachable`] is that case.
    Unreachable(Unreachable<'a>),
    /// The router skips the prefill pool: the decode worker computes the prompt (≥ 1.5, INFO).
    PrefillBypassed(PrefillBypassed<'a>),
    /// The router looked up cached blocks anew, because the request had waited for long (≥ 1.3, INFO).
    OverlapRefreshed(OverlapRefreshed<'a>),
    /// The end of a request of a frontend in direct mode: the worker that the request named (≥ 1.5). Nothing else names it.
    RoutedDirectly(RoutedDirectly<'a>),
    /// A request was accepted over HTTP (≥ 1.1).
    RequestReceived(RequestReceived<'a>),
    /// The end of a request, as the frontend measured it (≥ 1.1).
    RequestDone(RequestDone<'a>),
    /// What a frontend's routers were started with (≥ 1.6; all of them at DEBUG, those of prefill pools at INFO).
    StartedWith(StartedWith),
    /// The router begins to count load for a worker.
    WorkerAdded(Worker),
    /// The router forgets the load of a worker.
    WorkerRemoved(Worker),
    /// The router forgets all ranks of a worker, because its instance left the discovery (0.9).
    InstanceRemoved(WorkerId),
    /// A step of a choice of an endpoint picker.
    Picker(PickerLine<'a>),
    /// A choice of SGLang's model gateway.
    GatewayChoice(GatewayChoice<'a>),
    /// The process stops: what its router removes from now on has not left.
    Stopping,
    /// Something of the path of KV events, of both kinds of process.
    Signal {
        /// What.
        sign: LogSignal,
        /// Of which worker, if the line names one; rank 0 where it names none.
        worker: Option<Worker>,
    },
}

/// Settings of routers at their start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StartedWith {
    /// What the workers do that these routers choose among. Decode routers get settings of their own, which no line has.
    pub roles: &'static [Role],
    /// The settings, as far as they are numbers that this version knows.
    pub numbers: RouterNumbers,
}

impl LogEvent<'_> {
    /// The worker that the line is about; of rank 0 where it names none.
    pub const fn worker(&self) -> Option<Worker> {
        match self {
            LogEvent::Formula(formula) => Some(formula.worker),
            LogEvent::Selected(selected) => Some(selected.worker),
            LogEvent::Dispatched(dispatched) => Some(dispatched.worker),
            LogEvent::RoutingBest(best) => Some(best.worker),
            LogEvent::RouteDone(done) => Some(done.worker),
            LogEvent::SelectedWithoutKv(selected) => Some(Worker { id: selected.worker, dp_rank: 0 }),
            LogEvent::WorkerAdded(worker) | LogEvent::WorkerRemoved(worker) => Some(*worker),
            LogEvent::Signal { worker, .. } => *worker,
            LogEvent::SessionLookup(lookup) => lookup.bound_to,
            LogEvent::PrefillBypassed(bypassed) => Some(bypassed.worker),
            LogEvent::RoutedDirectly(routed) => Some(Worker { id: routed.worker, dp_rank: 0 }),
            LogEvent::Tie(_)
            | LogEvent::Picker(_)
            | LogEvent::GatewayChoice(_)
            | LogEvent::Stopping
            | LogEvent::StartedWith(_)
            | LogEvent::Unreachable(_)
            | LogEvent::RoutingInput(_)
            | LogEvent::OverlapRefreshed(_)
            | LogEvent::RequestReceived(_)
            | LogEvent::RequestDone(_)
            | LogEvent::InstanceRemoved(_) => None,
        }
    }

    /// The ids of the request that the line is about: the router's and that of the HTTP span, as far as it has them.
    pub fn request_ids(&self) -> (Option<&str>, Option<&str>) {
        match self {
            LogEvent::Formula(Formula { ids, .. })
            | LogEvent::Tie(Tie { ids })
            | LogEvent::Selected(Selected { ids, .. })
            | LogEvent::SelectedWithoutKv(SelectedWithoutKv { ids, .. })
            | LogEvent::SessionLookup(SessionLookup { ids, .. })
            | LogEvent::Dispatched(Dispatched { ids, .. })
            | LogEvent::RoutingBest(RoutingBest { ids, .. })
            | LogEvent::Unreachable(Unreachable { ids, .. })
            | LogEvent::PrefillBypassed(PrefillBypassed { ids, .. })
            | LogEvent::RoutedDirectly(RoutedDirectly { ids, .. }) => {
                (ids.router.as_deref(), ids.http.as_deref())
            }
            LogEvent::RoutingInput(RoutingInput { request_id, http_id, .. })
            | LogEvent::RouteDone(RouteDone { request_id, http_id, .. })
            | LogEvent::RequestReceived(RequestReceived { request_id, http_id, .. })
            | LogEvent::RequestDone(RequestDone { request_id, http_id, .. }) => {
                (Some(&**request_id), http_id.as_deref())
            }
            LogEvent::OverlapRefreshed(OverlapRefreshed { request_id, .. }) => (Some(&**request_id), None),
            LogEvent::Picker(line) => (line.request_id.as_deref(), None),
            LogEvent::GatewayChoice(choice) => (choice.request_id.as_deref(), None),
            LogEvent::StartedWith(_)
            | LogEvent::WorkerAdded(_)
            | LogEvent::WorkerRemoved(_)
            | LogEvent::InstanceRemoved(_)
            | LogEvent::Stopping
            | LogEvent::Signal { .. } => (None, None),
        }
    }

    /// The worker that could not be reached, or that broke off, by this line. Its router leaves it out from then on, long
    /// before its lease ends.
    pub fn unreachable(&self) -> Option<(WorkerId, UnreachableWhy)> {
        match self {
            LogEvent::RouteDone(done) => Some((done.worker.id, done.unreachable()?)),
            LogEvent::Unreachable(unreachable) => Some((unreachable.worker, unreachable.why)),
            _ => None,
        }
    }

    /// The same without the line it was read from.
    pub fn into_owned(self) -> LogEvent<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            LogEvent::Stopping => LogEvent::Stopping,
            LogEvent::Picker(line) => LogEvent::Picker(line.into_owned()),
            LogEvent::GatewayChoice(choice) => LogEvent::GatewayChoice(choice.into_owned()),
            LogEvent::StartedWith(started) => LogEvent::StartedWith(started),
            LogEvent::WorkerAdded(worker) => LogEvent::WorkerAdded(worker),
            LogEvent::WorkerRemoved(worker) => LogEvent::WorkerRemoved(worker),
            LogEvent::InstanceRemoved(id) => LogEvent::InstanceRemoved(id),
            LogEvent::Signal { sign, worker } => LogEvent::Signal { sign, worker },
            LogEvent::Formula(event) => LogEvent::Formula(Formula { ids: event.ids.into_owned(), ..event }),
            LogEvent::Tie(event) => LogEvent::Tie(Tie { ids: event.ids.into_owned() }),
            LogEvent::Selected(event) => LogEvent::Selected(event.to_owned()),
            LogEvent::SelectedWithoutKv(event) => {
                LogEvent::SelectedWithoutKv(SelectedWithoutKv { ids: event.ids.into_owned(), ..event })
            }
            LogEvent::SessionLookup(event) => LogEvent::SessionLookup(SessionLookup {
                ids: event.ids.into_owned(),
                session_id: own(event.session_id),
                ..event
            }),
            LogEvent::PrefillBypassed(event) => {
                LogEvent::PrefillBypassed(PrefillBypassed { ids: event.ids.into_owned(), ..event })
            }
            LogEvent::OverlapRefreshed(event) => {
                LogEvent::OverlapRefreshed(OverlapRefreshed { request_id: own(event.request_id), ..event })
            }
            LogEvent::RoutedDirectly(event) => {
                LogEvent::RoutedDirectly(RoutedDirectly { ids: event.ids.into_owned(), ..event })
            }
            LogEvent::Unreachable(event) => {
                LogEvent::Unreachable(Unreachable { ids: event.ids.into_owned(), ..event })
            }
            LogEvent::Dispatched(event) => {
                LogEvent::Dispatched(Dispatched { ids: event.ids.into_owned(), ..event })
            }
            LogEvent::RoutingBest(event) => {
                LogEvent::RoutingBest(RoutingBest { ids: event.ids.into_owned(), ..event })
            }
            LogEvent::RoutingInput(event) => LogEvent::RoutingInput(RoutingInput {
                request_id: own(event.request_id),
                http_id: event.http_id.map(own),
                ..event
            }),
            LogEvent::RouteDone(event) => LogEvent::RouteDone(RouteDone {
                request_id: own(event.request_id),
                http_id: event.http_id.map(own),
                outcome: event.outcome.map(own),
                ..event
            }),
            LogEvent::RequestReceived(event) => LogEvent::RequestReceived(RequestReceived {
                request_id: own(event.request_id),
                http_id: event.http_id.map(own),
                model: event.model.map(own),
            }),
            LogEvent::RequestDone(event) => LogEvent::RequestDone(RequestDone {
                request_id: own(event.request_id),
                http_id: event.http_id.map(own),
                model: event.model.map(own),
                status: event.status.map(own),
                ..event
            }),
        }
    }
}

/// The ids by which a line names its request. Text bears both, the HTTP span's behind the line's own; JSONL has room
/// for one, the router's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestIds<'a> {
    /// The router's id of the request.
    pub router: Option<Cow<'a, str>>,
    /// The id of the HTTP span that the line was written in. Another one than the router's.
    pub http: Option<Cow<'a, str>>,
}

impl RequestIds<'_> {
    /// What identifies the lines of one request: the router's id, else the HTTP span's. `None`: the line
    /// names no request, and lines of one decision follow each other.
    pub fn key(&self) -> Option<&str> {
        self.router.as_deref().or(self.http.as_deref())
    }

    /// The same without the line it was read from.
    pub fn into_owned(self) -> RequestIds<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        RequestIds { router: self.router.map(own), http: self.http.map(own) }
    }
}

/// The cheapest candidates of a decision cost the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tie<'a> {
    /// Of which request (1.1).
    pub ids: RequestIds<'a>,
}

/// The chosen worker is given a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dispatched<'a> {
    /// Which request.
    pub ids: RequestIds<'a>,
    /// The chosen worker.
    pub worker: Worker,
    /// Full blocks of the prompt that it held when it was chosen.
    pub overlap_blocks: u64,
    /// For which part of the request.
    pub phase: Option<Role>,
}

/// The cost of one candidate, term by term (reference §5, §7.3).
#[derive(Clone, PartialEq, Debug)]
pub struct Formula<'a> {
    /// Of which request: by the HTTP span's id (1.1, 1.2 as text), the router's (1.1, 1.2 as JSONL; 1.4, 1.5) or by
    /// none.
    pub ids: RequestIds<'a>,
    /// The candidate.
    pub worker: Worker,
    /// Whether the request was bound to this worker, so that nothing was compared (≥ 1.1).
    pub pinned: bool,
    /// Blocks that it holds already; from 1.2 on weighted by the memory they lie in.
    pub cached_blocks: Printed,
    /// The cost, in blocks, before any multiplier for taints; the smallest wins.
    pub logit: Printed,
    /// How it is made up.
    pub terms: Terms,
}

/// The terms of a [`Formula`], all in blocks but weights and the decay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Terms {
    /// Formula A (0.8 – 1.1): `weight · prefill + decode`.
    Weighted {
        /// `overlap_score_weight`.
        weight: Printed,
        /// Tokens to prefill over the block size.
        prefill_blocks: Printed,
        /// Blocks of active requests and of this one.
        decode_blocks: Printed,
    },
    /// Formulas B – D (1.2 – 1.5): `scale · max(0, raw − credit) + decode [+ active requests]`.
    Scaled {
        /// `prefill_load_scale`.
        scale: Printed,
        /// `max(0, raw_prefill_blocks − overlap_credit_blocks)`.
        adjusted_prefill_blocks: Printed,
        /// Blocks of active requests and of this one.
        decode_blocks: Printed,
        /// Weighted number of active requests (≥ 1.4).
        active_request_blocks: Option<Printed>,
        /// Tokens to prefill over the block size, as if nothing of this request were cached.
        raw_prefill_blocks: Printed,
        /// What the cache is worth.
        overlap_credit_blocks: Printed,
        /// Factor on the credit of a worker with more to prefill than others (≥ 1.3).
        overlap_credit_decay: Option<Printed>,
        /// Blocks that only the shared cache holds, and what each is worth.
        shared: Option<(u64, Printed)>,
    },
    /// The decode branch of formula D (1.4, 1.5): `max(0, decode − credit) + active requests`.
    Decode {
        /// Blocks of active requests and of this one.
        decode_blocks: Printed,
        /// What the cache is worth.
        overlap_credit_blocks: Printed,
        /// Weighted number of active requests.
        active_request_blocks: Printed,
    },
}

/// A decision, by the KV-aware mode alone.
#[derive(Clone, PartialEq, Debug)]
pub struct Selected<'a> {
    /// Of which request: by the HTTP span's id (1.1, 1.2 as text), the router's (1.1, 1.2 as JSONL; ≥ 1.4) or by none.
    pub ids: RequestIds<'a>,
    /// The chosen worker.
    pub worker: Worker,
    /// Its role: [`Role::Prefill`], or [`Role::Decode`] also where workers do both (≥ 1.1).
    pub worker_type: Option<Role>,
    /// Whether the request was bound to this worker, so that nothing was compared (≥ 1.2).
    pub pinned: bool,
    /// Its cost, in blocks.
    pub logit: Printed,
    /// Blocks that it holds already; from 1.2 on weighted by the memory they lie in.
    pub cached_blocks: Option<Printed>,
    /// Blocks in the router's table of this worker, 0 if it has no overlap with this request (≤ 1.1).
    pub tree_size_blocks: Option<u64>,
    /// Blocks that the worker has room for.
    pub total_blocks: Option<u64>,
    /// Overlap in the worker's host memory (≥ 1.2).
    pub host_pinned_blocks: Option<u64>,
    /// Overlap on the worker's disk (≥ 1.2).
    pub disk_blocks: Option<u64>,
}

impl Selected<'_> {
    /// The same without the line it was read from.
    pub fn to_owned(&self) -> Selected<'static> {
        Selected { ids: self.ids.clone().into_owned(), ..self.clone() }
    }
}

/// A choice of a mode that looks at no cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectedWithoutKv<'a> {
    /// Of which request: by the HTTP span's id in text, by the router's in JSONL.
    pub ids: RequestIds<'a>,
    /// The chosen worker; these modes do not choose a rank.
    pub worker: WorkerId,
    /// How it was chosen.
    pub mode: RoutingMode,
    /// Workers that it was chosen from, where the mode compares them.
    pub candidate_count: Option<u64>,
    /// Requests that ran on it, where the mode counts them.
    pub occupancy: Option<u64>,
}

/// What a router knows of a session when it routes a request of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionLookup<'a> {
    /// Of which request: by the HTTP span's id.
    pub ids: RequestIds<'a>,
    /// The session, at most [`MAX_SESSION_BYTES`].
    pub session_id: Cow<'a, str>,
    /// The worker that it is bound to. `None`: to none yet; it will be to the one that is chosen.
    pub bound_to: Option<Worker>,
}

/// A request skips the prefill pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrefillBypassed<'a> {
    /// Which request.
    pub ids: RequestIds<'a>,
    /// The decode worker that computes its prompt.
    pub worker: Worker,
}

/// What a choice rests on was looked up once more when the request had waited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OverlapRefreshed<'a> {
    /// The router's id of the request.
    pub request_id: Cow<'a, str>,
    /// How long it had waited in the router's queue, in milliseconds.
    pub wait_ms: u64,
}

/// A request that named its worker has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoutedDirectly<'a> {
    /// Which request.
    pub ids: RequestIds<'a>,
    /// The worker; the line names no rank.
    pub worker: WorkerId,
    /// How it ended.
    pub ending: Ending,
}

/// A worker could not be reached for a request that was not routed by KV.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreachable<'a> {
    /// Which request.
    pub ids: RequestIds<'a>,
    /// The worker.
    pub worker: WorkerId,
    /// What happened.
    pub why: UnreachableWhy,
}

/// How a router found out that a worker is not there (≥ 1.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnreachableWhy {
    /// No connection to it could be made.
    ConnectionFailed,
    /// It broke off while it answered.
    Disconnected,
}

impl UnreachableWhy {
    /// Of a `request.outcome`; `None`: one that the worker is no reason of.
    pub(super) fn of(outcome: &str) -> Option<Self> {
        match outcome {
            "connection_failed" => Some(Self::ConnectionFailed),
            "worker_disconnected" => Some(Self::Disconnected),
            _ => None,
        }
    }
}

/// The overlap of the chosen worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoutingBest<'a> {
    /// Of which request.
    pub ids: RequestIds<'a>,
    /// The chosen worker.
    pub worker: Worker,
    /// Full blocks of the prompt that it holds already.
    pub overlap_blocks: u64,
    /// Length of the prompt in blocks, rounded up.
    pub total_blocks: u64,
}

/// What the router looked up: enough to compute every worker's overlap anew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoutingInput<'a> {
    /// The router's id of the request.
    pub request_id: Cow<'a, str>,
    /// The id of the HTTP span around it, where the line has room for it.
    pub http_id: Option<Cow<'a, str>>,
    /// Length of the prompt in tokens.
    pub isl_tokens: u64,
    /// The router's block size, in tokens.
    pub block_size_tokens: u64,
    /// Full blocks of the prompt, as the line counts them.
    pub num_blocks: u64,
    /// Tokens hashes of the full blocks (reference §5.10), at most as many as the line has room for.
    pub local_hashes: Vec<u64>,
}

/// The end of a routed request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteDone<'a> {
    /// The router's id of the request.
    pub request_id: Cow<'a, str>,
    /// The id of the HTTP span around it, where the line has room for it.
    pub http_id: Option<Cow<'a, str>>,
    /// Where it ran.
    pub worker: Worker,
    /// Full blocks of the prompt that the worker held when it was chosen; of a decode worker always 0, for its router does not
    /// look.
    pub overlap_blocks: Option<u64>,
    /// Which part of the request it is.
    pub phase: Option<Role>,
    /// How it ended.
    pub ending: Ending,
    /// The same in Dynamo's finer words: `success`, `cancelled`, `error`, `rejected`, `timeout` …
    pub outcome: Option<Cow<'a, str>>,
}

impl RouteDone<'_> {
    /// Why the request failed, if its worker is the reason.
    pub fn unreachable(&self) -> Option<UnreachableWhy> {
        self.outcome.as_deref().filter(|_| self.ending == Ending::Failed).and_then(UnreachableWhy::of)
    }
}

/// How a routed request ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ending {
    /// To the end.
    Completed,
    /// Given up by the client.
    Cancelled,
    /// By a fault.
    Failed,
}

/// A request was accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestReceived<'a> {
    /// The router's id of the request.
    pub request_id: Cow<'a, str>,
    /// The id of the HTTP span around it, where the line has room for it.
    pub http_id: Option<Cow<'a, str>>,
    /// Name of the model.
    pub model: Option<Cow<'a, str>>,
}

/// The end of a request, as the frontend measured it.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestDone<'a> {
    /// The router's id of the request.
    pub request_id: Cow<'a, str>,
    /// The id of the HTTP span around it, where the line has room for it.
    pub http_id: Option<Cow<'a, str>>,
    /// Name of the model.
    pub model: Option<Cow<'a, str>>,
    /// `success`, or what went wrong.
    pub status: Option<Cow<'a, str>>,
    /// Length of the prompt in tokens.
    pub input_tokens: Option<u64>,
    /// Tokens generated.
    pub output_tokens: Option<u64>,
    /// Time to the first token, in milliseconds.
    pub ttft_ms: Option<f64>,
    /// Mean time between tokens, in milliseconds.
    pub avg_itl_ms: Option<f64>,
    /// From the request's arrival to its end, in milliseconds.
    pub elapsed_ms: Option<f64>,
    /// Where the prompt was read: the same as `decode_worker` unless the deployment is disaggregated.
    pub prefill_worker: Option<WorkerId>,
    /// Where tokens were generated.
    pub decode_worker: Option<WorkerId>,
}
