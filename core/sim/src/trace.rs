//! What a frontend of Dynamo 1.6 publishes of a request that ended (reference §3.5): the same fields in the same order.
//! Must not know when it is published.

use serde::ser::{Serialize, Serializer};

use super::tokens::mix;
use radixscope_model::record::Block;

/// Where it is published, without an envelope.
pub(super) const SUBJECT: &str = "dynamo.request_trace.v1";

/// What is measured of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceInput<'a> {
    /// When it ended, in microseconds of Unix time.
    pub(super) at_us: u64,
    pub(super) request_id: &'a str,
    pub(super) model: &'a str,
    /// The session that the client named, if it named one.
    pub(super) session_id: Option<&'a str>,
    pub(super) isl_tokens: u32,
    pub(super) osl_tokens: u32,
    pub(super) cached_tokens: u32,
    pub(super) overlap_blocks: u32,
    /// From the choice of a worker, which is when the router receives it, to the first token and to the end.
    pub(super) ttft_us: u64,
    pub(super) e2e_us: u64,
    pub(super) prefill_worker_id: u64,
    pub(super) decode_worker_id: u64,
    pub(super) block_size_tokens: u32,
    /// Full blocks of the prompt.
    pub(super) prompt: &'a [Block],
}

#[derive(serde::Serialize)]
pub(super) struct RequestTrace<'a> {
    schema: &'static str,
    event_type: &'static str,
    event_time_unix_ms: u64,
    event_source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_context: Option<AgentContext<'a>>,
    request: Request<'a>,
}

#[derive(serde::Serialize)]
struct AgentContext<'a> {
    session_id: &'a str,
    input_trigger: &'static str,
}

#[derive(serde::Serialize)]
struct Request<'a> {
    request_id: &'a str,
    model: &'a str,
    input_tokens: u32,
    output_tokens: u32,
    cached_tokens: u32,
    request_received_ms: u64,
    prefill_wait_time_ms: f64,
    prefill_time_ms: f64,
    ttft_ms: f64,
    total_time_ms: f64,
    avg_itl_ms: f64,
    kv_hit_rate: f64,
    queue_depth: u32,
    worker: Workers,
    replay: Replay<'a>,
}

#[derive(serde::Serialize)]
struct Workers {
    prefill_worker_id: u64,
    prefill_dp_rank: u32,
    decode_worker_id: u64,
    decode_dp_rank: u32,
}

#[derive(serde::Serialize)]
struct Replay<'a> {
    trace_block_size: u32,
    input_length: u32,
    input_sequence_hashes: PromptHashes<'a>,
}

/// Hashes of a prompt's full blocks, and one of the rest if there is any.
struct PromptHashes<'a> {
    full: &'a [Block],
    rest_tokens: u32,
}

impl Serialize for PromptHashes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let last = self.full.last().map_or(0, |block| block.block_hash.0);
        let rest = (self.rest_tokens > 0).then(|| mix(last ^ u64::from(self.rest_tokens)));
        serializer.collect_seq(self.full.iter().map(|block| block.block_hash.0).chain(rest))
    }
}

impl<'a> RequestTrace<'a> {
    pub(super) fn new(of: &TraceInput<'a>) -> Self {
        let ms = |us: u64| us as f64 / 1_000.0;
        let blocks = of.isl_tokens.div_ceil(of.block_size_tokens).max(1);
        let gaps = of.osl_tokens.saturating_sub(1).max(1);
        Self {
            schema: "dynamo.request.trace.v1",
            event_type: "request_end",
            event_time_unix_ms: of.at_us / 1_000,
            event_source: "dynamo",
            agent_context: of
                .session_id
                .map(|session_id| AgentContext { session_id, input_trigger: "user_message" }),
            request: Request {
                request_id: of.request_id,
                model: of.model,
                input_tokens: of.isl_tokens,
                output_tokens: of.osl_tokens,
                cached_tokens: of.cached_tokens,
                request_received_ms: of.at_us.saturating_sub(of.e2e_us) / 1_000,
                prefill_wait_time_ms: 0.0,
                prefill_time_ms: ms(of.ttft_us),
                ttft_ms: ms(of.ttft_us),
                total_time_ms: ms(of.e2e_us),
                avg_itl_ms: ms(of.e2e_us.saturating_sub(of.ttft_us)) / f64::from(gaps),
                kv_hit_rate: f64::from(of.overlap_blocks) / f64::from(blocks),
                queue_depth: 0,
                worker: Workers {
                    prefill_worker_id: of.prefill_worker_id,
                    prefill_dp_rank: 0,
                    decode_worker_id: of.decode_worker_id,
                    decode_dp_rank: 0,
                },
                replay: Replay {
                    trace_block_size: of.block_size_tokens,
                    input_length: of.isl_tokens,
                    input_sequence_hashes: PromptHashes {
                        full: of.prompt,
                        rest_tokens: of.isl_tokens % of.block_size_tokens,
                    },
                },
            },
        }
    }
}
