//! A recording in the place of a server: what it was at its end, what each second brought, and the stretch of any moment, in
//! the very bodies that a server sends. The server that replays a file and the player in the page both use it.
//!
//! Knows no network, no browser and no clock.
#![forbid(unsafe_code)]

mod index;
mod pass;
mod response;
mod stretch;

use std::io::{Read, Seek};

use radixscope_model::frame::Frame;
use radixscope_model::id::{Decimal, Millis, Seq};
use radixscope_recording::{EncodeError, Recording, RecordingError, Series, SeriesPosition, snapshot_frames};

pub use index::{Index, Retention, SegmentRow};
use pass::Pass;
pub use pass::{PassItem, read};
use radixscope_insight::timeline::SecondRow;
pub use response::Response;

/// Why a recording cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A file.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Its content.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A moment outside of all stretches.
    #[error("{0} is not in the recording, or what led to it is damaged")]
    NotRecorded(Millis),
}

/// A recording that is shown. It is read where it lies: in memory are its index and one chunk.
pub struct Replay<R> {
    series: Series<R>,
    /// The run of the server that the recording ended with.
    epoch: u64,
    range: (Millis, Millis),
    /// Its stretches, and where each was recorded: [`SegmentRow::from_ms`] never goes back, a clock may.
    stretches: Vec<(SegmentRow, Millis)>,
    /// What reading the whole of it brought so far.
    reading: Reading,
}

/// A pass through all of it, for the rows of the timeline.
struct Reading {
    passage: SeriesPosition,
    pass: Pass,
    rows: Vec<SecondRow>,
    /// The stretch that is being read, and those before it.
    stretches: usize,
}

/// Appends a frame to a body: each stands after its length in four bytes, the least first.
pub fn append_frame(body: &mut Vec<u8>, frame: &[u8]) {
    // A frame is far smaller; one that were not would end what can be read.
    body.extend(u32::try_from(frame.len()).unwrap_or(u32::MAX).to_le_bytes());
    body.extend(frame);
}

impl<R: Read + Seek> Replay<R> {
    /// Opens the files of one recording, in any order.
    ///
    /// # Errors
    /// One of them is no recording or of another version, or they do not belong together.
    pub fn open(files: impl IntoIterator<Item = R>) -> Result<Self, ReplayError> {
        let files: Result<Vec<_>, _> = files.into_iter().map(Recording::open).collect();
        let series = Series::of(files?)?;
        let epoch = series.files().last().map_or(0, |file| file.meta().epoch);
        let range = series.range();
        let pass = Pass::from(range.0);
        let reading = Reading { passage: SeriesPosition::default(), pass, rows: Vec::new(), stretches: 0 };
        let stretches = stretches(&series);
        Ok(Self { series, epoch, range, stretches, reading })
    }

    /// Times of the first keyframe and of the last message.
    pub fn range(&self) -> (Millis, Millis) {
        self.range
    }

    /// Bytes at the ends of its files that were not written whole.
    pub fn lost_bytes(&self) -> u64 {
        self.series.files().iter().map(Recording::lost_bytes).sum()
    }

    /// The state at the end, as `/snapshot` gives it.
    ///
    /// # Errors
    /// No keyframe can be read.
    pub fn snapshot(&mut self) -> Result<Vec<u8>, ReplayError> {
        let cluster = self.series.state_at(self.range.1)?.cluster;
        let mut body = self.hello(cluster.seq(), self.range.1)?;
        snapshot_frames(&cluster)?.iter().for_each(|frame| append_frame(&mut body, frame));
        Ok(body)
    }

    fn hello(&self, seq: Seq, at_ms: Millis) -> Result<Vec<u8>, EncodeError> {
        let server = env!("CARGO_PKG_VERSION").into();
        let hello = Frame::Hello { epoch: self.epoch, seq, at_ms, server }.encode()?;
        let mut body = Vec::new();
        append_frame(&mut body, &hello);
        Ok(body)
    }

    /// Reads on for the timeline, a piece of some mebibytes; whether there is more to read. It begins with opening, and moments
    /// can be requested meanwhile.
    pub fn read_on(&mut self) -> bool {
        let (Reading { passage, pass, rows, stretches: begun }, stretches) =
            (&mut self.reading, &mut self.stretches);
        self.series.play_on(passage, &mut |step| {
            pass.observe(step, &mut |item| match item {
                PassItem::Keyframe { at_ms, seq, frames } => {
                    // A damaged one does not occur here.
                    let found = stretches.iter().skip(*begun).position(|(_, recorded)| *recorded == at_ms);
                    let Some(at) = found.map(|at| *begun + at) else { return };
                    let row = &mut stretches[at].0;
                    row.first_seq = Some(Seq(seq.0 + 1));
                    row.bytes += frames.iter().map(Vec::len).sum::<usize>();
                    *begun = at + 1;
                }
                PassItem::Batch { at_ms, frame, .. } => {
                    if let Some((row, _)) = begun.checked_sub(1).and_then(|at| stretches.get_mut(at)) {
                        row.to_ms = row.to_ms.max(at_ms);
                        row.bytes += frame.len();
                    }
                }
                PassItem::Row(row) => rows.push(row),
            });
        })
    }

    /// What there is, and what each second after `after` brought, as `/history` gives it: as far as [`Replay::read_on`] came.
    pub fn index(&self, after: Millis) -> Index {
        let rows = &self.reading.rows;
        let known = rows.partition_point(|row| row.at_ms <= after);
        let segments: Vec<SegmentRow> = self.stretches.iter().map(|(row, _)| row.clone()).collect();
        let bytes = segments.iter().map(|segment| segment.bytes).sum();
        let retention = Retention {
            from_ms: segments.first().map(|segment| segment.from_ms),
            bytes,
            max_bytes: bytes,
            max_age_ms: u64::MAX,
        };
        let (epoch, at_ms, rows) = (Decimal(self.epoch), self.range.1, rows[known..].to_vec());
        Index { epoch, at_ms, replay: true, retention: Some(retention), segments, rows }
    }

    /// The frames that lead to the state at `at`, as `/history/segment` gives them: those behind record `after` alone where the
    /// reader has what is before, and those up to `until` where no later ones are wanted.
    ///
    /// # Errors
    /// The recording does not reach it.
    pub fn segment(
        &mut self,
        at: Millis,
        after: Option<Seq>,
        until: Option<Millis>,
    ) -> Result<Vec<u8>, ReplayError> {
        if at > self.range.1 {
            return Err(ReplayError::NotRecorded(at));
        }
        let next = self.stretches.partition_point(|(row, _)| row.from_ms <= at);
        let place = next.checked_sub(1).ok_or(ReplayError::NotRecorded(at))?;
        let (from_ms, recorded) = (self.stretches[place].0.from_ms, self.stretches[place].1);
        let found = stretch::frames(&mut self.series, recorded, after, until)?;
        let (seq, frames) = found.ok_or(ReplayError::NotRecorded(at))?;
        let mut body = self.hello(seq, from_ms)?;
        body.extend(frames);
        Ok(body)
    }
}

/// The stretches of a recording, each from a keyframe on; nothing is read of them.
fn stretches<R: Read + Seek>(series: &Series<R>) -> Vec<(SegmentRow, Millis)> {
    let mut stretches = Vec::new();
    let mut ended = Millis(0);
    for file in series.files() {
        for keyframe in file.keyframes() {
            let from_ms = keyframe.at_ms.max(ended);
            let row = SegmentRow { from_ms, to_ms: from_ms, first_seq: None, bytes: 0 };
            stretches.push((row, keyframe.at_ms));
        }
        ended = file.range().map_or(ended, |(_, end)| ended.max(end));
    }
    stretches
}
