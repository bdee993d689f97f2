//! Recordings of real Dynamo deployments, recorded by us and read back.

use std::io::Cursor;

use radixscope_captures::Recording as Capture;
use radixscope_captures::recorded::{BATCH_RECORDS, Recorded, meta, random, seed};
use radixscope_model::frame::{self, Frame};
use radixscope_model::id::{Millis, Seq};
use radixscope_recording::{
    Channel, Meta, Recording, RecordingError, Reduced, SeekTo, Series, Target as _, Writer, snapshot_frames,
};
use radixscope_state::cluster::Cluster;

fn open(file: &[u8]) -> Recording<Cursor<&[u8]>> {
    Recording::open(Cursor::new(file)).unwrap()
}

fn small() -> (Vec<u8>, Vec<Recorded>) {
    Capture::fixture("0.9.1-mismatch").recorded()
}

fn known(recorded: &[Recorded]) -> Vec<u64> {
    recorded.iter().map(|recorded| recorded.digest).collect()
}

#[test]
fn every_capture_folds_to_the_digest_of_the_live_state() {
    let captures = Capture::all();
    assert!(!captures.is_empty());
    for capture in &captures {
        let (file, digests) = capture.recorded();
        let mut recording = open(&file);
        assert!(recording.is_finished());
        let (_, last) = recording.range().unwrap();
        let &Recorded { seq, digest, .. } = digests.last().unwrap();
        let folded = recording.state_at(SeekTo::At(last)).unwrap();
        assert!(folded.damaged.is_none() && folded.missing == 0);
        assert_eq!((folded.cluster.seq(), folded.cluster.digest()), (seq, digest), "{}", capture.name());
        let played = Series::of(vec![recording]).unwrap().play(&mut |_| {}).unwrap();
        assert_eq!(played.cluster.digest(), digest, "{}", capture.name());
    }
}

#[test]
fn two_hundred_random_moments_of_every_capture_are_the_live_state_of_that_moment() {
    let seed = seed();
    for (capture, number) in Capture::all().iter().zip(1..) {
        let (file, recorded) = capture.recorded();
        let mut recording = open(&file);
        let (from, until) = recording.range().unwrap();
        for number in random(seed.wrapping_mul(number)).take(200) {
            let at_ms = Millis(from.0 + number % (until.since(from) + 1));
            let folded = recording.state_at(SeekTo::At(at_ms)).unwrap();
            let Some(live) = recorded.iter().rfind(|recorded| recorded.at_ms <= at_ms) else {
                assert_eq!(folded.cluster.seq(), Seq(0), "{} at {at_ms}", capture.name());
                continue;
            };
            let is = (folded.cluster.seq(), folded.cluster.digest());
            assert_eq!(is, (live.seq, live.digest), "{} at {at_ms}", capture.name());
        }
    }
}

#[test]
fn the_state_after_any_record_that_ends_a_batch_is_the_live_one() {
    let captures = Capture::all();
    let capture = captures.iter().max_by_key(|capture| capture.subscribed().count()).unwrap();
    let (file, recorded) = capture.recorded();
    let mut recording = open(&file);
    assert!(recording.keyframes().len() > 2, "{} keyframes", recording.keyframes().len());
    for number in random(1).take(200) {
        let Recorded { seq, digest, .. } = recorded[number as usize % recorded.len()];
        let folded = recording.state_at(SeekTo::After(seq)).unwrap();
        assert_eq!((folded.cluster.seq(), folded.cluster.digest()), (seq, digest));
    }
}

#[test]
fn a_file_cut_off_at_any_byte_opens_and_loses_no_chunk_that_was_whole() {
    let (file, digests) = small();
    let known = known(&digests);
    let whole = open(&file);
    let metadata_end = file.len() / 100;
    drop(whole);
    let mut opened = 0;
    for number in random(2).take(100) {
        let len = metadata_end + number as usize % (file.len() - metadata_end);
        let mut cut = match Recording::open(Cursor::new(&file[..len])) {
            Ok(cut) => cut,
            Err(error) => panic!("{len} of {} bytes: {error}", file.len()),
        };
        assert!(!cut.is_finished());
        let Some((_, last)) = cut.range() else { continue };
        // Unread bytes are reported as lost: less than a chunk and its index.
        assert!(cut.lost_bytes() < 128 * 1024, "{} of {len}", cut.lost_bytes());
        let folded = cut.state_at(SeekTo::At(last)).unwrap();
        assert!(folded.damaged.is_none(), "{:?}", folded.damaged);
        let is_known = known.contains(&folded.cluster.digest()) || folded.cluster.seq() == Seq(0);
        assert!(is_known, "cut at {len}");
        opened += 1;
    }
    assert!(opened > 50, "{opened}");
}

#[test]
fn flipped_bits_give_an_error_or_a_part_and_never_a_state_that_was_not() {
    let (file, digests) = small();
    let known = known(&digests);
    for number in random(3).take(300) {
        let mut damaged = file.clone();
        let at = number as usize % damaged.len();
        damaged[at] ^= 1 << (number % 8);
        let Ok(mut recording) = Recording::open(Cursor::new(&damaged)) else { continue };
        let Some((_, last)) = recording.range() else { continue };
        let Ok(folded) = recording.state_at(SeekTo::At(last)) else { continue };
        let is_known = known.contains(&folded.cluster.digest()) || folded.cluster.seq() == Seq(0);
        assert!(is_known, "bit at {at}");
        let _ = Series::of(vec![recording]).map(|mut series| series.play(&mut |_| {}).is_ok());
    }
}

/// Counts what is read.
struct Counted<'f> {
    file: Cursor<&'f [u8]>,
    read: std::rc::Rc<std::cell::Cell<usize>>,
}

impl std::io::Read for Counted<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let len = self.file.read(to)?;
        self.read.set(self.read.get() + len);
        Ok(len)
    }
}

impl std::io::Seek for Counted<'_> {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn the_index_leads_to_the_states_that_a_walk_leads_to_and_reads_little() {
    for capture in &Capture::all() {
        let (file, _) = capture.recorded();
        let read = std::rc::Rc::<std::cell::Cell<usize>>::default();
        let counted = Counted { file: Cursor::new(&file), read: std::rc::Rc::clone(&read) };
        let (mut indexed, mut walked) = (Recording::open_by_index(counted).unwrap(), open(&file));
        let opened = read.get();
        assert_eq!(indexed.keyframes(), walked.keyframes(), "{}", capture.name());
        assert_eq!((indexed.range(), indexed.meta()), (walked.range(), walked.meta()));
        assert!(indexed.is_finished());
        let (from, until) = walked.range().unwrap();
        for moment in [from, Millis((from.0 + until.0) / 2), until] {
            let states =
                [indexed.state_at(SeekTo::At(moment)).unwrap(), walked.state_at(SeekTo::At(moment)).unwrap()];
            let [by_index, by_walk] = states.map(|state| (state.cluster.seq(), state.cluster.digest()));
            assert_eq!(by_index, by_walk, "{} at {moment}", capture.name());
        }
        // The texts of the schemas, which the index repeats, and an entry for each chunk.
        let schemas = 100_000;
        assert!(opened < schemas + file.len() / 20, "{opened} of {}", file.len());
    }
}

#[test]
fn a_damaged_or_missing_index_gives_a_walk_an_error_or_a_part_and_never_a_state_that_was_not() {
    let (file, digests) = small();
    let known = known(&digests);
    let whole = open(&file).keyframes().len();
    let cut = Recording::open_by_index(Cursor::new(&file[..file.len() - 40])).unwrap();
    assert_eq!((cut.keyframes().len(), cut.is_finished()), (whole, false));
    // Most of them in the index.
    for number in random(4).take(600) {
        let mut damaged = file.clone();
        let behind = number as usize % damaged.len().min(16 << 10);
        let at = damaged.len() - 1 - behind;
        damaged[at] ^= 1 << (number % 8);
        let Ok(mut recording) = Recording::open_by_index(Cursor::new(&damaged)) else { continue };
        let Some((_, last)) = recording.range() else { continue };
        let Ok(folded) = recording.state_at(SeekTo::At(last)) else { continue };
        let is_known = known.contains(&folded.cluster.digest()) || folded.cluster.seq() == Seq(0);
        assert!(is_known, "bit at {at}");
    }
}

#[test]
fn a_recording_is_left_out_after_a_time_and_begins_where_it_fits() {
    let (file, recorded) = small();
    let mut series = Series::of(vec![open(&file)]).unwrap();
    let (from, until) = series.range();
    assert_eq!(series.begin_within(u64::MAX), from);
    let last = open(&file).keyframes().last().unwrap().at_ms;
    assert_eq!(series.begin_within(0), last, "one state at least");
    let middle = Millis((from.0 + until.0) / 2);
    series.leave_out_after(middle).unwrap();
    assert!(series.range().1 < until);
    let folded = series.play(&mut |_| {}).unwrap();
    let live = recorded.iter().find(|recorded| recorded.seq == folded.cluster.seq()).unwrap();
    assert_eq!(folded.cluster.digest(), live.digest);
    assert!(series.leave_out_after(Millis(from.0 - 1)).is_err());
}

#[test]
fn records_that_are_missing_are_counted_and_the_next_keyframe_goes_on() {
    let (file, _) = small();
    let mut recording = open(&file);
    let mut frames = Vec::new();
    let mut messages = recording.messages(None, &[Channel::Keyframes, Channel::Batches]);
    while let Some(message) = messages.next() {
        let message = message.unwrap();
        frames.push((message.channel, message.clock_ms, message.data.to_vec()));
    }
    let mut writer = Writer::new(Vec::new(), &meta()).unwrap();
    let mut live = Cluster::default();
    let parts = frames.iter().take_while(|(channel, ..)| *channel == Channel::Keyframes);
    let first: Vec<&Vec<u8>> = parts.map(|(.., data)| data).collect();
    writer.keyframe(frames[0].1, &first).unwrap();
    let batches = frames.iter().filter(|(channel, ..)| *channel == Channel::Batches);
    for (i, (channel, at_ms, data)) in batches.enumerate() {
        let Frame::Batch(batch) = Frame::decode(data).unwrap() else { panic!("not a batch") };
        batch.entries().map(Result::unwrap).for_each(|(seq, entry)| live.fold(seq, &entry));
        if i != 5 {
            writer.message(*channel, *at_ms, data).unwrap();
        }
    }
    let mut keyframe = Vec::new();
    live.snapshot(|part| keyframe.push(part)).unwrap();
    let (seq, parts) = (live.seq(), keyframe.len() as u32);
    let keyframe: Vec<Vec<u8>> = (0..)
        .zip(&keyframe)
        .map(|(part, body)| Frame::Snapshot { seq, part, parts, bytes: frame::Bytes(body) }.encode().unwrap())
        .collect();
    let at_ms = frames.last().unwrap().1;
    writer.keyframe(Millis(at_ms.0 + 10), &keyframe).unwrap();
    let file = writer.finish().unwrap();
    let before = open(&file).state_at(SeekTo::At(at_ms)).unwrap();
    assert_eq!((before.missing, before.cluster.seq()), (u64::from(BATCH_RECORDS), Seq(5 * 100)));
    let played = Series::of(vec![open(&file)]).unwrap().play(&mut |_| {}).unwrap();
    assert_eq!(played.cluster.digest(), live.digest());
}

#[test]
fn what_is_no_recording_or_not_of_this_version_is_reported() {
    let error = |file: &[u8]| match Recording::open(Cursor::new(file)) {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    };
    assert!(matches!(error(b""), RecordingError::NotARecording));
    assert!(matches!(error(b"PK\x03\x04 something else"), RecordingError::NotARecording));
    let foreign = mcap::Writer::new(Cursor::new(Vec::new())).map(|mut writer| {
        writer.finish().unwrap();
        writer.into_inner().into_inner()
    });
    assert!(matches!(error(&foreign.unwrap()), RecordingError::NotARecording));
    let (mut file, _) = small();
    let version = radixscope_model::record::RECORD_VERSION.to_string();
    let key = b"record_version";
    let at = file.windows(key.len()).position(|window| window == key).unwrap() + key.len() + 4;
    file[at..at + version.len()].fill(b'9');
    assert!(error(&file).to_string().contains("record version 99"));
}

#[test]
fn times_outside_and_files_of_different_deployments_are_refused() {
    let (file, _) = small();
    let mut recording = open(&file);
    let (from, to) = recording.range().unwrap();
    let refused = recording.state_at(SeekTo::At(Millis(to.0 + 1_000))).map(drop).unwrap_err();
    assert!(refused.to_string().contains(&format!("from {from} to {to}")), "{refused}");
    let other = Writer::new(Vec::new(), &Meta { recording: 9, ..meta() }).unwrap().finish().unwrap();
    let both = Series::of(vec![recording, open(&other)]);
    assert!(matches!(both.map(drop), Err(RecordingError::OtherDeployment(8, 9))));
    let empty = Series::of(vec![open(&other)]);
    assert!(matches!(empty.map(drop), Err(RecordingError::NoKeyframe)));
}

#[test]
fn other_tools_read_the_file() {
    let (file, digests) = small();
    let messages: Vec<_> = mcap::MessageStream::new(&file).unwrap().map(Result::unwrap).collect();
    let batches = messages.iter().filter(|message| message.channel.topic == "/batches").count();
    assert_eq!(batches, digests.len());
    let summary = mcap::Summary::read(&file).unwrap().unwrap();
    assert!(
        summary.schemas.values().any(|schema| schema.data.windows(11).any(|text| text == b"enum Record"))
    );
    for schema in summary.schemas.values().filter(|schema| schema.encoding == "jsonschema") {
        serde_json::from_slice::<serde_json::Value>(&schema.data).unwrap();
    }
}

#[test]
fn a_range_that_is_copied_begins_at_the_keyframe_before_it_and_ends_in_the_same_state() {
    let captures = Capture::all();
    let capture = captures.iter().max_by_key(|capture| capture.subscribed().count()).unwrap();
    let (file, digests) = capture.recorded();
    let mut whole = open(&file);
    let keyframes = whole.keyframes().to_vec();
    let (from, to) = (keyframes[1].at_ms, digests[digests.len() * 3 / 4].at_ms);
    let wanted = whole.state_at(SeekTo::At(to)).unwrap().cluster.digest();
    let mut writer = Writer::new(Vec::new(), &meta()).unwrap();
    Series::of(vec![whole]).unwrap().copy(from, to, &mut writer).unwrap();
    let copied = writer.finish().unwrap();
    let mut copied = open(&copied);
    let (begin, end) = copied.range().unwrap();
    assert!(begin == from && end <= to && copied.keyframes().len() < keyframes.len());
    assert_eq!(copied.state_at(SeekTo::At(end)).unwrap().cluster.digest(), wanted);
}

/// A recording from `from` on as a report holds it.
fn reduced(file: &[u8], from: Millis) -> Vec<u8> {
    let mut series = Series::of(vec![open(file)]).unwrap();
    let mut writer = Writer::small(Vec::new(), &meta()).unwrap();
    let mut reduced = Reduced::new(&mut writer, from);
    series.copy(from, Millis(u64::MAX), &mut reduced).unwrap();
    reduced.finish().unwrap();
    writer.finish().unwrap()
}

#[test]
fn a_report_begins_at_its_moment_with_the_one_keyframe_it_needs() {
    let captures = Capture::all();
    let capture = captures.iter().max_by_key(|capture| capture.subscribed().count()).unwrap();
    let (file, digests) = capture.recorded();
    let whole = open(&file);
    let (begin, end) = whole.range().unwrap();
    let from = Millis(begin.0 + end.since(begin) / 3);
    assert!(whole.keyframes().len() > 3 && !whole.keyframes().iter().any(|keyframe| keyframe.at_ms == from));
    let small = reduced(&file, from);
    let mut recording = open(&small);
    assert_eq!((recording.range(), recording.keyframes().len()), (Some((from, end)), 1));
    let state_at = |recording: &mut Recording<Cursor<&[u8]>>, at_ms| {
        let folded = recording.state_at(SeekTo::At(at_ms)).unwrap();
        assert!(folded.damaged.is_none() && folded.missing == 0, "at {at_ms}");
        (folded.cluster.seq(), folded.cluster.digest())
    };
    let mut whole = whole;
    let after = digests.iter().map(|recorded| recorded.at_ms).filter(|at_ms| *at_ms >= from);
    for at_ms in [from].into_iter().chain(after.step_by(7)).chain([end]) {
        assert_eq!(state_at(&mut recording, at_ms), state_at(&mut whole, at_ms), "at {at_ms}");
    }
    let all = reduced(&file, begin);
    assert!(all.len() < file.len(), "{} of {}", all.len(), file.len());
}

#[test]
fn a_report_keeps_the_keyframe_after_records_that_are_missing() {
    let (file, _) = small();
    let mut recording = open(&file);
    let (begin, end) = recording.range().unwrap();
    let mut frames = Vec::new();
    let mut messages = recording.messages(None, &[Channel::Keyframes, Channel::Batches]);
    while let Some(message) = messages.next() {
        let message = message.unwrap();
        frames.push((message.channel, message.clock_ms, message.data.to_vec()));
    }
    let state = recording.state_at(SeekTo::At(end)).unwrap().cluster;
    let mut writer = Writer::new(Vec::new(), &meta()).unwrap();
    let mut reduced = Reduced::new(&mut writer, begin);
    let first = frames.iter().take_while(|(channel, ..)| *channel == Channel::Keyframes);
    let first: Vec<Vec<u8>> = first.map(|(.., data)| data.clone()).collect();
    reduced.keyframe(begin, &first).unwrap();
    // Of the keyframes the only one after the loss is that of the end.
    let batches: Vec<_> = frames.iter().filter(|(channel, ..)| *channel == Channel::Batches).collect();
    for (i, (channel, at_ms, data)) in batches.iter().enumerate() {
        if i != batches.len() / 2 {
            reduced.message(*channel, *at_ms, data).unwrap();
        }
    }
    reduced.keyframe(end, &snapshot_frames(&state).unwrap()).unwrap();
    reduced.finish().unwrap();
    let file = writer.finish().unwrap();
    let mut recording = open(&file);
    assert_eq!(recording.keyframes().last().map(|keyframe| keyframe.at_ms), Some(end));
    assert_eq!(recording.state_at(SeekTo::At(end)).unwrap().cluster.digest(), state.digest());
}
