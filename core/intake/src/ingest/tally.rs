//! What one source delivered, lost and garbled since the last flush.
//!
//! Summed up here so that a flood of bad input becomes one record a second, not a flood of records.

use std::borrow::Cow;
use std::collections::BTreeMap;

use radixscope_dynamo::DecodeError;
use radixscope_model::id::{Millis, SourceIx, WorkerIx};
use radixscope_model::record::{MissedCause, Record, RejectReason, Topic};

#[derive(Default)]
pub(super) struct Tally {
    pub(super) received: u64,
    flushed: u64,
    lag_ms: Option<i64>,
    // Both are bounded by their keys: topics, causes and reasons are few, workers are interned.
    missed: BTreeMap<(Topic, MissedCause, Option<WorkerIx>), u64>,
    rejected: BTreeMap<(Topic, RejectReason), (u64, String)>,
}

impl Tally {
    pub(super) fn miss(&mut self, worker: Option<WorkerIx>, topic: Topic, cause: MissedCause, count: u64) {
        let sum = self.missed.entry((topic, cause, worker)).or_default();
        *sum = sum.saturating_add(count);
    }

    pub(super) fn reject(&mut self, topic: Topic, error: &DecodeError, count: u64) {
        let (sum, sample) = self.rejected.entry((topic, error.reason)).or_default();
        *sum = sum.saturating_add(count);
        sample.clone_from(&error.detail);
    }

    /// Remembers the largest delay between publication and arrival.
    pub(super) fn lag(&mut self, at: Millis, published_at: Millis) {
        // The difference of two clocks: may be negative, and must not overflow on a hostile one.
        let lag = match at.0.checked_sub(published_at.0) {
            Some(lag) => i64::try_from(lag).unwrap_or(i64::MAX),
            None => 0_i64.saturating_sub_unsigned(published_at.0 - at.0),
        };
        self.lag_ms = self.lag_ms.max(Some(lag));
    }

    pub(super) fn flush(&mut self, source: SourceIx, out: &mut dyn FnMut(Record<'_>)) {
        for ((topic, cause, worker), count) in std::mem::take(&mut self.missed) {
            out(Record::Missed { source, worker, topic, cause, count });
        }
        for ((topic, reason), (count, sample)) in std::mem::take(&mut self.rejected) {
            out(Record::Rejected { source, topic, reason, count, sample: Cow::Owned(sample) });
        }
        if self.received != self.flushed {
            self.flushed = self.received;
            out(Record::Traffic { source, received: self.received, lag_ms: self.lag_ms.take() });
        }
    }
}
