//! How long things take: one engine step, and what lies between a user and an engine.
//!
//! The shape is physical (weights and KV cache are read once a step, prompt tokens are computed), the constants are
//! fitted to the reference scenario. Integers only, so that every platform gives the same times.
//! Must not know what is in a step.

/// Reading the weights and launching a step, in nanoseconds.
const STEP_BASE_NS: u64 = 14_700_000;
/// Each sequence of the captured decode graph, in nanoseconds.
const STEP_PER_GRAPH_SEQUENCE_NS: u64 = 220_000;
/// Reading the KV cache of one token of context in decode, in picoseconds: 163,840 bytes at about 3.7 TB/s.
const STEP_PER_KV_TOKEN_PS: u64 = 38_000;
/// Computing one prompt token, in nanoseconds: 140 GFLOP at about half of an H200's FP8 peak.
const STEP_PER_PREFILL_TOKEN_NS: u64 = 115_000;

/// From a user's request to the router's decision: connection, template, tokenizer; in microseconds.
const FRONTEND_BASE_US: u64 = 70_000;
/// The part of it that grows with the prompt, per token, in microseconds.
const FRONTEND_PER_TOKEN_US: u64 = 8;
/// From the engine's first token to the user's: detokenizer, stream, network; in microseconds.
pub(super) const FIRST_TOKEN_BACK_US: u64 = 40_000;

/// Bringing the KV cache of a prompt to another worker: connection and hand-over, in microseconds.
const TRANSFER_BASE_US: u64 = 5_000;
/// The part of it that grows with the prompt, per 1,000 tokens, in microseconds: 163,840 bytes a token at 25 GB/s.
const TRANSFER_PER_1000_TOKENS_US: u64 = 6_550;

/// Duration of a step in microseconds: `decoding` sequences with `kv_tokens` of context together, and
/// `prefill_tokens` of prompts, each of which takes `prefill_percent` of its usual time.
pub(super) fn step_us(decoding: u32, kv_tokens: u64, prefill_tokens: u32, prefill_percent: u64) -> u64 {
    let decode_ns = u64::from(graph_size(decoding)) * STEP_PER_GRAPH_SEQUENCE_NS
        + kv_tokens * STEP_PER_KV_TOKEN_PS / 1_000;
    let prefill_ns = u64::from(prefill_tokens) * STEP_PER_PREFILL_TOKEN_NS * prefill_percent / 100;
    (STEP_BASE_NS + decode_ns + prefill_ns) / 1_000
}

/// Decode runs as a captured graph of 1, 2, 4 … sequences; a batch is padded to the next one.
fn graph_size(decoding: u32) -> u32 {
    if decoding == 0 { 0 } else { decoding.next_power_of_two() }
}

/// Time from a user's request to the router's decision, in microseconds.
pub(super) fn frontend_us(isl_tokens: u32) -> u64 {
    FRONTEND_BASE_US + u64::from(isl_tokens) * FRONTEND_PER_TOKEN_US
}

/// Time to bring the KV cache of a prompt to another worker, in microseconds.
pub(super) fn transfer_us(isl_tokens: u32) -> u64 {
    TRANSFER_BASE_US + u64::from(isl_tokens) * TRANSFER_PER_1000_TOKENS_US / 1_000
}

/// What a step takes, in words.
pub(super) fn in_words() -> String {
    format!(
        "{} ms, {} µs for each decoding request (rounded up to a power of two), {} ns for each token of context that \
         decode reads and {} µs for each prompt token computed",
        STEP_BASE_NS as f64 / 1e6,
        STEP_PER_GRAPH_SEQUENCE_NS / 1_000,
        STEP_PER_KV_TOKEN_PS / 1_000,
        STEP_PER_PREFILL_TOKEN_NS / 1_000
    )
}

/// What the frontend takes, in words.
pub(super) fn frontend_in_words() -> String {
    format!("{} ms and {FRONTEND_PER_TOKEN_US} µs for each prompt token", FRONTEND_BASE_US / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_gets_longer_with_batch_context_and_prefill() {
        assert!(step_us(20, 100_000, 0, 100) < step_us(40, 100_000, 0, 100));
        assert!(step_us(20, 100_000, 0, 100) < step_us(20, 200_000, 0, 100));
        assert!(step_us(20, 100_000, 0, 100) < step_us(20, 100_000, 500, 100));
        assert_eq!(step_us(33, 0, 0, 100), step_us(64, 0, 0, 100), "33 sequences run in the graph of 64");
    }
}
