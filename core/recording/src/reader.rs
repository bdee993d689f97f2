//! A recording opened: its keyframes, its messages, and the state at a moment.

use std::io::{Read, Seek};

use radixscope_model::frame::Frame;
use radixscope_model::id::{Millis, Seq};
use radixscope_state::cluster::Cluster;

use crate::channel::{Channel, Numbers};
use crate::chunk::{self, next_message};
use crate::error::RecordingError;
use crate::fold::{Fold, FoldStep};
use crate::index::read_index;
use crate::meta::Meta;
use crate::upgrade::Upgrade;
use crate::walk::{ChunkAt, WalkResult, walk};

/// Most bytes decompressed to look into chunks whose content the file does not describe: those that another tool
/// rewrote, and the last one before a crash.
const MAX_LOOKED_INTO_BYTES: u64 = 4 * 1024 * 1024 * 1024;
const NS_PER_MS: u64 = 1_000_000;

/// A recording.
pub struct Recording<R> {
    from: R,
    meta: Meta,
    numbers: Numbers,
    chunks: Vec<ChunkAt>,
    keyframes: Vec<Keyframe>,
    is_finished: bool,
    lost_bytes: u64,
    /// Of an older version: how its messages are brought to the present form, at the beginning of the file.
    upgrade: Option<Upgrade>,
    /// The same at the beginning of a chunk.
    upgrade_at: Option<(usize, Upgrade)>,
}

/// Where a whole state stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keyframe {
    /// When it was made.
    pub at_ms: Millis,
    chunk: usize,
    stamp: u64,
}

/// A moment of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeekTo {
    /// After the last batch that was sent at or before this time.
    At(Millis),
    /// After this record.
    After(Seq),
}

/// The state at a moment.
pub struct Folded {
    /// The state.
    pub cluster: Cluster,
    /// Time of the last message that it comes of.
    pub at_ms: Millis,
    /// Records that are missing before the next keyframe: those at which the recorder did not keep up.
    pub missing: u64,
    /// Where the file is damaged before the moment: the state is older than requested.
    pub damaged: Option<RecordingError>,
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct RecordedMessage<'a> {
    /// Its channel.
    pub channel: Channel,
    /// The time at which it stands: as the server's clock, but it never goes back.
    pub at_ms: Millis,
    /// The server's clock.
    pub clock_ms: Millis,
    /// A frame or JSON, by its channel.
    pub data: &'a [u8],
    pub(crate) stamp: u64,
}

impl<R: Read + Seek> Recording<R> {
    /// Opens a recording; also one that was not ended, or whose end is lost.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn open(mut from: R) -> Result<Self, RecordingError> {
        let found = walk(&mut from)?;
        Self::of(from, found)
    }

    /// The same by the index at its end, where there is one: few reads, for a recording that is far away.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn open_by_index(mut from: R) -> Result<Self, RecordingError> {
        let found = match read_index(&mut from)? {
            Some(found) => found,
            None => walk(&mut from)?,
        };
        Self::of(from, found)
    }

    fn of(from: R, found: WalkResult) -> Result<Self, RecordingError> {
        let WalkResult { meta, version, numbers, chunks, is_finished, lost_bytes } = found;
        let upgrade = Upgrade::of(version);
        let (keyframes, upgrade_at) = (Vec::new(), None);
        let mut opened =
            Self { from, meta, numbers, chunks, keyframes, is_finished, lost_bytes, upgrade, upgrade_at };
        opened.look_into_unknown()?;
        opened.find_keyframes();
        Ok(opened)
    }

    fn look_into_unknown(&mut self) -> Result<(), RecordingError> {
        let mut left = MAX_LOOKED_INTO_BYTES;
        for at in 0..self.chunks.len() {
            let mut chunk = self.chunks[at];
            if chunk.channels.is_some() {
                continue;
            }
            left = left.saturating_sub(chunk.size);
            let read = if left > 0 { chunk::read(&mut self.from, &chunk) } else { Ok(Vec::new()) };
            let records = match read {
                Err(RecordingError::Io(error)) => return Err(error.into()),
                other => other.unwrap_or_default(),
            };
            let mut bits = 0;
            let mut rest = records.as_slice();
            while let Some(Ok((message, len))) = next_message(rest) {
                rest = &rest[len..];
                let Some(channel) = self.numbers.channel(message.number) else { continue };
                bits |= channel.bit();
                if channel == Channel::Keyframes {
                    chunk.keyframe.get_or_insert(message.stamp);
                }
            }
            chunk.channels = Some(bits);
            self.chunks[at] = chunk;
        }
        Ok(())
    }

    fn find_keyframes(&mut self) {
        let mut last = None;
        for (chunk, at) in self.chunks.iter().enumerate() {
            if let Some(stamp) = at.keyframe.filter(|&stamp| last.is_none_or(|last| stamp > last)) {
                last = Some(stamp);
                self.keyframes.push(Keyframe { at_ms: Millis(stamp / NS_PER_MS), chunk, stamp });
            }
        }
    }

    /// Leaves out what begins after a time, chunk by chunk.
    pub(crate) fn leave_out_after(&mut self, to: Millis) {
        let end = to.0.saturating_add(1).saturating_mul(NS_PER_MS);
        // Numbers of chunks stay what they are: a clock that went back moves no stamp.
        let chunks = self.chunks.partition_point(|chunk| chunk.stamps.0 < end);
        self.chunks.truncate(chunks);
        self.keyframes.retain(|keyframe| keyframe.chunk < chunks);
    }

    /// Times of the keyframes and the decompressed bytes from each to the end, the last one first.
    pub(crate) fn bytes_from_keyframes(&self) -> Vec<(Millis, u64)> {
        let mut keyframes = self.keyframes.iter().rev().peekable();
        let mut bytes = 0_u64;
        let mut found = Vec::with_capacity(self.keyframes.len());
        for (at, chunk) in self.chunks.iter().enumerate().rev() {
            bytes = bytes.saturating_add(chunk.size);
            while let Some(keyframe) = keyframes.next_if(|keyframe| keyframe.chunk == at) {
                found.push((keyframe.at_ms, bytes));
            }
        }
        found
    }

    /// What it is read from.
    pub fn reader(&self) -> &R {
        &self.from
    }

    /// The file's metadata.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Whether it was ended in order, with an index for other tools.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Bytes at the end that are no whole record: what was being written when the writer died.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Whole states, by time.
    pub fn keyframes(&self) -> &[Keyframe] {
        &self.keyframes
    }

    /// Times of the first keyframe and of the last message. `None`: no keyframe.
    pub fn range(&self) -> Option<(Millis, Millis)> {
        let first = self.keyframes.first()?;
        let last = self.chunks.iter().map(|chunk| chunk.stamps.1).max()?;
        Some((first.at_ms, Millis(last / NS_PER_MS).max(first.at_ms)))
    }

    /// The keyframe that the state at a time begins from.
    ///
    /// # Errors
    /// There is none, or the time is not in the recording.
    pub fn keyframe_before(&self, at_ms: Millis) -> Result<Keyframe, RecordingError> {
        let (from, to) = self.range().ok_or(RecordingError::NoKeyframe)?;
        let after = self.keyframes.partition_point(|keyframe| keyframe.at_ms <= at_ms);
        let found = after.checked_sub(1).and_then(|at| self.keyframes.get(at));
        let outside = RecordingError::Outside { at_ms: at_ms.0, from_ms: from.0, to_ms: to.0 };
        found.filter(|_| at_ms <= to).copied().ok_or(outside)
    }

    /// The messages of some channels from a keyframe on; all of the file without one.
    pub fn messages(&mut self, from: Option<Keyframe>, channels: &[Channel]) -> Messages<'_, R> {
        let (chunk, stamp) = from.map_or((0, 0), |from| (from.chunk, from.stamp));
        let channels = channels.iter().fold(0, |bits, channel| bits | channel.bit());
        let (upgrade, upgraded) = (self.upgrade.clone(), Vec::new());
        let (end, records, at) = (usize::MAX, Vec::new(), 0);
        Messages { recording: self, chunk, end, stamp, channels, records, at, upgrade, upgraded }
    }

    /// The state at a moment.
    ///
    /// # Errors
    /// It is not in the recording, or the keyframe before it is damaged.
    pub fn state_at(&mut self, moment: SeekTo) -> Result<Folded, RecordingError> {
        let from = match moment {
            SeekTo::At(at_ms) => self.keyframe_before(at_ms)?,
            SeekTo::After(seq) => self.keyframe_up_to(seq)?,
        };
        let mut fold = Fold::default();
        let damaged = self.play(from, moment, &mut fold, &mut |_| {}).err();
        let at_ms = fold.at_ms();
        let missing = fold.missing();
        match fold.into_cluster() {
            Some(cluster) => Ok(Folded { cluster, at_ms, missing, damaged }),
            None => Err(damaged.unwrap_or(RecordingError::NoKeyframe)),
        }
    }

    /// Folds messages from a keyframe up to a moment; `seen` gets what is met on the way.
    pub(crate) fn play(
        &mut self,
        from: Keyframe,
        until: SeekTo,
        fold: &mut Fold,
        seen: &mut dyn FnMut(FoldStep<'_>),
    ) -> Result<(), RecordingError> {
        let until_stamp = match until {
            SeekTo::At(at_ms) => at_ms.0.saturating_add(1).saturating_mul(NS_PER_MS),
            SeekTo::After(_) => u64::MAX,
        };
        let until_seq = match until {
            SeekTo::At(_) => Seq(u64::MAX),
            SeekTo::After(seq) => seq,
        };
        let mut messages = self.messages(Some(from), &[Channel::Keyframes, Channel::Batches]);
        while let Some(message) = messages.next() {
            let message = message?;
            if message.stamp >= until_stamp || fold.is_at(until_seq) {
                break;
            }
            fold.apply(&message, until_seq, seen)?;
        }
        Ok(())
    }

    /// Folds all of the file, or what is in it from a keyframe on; after damage the next keyframe goes on. The first damage, if
    /// there is any.
    pub(crate) fn play_all(
        &mut self,
        from: Option<Keyframe>,
        fold: &mut Fold,
        seen: &mut dyn FnMut(FoldStep<'_>),
    ) -> Result<(), RecordingError> {
        let mut damaged = None;
        let mut messages = self.messages(from, &[Channel::Keyframes, Channel::Batches]);
        while let Some(message) = messages.next() {
            if let Err(error) = message.and_then(|message| fold.apply(&message, Seq(u64::MAX), seen)) {
                fold.broke();
                damaged.get_or_insert(error);
            }
        }
        damaged.map_or(Ok(()), Err)
    }

    /// Folds what is in one chunk; after damage the next keyframe goes on. Whether there is such a chunk.
    pub(crate) fn play_chunk(
        &mut self,
        chunk: usize,
        fold: &mut Fold,
        seen: &mut dyn FnMut(FoldStep<'_>),
    ) -> bool {
        let is_there = chunk < self.chunks.len();
        let upgrade = self.upgrade_before(chunk);
        let mut messages = self.messages(None, &[Channel::Keyframes, Channel::Batches]);
        (messages.chunk, messages.end, messages.upgrade) = (chunk, chunk.saturating_add(1), upgrade);
        while let Some(message) = messages.next() {
            if message.and_then(|message| fold.apply(&message, Seq(u64::MAX), seen)).is_err() {
                fold.broke();
            }
        }
        let upgrade = messages.upgrade.take();
        self.upgrade_at = upgrade.map(|upgrade| (chunk.saturating_add(1), upgrade));
        is_there
    }

    /// How messages of a chunk are brought to the present form: that depends on those before it, from a keyframe on.
    fn upgrade_before(&mut self, chunk: usize) -> Option<Upgrade> {
        let begin = self.upgrade.as_ref()?;
        if let Some((_, upgrade)) = self.upgrade_at.take_if(|(at, _)| *at == chunk) {
            return Some(upgrade);
        }
        let before = self.keyframes.iter().rev().find(|keyframe| keyframe.chunk < chunk).copied();
        let Some(keyframe) = before else { return Some(begin.clone()) };
        let mut messages = self.messages(Some(keyframe), &[Channel::Batches]);
        messages.end = chunk;
        // Damage is met again where the messages themselves are wanted.
        while messages.next().is_some() {}
        messages.upgrade
    }

    /// Copies messages from a keyframe up to a time. What is damaged is left out.
    #[cfg(feature = "native")]
    pub(crate) fn copy(
        &mut self,
        from: Keyframe,
        to: Millis,
        into: &mut dyn crate::writer::Target,
    ) -> Result<(), RecordingError> {
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let mut of = (0, Millis(0));
        let mut messages = self.messages(Some(from), &Channel::ALL);
        while let Some(message) = messages.next() {
            let Ok(message) = message else { continue };
            if !parts.is_empty() && message.stamp != of.0 {
                into.keyframe(of.1, &std::mem::take(&mut parts))?;
            }
            if message.at_ms > to {
                break;
            }
            if message.channel == Channel::Keyframes {
                of = (message.stamp, message.clock_ms);
                parts.push(message.data.to_vec());
            } else {
                into.message(message.channel, message.clock_ms, message.data)?;
            }
        }
        if parts.is_empty() { Ok(()) } else { into.keyframe(of.1, &parts) }
    }

    /// The last keyframe of a state at or before a record.
    fn keyframe_up_to(&mut self, seq: Seq) -> Result<Keyframe, RecordingError> {
        let (mut low, mut high) = (0, self.keyframes.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.seq_of(self.keyframes[middle])? {
                of if of <= seq => low = middle + 1,
                _ => high = middle,
            }
        }
        let found = low.checked_sub(1).and_then(|at| self.keyframes.get(at)).copied();
        found.ok_or(RecordingError::NoKeyframe)
    }

    fn seq_of(&mut self, keyframe: Keyframe) -> Result<Seq, RecordingError> {
        let mut messages = self.messages(Some(keyframe), &[Channel::Keyframes]);
        let first = messages.next().ok_or(RecordingError::NoKeyframe)??;
        match Frame::decode(first.data)? {
            Frame::Snapshot { seq, .. } => Ok(seq),
            _ => Err(RecordingError::NoKeyframe),
        }
    }
}

/// Messages in order; a chunk of them is in memory.
pub struct Messages<'r, R> {
    recording: &'r mut Recording<R>,
    /// The chunk that is read next.
    chunk: usize,
    /// The first chunk that is not read any more.
    end: usize,
    /// What is before it in the first chunk is passed over.
    stamp: u64,
    channels: u8,
    records: Vec<u8>,
    at: usize,
    upgrade: Option<Upgrade>,
    /// The last message, if it was brought to the present form.
    upgraded: Vec<u8>,
}

impl<R: Read + Seek> Messages<'_, R> {
    /// The next message. After damage it goes on with the next chunk.
    #[expect(clippy::should_implement_trait, reason = "a message borrows the chunk")]
    pub fn next(&mut self) -> Option<Result<RecordedMessage<'_>, RecordingError>> {
        loop {
            let found = match next_message(&self.records[self.at..]) {
                None => {
                    match self.next_chunk()? {
                        Ok(()) => continue,
                        Err(error) => return Some(Err(error)),
                    };
                }
                Some(Err(())) => {
                    (self.records, self.at) = (Vec::new(), 0);
                    let at = self.recording.chunks.get(self.chunk - 1).map_or(0, |chunk| chunk.at);
                    let what = "a chunk with a record that is not whole";
                    return Some(Err(RecordingError::Damaged { at, what }));
                }
                Some(Ok((message, len))) => {
                    let end = self.at + len;
                    self.at = end;
                    let channel = self.recording.numbers.channel(message.number);
                    let read = self.read();
                    let channel = channel.filter(|channel| read & channel.bit() != 0);
                    channel
                        .filter(|_| message.stamp >= self.stamp)
                        .map(|channel| (channel, message.stamp, message.at_ns, end - message.data.len()..end))
                }
            };
            if let Some((channel, stamp, at_ns, data)) = found {
                let upgrade = self.upgrade.as_mut();
                let upgraded = upgrade.map(|upgrade| upgrade.message(channel, &self.records[data.clone()]));
                let is_upgraded = match upgraded.transpose() {
                    Ok(upgraded) => upgraded.flatten().map(|upgraded| self.upgraded = upgraded).is_some(),
                    Err(error) => return Some(Err(error)),
                };
                if self.channels & channel.bit() == 0 {
                    continue;
                }
                let data = if is_upgraded { &self.upgraded[..] } else { &self.records[data] };
                let (at_ms, clock_ms) = (Millis(stamp / NS_PER_MS), Millis(at_ns / NS_PER_MS));
                return Some(Ok(RecordedMessage { channel, at_ms, clock_ms, data, stamp }));
            }
        }
    }

    /// Bits of the channels that are read: what batches of an older version mean depends on keyframes.
    fn read(&self) -> u8 {
        let batches = self.channels & Channel::Batches.bit() != 0;
        let more = if batches && self.upgrade.is_some() { Channel::Keyframes.bit() } else { 0 };
        self.channels | more
    }

    /// Reads the next chunk that may hold something wanted.
    fn next_chunk(&mut self) -> Option<Result<(), RecordingError>> {
        loop {
            let chunk = *self.recording.chunks.get(self.chunk).filter(|_| self.chunk < self.end)?;
            self.chunk += 1;
            let is_wanted = Channel::ALL
                .iter()
                .any(|&channel| self.read() & channel.bit() != 0 && chunk.may_hold(channel));
            if is_wanted {
                (self.records, self.at) = (Vec::new(), 0);
                return Some(
                    chunk::read(&mut self.recording.from, &chunk).map(|records| self.records = records),
                );
            }
        }
    }
}
