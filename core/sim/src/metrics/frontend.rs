//! `/metrics` of a frontend of Dynamo 0.9.1 (reference §4.2).

use std::fmt::Write as _;

use super::super::shape;
use super::super::topology::Pool;
use super::histogram::Histogram;
use super::text::{metric_family, single};

// Upper bounds of the buckets, in microseconds or tokens.
const TTFT: &[u64] = &[
    0,
    2_200,
    4_700,
    10_000,
    22_000,
    47_000,
    100_000,
    220_000,
    470_000,
    1_000_000,
    2_200_000,
    4_700_000,
    10_000_000,
    22_000_000,
    48_000_000,
    100_000_000,
    220_000_000,
    480_000_000,
];
const ITL: &[u64] = &[
    0, 1_900, 3_500, 6_700, 13_000, 24_000, 45_000, 84_000, 160_000, 300_000, 560_000, 1_100_000, 2_000_000,
];
/// From 1.0 on.
const ITL_1_6: &[u64] = &[
    0, 1_800, 3_300, 5_900, 11_000, 20_000, 35_000, 64_000, 120_000, 210_000, 380_000, 690_000, 1_200_000,
    2_300_000, 4_100_000, 7_400_000, 13_000_000, 24_000_000, 44_000_000, 80_000_000,
];
const DURATION: &[u64] = &[
    0,
    1_900_000,
    3_400_000,
    6_300_000,
    12_000_000,
    22_000_000,
    40_000_000,
    75_000_000,
    140_000_000,
    260_000_000,
];
/// From 1.0 on.
const DURATION_1_6: &[u64] = &[
    0,
    2_000_000,
    4_000_000,
    8_000_000,
    16_000_000,
    32_000_000,
    64_000_000,
    130_000_000,
    260_000_000,
    510_000_000,
];
pub(super) const INPUT: &[u64] =
    &[0, 100, 210, 430, 870, 1_800, 3_600, 7_400, 15_000, 31_000, 63_000, 130_000];
const OUTPUT: &[u64] = &[0, 100, 210, 430, 880, 1_800, 3_700, 7_600, 16_000, 32_000];

/// What a frontend counts of a model.
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

impl Frontend {
    pub(super) fn of_0_9() -> Self {
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

    pub(super) fn of_1_6() -> Self {
        Self {
            itl: Histogram::of_times(ITL_1_6),
            duration: Histogram::of_times(DURATION_1_6),
            ..Self::of_0_9()
        }
    }

    /// One that counted nothing yet.
    pub(super) fn anew(&self) -> Self {
        let anew = Histogram::anew;
        Self {
            in_flight: 0,
            succeeded: 0,
            failed: 0,
            output_tokens: 0,
            ttft: anew(&self.ttft),
            itl: anew(&self.itl),
            duration: anew(&self.duration),
            input: anew(&self.input),
            cached: anew(&self.cached),
            output: anew(&self.output),
        }
    }

    /// Families in the order of their names. The metrics of requests carry the model in lower case, those of the model
    /// as it is written.
    pub(super) fn write(&self, pool: &Pool, text: &mut String) {
        let (config, model) = (&pool.config, pool.model.display_name);
        let of_requests = format!("model=\"{}\"", model.to_lowercase());
        let of_model = format!("model=\"{model}\"");
        let name = |rest: &str| format!("dynamo_frontend_{rest}");
        let histogram = |text: &mut String, rest: &str, help: &str, histogram: &Histogram| {
            metric_family(text, &name(rest), "histogram", help);
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
        let of_worker = |what: &str| format!("{what} for a worker serving the model");
        let models = [
            ("context_length", of_worker("Maximum context length in tokens"), shape::context_length(config)),
            (
                "kv_cache_block_size",
                of_worker("KV cache block size in tokens"),
                config.block_size_tokens.into(),
            ),
            (
                "max_num_batched_tokens",
                of_worker("Maximum number of batched tokens"),
                config.max_num_tokens.into(),
            ),
            ("max_num_seqs", of_worker("Maximum number of sequences"), config.max_batch.into()),
            ("migration_limit", "Maximum number of request migrations allowed for the model".to_owned(), 0),
            ("total_kv_blocks", of_worker("Total KV cache blocks available"), config.engine_blocks().into()),
        ];
        for (rest, help, value) in models {
            gauge(text, &format!("model_{rest}"), &help, &of_model, value);
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
        metric_family(text, &name("requests_total"), "counter", "Total number of LLM requests processed");
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
