//! `dynamo.request_trace.v1`: a finished request, with times, worker and prompt hashes (≥ 1.4, reference §3.5); and what each candidate of
//! a choice cost (`router_selection`, ≥ 1.7, where `DYN_REQUEST_TRACE_RECORDS` names it).

use std::borrow::Cow;

use super::active_sequence::token_sequence;
use super::envelope::Format;
use super::error::{DecodeError, Reason};
use super::typed::{self, Bounded, Text, TextOrOther};
use radixscope_model::id::Worker;
use radixscope_model::record::{MAX_SESSION_BYTES, Topic};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The only schema there is so far.
const SCHEMA: &str = "dynamo.request.trace.v1";

/// A request at its end. Every field but the id may be missing.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RequestTrace<'a> {
    /// When the record was written, in milliseconds of Unix time.
    pub event_time_ms: Option<u64>,
    /// The router's id of the request.
    pub request_id: Cow<'a, str>,
    /// The client's own id of it.
    pub x_request_id: Option<Cow<'a, str>>,
    /// The session that its client named (≥ 1.6); at most [`MAX_SESSION_BYTES`].
    pub session_id: Option<Cow<'a, str>>,
    /// Name of the model.
    pub model: Option<Cow<'a, str>>,
    /// Length of the prompt in tokens.
    pub input_tokens: Option<u64>,
    /// Tokens generated; 0 also for a query that ran nothing.
    pub output_tokens: Option<u64>,
    /// Tokens of the prompt that the chosen worker held.
    pub cached_tokens: Option<u64>,
    /// When it arrived, in milliseconds of Unix time.
    pub request_received_ms: Option<u64>,
    /// From arrival to the start of the prefill, in milliseconds.
    pub prefill_wait_time_ms: Option<f64>,
    /// From the start of the prefill to the first token, in milliseconds.
    pub prefill_time_ms: Option<f64>,
    /// Time to the first token, in milliseconds.
    pub ttft_ms: Option<f64>,
    /// From arrival to the end, in milliseconds.
    pub total_time_ms: Option<f64>,
    /// Mean time between tokens, in milliseconds.
    pub avg_itl_ms: Option<f64>,
    /// Overlap of the chosen worker over the blocks of the prompt, 0 to 1.
    pub kv_hit_rate: Option<f64>,
    /// The router's estimate for moving KV blocks, in milliseconds.
    pub kv_transfer_estimated_latency_ms: Option<f64>,
    /// Requests that waited in the router when it arrived.
    pub queue_depth: Option<u64>,
    /// Where the prompt was read.
    pub prefill_worker: Option<Worker>,
    /// Where tokens were generated.
    pub decode_worker: Option<Worker>,
    /// The router's block size, in tokens.
    pub trace_block_size_tokens: Option<u64>,
    /// Length of the prompt in tokens, as it was hashed.
    pub input_length_tokens: Option<u64>,
    /// Chain hashes of the prompt's blocks, **with** that of a partial last block.
    pub input_sequence_hashes: Option<Vec<u64>>,
}

/// Most candidates that are read of one choice; Dynamo writes as many of the cheapest as `DYN_REQUEST_TRACE_ROUTER_SELECTION_TOP_K` says.
pub const MAX_CANDIDATES: usize = 4_096;

/// What each candidate of a choice cost. Which of them was chosen it does not say: among equal ones it need not be the first.
#[derive(Clone, PartialEq, Debug)]
pub struct TracedSelection<'a> {
    /// When the router chose, in milliseconds of Unix time.
    pub event_time_ms: Option<u64>,
    /// The router's id of the request.
    pub request_id: Cow<'a, str>,
    /// Whether the worker was given.
    pub is_pinned: bool,
    /// How many candidates there were.
    pub candidate_count: u64,
    /// The cheapest of them, cheapest first, each with its cost in blocks.
    pub candidates: Vec<(Worker, f64)>,
}

/// A record.
#[derive(Clone, PartialEq, Debug)]
pub enum TraceRecord<'a> {
    /// The end of a request.
    Ended(Box<RequestTrace<'a>>),
    /// A choice.
    Selected(TracedSelection<'a>),
}

/// Reads a record as it is published, or as a line of a file has it, under `event`. `None`: it is of another kind.
///
/// # Errors
/// The first thing that was not understood.
pub fn decode(body: &[u8]) -> Result<Option<TraceRecord<'_>>, DecodeError> {
    let mut record: Record<'_> = typed::decode(TOPIC, body, Format::Json)?;
    if let Some(event) = record.event.filter(|_| record.schema.is_none()) {
        record = typed::decode_json(TOPIC, event.get().as_bytes(), body)?;
    }
    let missing =
        |field| DecodeError::new(Reason::MissingField, format!("{TOPIC}: {field}: is missing (byte 0)"));
    if record.schema.ok_or_else(|| missing("schema"))?.0 != SCHEMA {
        let problem = format!("{TOPIC}: another schema than {SCHEMA} (byte 0)");
        return Err(DecodeError::new(Reason::UnknownKind, problem));
    }
    match &*record.event_type.ok_or_else(|| missing("event_type"))?.0 {
        REQUEST_END => {}
        ROUTER_SELECTION => {
            let selection = record.selection.ok_or_else(|| missing("selection"))?.get().as_bytes();
            let selection: Selection<'_> = typed::decode_json(TOPIC, selection, body)?;
            return Ok(Some(TraceRecord::Selected(selection.read(record.event_time_unix_ms))));
        }
        _ => return Ok(None),
    }
    let request = record.request.ok_or_else(|| missing("request"))?.get().as_bytes();
    let request: Request<'_> = typed::decode_json(TOPIC, request, body)?;
    // Without a session a request is traced all the same.
    let AgentContext { session_id } = typed::or_default(record.agent_context);
    let session_id = session_id.and_then(TextOrOther::text);
    let session_id = session_id.filter(|id| !id.is_empty() && id.len() <= MAX_SESSION_BYTES);
    let ended = RequestTrace { event_time_ms: record.event_time_unix_ms, session_id, ..request.into() };
    Ok(Some(TraceRecord::Ended(Box::new(ended))))
}

const TOPIC: &str = Topic::RequestTrace.as_str();

/// What a record is, as far as it has to be known before it is decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceKind {
    /// The end of a request, or a choice, in milliseconds of Unix time.
    At(u64),
    /// A record of another kind.
    Other,
    /// It cannot be told.
    Unknown,
}

impl TraceKind {
    /// Of a record as it is published, or of a line of a file, which has it under `event`.
    pub fn of(record: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(borrow)]
            event: Option<Event<'a>>,
            #[serde(borrow)]
            event_type: Option<Text<'a>>,
            event_time_unix_ms: Option<u64>,
        }
        #[derive(Deserialize)]
        struct Event<'a> {
            #[serde(borrow)]
            event_type: Option<Text<'a>>,
            event_time_unix_ms: Option<u64>,
        }
        let Ok(Line { event, event_type, event_time_unix_ms }) = serde_json::from_slice(record) else {
            return Self::Unknown;
        };
        let event = event.unwrap_or(Event { event_type, event_time_unix_ms });
        match (event.event_type, event.event_time_unix_ms) {
            (Some(Text(kind)), _) if ![REQUEST_END, ROUTER_SELECTION].contains(&&*kind) => Self::Other,
            (Some(_), Some(at)) => Self::At(at),
            _ => Self::Unknown,
        }
    }
}

/// The kind of record that a request ends with.
const REQUEST_END: &str = "request_end";
/// The kind of record of a choice.
const ROUTER_SELECTION: &str = "router_selection";

/// A record of any kind; other kinds than the end of a request have another `request`.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    schema: Option<Text<'a>>,
    #[serde(borrow)]
    event_type: Option<Text<'a>>,
    /// In a file the record itself.
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    event_time_unix_ms: Option<u64>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    selection: Option<&'a RawValue>,
    #[serde(borrow)]
    agent_context: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct AgentContext<'a> {
    #[serde(borrow)]
    session_id: Option<TextOrOther<'a>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    request_id: Cow<'a, str>,
    #[serde(borrow)]
    x_request_id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    request_received_ms: Option<u64>,
    prefill_wait_time_ms: Option<f64>,
    prefill_time_ms: Option<f64>,
    ttft_ms: Option<f64>,
    total_time_ms: Option<f64>,
    avg_itl_ms: Option<f64>,
    kv_hit_rate: Option<f64>,
    kv_transfer_estimated_latency_ms: Option<f64>,
    queue_depth: Option<u64>,
    worker: Option<Workers>,
    replay: Option<Replay>,
}

#[derive(Deserialize)]
struct Selection<'a> {
    #[serde(borrow)]
    request_id: Cow<'a, str>,
    pinned: Option<bool>,
    candidate_count: Option<u64>,
    /// Worker, rank and cost.
    candidates: Bounded<(u64, u32, f64), MAX_CANDIDATES>,
}

impl<'a> Selection<'a> {
    fn read(self, event_time_ms: Option<u64>) -> TracedSelection<'a> {
        let Bounded(candidates) = self.candidates;
        TracedSelection {
            event_time_ms,
            request_id: self.request_id,
            is_pinned: self.pinned.unwrap_or(false),
            candidate_count: self.candidate_count.unwrap_or(candidates.len() as u64),
            candidates: candidates
                .into_iter()
                .map(|(id, rank, cost)| (Worker::new(id, rank), cost))
                .collect(),
        }
    }
}

#[derive(Deserialize, Default)]
struct Workers {
    prefill_worker_id: Option<u64>,
    prefill_dp_rank: Option<u32>,
    decode_worker_id: Option<u64>,
    decode_dp_rank: Option<u32>,
}

#[derive(Deserialize, Default)]
struct Replay {
    trace_block_size: Option<u64>,
    input_length: Option<u64>,
    #[serde(default, deserialize_with = "token_sequence")]
    input_sequence_hashes: Option<Vec<u64>>,
}

impl<'a> From<Request<'a>> for RequestTrace<'a> {
    fn from(request: Request<'a>) -> Self {
        let (workers, replay) = (request.worker.unwrap_or_default(), request.replay.unwrap_or_default());
        let worker = |id: Option<u64>, rank: Option<u32>| Some(Worker::new(id?, rank.unwrap_or(0)));
        Self {
            event_time_ms: None,
            request_id: request.request_id,
            x_request_id: request.x_request_id.map(|Text(id)| id),
            // Beside the request in the record.
            session_id: None,
            model: request.model.map(|Text(name)| name),
            input_tokens: request.input_tokens,
            output_tokens: request.output_tokens,
            cached_tokens: request.cached_tokens,
            request_received_ms: request.request_received_ms,
            prefill_wait_time_ms: request.prefill_wait_time_ms,
            prefill_time_ms: request.prefill_time_ms,
            ttft_ms: request.ttft_ms,
            total_time_ms: request.total_time_ms,
            avg_itl_ms: request.avg_itl_ms,
            kv_hit_rate: request.kv_hit_rate,
            kv_transfer_estimated_latency_ms: request.kv_transfer_estimated_latency_ms,
            queue_depth: request.queue_depth,
            prefill_worker: worker(workers.prefill_worker_id, workers.prefill_dp_rank),
            decode_worker: worker(workers.decode_worker_id, workers.decode_dp_rank),
            trace_block_size_tokens: replay.trace_block_size,
            input_length_tokens: replay.input_length,
            input_sequence_hashes: replay.input_sequence_hashes,
        }
    }
}
