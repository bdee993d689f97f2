//! `/metrics` of a frontend of Dynamo 0.9.1 (reference §4.2).

use std::fmt::Write as _;

use super::super::config::Config;
use super::super::shape::{self, DISPLAY_NAME};
use super::histogram::{Bounds, Histogram};
use super::text::{family, single};

const TTFT: &Bounds = &[
    ("0", 0),
    ("0.0022", 2_200),
    ("0.0047", 4_700),
    ("0.01", 10_000),
    ("0.022", 22_000),
    ("0.047", 47_000),
    ("0.1", 100_000),
    ("0.22", 220_000),
    ("0.47", 470_000),
    ("1", 1_000_000),
    ("2.2", 2_200_000),
    ("4.7", 4_700_000),
    ("10", 10_000_000),
    ("22", 22_000_000),
    ("48", 48_000_000),
    ("100", 100_000_000),
    ("220", 220_000_000),
    ("480", 480_000_000),
];
const ITL: &Bounds = &[
    ("0", 0),
    ("0.0019", 1_900),
    ("0.0035", 3_500),
    ("0.0067", 6_700),
    ("0.013", 13_000),
    ("0.024", 24_000),
    ("0.045", 45_000),
    ("0.084", 84_000),
    ("0.16", 160_000),
    ("0.3", 300_000),
    ("0.56", 560_000),
    ("1.1", 1_100_000),
    ("2", 2_000_000),
];
const DURATION: &Bounds = &[
    ("0", 0),
    ("1.9", 1_900_000),
    ("3.4", 3_400_000),
    ("6.3", 6_300_000),
    ("12", 12_000_000),
    ("22", 22_000_000),
    ("40", 40_000_000),
    ("75", 75_000_000),
    ("140", 140_000_000),
    ("260", 260_000_000),
];
const INPUT: &Bounds = &[
    ("0", 0),
    ("100", 100),
    ("210", 210),
    ("430", 430),
    ("870", 870),
    ("1800", 1_800),
    ("3600", 3_600),
    ("7400", 7_400),
    ("15000", 15_000),
    ("31000", 31_000),
    ("63000", 63_000),
    ("130000", 130_000),
];
const OUTPUT: &Bounds = &[
    ("0", 0),
    ("100", 100),
    ("210", 210),
    ("430", 430),
    ("880", 880),
    ("1800", 1_800),
    ("3700", 3_700),
    ("7600", 7_600),
    ("16000", 16_000),
    ("32000", 32_000),
];

/// What a frontend counts.
#[derive(Clone, Debug)]
pub(super) struct Frontend {
    pub(super) in_flight: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) output_tokens: u64,
    pub(super) ttft: Histogram,
    pub(super) itl: Histogram,
    pub(super) duration: Histogram,
    pub(super) input: Histogram,
    pub(super) cached: Histogram,
    pub(super) output: Histogram,
}

impl Default for Frontend {
    fn default() -> Self {
        Self {
            in_flight: 0,
            succeeded: 0,
            failed: 0,
            output_tokens: 0,
            ttft: Histogram::of_times(TTFT),
            itl: Histogram::of_times(ITL),
            duration: Histogram::of_times(DURATION),
            input: Histogram::of_tokens(INPUT),
            cached: Histogram::of_tokens(INPUT),
            output: Histogram::of_tokens(OUTPUT),
        }
    }
}

impl Frontend {
    /// Families in the order of their names. The metrics of requests carry the model in lower case, those of the model
    /// as it is written.
    pub(super) fn write(&self, config: &Config, text: &mut String) {
        let of_requests = format!("model=\"{}\"", DISPLAY_NAME.to_lowercase());
        let of_model = format!("model=\"{DISPLAY_NAME}\"");
        let name = |rest: &str| format!("dynamo_frontend_{rest}");
        let histogram = |text: &mut String, rest: &str, help: &str, histogram: &Histogram| {
            family(text, &name(rest), "histogram", help);
            histogram.write(text, &name(rest), &of_requests);
        };
        let gauge = |text: &mut String, rest: &str, help: &str, labels: &str, value: u64| {
            single(text, &name(rest), "gauge", help, labels, value);
        };
        histogram(
            text,
            "cached_tokens",
            "Number of cached tokens (prefix cache hits) per request",
            &self.cached,
        );
        gauge(text, "disconnected_clients", "Number of disconnected clients", "", 0);
        gauge(text, "inflight_requests", "Number of inflight requests", &of_requests, self.in_flight);
        histogram(text, "input_sequence_tokens", "Input sequence length in tokens", &self.input);
        histogram(text, "inter_token_latency_seconds", "Inter-token latency in seconds", &self.itl);
        let models: [(&str, &str, u64); 6] = [
            (
                "context_length",
                "Maximum context length in tokens for a worker serving the model",
                shape::context_length(config),
            ),
            (
                "kv_cache_block_size",
                "KV cache block size in tokens for a worker serving the model",
                config.block_size_tokens.into(),
            ),
            (
                "max_num_batched_tokens",
                "Maximum number of batched tokens for a worker serving the model",
                config.max_num_tokens.into(),
            ),
            (
                "max_num_seqs",
                "Maximum number of sequences for a worker serving the model",
                config.max_batch.into(),
            ),
            ("migration_limit", "Maximum number of request migrations allowed for the model", 0),
            (
                "total_kv_blocks",
                "Total KV cache blocks available for a worker serving the model",
                config.engine_blocks().into(),
            ),
        ];
        for (rest, help, value) in models {
            gauge(text, &format!("model_{rest}"), help, &of_model, value);
        }
        histogram(text, "output_sequence_tokens", "Output sequence length in tokens", &self.output);
        single(
            text,
            &name("output_tokens_total"),
            "counter",
            "Total number of output tokens generated (updates in real-time)",
            &of_requests,
            self.output_tokens,
        );
        gauge(text, "queued_requests", "Number of requests in HTTP processing queue", &of_requests, 0);
        histogram(text, "request_duration_seconds", "Duration of LLM requests", &self.duration);
        family(text, &name("requests_total"), "counter", "Total number of LLM requests processed");
        for (status, total) in [("error", self.failed), ("success", self.succeeded)] {
            // A series is there from its first request on.
            if total > 0 {
                let _ = writeln!(
                    text,
                    "{}{{endpoint=\"chat_completions\",{of_requests},request_type=\"stream\",status=\"{status}\"}} \
                     {total}",
                    name("requests_total")
                );
            }
        }
        histogram(text, "time_to_first_token_seconds", "Time to first token in seconds", &self.ttft);
    }
}
