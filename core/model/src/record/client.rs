//! What a client, a load generator or `radixscope stage`, measured of its own requests.

use serde::{Deserialize, Serialize};

use super::{Outcome, us_in_ms};
use crate::id::{DecisionId, Millis};

/// What a client measured of a request, with the decision that it is joined with.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClientResult {
    /// The decision for the request; replaces what was recorded of it. `None`: no decision for a request with its id became known.
    pub decision: Option<DecisionId>,
    /// What was measured.
    pub measured: ClientMeasured,
}

/// A request as its client saw it, by the client's clock. `None`: not reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClientMeasured {
    /// When it was sent.
    pub sent_ms: Millis,
    /// When its last byte, or its error, came.
    pub ended_ms: Millis,
    /// From sending it to its first token, in microseconds.
    #[serde(rename = "ttft_ms", serialize_with = "us_in_ms")]
    pub ttft_us: Option<u64>,
    /// Mean time between output tokens, in microseconds.
    #[serde(rename = "itl_ms", serialize_with = "us_in_ms")]
    pub itl_us: Option<u64>,
    /// From sending it to its last token, in microseconds.
    #[serde(rename = "duration_ms", serialize_with = "us_in_ms")]
    pub duration_us: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Status of an error, as HTTP numbers them.
    pub status: Option<u16>,
    /// Tokens that it got.
    pub output_tokens: Option<u32>,
}
