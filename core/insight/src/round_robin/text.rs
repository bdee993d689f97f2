//! What round-robin would have done, in a sentence, and how that was found out.

use std::fmt::Write as _;

use radixscope_model::id::WorkerIx;
use radixscope_model::number_format::{count, duration, plural};
use radixscope_router::explain::Short;

use super::{NoPace, RoundRobin};
use crate::counterfactual::{LEAST_REQUESTS, LeftOut};

impl RoundRobin {
    /// In a sentence: `Round-robin would have sent it to W1: 64 fewer cached blocks, ≈ +190 ms TTFT (+170 ms to +210 ms).`
    pub fn sentence(&self, name: impl Fn(WorkerIx) -> String) -> String {
        let who = name(self.worker);
        let mut text = format!("Round-robin would have sent it to {who}");
        if self.worker == self.chosen {
            text += " as well.";
            return text;
        }
        let Some(pace) = self.pace else {
            let blocks = more_or_fewer(self.more_decode_blocks);
            let _ = write!(text, ": {blocks} blocks in use there.");
            return text;
        };
        if self.more_cached_blocks == 0 {
            text += ": as many cached blocks.";
            return text;
        }
        let _ = write!(text, ": {}", more_or_fewer(self.more_cached_blocks as f64));
        text += if self.more_cached_blocks.abs() == 1 { " cached block" } else { " cached blocks" };
        match (pace, self.ttft_change_ms()) {
            (Ok(_), Some(change)) => {
                // All three are on the same side of 0.
                let sign = if change.value < 0.0 { '−' } else { '+' };
                let ms = |ms: f64| format!("{sign}{}", duration(ms.abs()));
                let (value, low, high) = (ms(change.value), ms(change.low), ms(change.high));
                let _ = write!(text, ", ≈ {value} TTFT ({low} to {high})");
            }
            (Err(NoPace::TooFew(_)), _) => text += "; TTFT change unknown, not enough requests",
            _ => text += "; TTFT change unknown, TTFT does not clearly follow uncached blocks now",
        }
        text.push('.');
        text
    }

    /// How it was derived, in sentences.
    pub fn derivation(&self) -> String {
        let mut text = format!(
            "Round-robin takes the workers in turn: request {} of this pool, {} at that time, as in Counterfactual.",
            count(self.turn + 1),
            plural(self.candidates as u64, "candidate", "candidates"),
        );
        let Some(pace) = self.pace else {
            text += " Blocks in use: as recorded with the decision.";
            return text;
        };
        text += " Cached blocks: as recorded with the decision.";
        let _ = match pace {
            Ok(pace) => {
                let of = pace.ms_per_block;
                write!(
                    text,
                    " TTFT: blocks × {} per uncached block ({} to {} in 95 of 100 estimates), by the third with the fewest and \
                     the third with the most uncached blocks of the latest {} in this pool whose TTFT is known. Queues are not \
                     followed.",
                    duration(of.value),
                    duration(of.low),
                    duration(of.high),
                    plural(pace.requests as u64, "request", "requests"),
                )
            }
            Err(NoPace::TooFew(requests)) => write!(
                text,
                " TTFT: {} with a known TTFT in this pool, {LEAST_REQUESTS} are needed.",
                plural(requests as u64, "request", "requests")
            ),
            Err(NoPace::Unclear(requests)) => write!(
                text,
                " TTFT: over the latest {} in this pool it does not clearly rise with uncached blocks; queues may outweigh them.",
                plural(requests as u64, "request", "requests")
            ),
        };
        text
    }
}

/// The missing input, if there is no result.
pub fn not_known(missing: LeftOut) -> String {
    format!("What round-robin would have done is unknown for decisions {}.", missing.as_str())
}

fn more_or_fewer(blocks: f64) -> String {
    let word = if blocks < 0.0 { "fewer" } else { "more" };
    format!("{} {word}", Short((blocks.abs() * 10.0).round() / 10.0))
}
