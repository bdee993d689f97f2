//! What a recording answers in the place of a server leads to the states that were recorded.

use std::io::Cursor;

use radixscope_model::frame::{BatchWriter, Frame};
use radixscope_model::id::{BlockHash, Millis, Seq, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{Block, Entry, Record};
use radixscope_recording::{Channel, Meta, RecordingError, Writer, snapshot_frames};
use radixscope_replay::{Replay, ReplayError, Response};
use radixscope_state::cluster::{Cluster, SnapshotReader};
use radixscope_state::sink::RecordSink as _;

const WORKER: WorkerIx = WorkerIx(0);
/// Batches, ten a second, with a keyframe before every 20th.
const BATCHES: u64 = 100;
const BEGIN_MS: u64 = 1_000_000;

/// A recording of a run, and the time and digest after each batch. It goes on from `cluster`.
fn recorded(recording: u64, began_ms: u64, cluster: &mut Cluster) -> (Vec<u8>, Vec<(Millis, u64)>) {
    let meta = Meta {
        by: "0.1.0".to_owned(),
        epoch: 7,
        recording,
        began_ms,
        sources: String::new(),
        redacted: false,
    };
    let mut writer = Writer::new(Vec::new(), &meta).unwrap();
    let mut batch = BatchWriter::new(Seq(cluster.seq().0 + 1));
    let is_new = cluster.workers().is_empty();
    let mut digests = Vec::new();
    for i in 0..BATCHES {
        let at_ms = Millis(began_ms + i * 100);
        if i % 20 == 0 {
            writer.keyframe(at_ms, &snapshot_frames(cluster).unwrap()).unwrap();
        }
        let mut append = |record| {
            let entry = Entry { at_ms, record };
            cluster.append(&entry);
            batch.push(&entry).unwrap();
        };
        if is_new && i == 0 {
            append(Record::new_worker(WORKER, Worker::new(1, 0), "dynamo", "backend"));
        }
        let hash = began_ms + i;
        let block = Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(hash) };
        append(Record::Stored { worker: WORKER, parent: None, blocks: vec![block].into() });
        let frame = batch.finish(at_ms, None).unwrap();
        writer.message(Channel::Batches, at_ms, &frame).unwrap();
        digests.push((at_ms, cluster.digest()));
    }
    (writer.finish().unwrap(), digests)
}

/// Folds a body as a page does: whole, or behind the state that it has.
fn folded(body: &[u8], until: Millis) -> Cluster {
    let (mut state, mut reader, mut rest) = (None, SnapshotReader::default(), body);
    while let Some((len, after)) = rest.split_first_chunk::<4>() {
        let (frame, next) = after.split_at(u32::from_le_bytes(*len) as usize);
        rest = next;
        match Frame::decode(frame).unwrap() {
            Frame::Snapshot { bytes, .. } => state = reader.part(bytes.0).unwrap().or(state),
            Frame::Batch(batch) if batch.at_ms <= until => {
                let cluster: &mut Cluster = state.as_mut().unwrap();
                assert_eq!(batch.first_seq.0, cluster.seq().0 + 1, "records follow each other");
                batch.entries().map(Result::unwrap).for_each(|(seq, entry)| cluster.fold(seq, &entry));
            }
            _ => {}
        }
    }
    state.unwrap()
}

fn two_files() -> (Vec<Vec<u8>>, Vec<(Millis, u64)>) {
    let mut cluster = Cluster::default();
    let (first, mut digests) = recorded(8, BEGIN_MS, &mut cluster);
    let (second, more) = recorded(8, BEGIN_MS + 20_000, &mut cluster);
    digests.extend(more);
    // In the wrong order.
    (vec![second, first], digests)
}

fn opened(files: &[Vec<u8>]) -> Replay<Cursor<&[u8]>> {
    Replay::open(files.iter().map(|file| Cursor::new(file.as_slice()))).unwrap()
}

fn body(response: Response) -> Vec<u8> {
    assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
    response.body
}

#[test]
fn every_moment_of_two_files_is_answered() {
    let (files, digests) = two_files();
    let mut replay = opened(&files);
    assert_eq!(replay.range(), (digests[0].0, digests.last().unwrap().0));
    let end = folded(&body(replay.respond("snapshot")), Millis(u64::MAX));
    assert_eq!(end.digest(), digests.last().unwrap().1);
    for (at_ms, digest) in &digests {
        let body = body(replay.respond(&format!("history/segment?at_ms={at_ms}")));
        assert_eq!(folded(&body, *at_ms).digest(), *digest, "at {at_ms}");
    }
    // Between the files nothing happened.
    let between = Millis(BEGIN_MS + 15_000);
    let body = body(replay.respond(&format!("history/segment?at_ms={between}")));
    assert_eq!(folded(&body, between).digest(), digests[BATCHES as usize - 1].1);
}

#[test]
fn who_has_the_keyframe_gets_what_is_behind() {
    let (files, digests) = two_files();
    let mut replay = opened(&files);
    let at_ms = digests[30].0;
    let whole = body(replay.respond(&format!("history/segment?at_ms={at_ms}")));
    // A worker and 31 blocks: the segment's keyframe is after 21 records.
    let rest = body(replay.respond(&format!("history/segment?at_ms={at_ms}&after=32")));
    assert!(rest.len() < whole.len());
    let mut firsts = Vec::new();
    let mut left = rest.as_slice();
    while let Some((len, after)) = left.split_first_chunk::<4>() {
        let (frame, next) = after.split_at(u32::from_le_bytes(*len) as usize);
        left = next;
        match Frame::decode(frame).unwrap() {
            Frame::Batch(batch) => firsts.push(batch.first_seq.0),
            Frame::Hello { seq, .. } => assert_eq!(seq, Seq(21)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(firsts, (33..=41).collect::<Vec<_>>());
}

#[test]
fn who_wants_nothing_later_gets_nothing_later() {
    let (files, digests) = two_files();
    let mut replay = opened(&files);
    let mut request = |query: &str| body(replay.respond(&format!("history/segment?{query}")));
    for (at_ms, digest) in &digests {
        let up_to = request(&format!("at_ms={at_ms}&until_ms={at_ms}"));
        // All that came is folded.
        assert_eq!(folded(&up_to, Millis(u64::MAX)).digest(), *digest, "at {at_ms}");
        let keyframe = request(&format!("at_ms={at_ms}&until_ms=0"));
        assert!(keyframe.len() <= up_to.len());
        let begun = folded(&keyframe, Millis(u64::MAX));
        let rest = request(&format!("at_ms={at_ms}&after={}", begun.seq().0));
        let whole = request(&format!("at_ms={at_ms}"));
        // Each begins with a frame that says of what it is.
        let hello = 4 + u32::from_le_bytes(*whole.first_chunk().unwrap()) as usize;
        assert!([&keyframe[..], &rest[hello..]].concat() == whole, "at {at_ms}");
    }
}

#[test]
fn the_index_has_every_stretch_and_a_row_a_second() {
    let (files, _) = two_files();
    let mut replay = opened(&files);
    let first: serde_json::Value =
        serde_json::from_slice(&body(replay.respond("history?after_ms=0"))).unwrap();
    let begins = |index: &serde_json::Value| -> Vec<u64> {
        let segments = index["segments"].as_array().unwrap().iter();
        segments.map(|segment| segment["from_ms"].as_u64().unwrap()).collect()
    };
    assert_eq!(
        (begins(&first).len(), first["rows"].as_array().unwrap().len()),
        (10, 0),
        "nothing is read yet"
    );
    while replay.read_on() {}
    let index: serde_json::Value =
        serde_json::from_slice(&body(replay.respond("history?after_ms=0"))).unwrap();
    assert_eq!(index["replay"], true);
    assert_eq!(index["epoch"], "7");
    assert_eq!(index["kept"]["from_ms"], BEGIN_MS);
    assert_eq!(index["at_ms"], BEGIN_MS + 29_900);
    assert_eq!(begins(&index), begins(&first));
    let firsts = index["segments"].as_array().unwrap().iter().map(|segment| segment["first_seq"].as_u64());
    assert_eq!(firsts.take(2).collect::<Vec<_>>(), [Some(1), Some(22)]);
    let rows = index["rows"].as_array().unwrap();
    let stored: u64 = rows.iter().map(|row| row["stored"].as_u64().unwrap()).sum();
    assert_eq!(rows[0]["stored"], 11, "ten batches a second, and that of the beginning");
    assert!(stored > 180, "{stored} of 200 blocks; the last second is not over");
    let later = rows[3]["at_ms"].as_u64().unwrap();
    let index: serde_json::Value =
        serde_json::from_slice(&body(replay.respond(&format!("history?after_ms={later}")))).unwrap();
    assert_eq!(index["rows"].as_array().unwrap().len(), rows.len() - 4);
}

#[test]
fn a_refusal_has_its_reason() {
    let (files, _) = two_files();
    let mut replay = opened(&files);
    let mut wrong = |address: &str| {
        let Response { status, body } = replay.respond(address);
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        (status, body["error"]["message"].as_str().unwrap().to_owned())
    };
    assert_eq!(wrong("history/segment?at_ms=5").0, 404);
    assert_eq!(wrong(&format!("history/segment?at_ms={}", BEGIN_MS + 29_901)).0, 404, "after its end");
    assert_eq!(wrong("history/segment").0, 400);
    let (status, text) = wrong("api/v1/arrivals?last=5");
    assert_eq!((status, text.as_str()), (404, "This needs a server: what is shown is a recording"));
    let other = recorded(9, BEGIN_MS, &mut Cluster::default()).0;
    let two = Replay::open([Cursor::new(files[0].as_slice()), Cursor::new(other.as_slice())]);
    assert!(matches!(two.err().unwrap(), ReplayError::Recording(RecordingError::OtherDeployment(..))));
    let none = Replay::open([Cursor::new(&b"no recording"[..])]);
    assert!(matches!(none.err().unwrap(), ReplayError::Recording(RecordingError::NotARecording)));
}
