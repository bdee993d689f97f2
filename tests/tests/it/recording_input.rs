//! Recordings that cannot be opened: each command says what is wrong and with which file, and does nothing else.

use std::path::{Path, PathBuf};

use radixscope_model::frame::{self, Frame};
use radixscope_model::id::Millis;
use radixscope_model::record::RECORD_VERSION;
use radixscope_recording::{Meta, Writer};
use radixscope_state::cluster::Cluster;
use radixscope_tests::radixscope::Radixscope;

const COMMANDS: [(&str, &[&str]); 3] = [("replay", &[]), ("check", &[]), ("export", &["--decisions", "csv"])];

/// A recording with or without a state.
fn written(recording: u64, has_state: bool) -> Vec<u8> {
    let (by, sources) = ("0.1.0".to_owned(), "nats nats://127.0.0.1:4222".to_owned());
    let meta = Meta { by, epoch: recording, recording, began_ms: 1_000, sources, redacted: false };
    let mut writer = Writer::new(Vec::new(), &meta).expect("into memory");
    if has_state {
        let cluster = Cluster::default();
        let mut bodies = Vec::new();
        cluster.snapshot(|part| bodies.push(part)).expect("plain data");
        let (seq, parts) = (cluster.seq(), bodies.len() as u32);
        let frames = (0..).zip(&bodies).map(|(part, body)| {
            Frame::Snapshot { seq, part, parts, bytes: frame::Bytes(body) }.encode().expect("plain data")
        });
        writer.keyframe(Millis(1_000), &frames.collect::<Vec<_>>()).expect("into memory");
    }
    writer.finish().expect("into memory")
}

/// The same file, marked with the next record version.
fn newer(mut file: Vec<u8>) -> Vec<u8> {
    let version = |number: u8| {
        let text = number.to_string();
        [b"record_version".as_slice(), &(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
    };
    let ours = version(RECORD_VERSION);
    let at = file.windows(ours.len()).position(|bytes| bytes == ours).expect("it says its version");
    file.splice(at..at + ours.len(), version(RECORD_VERSION + 1));
    file
}

/// Every command fails as on a wrong option, with these words.
fn refused(files: &[&Path], expected: &[&str]) {
    for (command, more) in COMMANDS {
        let files = files.iter().map(|file| file.to_str().expect("a path of ours"));
        let args: Vec<&str> = [command].into_iter().chain(files).chain(more.iter().copied()).collect();
        let output = Radixscope::run(&args);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{command}: {message}");
        expected
            .iter()
            .for_each(|word| assert!(message.contains(word), "{command}: {word:?} expected: {message}"));
        assert!(!message.contains("panicked"), "{command}: {message}");
    }
}

#[test]
fn what_cannot_be_opened_is_refused_by_name_and_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let keep = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    };
    let other = keep("other.mcap", b"\x89PNG\r\n\x1a\n and no recording");
    refused(&[&other], &["other.mcap", "not a recording of Radixscope"]);
    let empty = keep("empty.mcap", b"");
    refused(&[&empty], &["empty.mcap", "not a recording of Radixscope"]);
    let newer = keep("newer.mcap", &newer(written(1, true)));
    refused(
        &[&newer],
        &["newer.mcap", &format!("record version {}", RECORD_VERSION + 1), "use a release of that version"],
    );
    let stateless = keep("stateless.mcap", &written(1, false));
    refused(&[&stateless], &["holds no keyframe"]);
    let (one, two) = (keep("one.mcap", &written(1, true)), keep("two.mcap", &written(2, true)));
    refused(&[&one, &two], &["different deployments or runs", "open them one by one"]);
    refused(&[&folder.path().join("missing.mcap")], &["missing.mcap", "No such file"]);
    assert!(
        Radixscope::run(&["export", one.to_str().expect("a path of ours"), "--decisions", "csv"])
            .status
            .success()
    );
}
