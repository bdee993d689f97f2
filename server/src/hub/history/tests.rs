use radixscope_insight::timeline::{FindingMark, WorkerMark, WorkerTransition};
use radixscope_model::frame::Frame;
use radixscope_model::id::{BlockHash, DecisionId, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{
    Block, Decision, DecisionSource, DepartureCause, Finding, Phase, Record, Severity,
};
use radixscope_state::cluster::SnapshotReader;
use radixscope_state::sink::RecordSink;

use super::*;
use crate::hub::state::HubState;
use crate::time::now;

const QUARTER: Duration = Duration::from_secs(900);
const WORKER: WorkerIx = WorkerIx(0);

fn state(max_age: Duration, max_bytes: usize) -> HubState {
    HubState::new(10_000, 1 << 20, HistoryLimits { max_age, max_bytes }, 7)
}

fn append(state: &mut HubState, at_ms: Millis, record: Record<'_>) {
    state.append(&Entry { at_ms, record });
}

fn worker() -> Record<'static> {
    Record::new_worker(WORKER, Worker::new(1, 0), "dynamo", "backend")
}

fn stored(hashes: impl Iterator<Item = u64>) -> Record<'static> {
    let block = |hash| Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(hash) };
    Record::Stored { worker: WORKER, parent: None, blocks: hashes.map(block).collect() }
}

fn removed(hashes: impl Iterator<Item = u64>) -> Record<'static> {
    Record::Removed { worker: WORKER, hashes: hashes.map(BlockHash).collect() }
}

fn history(state: &HubState) -> &History {
    state.history.as_ref().unwrap()
}

/// A batch a tenth of a second that stores and removes blocks, a keyframe after every 16th; the moments and the digests
/// that the state had then.
fn busy(state: &mut HubState, batches: u64) -> Vec<(Millis, u64)> {
    let begin = now().0;
    append(state, Millis(begin), worker());
    let moment = |i: u64| {
        let at = Millis(begin + (i + 1) * 100);
        append(state, at, stored(i * 10 + 1..i * 10 + 9));
        if i > 3 {
            append(state, at, removed((i - 3) * 10 + 4..(i - 3) * 10 + 9));
        }
        // Due at the next batch, whatever time it is.
        if i % 16 == 15 {
            state.history.as_mut().unwrap().spacing = None;
        }
        state.tick(at);
        (at, state.cluster.digest())
    };
    (0..batches).map(moment).collect()
}

/// What a page does to go to a moment.
fn digest_at(history: &History, at: Millis) -> Option<u64> {
    let (mut reader, mut cluster) = (SnapshotReader::default(), Cluster::default());
    for frame in history.segment_at(at, None, None)?.frames {
        match Frame::decode(&frame).unwrap() {
            Frame::Snapshot { bytes, .. } => cluster = reader.part(bytes.0).unwrap().unwrap_or(cluster),
            Frame::Batch(batch) if batch.at_ms <= at => {
                for entry in batch.entries() {
                    let (seq, entry) = entry.unwrap();
                    cluster.fold(seq, &entry);
                }
            }
            _ => break,
        }
    }
    Some(cluster.digest())
}

#[test]
fn every_moment_folds_to_the_state_that_there_was() {
    let mut state = state(QUARTER, 1 << 26);
    let moments = busy(&mut state, 100);
    let history = history(&state);
    assert_eq!(history.segments().len(), 7);
    for (at, digest) in moments {
        assert_eq!(digest_at(history, at), Some(digest), "at {at}");
        assert_eq!(digest_at(history, Millis(at.0 + 99)), Some(digest), "until the next batch");
    }
}

#[test]
fn segments_follow_each_other_without_a_gap() {
    let mut state = state(QUARTER, 1 << 26);
    busy(&mut state, 100);
    let segments = history(&state).segments();
    for pair in segments.windows(2) {
        assert_eq!(pair[0].to_ms, pair[1].from_ms);
        assert!(pair[0].first_seq < pair[1].first_seq);
    }
    let retained = history(&state).retention();
    assert_eq!(retained.bytes, segments.iter().map(|segment| segment.bytes).sum::<usize>());
    assert_eq!(retained.from_ms, Some(segments[0].from_ms));
}

#[test]
fn a_segment_that_was_forgotten_is_not_handed_out() {
    let mut state = state(QUARTER, 60_000);
    busy(&mut state, 100);
    let (segments, _) = history(&state).between(Millis(0), Millis(u64::MAX));
    let handed_out = |state: &HubState| {
        segments.iter().map(|id| history(state).segment(*id).is_some()).collect::<Vec<_>>()
    };
    assert!(handed_out(&state).into_iter().all(|is_there| is_there));
    busy(&mut state, 100);
    assert!(!handed_out(&state)[0]);
}

#[test]
fn whole_segments_are_forgotten_beyond_the_bytes() {
    let mut state = state(QUARTER, 60_000);
    let moments = busy(&mut state, 200);
    let history = history(&state);
    let retained = history.retention();
    assert!(retained.bytes <= 60_000 && history.segments().len() > 1, "{retained:?}");
    let from = retained.from_ms.unwrap();
    for (at, digest) in moments {
        assert_eq!(digest_at(history, at), (at >= from).then_some(digest), "at {at}");
    }
}

#[test]
fn whole_segments_are_forgotten_beyond_the_age() {
    let mut state = state(Duration::from_secs(3), 1 << 26);
    let moments = busy(&mut state, 200);
    let history = history(&state);
    let last = moments.last().unwrap().0;
    let from = history.retention().from_ms.unwrap();
    assert!(last.since(from) >= 3_000 && last.since(from) < 3_000 + 2 * 1_600, "{}", last.since(from));
    assert_eq!(digest_at(history, moments[0].0), None);
    assert_eq!(digest_at(history, last), Some(moments.last().unwrap().1));
}

#[test]
fn what_was_retained_while_the_clock_was_ahead_is_forgotten_in_time() {
    let mut state = state(Duration::from_secs(3), 1 << 26);
    let begin = now().0;
    append(&mut state, Millis(begin), worker());
    for i in 0..400 {
        let ahead_ms = if (100..120).contains(&i) { 3_600_000 } else { 0 };
        let at = Millis(begin + ahead_ms + i * 100);
        append(&mut state, at, stored(i * 10 + 1..i * 10 + 9));
        if i % 16 == 15 {
            state.history.as_mut().unwrap().spacing = None;
        }
        state.tick(at);
    }
    let segments = history(&state).segments();
    assert!(segments.len() <= 4, "3 s and a part of a segment: {}", segments.len());
}

#[test]
fn a_state_that_is_larger_than_the_bound_is_not_kept() {
    let mut state = state(QUARTER, 10);
    busy(&mut state, 40);
    let retained = history(&state).retention();
    assert_eq!((retained.from_ms, retained.bytes), (None, 0));
    assert!(history(&state).rows_after(Millis(0)).is_empty());
}

#[test]
fn without_age_or_bytes_there_is_no_history() {
    assert!(state(Duration::ZERO, 1 << 26).history.is_none());
    assert!(state(QUARTER, 0).history.is_none());
}

#[test]
fn who_has_the_segment_gets_only_what_came_since() {
    let mut state = state(QUARTER, 1 << 26);
    let moments = busy(&mut state, 10);
    let history = history(&state);
    let (at, _) = moments[9];
    let all = history.segment_at(at, None, None).unwrap();
    let Frame::Batch(third_last) = Frame::decode(&all.frames[all.frames.len() - 3]).unwrap() else {
        panic!()
    };
    let rest = history.segment_at(at, Some(Seq(third_last.first_seq.0 - 1)), None).unwrap();
    assert_eq!(rest.frames, all.frames[all.frames.len() - 3..]);
    let none = history.segment_at(at, Some(state.cluster.seq()), None).unwrap();
    assert!(none.frames.is_empty());
}

#[test]
fn who_wants_nothing_later_gets_what_leads_to_the_moment() {
    let mut state = state(QUARTER, 1 << 26);
    let moments = busy(&mut state, 10);
    let history = history(&state);
    for (at, digest) in moments {
        let all = history.segment_at(at, None, None).unwrap().frames;
        let led = history.segment_at(at, None, Some(at)).unwrap().frames;
        assert!(all.starts_with(&led));
        let later = all[led.len()..].iter().map(|frame| Frame::decode(frame).unwrap());
        later.for_each(|frame| assert!(matches!(frame, Frame::Batch(batch) if batch.at_ms > at)));
        assert_eq!(digest_at(history, at), Some(digest));
        let keyframe = history.segment_at(at, None, Some(Millis(0))).unwrap().frames;
        assert!(keyframe.iter().all(|frame| matches!(Frame::decode(frame), Ok(Frame::Snapshot { .. }))));
        assert!(!keyframe.is_empty());
    }
}

#[test]
fn a_clock_that_is_set_back_keeps_the_order() {
    let mut state = state(QUARTER, 1 << 26);
    let moments = busy(&mut state, 20);
    let (last, _) = moments[19];
    state.history.as_mut().unwrap().spacing = None;
    append(&mut state, Millis(5), stored(9_001..9_003));
    state.tick(Millis(5));
    let segments = history(&state).segments();
    assert!(segments.windows(2).all(|pair| pair[0].from_ms <= pair[1].from_ms), "{segments:?}");
    assert_eq!(digest_at(history(&state), Millis(last.0 + 1)), Some(state.cluster.digest()));
}

#[test]
fn a_row_reports_what_a_second_brought() {
    let mut state = state(QUARTER, 1 << 26);
    let begin = now();
    let at = |s: u64| Millis(begin.0 + s * 1_000);
    append(&mut state, at(0), worker());
    append(&mut state, at(0), stored(1..6));
    append(&mut state, at(0), removed(2..4));
    append(
        &mut state,
        at(0),
        Record::Decision(Box::new(Decision::new(DecisionId(1), WORKER, DecisionSource::Log))),
    );
    state.end_second(at(1));
    append(&mut state, at(1), Record::Cleared { worker: WORKER, all_ranks: false });
    let mut finding = Finding::new(Severity::Critical, "it hurts", "A lot.");
    finding.code = "pain".into();
    append(&mut state, at(1), Record::Finding(Box::new(finding.clone())));
    append(&mut state, at(1), Record::Finding(Box::new(finding.clone())));
    append(&mut state, at(1), Record::Left { worker: WORKER, why: DepartureCause::Health });
    append(&mut state, at(1), Record::Left { worker: WORKER, why: DepartureCause::Log });
    state.end_second(at(2));
    finding.phase = Phase::Recheck;
    append(&mut state, at(2), Record::Finding(Box::new(finding.clone())));
    finding.phase = Phase::Cleared;
    append(&mut state, at(2), Record::Finding(Box::new(finding)));
    append(&mut state, at(2), Record::Rejoined { worker: WORKER });
    state.end_second(at(3));
    let rows = history(&state).rows_after(Millis(0));
    let sums: Vec<_> = rows.iter().map(|row| (row.at_ms, row.stored, row.removed, row.decisions)).collect();
    assert_eq!(sums, [(at(1), 5, 2, 1), (at(2), 0, 3, 0), (at(3), 0, 0, 0)]);
    let mark = |what| WorkerMark { what, worker: Some(Worker::new(1, 0)), process: None };
    assert_eq!(rows[0].workers, [mark(WorkerTransition::Joined)]);
    assert_eq!(rows[1].workers, [mark(WorkerTransition::Left)], "it can leave once only");
    assert_eq!(rows[2].workers, [mark(WorkerTransition::Rejoined)]);
    let mark = |opened| FindingMark {
        code: "pain".into(),
        severity: Severity::Critical,
        opened,
        since_ms: Millis(0),
    };
    assert_eq!(rows[1].findings, [mark(true)], "it is reported again and again");
    assert_eq!(rows[2].findings, [mark(false)]);
    assert_eq!(rows[0].ttft_p95_ms, None, "not reported");
    assert_eq!(history(&state).rows_after(at(2)), rows[2..]);
}
