//! How long things take: one engine step, and what lies between a user and an engine.
//!
//! The shape is physical (weights and KV cache are read once a step, prompt tokens are computed), the constants are
//! fitted to the reference scenario. Integers only, so that every platform gives the same times.
//! Must not know what is in a step.

use serde::{Deserialize, Serialize};

/// What an engine's steps take, and what a user waits for beside them. [`Default`] is the reference scenario's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// Reading the weights and launching a step, in nanoseconds.
    pub step_base_ns: u64,
    /// Each sequence of the captured decode graph, in nanoseconds.
    pub per_sequence_ns: u64,
    /// Reading the KV cache of one token of context in decode, in picoseconds: 163,840 bytes at about 3.7 TB/s.
    pub per_kv_token_ps: u64,
    /// Computing one prompt token, in nanoseconds: 140 GFLOP at about half of an H200's FP8 peak.
    pub per_prefill_token_ns: u64,
    /// Part of TTFT and of the time to the last token that lies outside the engine, in microseconds.
    pub outside_us: u64,
    /// What of it grows with the prompt, per token, in microseconds.
    pub outside_per_token_us: u64,
    /// Steps after which a token is seen that a step computed.
    pub seen_after_steps: u32,
}

impl Timing {
    /// The reference scenario's.
    pub const REFERENCE: Self = Self {
        step_base_ns: 14_700_000,
        per_sequence_ns: 220_000,
        per_kv_token_ps: 38_000,
        per_prefill_token_ns: 115_000,
        outside_us: FRONTEND_BASE_US + FIRST_TOKEN_BACK_US,
        outside_per_token_us: FRONTEND_PER_TOKEN_US,
        seen_after_steps: SEEN_AFTER_STEPS,
    };

    /// Duration of a step in microseconds: `decoding` sequences with `kv_tokens` of context together, and
    /// `prefill_tokens` of prompts, each of which takes `prefill_percent` of its usual time.
    pub(super) fn step_us(
        &self,
        decoding: u32,
        kv_tokens: u64,
        prefill_tokens: u32,
        prefill_percent: u64,
    ) -> u64 {
        let decode_ns =
            u64::from(graph_size(decoding)) * self.per_sequence_ns + kv_tokens * self.per_kv_token_ps / 1_000;
        let prefill_ns = u64::from(prefill_tokens) * self.per_prefill_token_ns * prefill_percent / 100;
        ((self.step_base_ns + decode_ns + prefill_ns) / 1_000).max(1)
    }

    /// What a user waits for beside router and engine, in microseconds.
    pub(super) fn outside_us(&self, isl_tokens: u32) -> u64 {
        self.outside_us + u64::from(isl_tokens) * self.outside_per_token_us
    }

    /// What a step takes, in words.
    pub(super) fn in_text(&self) -> String {
        format!(
            "{:.1} ms, {:.0} µs for each decoding request (rounded up to a power of two), {:.0} ns for each token of \
             context that decode reads and {:.0} µs for each prompt token computed",
            self.step_base_ns as f64 / 1e6,
            self.per_sequence_ns as f64 / 1e3,
            self.per_kv_token_ps as f64 / 1e3,
            self.per_prefill_token_ns as f64 / 1e3
        )
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self::REFERENCE
    }
}

/// The overlap scheduler launches a step before it has read the tokens of the one before, so a token is seen, and
/// the end of a request noticed, this many steps after it was computed.
pub(super) const SEEN_AFTER_STEPS: u32 = 1;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_gets_longer_with_batch_context_and_prefill() {
        let step_us =
            |decoding, kv, prefill, percent| Timing::REFERENCE.step_us(decoding, kv, prefill, percent);
        assert!(step_us(20, 100_000, 0, 100) < step_us(40, 100_000, 0, 100));
        assert!(step_us(20, 100_000, 0, 100) < step_us(20, 200_000, 0, 100));
        assert!(step_us(20, 100_000, 0, 100) < step_us(20, 100_000, 500, 100));
        assert_eq!(step_us(33, 0, 0, 100), step_us(64, 0, 0, 100), "33 sequences run in the graph of 64");
    }
}
