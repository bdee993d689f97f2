//! Messages become a state: a keyframe begins it, batches carry it on, and after a gap the next keyframe begins anew.

use radixscope_model::frame::{Batch, Frame};
use radixscope_model::id::{Millis, Seq};
use radixscope_model::record::Entry;
use radixscope_state::cluster::{Cluster, SnapshotReader};

use crate::channel::Channel;
use crate::error::RecordingError;
use crate::reader::RecordedMessage;

/// What is met on the way through a recording.
pub enum FoldStep<'a> {
    /// A part of a keyframe.
    Keyframe {
        /// The state is the one after this record.
        seq: Seq,
        /// Which part, from 0.
        part: u32,
        /// How many parts there are.
        parts: u32,
        /// Its message.
        message: &'a RecordedMessage<'a>,
    },
    /// A record that is about to be folded.
    Record {
        /// The state before it.
        before: &'a Cluster,
        /// The record.
        entry: &'a Entry<'a>,
    },
    /// A batch that was folded. One that does not follow what is known is passed over.
    Batch {
        /// Number of its first record.
        first: Seq,
        /// Number of the first record after it.
        next: Seq,
        /// Its message.
        message: &'a RecordedMessage<'a>,
        /// The state after it.
        after: &'a Cluster,
    },
}

/// A state on its way through a recording.
#[derive(Default)]
pub(crate) struct Fold {
    cluster: Option<Cluster>,
    /// The keyframe that is being read, where one is.
    keyframe: Option<SnapshotReader>,
    at_ms: Millis,
    /// Records are missing after the state: only a keyframe goes on.
    is_broken: bool,
    missing: u64,
    /// The run that the state is of; numbers of another run do not go on from it.
    epoch: u64,
}

impl Fold {
    /// What follows is of this run.
    pub(crate) fn enter(&mut self, epoch: u64) {
        self.is_broken |= self.epoch != epoch;
        self.epoch = epoch;
    }

    /// Something is damaged: only a keyframe goes on.
    pub(crate) fn broke(&mut self) {
        (self.is_broken, self.keyframe) = (true, None);
    }

    /// Whether it is after this record.
    pub(crate) fn is_at(&self, seq: Seq) -> bool {
        !self.is_broken
            && self.keyframe.is_none()
            && self.cluster.as_ref().is_some_and(|cluster| cluster.seq() >= seq)
    }

    pub(crate) fn at_ms(&self) -> Millis {
        self.at_ms
    }

    /// Records that no batch held.
    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// The state, unless records are missing after it.
    #[cfg(feature = "native")]
    pub(crate) fn whole(&self) -> Option<&Cluster> {
        self.cluster.as_ref().filter(|_| !self.is_broken && self.keyframe.is_none())
    }

    pub(crate) fn into_cluster(self) -> Option<Cluster> {
        self.cluster
    }

    /// Takes the next message of keyframes and batches.
    pub(crate) fn apply(
        &mut self,
        message: &RecordedMessage<'_>,
        until: Seq,
        seen: &mut dyn FnMut(FoldStep<'_>),
    ) -> Result<(), RecordingError> {
        match (message.channel, Frame::decode(message.data)?) {
            (Channel::Keyframes, Frame::Snapshot { seq, part, parts, bytes }) => {
                seen(FoldStep::Keyframe { seq, part, parts, message });
                self.part(seq, part, bytes.0, message.at_ms)
            }
            (Channel::Batches, Frame::Batch(batch)) => {
                if self.batch(&batch, message.at_ms, until, seen)?
                    && let Some(cluster) = &self.cluster
                {
                    let first = batch.first_seq;
                    let next = Seq(first.0.saturating_add(u64::from(batch.count)));
                    seen(FoldStep::Batch { first, next, message, after: cluster });
                }
                Ok(())
            }
            _ => Err(RecordingError::Damaged { at: 0, what: "a frame of another kind than its channel's" }),
        }
    }

    fn part(&mut self, seq: Seq, part: u32, bytes: &[u8], at_ms: Millis) -> Result<(), RecordingError> {
        if part == 0 {
            let is_known = !self.is_broken && self.cluster.as_ref().is_some_and(|known| known.seq() == seq);
            self.keyframe = (!is_known).then(SnapshotReader::default);
        }
        let Some(reader) = &mut self.keyframe else { return Ok(()) };
        match reader.part(bytes) {
            Ok(None) => {}
            Ok(Some(cluster)) => {
                (self.cluster, self.keyframe, self.is_broken) = (Some(cluster), None, false);
                self.at_ms = at_ms;
            }
            Err(error) => {
                self.keyframe = None;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Whether it follows what is known.
    fn batch(
        &mut self,
        batch: &Batch<'_>,
        at_ms: Millis,
        until: Seq,
        seen: &mut dyn FnMut(FoldStep<'_>),
    ) -> Result<bool, RecordingError> {
        let Some(cluster) = self.cluster.as_mut().filter(|_| !self.is_broken) else { return Ok(false) };
        let next = cluster.seq().0.saturating_add(1);
        if batch.first_seq.0 > next {
            self.is_broken = true;
            self.missing = self.missing.saturating_add(batch.first_seq.0 - next);
            return Ok(false);
        }
        for entry in batch.entries() {
            let (seq, entry) = entry?;
            if seq > until {
                return Ok(true);
            }
            if seq > cluster.seq() {
                seen(FoldStep::Record { before: cluster, entry: &entry });
                cluster.fold(seq, &entry);
            }
        }
        self.at_ms = at_ms;
        Ok(true)
    }
}
