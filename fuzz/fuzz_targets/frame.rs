//! What comes over the socket and as the first body, as the page reads it: frames, each after its length in four bytes, are
//! decoded, snapshots restored and records folded. What was folded survives being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_model::frame::Frame;
use radixscope_state::cluster::{Cluster, SnapshotReader};

/// Blocks that the state may hold: as the page's, only smaller.
const MAX_NODES: u32 = 1_000;
/// Most records of one input that are folded.
const MAX_RECORDS: usize = 1_000;

fuzz_target!(|body: &[u8]| {
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
    if folded > 0 {
        check_written(&state);
    }
});

/// The state, written as a snapshot and restored, is the same state.
fn check_written(state: &Cluster) {
    let mut reader = SnapshotReader::default();
    let mut restored = None;
    let written =
        state.snapshot(|part| restored = reader.part(&part).expect("a part of our own can be read"));
    written.expect("every state can be written");
    let restored = restored.expect("the last part ends the snapshot");
    assert_eq!((restored.seq(), restored.digest()), (state.seq(), state.digest()));
}
