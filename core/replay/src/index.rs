//! The retained history, in the form of `/history`.

use radixscope_insight::timeline::SecondRow;
use radixscope_model::id::{Decimal, Millis, Seq};
use serde::Serialize;

/// The retained history.
#[derive(Debug, Serialize)]
pub struct Index {
    /// The run of the server.
    pub epoch: Decimal,
    /// Now; of a recording its end.
    pub at_ms: Millis,
    /// Whether this is a recording: nothing comes after `at_ms`.
    pub replay: bool,
    /// `null`: no history is retained (`--history 0`).
    #[serde(rename = "kept")]
    pub retention: Option<Retention>,
    /// Oldest first, without a gap between them.
    pub segments: Vec<SegmentRow>,
    /// A row a second, oldest first: those after `after_ms`.
    pub rows: Vec<SecondRow>,
}

/// How much is retained.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Retention {
    /// Since when; `null`: nothing is retained yet.
    pub from_ms: Option<Millis>,
    /// Bytes of keyframes and batches.
    pub bytes: usize,
    /// Most bytes.
    pub max_bytes: usize,
    /// Longest age, milliseconds.
    pub max_age_ms: u64,
}

/// One stretch of time; of a recording that is still being read only `from_ms` may be known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentRow {
    /// Time of its keyframe.
    pub from_ms: Millis,
    /// Time of the last batch that was published in it.
    pub to_ms: Millis,
    /// The first record after its keyframe.
    pub first_seq: Option<Seq>,
    /// Bytes of keyframe and batches.
    pub bytes: usize,
}
