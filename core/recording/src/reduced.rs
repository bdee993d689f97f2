//! A recording on its way into a report, reduced to what a page folds: it begins at its own moment and not at the keyframe
//! before, has as few keyframes as jumps allow, and nothing that is found without folding.

use radixscope_model::frame::Frame;
use radixscope_model::id::{Millis, Seq};

use crate::channel::Channel;
use crate::error::RecordingError;
use crate::fold::Fold;
use crate::reader::RecordedMessage;
use crate::snapshot::snapshot_frames;
use crate::writer::Target;

/// Bytes of batches after which the next keyframe is retained: a jump folds at most these and those up to that keyframe.
const MAX_STRETCH_BYTES: usize = 8 * 1024 * 1024;

/// Takes a recording and hands on what a report needs.
pub struct Reduced<'t> {
    to: &'t mut dyn Target,
    from: Millis,
    /// What is before its beginning, folded; `None`: it has begun.
    before: Option<Fold>,
    /// The last record that was handed on.
    last: Seq,
    /// Only a keyframe goes on: the first record after [`Self::last`] is missing, or of another run.
    is_broken: bool,
    /// Bytes of batches since the last keyframe.
    since_bytes: usize,
    epoch: Option<u64>,
}

impl<'t> Reduced<'t> {
    /// Hands on to `to` what there is from `from` on.
    pub fn new(to: &'t mut dyn Target, from: Millis) -> Self {
        let before = Some(Fold::default());
        Self { to, from, before, last: Seq(0), is_broken: false, since_bytes: 0, epoch: None }
    }

    /// Nothing more comes.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> Result<(), RecordingError> {
        self.begin()
    }

    /// Hands on the state that what follows goes on from, if it is known and was not yet.
    fn begin(&mut self) -> Result<(), RecordingError> {
        let Some(fold) = self.before.take_if(|fold| fold.whole().is_some()) else { return Ok(()) };
        let at_ms = fold.at_ms().max(self.from);
        let Some(cluster) = fold.into_cluster() else { return Ok(()) };
        self.last = cluster.seq();
        self.to.keyframe(at_ms, &snapshot_frames(&cluster)?)
    }

    /// Folds what is before the beginning.
    fn fold(&mut self, channel: Channel, at_ms: Millis, data: &[u8]) -> Result<(), RecordingError> {
        let Some(fold) = &mut self.before else { return Ok(()) };
        let message = RecordedMessage { channel, at_ms, clock_ms: at_ms, data, stamp: 0 };
        fold.apply(&message, Seq(u64::MAX), &mut |_| {})
    }
}

impl Target for Reduced<'_> {
    fn run(&mut self, epoch: u64) {
        self.is_broken |= self.epoch.replace(epoch).is_some_and(|before| before != epoch);
        if let Some(fold) = &mut self.before {
            fold.enter(epoch);
        }
    }

    fn keyframe(&mut self, at_ms: Millis, frames: &[Vec<u8>]) -> Result<(), RecordingError> {
        if self.before.is_some() {
            frames.iter().try_for_each(|frame| self.fold(Channel::Keyframes, at_ms, frame))?;
            return if at_ms >= self.from { self.begin() } else { Ok(()) };
        }
        let Some(Frame::Snapshot { seq, .. }) =
            frames.first().map(|frame| Frame::decode(frame)).transpose()?
        else {
            return Ok(());
        };
        if self.is_broken || seq != self.last || self.since_bytes >= MAX_STRETCH_BYTES {
            self.to.keyframe(at_ms, frames)?;
            (self.last, self.is_broken, self.since_bytes) = (seq, false, 0);
        }
        Ok(())
    }

    fn message(&mut self, channel: Channel, at_ms: Millis, data: &[u8]) -> Result<(), RecordingError> {
        if channel != Channel::Batches {
            return Ok(());
        }
        if self.before.is_some() {
            if at_ms <= self.from {
                return self.fold(channel, at_ms, data);
            }
            self.begin()?;
            if self.before.is_some() {
                // Records are missing before it: the next keyframe begins.
                return Ok(());
            }
        }
        let Frame::Batch(batch) = Frame::decode(data)? else { return Ok(()) };
        self.is_broken |= batch.first_seq.0 > self.last.0.saturating_add(1);
        let end = batch.first_seq.0.saturating_add(u64::from(batch.count)).saturating_sub(1);
        self.last = self.last.max(Seq(end));
        self.since_bytes = self.since_bytes.saturating_add(data.len());
        self.to.message(channel, at_ms, data)
    }
}
