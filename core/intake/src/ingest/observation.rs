//! What payloads become where they are no record yet: observations of requests, whose meaning depends on others of the
//! same request and on the state.

use radixscope_dynamo::active_sequence::ActiveSequence;
use radixscope_dynamo::client_result::ClientRecord;
use radixscope_dynamo::log_line::{GatewayChoice, LogRecord, PickerLine};
use radixscope_dynamo::otlp::RouteSpan;
use radixscope_dynamo::session_affinity::SessionAffinity;
use radixscope_dynamo::trace::{RequestTrace, TracedSelection};
use radixscope_model::id::{Millis, SourceIx, WorkerIx};
use radixscope_model::record::Entry;
use radixscope_state::cluster::Cluster;

/// Takes records as they arise.
pub(crate) type RecordOut<'o> = dyn FnMut(Entry<'_>) + 'o;

/// Something observed of a request.
#[derive(Debug)]
pub(crate) struct RequestObservation<'a> {
    /// Who received it.
    pub(crate) source: SourceIx,
    /// When it was received.
    pub(crate) at_ms: Millis,
    /// When it was published, by the publisher's clock, if reported.
    pub(crate) published_ms: Option<Millis>,
    /// What time it is for who published it, see [`super::Ingest::now`].
    pub(crate) now_ms: Millis,
    /// What was observed.
    pub(crate) signal: RequestSignal<'a>,
}

/// What can be observed of a request. Workers are known to the state by the time this is passed on.
#[derive(Debug)]
pub(crate) enum RequestSignal<'a> {
    /// A router published the hit rate of a choice (0.8, 0.9).
    HitRate {
        /// The chosen worker.
        worker: WorkerIx,
        /// Publisher id of the router.
        router: Option<u64>,
        /// Prompt length in blocks, rounded up.
        isl_blocks: u64,
        /// Blocks of it that the worker held.
        overlap_blocks: u64,
    },
    /// A step in a request's life.
    Sequence {
        /// Where it runs.
        worker: WorkerIx,
        /// What happened to which request.
        step: &'a ActiveSequence<'a>,
    },
    /// A session is bound to a worker.
    SessionAffinity {
        /// Whom it is bound to.
        worker: WorkerIx,
        /// Which session.
        affinity: &'a SessionAffinity<'a>,
    },
    /// A line of a log.
    Log {
        /// Name of the log. Lines of one log come in order.
        log: &'a str,
        /// Its contents.
        record: &'a LogRecord<'a>,
        /// The worker it names.
        worker: Option<WorkerIx>,
    },
    /// The span of a routed request.
    RouteSpan {
        /// Its contents.
        span: &'a RouteSpan,
        /// The line of a log that says the same.
        record: &'a LogRecord<'a>,
        /// Where it ran.
        worker: WorkerIx,
    },
    /// A line of another router than Dynamo's about one of its choices.
    Picker {
        /// Name of the log. Lines of one log come in order.
        log: &'a str,
        /// Its time.
        record: &'a LogRecord<'a>,
        /// Its contents.
        line: &'a PickerLine<'a>,
        /// The workers that its endpoints are, in its order. `None`: there are too many.
        endpoints: &'a [Option<WorkerIx>],
    },
    /// A choice of SGLang's model gateway, by its log.
    GatewayChoice {
        /// Its time.
        record: &'a LogRecord<'a>,
        /// Its contents.
        choice: &'a GatewayChoice<'a>,
        /// The chosen worker.
        worker: WorkerIx,
    },
    /// What each candidate of a choice cost, by the router's trace.
    TracedSelection {
        /// Its contents.
        selection: &'a TracedSelection<'a>,
        /// The candidates that have places here.
        candidates: &'a [(WorkerIx, f64)],
    },
    /// What a client measured of a request.
    ClientResult {
        /// Its contents.
        result: &'a ClientRecord<'a>,
    },
    /// A request's trace, at its end.
    Trace {
        /// Its contents.
        trace: &'a RequestTrace<'a>,
        /// Where it was prefilled, or where it ran.
        worker: Option<WorkerIx>,
        /// Where it was decoded, if reported.
        decode: Option<WorkerIx>,
    },
}

/// The publisher of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Published {
    /// When, by the publisher's clock.
    pub(crate) at_ms: Option<Millis>,
    /// Whether a worker published under its own id, as it does up to Dynamo 1.2.
    pub(crate) is_own_id: Option<bool>,
}

/// Takes what payloads become.
pub(crate) trait Sink {
    /// The state after the last record.
    fn cluster(&self) -> &Cluster;
    /// Takes a record.
    fn record(&mut self, entry: Entry<'_>);
    /// Takes a record of a message with a time, as KV events have, with what is known of its publisher.
    fn published(&mut self, entry: &Entry<'_>, by: Published);
    /// Takes something observed of a request.
    fn observe(&mut self, observation: RequestObservation<'_>);
}
