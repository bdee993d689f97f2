//! Several files of one recording, as if they were one.

use std::io::{Read, Seek};

use radixscope_model::id::Millis;

use crate::channel::Channel;
use crate::error::RecordingError;
use crate::fold::{Fold, FoldStep};
use crate::reader::{Folded, RecordedMessage, Recording, SeekTo};

/// Files of one recording, by time. There is at least one with a keyframe.
pub struct Series<R> {
    files: Vec<Recording<R>>,
}

/// How far a pass through files has come that is made piece by piece.
#[derive(Default)]
pub struct SeriesPosition {
    fold: Fold,
    file: usize,
    chunk: usize,
}

impl<R: Read + Seek> Series<R> {
    /// Puts files in order.
    ///
    /// # Errors
    /// They are of different recordings, or there is no keyframe in any.
    pub fn of(mut files: Vec<Recording<R>>) -> Result<Self, RecordingError> {
        if let Some(first) = files.first().map(|file| file.meta().recording)
            && let Some(other) = files.iter().map(|file| file.meta().recording).find(|&other| other != first)
        {
            return Err(RecordingError::OtherDeployment(first, other));
        }
        files.retain(|file| file.range().is_some());
        files.sort_by_key(Recording::range);
        if files.is_empty() {
            return Err(RecordingError::NoKeyframe);
        }
        Ok(Self { files })
    }

    /// Leaves out what was recorded after a time, to the second.
    ///
    /// # Errors
    /// The recording begins later.
    pub fn leave_out_after(&mut self, to: Millis) -> Result<(), RecordingError> {
        let (from_ms, to_ms) = self.range();
        self.files.iter_mut().for_each(|file| file.leave_out_after(to));
        self.files.retain(|file| file.range().is_some());
        let outside = RecordingError::Outside { at_ms: to.0, from_ms: from_ms.0, to_ms: to_ms.0 };
        if self.files.is_empty() { Err(outside) } else { Ok(()) }
    }

    /// The earliest keyframe from which on at most so many bytes are read, decompressed; the last one if that is more.
    pub fn begin_within(&self, most_bytes: u64) -> Millis {
        let mut begin = None;
        let mut later = 0_u64;
        for file in self.files.iter().rev() {
            let mut all = 0;
            for (at_ms, bytes) in file.bytes_from_keyframes() {
                if let Some(begin) = begin.filter(|_| later.saturating_add(bytes) > most_bytes) {
                    return begin;
                }
                begin = Some(at_ms);
                all = bytes;
            }
            later = later.saturating_add(all);
        }
        begin.unwrap_or_default()
    }

    /// The files.
    pub fn files(&self) -> &[Recording<R>] {
        &self.files
    }

    /// Times of the first keyframe and of the last message.
    pub fn range(&self) -> (Millis, Millis) {
        let ranges = self.files.iter().filter_map(Recording::range);
        let whole =
            ranges.reduce(|(from, to), (other_from, other_to)| (from.min(other_from), to.max(other_to)));
        whole.unwrap_or_default()
    }

    /// The state at a time.
    ///
    /// # Errors
    /// It is not in the recording, or the keyframe before it is damaged.
    pub fn state_at(&mut self, at_ms: Millis) -> Result<Folded, RecordingError> {
        let (from, to) = self.range();
        let outside = RecordingError::Outside { at_ms: at_ms.0, from_ms: from.0, to_ms: to.0 };
        if at_ms > to {
            return Err(outside);
        }
        let (end, file) = self.file_at(at_ms).ok_or(outside)?;
        // Between two files nothing was recorded: the state stays as it was at the end of the first.
        file.state_at(SeekTo::At(at_ms.min(end)))
    }

    /// The messages of the keyframe that is the last one at a time, and of the batches after it, up to the next keyframe or
    /// until `seen` wants no more. What is damaged ends it.
    ///
    /// # Errors
    /// The time is not in the recording, or the keyframe is damaged.
    pub fn stretch(
        &mut self,
        at_ms: Millis,
        seen: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), RecordingError> {
        let (from, to) = self.range();
        let outside = RecordingError::Outside { at_ms: at_ms.0, from_ms: from.0, to_ms: to.0 };
        let (end, file) = self.file_at(at_ms).ok_or(outside)?;
        let keyframe = file.keyframe_before(at_ms.min(end))?;
        let mut messages = file.messages(Some(keyframe), &[Channel::Keyframes, Channel::Batches]);
        let mut of = None;
        while let Some(message) = messages.next() {
            let message = match (message, of) {
                (Ok(message), _) => message,
                (Err(error), None) => return Err(error),
                (Err(_), Some(_)) => break,
            };
            if message.channel == Channel::Keyframes && *of.get_or_insert(message.stamp) != message.stamp {
                break;
            }
            if !seen(message.data) {
                break;
            }
        }
        Ok(())
    }

    /// The last file that was begun at a time, and its end.
    fn file_at(&mut self, at_ms: Millis) -> Option<(Millis, &mut Recording<R>)> {
        let mut begun = self.files.iter_mut().filter_map(|file| Some((file.range()?, file)));
        let ((_, end), file) = begun.rfind(|((from, _), _)| *from <= at_ms)?;
        Some((end, file))
    }

    /// Folds everything; `seen` gets what is met on the way. The state at the end, and where it is damaged.
    ///
    /// # Errors
    /// No keyframe can be read.
    pub fn play(&mut self, seen: &mut dyn FnMut(FoldStep<'_>)) -> Result<Folded, RecordingError> {
        self.play_from(Millis(0), seen)
    }

    /// Folds the next piece of everything, some mebibytes at most; whether there is more. After damage the next keyframe goes on.
    pub fn play_on(&mut self, passage: &mut SeriesPosition, seen: &mut dyn FnMut(FoldStep<'_>)) -> bool {
        let SeriesPosition { fold, file: at, chunk } = passage;
        let Some(file) = self.files.get_mut(*at) else { return false };
        fold.enter(file.meta().epoch);
        if file.play_chunk(*chunk, fold, seen) {
            *chunk += 1;
        } else {
            (*at, *chunk) = (*at + 1, 0);
        }
        *at < self.files.len()
    }

    /// The same from the keyframe before a time on; from the first one if there is none before it.
    ///
    /// # Errors
    /// No keyframe can be read.
    pub fn play_from(
        &mut self,
        from: Millis,
        seen: &mut dyn FnMut(FoldStep<'_>),
    ) -> Result<Folded, RecordingError> {
        let mut fold = Fold::default();
        let mut damaged = None;
        let begun = |file: &Recording<R>| file.range().is_some_and(|(begin, _)| begin <= from);
        let first = self.files.iter().rposition(begun).unwrap_or(0);
        for (at, file) in self.files.iter_mut().enumerate().skip(first) {
            fold.enter(file.meta().epoch);
            // Between two files nothing was recorded: the first one's last keyframe is before that.
            let keyframe = file
                .range()
                .filter(|_| at == first)
                .and_then(|(_, end)| file.keyframe_before(from.min(end)).ok());
            if let Err(error) = file.play_all(keyframe, &mut fold, seen) {
                damaged.get_or_insert(error);
            }
        }
        let (at_ms, missing) = (fold.at_ms(), fold.missing());
        match fold.into_cluster() {
            Some(cluster) => Ok(Folded { cluster, at_ms, missing, damaged }),
            None => Err(damaged.unwrap_or(RecordingError::NoKeyframe)),
        }
    }

    /// Copies a range of time, from the keyframe before its beginning. What is damaged is left out.
    ///
    /// # Errors
    /// It cannot be written.
    #[cfg(feature = "native")]
    pub fn copy(
        &mut self,
        from: Millis,
        to: Millis,
        into: &mut dyn crate::writer::Target,
    ) -> Result<(), RecordingError> {
        let begun = |file: &Recording<R>| file.range().is_some_and(|(begin, _)| begin <= from);
        let first = self.files.iter().rposition(begun).unwrap_or(0);
        for (at, file) in self.files.iter_mut().enumerate().skip(first) {
            let Some((begin, end)) = file.range().filter(|(begin, _)| *begin <= to) else { break };
            let at_ms = if at == first { from.clamp(begin, end) } else { begin };
            let keyframe = file.keyframe_before(at_ms)?;
            into.run(file.meta().epoch);
            file.copy(keyframe, to, into)?;
        }
        Ok(())
    }

    /// Every message of a channel. What is damaged is passed over; the first damage is given back.
    pub fn each(
        &mut self,
        channel: Channel,
        seen: &mut dyn FnMut(RecordedMessage<'_>),
    ) -> Option<RecordingError> {
        let mut damaged = None;
        for file in &mut self.files {
            let mut messages = file.messages(None, &[channel]);
            while let Some(message) = messages.next() {
                match message {
                    Ok(message) => seen(message),
                    Err(error) => _ = damaged.get_or_insert(error),
                }
            }
        }
        damaged
    }
}
