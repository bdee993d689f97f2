//! What aiperf measured of each request: a line of its `profile_export.jsonl` (0.13). Records bear no version of their schema: what
//! has not the two parts of one is refused. Units stand with the values, and one that is not of time is refused.

use std::borrow::Cow;

use radixscope_model::id::Millis;
use radixscope_model::record::{ClientMeasured, MAX_CLIENT_ID_BYTES, Outcome, Topic};
use serde::Deserialize;

use super::envelope::Format;
use super::error::{DecodeError, Reason};
use super::typed::{self, Text};

const TOPIC: &str = Topic::ClientResult.as_str();
/// A longer time is none: 31 years.
const MAX_US: f64 = 1e15;

/// A request as its client saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientRecord<'a> {
    /// The `X-Request-ID` that it was sent with. `None`: it had none, or a longer one than is retained.
    pub x_request_id: Option<Cow<'a, str>>,
    /// What was measured.
    pub measured: ClientMeasured,
}

/// Reads a line.
///
/// # Errors
/// The first thing that was not understood.
pub fn decode(line: &[u8]) -> Result<ClientRecord<'_>, DecodeError> {
    let record: Record<'_> = typed::decode(TOPIC, line, Format::Json)?;
    let (Some(metadata), Some(metrics)) = (record.metadata, record.metrics) else {
        let problem = format!(
            "{TOPIC}: no record of aiperf's profile_export.jsonl, which has metadata and metrics (byte 0)"
        );
        return Err(DecodeError::new(Reason::UnknownKind, problem));
    };
    let outcome = match (&record.error, metadata.was_cancelled) {
        (_, Some(true)) => Outcome::Cancelled,
        (Some(_), _) => Outcome::Failed,
        (None, _) => Outcome::Success,
    };
    let us = |name: &str, of: Option<Metric<'_>>| of.map(|metric| metric.us(name)).transpose();
    let x_request_id = metadata.x_request_id.map(|Text(id)| id);
    Ok(ClientRecord {
        x_request_id: x_request_id.filter(|id| !id.is_empty() && id.len() <= MAX_CLIENT_ID_BYTES),
        measured: ClientMeasured {
            sent_ms: Millis(metadata.request_start_ns / 1_000_000),
            ended_ms: Millis(metadata.request_end_ns / 1_000_000),
            ttft_us: us("time_to_first_token", metrics.time_to_first_token)?,
            itl_us: us("inter_token_latency", metrics.inter_token_latency)?,
            duration_us: us("request_latency", metrics.request_latency)?,
            outcome,
            status: record.error.and_then(|error| u16::try_from(error.code?).ok()),
            output_tokens: metrics.output_sequence_length.map(Metric::tokens).transpose()?,
        },
    })
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
    #[serde(borrow)]
    metrics: Option<Metrics<'a>>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    x_request_id: Option<Text<'a>>,
    request_start_ns: u64,
    request_end_ns: u64,
    was_cancelled: Option<bool>,
}

/// Of some forty metrics those that a decision has a counterpart of.
#[derive(Deserialize)]
struct Metrics<'a> {
    #[serde(borrow)]
    time_to_first_token: Option<Metric<'a>>,
    #[serde(borrow)]
    inter_token_latency: Option<Metric<'a>>,
    #[serde(borrow)]
    request_latency: Option<Metric<'a>>,
    #[serde(borrow)]
    output_sequence_length: Option<Metric<'a>>,
}

#[derive(Deserialize)]
struct Failure {
    code: Option<i64>,
}

#[derive(Deserialize)]
struct Metric<'a> {
    value: f64,
    #[serde(borrow)]
    unit: Text<'a>,
}

impl Metric<'_> {
    fn us(self, name: &str) -> Result<u64, DecodeError> {
        let Text(unit) = &self.unit;
        let refused = |what| wrong(name, what);
        let scale = match &**unit {
            "ns" => 0.001,
            "us" => 1.0,
            "ms" => 1_000.0,
            "sec" | "s" => 1_000_000.0,
            _ => return Err(refused("its unit is none of ns, us, ms, sec")),
        };
        let us = self.value * scale;
        // Neither NaN nor infinity is in the range.
        if (0.0..MAX_US).contains(&us) { Ok(us.round() as u64) } else { Err(refused("is no duration")) }
    }

    fn tokens(self) -> Result<u32, DecodeError> {
        let name = "output_sequence_length";
        match (&*self.unit.0, self.value) {
            ("tokens", count) if (0.0..=f64::from(u32::MAX)).contains(&count) && count.fract() == 0.0 => {
                Ok(count as u32)
            }
            ("tokens", _) => Err(wrong(name, "is no number of tokens")),
            _ => Err(wrong(name, "its unit is not tokens")),
        }
    }
}

fn wrong(metric: &str, what: &str) -> DecodeError {
    DecodeError::new(Reason::WrongType, format!("{TOPIC}: {metric}: {what} (byte 0)"))
}
