//! What comes over the socket and as the first body, as the page reads it: frames, each after its length in four bytes, are
//! decoded, snapshots restored and records folded. What was folded survives being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use radixscope_fuzz::folded;
use radixscope_state::cluster::{Cluster, SnapshotReader};

fuzz_target!(|body: &[u8]| {
    let (state, folded) = folded(body);
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
