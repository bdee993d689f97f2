//! `dynamo.request_trace.v1`: a finished request, with times, worker and prompt hashes (≥ 1.4, reference §3.5).

use std::borrow::Cow;

use super::active_sequence::token_sequence;
use super::error::{DecodeError, Reason};
use super::wire::{Fault, InField, Json, Wire, once, required};
use radixscope_model::id::Worker;
use radixscope_model::record::Topic;

/// The only schema there is so far.
const SCHEMA: &[u8] = b"dynamo.request.trace.v1";

/// A request at its end. Every field but the id may be missing.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RequestTrace<'a> {
    /// When the record was written, in milliseconds of Unix time.
    pub event_time_ms: Option<u64>,
    /// The router's id of the request.
    pub request_id: Cow<'a, str>,
    /// The client's own id of it.
    pub x_request_id: Option<Cow<'a, str>>,
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

/// Reads a record. `None`: it is of another kind than the end of a request.
///
/// # Errors
/// The first thing that was not understood.
pub fn decode(body: &[u8]) -> Result<Option<RequestTrace<'_>>, DecodeError> {
    record(body).map_err(|fault| fault.into_error(Topic::RequestTrace.as_str()))
}

/// In two passes: which kind it is may stand behind the request, and other kinds have other fields.
fn record(body: &[u8]) -> Result<Option<RequestTrace<'_>>, Fault> {
    let (mut json, mut schema, mut kind, mut event_time_ms, mut request) =
        (Json::new(body), None, None, None, None);
    let mut left = json.map()?;
    while let Some(key) = json.next_key(&mut left)? {
        let at = json.at();
        match key {
            b"schema" => once(&mut schema, json.word().field("schema")?, "schema", at)?,
            b"event_type" => once(&mut kind, json.word().field("event_type")?, "event_type", at)?,
            b"event_time_unix_ms" => {
                let time = json.optional(Json::u64).field("event_time_unix_ms")?;
                once(&mut event_time_ms, time, "event_time_unix_ms", at)?;
            }
            b"request" => {
                once(&mut request, json.mark(), "request", at)?;
                json.skip()?;
            }
            _ => json.skip()?,
        }
    }
    json.end()?;
    if required(schema, "schema", 0)? != SCHEMA {
        return Err(Fault::new(Reason::UnknownKind, "another schema than dynamo.request.trace.v1", 0));
    }
    if required(kind, "event_type", 0)? != b"request_end" {
        return Ok(None);
    }
    let mark = required(request, "request", 0)?;
    json.rewind(mark);
    let request = self::request(&mut json).field("request")?;
    Ok(Some(RequestTrace { event_time_ms: event_time_ms.flatten(), ..request }))
}

fn request<'a>(json: &mut Json<'a>) -> Result<RequestTrace<'a>, Fault> {
    let (start, mut request_id, mut found) = (json.at(), None, RequestTrace::default());
    let mut left = json.map()?;
    while let Some(key) = json.next_key(&mut left)? {
        let at = json.at();
        let ms = match key {
            b"prefill_wait_time_ms" => &mut found.prefill_wait_time_ms,
            b"prefill_time_ms" => &mut found.prefill_time_ms,
            b"ttft_ms" => &mut found.ttft_ms,
            b"total_time_ms" => &mut found.total_time_ms,
            b"avg_itl_ms" => &mut found.avg_itl_ms,
            b"kv_hit_rate" => &mut found.kv_hit_rate,
            b"kv_transfer_estimated_latency_ms" => &mut found.kv_transfer_estimated_latency_ms,
            b"request_id" => {
                once(&mut request_id, json.text().field("request_id")?, "request_id", at)?;
                continue;
            }
            _ => {
                part(json, key, &mut found)?;
                continue;
            }
        };
        *ms = json.optional(Json::f64).field("a time or a rate")?;
    }
    Ok(RequestTrace { request_id: required(request_id, "request_id", start)?, ..found })
}

/// A field of the request that is neither its id nor a fraction.
fn part<'a>(json: &mut Json<'a>, key: &[u8], found: &mut RequestTrace<'a>) -> Result<(), Fault> {
    let count = match key {
        b"input_tokens" => &mut found.input_tokens,
        b"output_tokens" => &mut found.output_tokens,
        b"cached_tokens" => &mut found.cached_tokens,
        b"request_received_ms" => &mut found.request_received_ms,
        b"queue_depth" => &mut found.queue_depth,
        b"x_request_id" => {
            found.x_request_id = json.optional(Json::text).field("x_request_id")?;
            return Ok(());
        }
        b"model" => {
            found.model = json.optional(Json::text).field("model")?;
            return Ok(());
        }
        b"worker" => return json.optional(|json| workers(json, found)).field("worker").map(|_| ()),
        b"replay" => return json.optional(|json| replay(json, found)).field("replay").map(|_| ()),
        _ => return json.skip(),
    };
    *count = json.optional(Json::u64).field("a count")?;
    Ok(())
}

fn workers(json: &mut Json<'_>, found: &mut RequestTrace<'_>) -> Result<(), Fault> {
    let (mut prefill, mut decode) = ((None, None), (None, None));
    let mut left = json.map()?;
    while let Some(key) = json.next_key(&mut left)? {
        match key {
            b"prefill_worker_id" => prefill.0 = json.optional(Json::u64).field("prefill_worker_id")?,
            b"prefill_dp_rank" => prefill.1 = json.optional(Json::u32).field("prefill_dp_rank")?,
            b"decode_worker_id" => decode.0 = json.optional(Json::u64).field("decode_worker_id")?,
            b"decode_dp_rank" => decode.1 = json.optional(Json::u32).field("decode_dp_rank")?,
            _ => json.skip()?,
        }
    }
    let worker = |(id, rank): (Option<u64>, Option<u32>)| Some(Worker::new(id?, rank.unwrap_or(0)));
    (found.prefill_worker, found.decode_worker) = (worker(prefill), worker(decode));
    Ok(())
}

fn replay(json: &mut Json<'_>, found: &mut RequestTrace<'_>) -> Result<(), Fault> {
    let mut left = json.map()?;
    while let Some(key) = json.next_key(&mut left)? {
        match key {
            b"trace_block_size" => {
                found.trace_block_size_tokens = json.optional(Json::u64).field("trace_block_size")?;
            }
            b"input_length" => found.input_length_tokens = json.optional(Json::u64).field("input_length")?,
            b"input_sequence_hashes" => {
                found.input_sequence_hashes = json.optional(token_sequence).field("input_sequence_hashes")?;
            }
            _ => json.skip()?,
        }
    }
    Ok(())
}
