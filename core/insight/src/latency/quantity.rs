//! The measured quantities of requests, their units, and one request's values.

use radixscope_model::id::Millis;
use radixscope_model::number_format;
use radixscope_model::range::Range;
use radixscope_model::record::{Ended, HistogramKind};
use radixscope_state::cluster::DecisionEntry;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quantity {
    /// Time to first token, milliseconds.
    Ttft,
    /// Time between output tokens, milliseconds: of each gap by histograms, the mean of each request by logs.
    Tpot,
    /// Prompt lengths, tokens.
    InputTokens,
    /// Output lengths, tokens.
    OutputTokens,
    /// The router's work on one request, milliseconds (≥ 1.0).
    RouterOverhead,
    /// Whole requests, from choice to end, milliseconds.
    EndToEnd,
}

impl Quantity {
    /// Every quantity that has targets or a place of its own; whole requests are only compared.
    pub const ALL: [Self; 5] =
        [Self::Ttft, Self::Tpot, Self::InputTokens, Self::OutputTokens, Self::RouterOverhead];

    pub(super) const fn histogram(self) -> HistogramKind {
        match self {
            Self::Ttft => HistogramKind::Ttft,
            Self::Tpot => HistogramKind::Itl,
            Self::InputTokens => HistogramKind::InputTokens,
            Self::OutputTokens => HistogramKind::OutputTokens,
            Self::RouterOverhead => HistogramKind::RouterOverheadMs,
            Self::EndToEnd => HistogramKind::Duration,
        }
    }

    /// What a histogram's values are multiplied with: Dynamo's are in seconds but for the router's.
    pub(super) const fn scale(self) -> f64 {
        match self {
            Self::Ttft | Self::Tpot | Self::EndToEnd => 1_000.0,
            Self::InputTokens | Self::OutputTokens | Self::RouterOverhead => 1.0,
        }
    }

    /// A value as text, with its unit.
    pub fn to_text(self, value: f64) -> String {
        match self {
            Self::Ttft | Self::Tpot | Self::RouterOverhead | Self::EndToEnd => number_format::duration(value),
            Self::InputTokens | Self::OutputTokens => {
                format!("{} tokens", number_format::digits(value.round()))
            }
        }
    }

    /// A range as text, with its unit: `612 ms`, `470 ms–1 s`; `unknown` where it may be anything.
    pub fn range_text(self, range: &Range) -> String {
        if range.is_unbounded() {
            return "unknown".to_owned();
        }
        range.to_text(|value| self.to_text(value))
    }

    /// Of one request, where that is known.
    pub(super) fn of(self, decided: &DecisionEntry) -> Option<RequestValue> {
        if decided.decision.dispatched == Some(false) {
            return None;
        }
        let progress = &decided.progress;
        let at_end = |value: f64| Some(RequestValue { at: ended(decided)?, value, is_measured: true });
        match self {
            Self::Ttft => match decided.time_to_first_token_ms()? {
                (ms, true) => at_end(ms),
                (ms, false) => Some(RequestValue { at: decided.decided_ms(), value: ms, is_measured: false }),
            },
            Self::Tpot => at_end(progress.itl_us? as f64 / 1_000.0),
            Self::InputTokens => {
                let value = decided.decision.isl_tokens? as f64;
                Some(RequestValue { at: decided.decided_ms(), value, is_measured: true })
            }
            Self::OutputTokens => at_end(progress.output_tokens? as f64),
            Self::EndToEnd => {
                let at = progress.ended_ms?;
                let value = at.since(decided.decided_ms()) as f64;
                Some(RequestValue { at, value, is_measured: false })
            }
            Self::RouterOverhead => None,
        }
    }

    /// Of a request of which no decision is known; its frontend measured all of it.
    pub(super) fn of_ended(self, request: &Ended) -> Option<RequestValue> {
        let (at, progress) = (request.ended_ms, &request.progress);
        let ms = |us: u64| us as f64 / 1_000.0;
        let value = match self {
            Self::Ttft => ms(progress.ttft_us?),
            Self::Tpot => ms(progress.itl_us?),
            Self::InputTokens => request.isl_tokens? as f64,
            Self::OutputTokens => progress.output_tokens? as f64,
            Self::EndToEnd => ms(request.elapsed_us?),
            Self::RouterOverhead => return None,
        };
        Some(RequestValue { at, value, is_measured: self != Self::EndToEnd })
    }

    /// When a request counts to a window of this quantity, whether its value is known or not; `None`: it does not yet.
    pub(super) fn counts_at(self, decided: &DecisionEntry, is_measured: bool) -> Option<Millis> {
        match self {
            // A query to the router ran nothing.
            _ if decided.decision.dispatched == Some(false) => None,
            Self::InputTokens => Some(decided.decided_ms()),
            // By its decision: it may still wait for its first token, and then it waits longer than all that have theirs.
            Self::Ttft if !is_measured => Some(decided.decided_ms()),
            _ => ended(decided),
        }
    }
}

/// A value of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestValue {
    /// When it counts: measured values when their request ended, as logs and traces have them then; others when it was
    /// routed.
    pub(super) at: Millis,
    pub(super) value: f64,
    /// Whether its frontend measured it; else it is the difference of two times that were received.
    pub(super) is_measured: bool,
}

/// When a request ended. Without a line about it (Dynamo 1.1 to 1.4), it follows from the first token and the gaps after it.
fn ended(decided: &DecisionEntry) -> Option<Millis> {
    let progress = &decided.progress;
    progress.ended_ms.or_else(|| {
        let us = progress.ttft_us?;
        let gaps = progress.output_tokens.unwrap_or(1).saturating_sub(1);
        let us = us.saturating_add(progress.itl_us.unwrap_or(0).saturating_mul(gaps));
        Some(Millis(decided.decided_ms().0.saturating_add(us / 1_000)))
    })
}
