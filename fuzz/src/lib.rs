//! What the fuzz targets hold true of every input, beside that nothing panics.
#![forbid(unsafe_code)]

use radixscope_dynamo::envelope::Format;
use radixscope_dynamo::error::{DecodeError, Faults};
use radixscope_dynamo::kv_event::{KvData, KvEvents};
use radixscope_model::frame::Frame;
use radixscope_state::cluster::{Cluster, SnapshotReader};

/// Both formats, as a target for one input tries both.
pub const FORMATS: [Format; 2] = [Format::Json, Format::MsgPack];

/// An error is short and says where it is.
pub fn check_error(error: &DecodeError) {
    assert!(!error.detail.is_empty());
    assert!(error.detail.chars().count() <= DecodeError::MAX_DETAIL_CHARS);
}

/// Faults are never none, and no more kinds than there are reasons.
pub fn check_faults(faults: &Faults) {
    assert!((1..=6).contains(&faults.iter().count()));
    assert!(faults.total() >= faults.iter().count() as u64);
    faults.iter().for_each(|(error, _)| check_error(error));
}

/// What was understood is whole: every range of an event lies in its buffer, the events' ranges follow each other
/// without holes, and a second decoding into the used scratch says the same.
pub fn check_kv_events(body: &[u8], format: Format) {
    let mut events = KvEvents::default();
    let first = events.decode(body, format);
    if let Err(faults) = &first {
        check_faults(faults);
    } else {
        assert!(is_well_formed(body, format), "something was accepted that is no {format:?}");
    }
    let (mut blocks, mut removed) = (0, 0);
    for event in &events.events {
        match &event.data {
            KvData::Stored { blocks: range, .. } => {
                assert_eq!(range.start, blocks);
                assert_eq!(events.blocks_of(range).len(), range.len());
                blocks = range.end;
            }
            KvData::Removed { hashes: range } => {
                assert_eq!(range.start, removed);
                assert_eq!(events.removed_of(range).len(), range.len());
                removed = range.end;
            }
            KvData::Cleared => {}
        }
    }
    assert_eq!((events.blocks.len(), events.removed.len()), (blocks as usize, removed as usize));
    let before = events.clone();
    assert_eq!(events.decode(body, format), first);
    assert_eq!(
        (events.events, events.blocks, events.removed),
        (before.events, before.blocks, before.removed)
    );
}

/// Whether a library that knows nothing of Dynamo can read it as well.
fn is_well_formed(body: &[u8], format: Format) -> bool {
    match format {
        Format::Json => serde_json::from_slice::<&serde_json::value::RawValue>(body).map_or_else(
            |error| !error.is_syntax() && !error.is_eof() || std::str::from_utf8(body).is_err(),
            |_| true,
        ),
        // The library refuses what is nested deeper than it likes to recurse.
        Format::MsgPack => match rmp_serde::from_slice::<serde::de::IgnoredAny>(body) {
            Ok(_) | Err(rmp_serde::decode::Error::DepthLimitExceeded) => true,
            Err(_) => false,
        },
    }
}

/// Blocks that a state of [`folded`] may hold: as the page's, only smaller.
const MAX_NODES: u32 = 1_000;
/// Most records of one input that are folded.
const MAX_RECORDS: usize = 1_000;

/// The state that frames leave, each after its length in four bytes, as the page takes them; and how many records were folded.
pub fn folded(body: &[u8]) -> (Cluster, usize) {
    let mut state = Cluster::new(MAX_NODES);
    let mut reader = SnapshotReader::default();
    let (mut rest, mut folded) = (body, 0);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = (u32::from_le_bytes(*length) as usize).min(after.len());
        let (frame, after) = after.split_at(length);
        rest = after;
        match Frame::decode(frame) {
            Ok(Frame::Snapshot { bytes, .. }) => match reader.part(bytes.0) {
                Ok(Some(restored)) => state = restored,
                Ok(None) => {}
                Err(_) => reader = SnapshotReader::default(),
            },
            Ok(Frame::Batch(batch)) => {
                for (seq, entry) in batch.entries().map_while(Result::ok).take(MAX_RECORDS - folded) {
                    state.fold(seq, &entry);
                    folded += 1;
                }
            }
            Ok(Frame::Hello { .. } | Frame::Lag { .. }) | Err(_) => {}
        }
    }
    (state, folded)
}
