//! What was lost or not understood: per source, topic and cause, with the last sample; and engines without Dynamo, each with what came of
//! it.

use radixscope_export::engines::EngineRow;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Decimal, Millis};
use radixscope_model::record::{MissedCause, RejectReason};
use radixscope_state::cluster::SourceState;

use crate::format::{self, UNKNOWN};

/// What is lost, and what rejected.
pub const EXPLANATION: &str =
    "Lost: published, but not received here. Rejected: received, but invalid. Both since the server started.";
/// Where nothing is.
pub const NONE: &str = "None: every known message was received and valid.";

/// Messages of one topic that were lost or rejected for one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LossRow {
    /// From where.
    pub source: String,
    /// On which topic.
    pub topic: &'static str,
    /// Why.
    pub cause: &'static str,
    /// How many.
    pub count: String,
    /// How long ago the last was.
    pub last: String,
    /// The last that was rejected.
    pub sample: String,
}

impl LossRow {
    /// Of all sources at `now`.
    pub fn all(shown: &ViewContext<'_>, now: Millis) -> Vec<Self> {
        let mut rows = Vec::new();
        shown.sources().iter().for_each(|source| add_rows(&mut rows, source, now));
        rows
    }
}

fn add_rows(rows: &mut Vec<LossRow>, source: &SourceState, now: Millis) {
    rows.extend(source.missed.iter().map(|m| LossRow {
        source: source.name.clone(),
        topic: m.topic.as_str(),
        cause: missed_to_text(m.cause),
        count: format::bound(format::count(m.count), source.is_at_least(m)),
        last: format::ago(now.since(m.last_ms)),
        sample: String::new(),
    }));
    rows.extend(source.all_gaps().iter().map(|g| LossRow {
        source: source.name.clone(),
        topic: g.topic.as_str(),
        cause: match g.count {
            0 => "Lost: connection lost; messages of workers that joined or left meanwhile are not counted",
            _ => "Lost: connection lost, number of messages unknown",
        },
        count: match g.count {
            0 => format::UNKNOWN.to_owned(),
            1 => "1 gap".to_owned(),
            gaps => format!("{} gaps", format::count(gaps)),
        },
        last: format::ago(now.since(g.until_ms)),
        sample: String::new(),
    }));
    rows.extend(source.rejected.iter().map(|r| LossRow {
        source: source.name.clone(),
        topic: r.topic.as_str(),
        cause: rejected_to_text(r.reason),
        count: format::count(r.count),
        last: format::ago(now.since(r.last_ms)),
        sample: r.sample.clone(),
    }));
}

const fn missed_to_text(cause: MissedCause) -> &'static str {
    match cause {
        MissedCause::EnvelopeGap => "Lost: the publisher's sequence jumped",
        MissedCause::EventIdGap => "Lost: the worker's event ids jumped",
        MissedCause::HistoryExpired => "Lost: the stream no longer keeps them",
        MissedCause::QueueFull => "Lost: Radixscope's queue was full",
        MissedCause::SlowConsumer => "Lost: dropped in Radixscope's NATS client (at least)",
        MissedCause::TooManyWorkers => "Lost: more workers than the limit",
        MissedCause::LogRotated => "Lost: the log was rotated before it was read (at least this many files)",
        MissedCause::TooManyProcesses => "Lost: more scraped processes than the limit",
        MissedCause::EventsInLost => "Events in lost messages, by event id (messages counted above)",
    }
}

const fn rejected_to_text(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::Truncated => "Rejected: ends too early",
        RejectReason::Malformed => "Rejected: neither JSON nor MessagePack",
        RejectReason::WrongType => "Rejected: a field has another type",
        RejectReason::MissingField => "Rejected: a field is missing",
        RejectReason::TooLarge => "Rejected: too large or too deep",
        RejectReason::UnknownKind => "Rejected: unknown kind of message",
    }
}

/// An engine that is listened to without Dynamo.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineLine {
    /// Its name.
    pub name: String,
    /// Which engine it is.
    pub engine: String,
    /// The connection.
    pub state: String,
    /// Its latest batch.
    pub last_sequence: String,
    /// Batches that were lost.
    pub lost: String,
    /// Batches that were sent again.
    pub replay: String,
    /// Tokens of a block.
    pub block_size: String,
    /// How events are encoded.
    pub encoding: String,
    /// What was not understood.
    pub rejected: String,
}

impl EngineLine {
    /// All of them.
    pub fn all(shown: &ViewContext<'_>) -> Vec<Self> {
        EngineRow::all(shown).iter().map(Self::of).collect()
    }

    fn of(row: &EngineRow) -> Self {
        let number =
            |number: Option<Decimal>| number.map_or(UNKNOWN.to_owned(), |Decimal(n)| format::count(n));
        Self {
            name: row.name.clone(),
            engine: row.engine_text().to_string(),
            state: row.state_text().to_string(),
            last_sequence: number(row.last_sequence),
            lost: format::count(row.lost),
            replay: row.replay_text().to_string(),
            block_size: row.block_size_tokens.map_or(UNKNOWN.to_owned(), |tokens| tokens.to_string()),
            encoding: row.encoding_text().unwrap_or(UNKNOWN.to_owned()),
            rejected: match row.rejected {
                0 => "0".to_owned(),
                n => format!("{}: {}", format::count(n), row.rejected_sample),
            },
        }
    }
}
