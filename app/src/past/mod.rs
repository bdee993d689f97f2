//! A stretch of time that the server keeps: a keyframe and the batches after it, folded to any moment of it. Pure.
//!
//! A later moment is reached by folding on; an earlier one from the nearest copy of a state before it: the keyframe's, and some on
//! the way. Copies are made from the first step back on: who steps back once does so again. A jump needs none.

use std::ops::Range;

use radixscope_model::frame::Frame;
use radixscope_model::id::{Millis, Seq, WorkerIx};
use radixscope_model::record::Record;
use radixscope_state::cluster::{Cluster, SnapshotReader};

/// Bytes of a frame's length.
const LENGTH: usize = 4;
/// A copy of the state is kept each time so many bytes of batches are folded: a step back then folds at most as many.
const COPY_EVERY_BYTES: usize = 384 << 10;
/// Most nodes of all copies of one segment together: 32 bytes each, and as much again for what is beside them.
const MOST_COPIED_NODES: usize = 1_500_000;

/// Why a segment cannot be shown, as text.
type Unreadable = String;

/// It ends too early, has no beginning, or does not follow.
fn cut() -> Unreadable {
    "what the server sent is not whole".to_owned()
}

fn unreadable(error: impl ToString) -> Unreadable {
    error.to_string()
}

/// What one steps to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepTarget {
    /// A routing decision.
    Decision,
    /// Blocks that this worker stored or evicted.
    BlocksOf(WorkerIx),
}

/// A batch of records, and where its frame stands in the segment.
#[derive(Debug)]
struct StoredBatch {
    at_ms: Millis,
    next: Seq,
    frame: Range<usize>,
}

/// A keyframe, the batches after it, and copies of states on the way.
pub struct HistorySegment {
    body: Vec<u8>,
    /// The run of the server that it is of.
    pub epoch: u64,
    /// Time of the keyframe.
    pub from_ms: Millis,
    /// Every batch up to this time is here.
    pub known_to_ms: Millis,
    /// The keyframe is the state after this record.
    seq: Seq,
    keyframe: Vec<Range<usize>>,
    batches: Vec<StoredBatch>,
    /// Batches that the state shown has folded; `None`: it is of another segment.
    done: Option<usize>,
    /// States after so many batches, the keyframe's first; empty where the reader did not go back, or they are too large to keep.
    copies: Vec<(usize, Cluster)>,
    /// A viewer went back in it: copies of states are worth their memory.
    has_stepped_back: bool,
}

impl HistorySegment {
    /// Reads what the server sent, which has every batch up to `known_to_ms`; of one before its keyframe, that alone.
    ///
    /// # Errors
    /// It is not whole, or of another version.
    pub fn open(body: Vec<u8>, known_to_ms: Millis) -> Result<Self, Unreadable> {
        let mut segment = Self {
            body,
            epoch: 0,
            from_ms: Millis(0),
            known_to_ms,
            seq: Seq(0),
            keyframe: Vec::new(),
            batches: Vec::new(),
            done: None,
            copies: Vec::new(),
            has_stepped_back: false,
        };
        segment.read_from(0)?;
        segment.known_to_ms = known_to_ms.max(segment.from_ms);
        Ok(segment)
    }

    /// Bytes that it holds.
    pub fn len_bytes(&self) -> usize {
        self.body.len()
    }

    /// The last record that it holds.
    pub fn last_seq(&self) -> Seq {
        self.batches.last().map_or(self.seq, |batch| Seq(batch.next.0 - 1))
    }

    /// Whether it begins with a keyframe: else it is only the rest of one.
    pub fn is_whole(&self) -> bool {
        !self.keyframe.is_empty()
    }

    /// Adds the rest that came since.
    ///
    /// # Errors
    /// It does not follow.
    pub fn extend(&mut self, rest: &Self) -> Result<(), Unreadable> {
        let follows = rest.epoch == self.epoch && rest.from_ms == self.from_ms;
        if !follows || rest.is_whole() {
            return Err(cut());
        }
        let end = self.body.len();
        self.body.extend_from_slice(&rest.body);
        self.known_to_ms = self.known_to_ms.max(rest.known_to_ms);
        self.read_from(end)
    }

    fn read_from(&mut self, mut at: usize) -> Result<(), Unreadable> {
        while at < self.body.len() {
            let length = self.body.get(at..at + LENGTH).and_then(|bytes| bytes.try_into().ok());
            let length = u32::from_le_bytes(length.ok_or_else(cut)?) as usize;
            let frame = at + LENGTH..(at + LENGTH).checked_add(length).ok_or_else(cut)?;
            at = frame.end;
            match Frame::decode(self.body.get(frame.clone()).ok_or_else(cut)?).map_err(unreadable)? {
                Frame::Hello { epoch, seq, at_ms, .. } => {
                    (self.epoch, self.from_ms, self.seq) = (epoch, at_ms, seq);
                }
                Frame::Snapshot { .. } => self.keyframe.push(frame),
                Frame::Batch(batch) => {
                    if self.is_whole() && batch.first_seq.0 > self.last_seq().0 + 1 {
                        return Err(cut());
                    }
                    let next = Seq(batch.first_seq.0.saturating_add(u64::from(batch.count)));
                    if next.0 > self.last_seq().0 + 1 {
                        self.batches.push(StoredBatch { at_ms: batch.at_ms, next, frame });
                    }
                }
                Frame::Lag { .. } => {}
            }
        }
        Ok(())
    }

    /// Whether the state shown is of it.
    pub fn is_shown(&self) -> bool {
        self.done.is_some()
    }

    /// The state shown is another segment's from now on: copies of states are dropped.
    pub fn detach(&mut self) {
        (self.done, self.has_stepped_back) = (None, false);
        self.copies.clear();
    }

    /// Brings `shown` to `at`; `true` if it was replaced by another state instead of folded on.
    ///
    /// # Errors
    /// The keyframe or a record cannot be read.
    pub fn seek(&mut self, shown: &mut Cluster, at: Millis) -> Result<bool, Unreadable> {
        let target = self.batches.partition_point(|batch| batch.at_ms <= at);
        let nearest = self.copies.iter().rposition(|(done, _)| *done <= target);
        let copied = nearest.map_or(0, |nearest| self.copies[nearest].0);
        let is_replaced = self.done.is_none_or(|done| done > target || done < copied);
        if is_replaced {
            self.has_stepped_back |= self.done.is_some();
            *shown = match nearest {
                Some(nearest) => self.copies[nearest].1.copy_without_forests(),
                None => self.begin()?,
            };
            self.done = Some(copied);
            if nearest.is_none() {
                self.store_copy(0, shown);
            }
        }
        let mut folded_bytes = 0;
        for done in self.done.unwrap_or(0)..target {
            folded_bytes += self.fold(shown, done)?;
            self.done = Some(done + 1);
            if folded_bytes > COPY_EVERY_BYTES {
                folded_bytes = 0;
                self.store_copy(done + 1, shown);
            }
        }
        Ok(is_replaced)
    }

    /// The keyframe's state.
    fn begin(&self) -> Result<Cluster, Unreadable> {
        let bytes = self.keyframe.iter().map(Range::len).sum();
        let (mut reader, mut state) = (SnapshotReader::of_bytes(bytes), None);
        for part in &self.keyframe {
            if let Frame::Snapshot { bytes, .. } =
                Frame::decode(&self.body[part.clone()]).map_err(unreadable)?
            {
                state = reader.part(bytes.0).map_err(unreadable)?;
            }
        }
        state.ok_or_else(cut)
    }

    fn store_copy(&mut self, done: usize, state: &Cluster) {
        if !self.has_stepped_back {
            return;
        }
        let nodes: usize = state.trees().map(|(_, tree)| tree.allocated() as usize).sum();
        let at = self.copies.partition_point(|(before, _)| *before < done);
        let is_new = self.copies.get(at).is_none_or(|(known, _)| *known != done);
        if is_new && nodes.saturating_mul(self.copies.len() + 1) <= MOST_COPIED_NODES {
            self.copies.insert(at, (done, state.copy_without_forests()));
        }
    }

    /// Folds one batch; gives its bytes.
    fn fold(&self, shown: &mut Cluster, batch: usize) -> Result<usize, Unreadable> {
        let frame = &self.body[self.batches[batch].frame.clone()];
        if let Frame::Batch(batch) = Frame::decode(frame).map_err(unreadable)? {
            for entry in batch.entries() {
                let (seq, entry) = entry.map_err(unreadable)?;
                shown.fold(seq, &entry);
            }
        }
        Ok(frame.len())
    }

    /// The next moment after `at`, or the last one before it, that brought what is looked for.
    pub fn find(&self, at: Millis, is_forward: bool, step: StepTarget) -> Option<Millis> {
        let has = |batch: &&StoredBatch| self.has(batch, step);
        let found = if is_forward {
            let after = self.batches.partition_point(|batch| batch.at_ms <= at);
            self.batches[after..].iter().find(has)
        } else {
            let before = self.batches.partition_point(|batch| batch.at_ms < at);
            self.batches[..before].iter().rev().find(has)
        };
        found.map(|batch| batch.at_ms)
    }

    fn has(&self, batch: &StoredBatch, step: StepTarget) -> bool {
        let Ok(Frame::Batch(batch)) = Frame::decode(&self.body[batch.frame.clone()]) else { return false };
        batch.entries().map_while(Result::ok).any(|(_, entry)| match step {
            StepTarget::Decision => matches!(entry.record, Record::Decision(_)),
            StepTarget::BlocksOf(worker) => {
                let is_of_blocks = matches!(
                    entry.record,
                    Record::Stored { .. } | Record::Removed { .. } | Record::Cleared { .. }
                );
                is_of_blocks && entry.record.worker() == Some(worker)
            }
        })
    }
}

#[cfg(test)]
mod tests;
