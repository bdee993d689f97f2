use radixscope_model::frame::{self, BatchWriter};
use radixscope_model::id::{BlockHash, DecisionId, TokensHash, Worker};
use radixscope_model::record::{Block, Decision, DecisionSource, Entry};

use super::*;

const MOMENTS: u64 = 60;

fn append(frames: &mut Vec<Vec<u8>>, frame: Frame<'_>) {
    frames.push(frame.encode().expect("plain data"));
}

fn body(frames: &[Vec<u8>]) -> Vec<u8> {
    frames.iter().flat_map(|frame| [&(frame.len() as u32).to_le_bytes(), frame.as_slice()].concat()).collect()
}

fn hello() -> Frame<'static> {
    Frame::Hello { epoch: 7, seq: Seq(1), at_ms: Millis(1_000), server: "test".into() }
}

/// A worker's keyframe, then a batch a second that stores some blocks for one worker, every tenth with a decision. Also the
/// digest that the state had at each second.
fn recorded(blocks: u64) -> (Vec<Vec<u8>>, Vec<u64>) {
    let mut cluster = Cluster::default();
    let worker = Record::new_worker(WorkerIx(0), Worker::new(1, 0), "dynamo", "backend");
    cluster.fold(Seq(1), &Entry { at_ms: Millis(1_000), record: worker });
    let mut frames = Vec::new();
    append(&mut frames, hello());
    let mut parts = Vec::new();
    cluster.snapshot(|part| parts.push(part)).expect("a sound state");
    for part in &parts {
        append(&mut frames, Frame::Snapshot { seq: Seq(1), part: 0, parts: 1, bytes: frame::Bytes(part) });
    }
    let mut writer = BatchWriter::new(Seq(2));
    let mut digests = vec![cluster.digest()];
    for second in 1..=MOMENTS {
        let at_ms = Millis(1_000 + second * 1_000);
        let block = |i| Block { block_hash: BlockHash(i), tokens_hash: TokensHash(i) };
        let hashes = second * blocks..(second + 1) * blocks;
        let mut records =
            vec![Record::Stored { worker: WorkerIx(0), parent: None, blocks: hashes.map(block).collect() }];
        if second % 10 == 0 {
            let decision = Decision::new(DecisionId(second), WorkerIx(0), DecisionSource::Log);
            records.push(Record::Decision(Box::new(decision)));
        }
        for record in records {
            let entry = Entry { at_ms, record };
            writer.push(&entry).expect("plain data");
            cluster.fold(Seq(cluster.seq().0 + 1), &entry);
        }
        frames.push(writer.finish(at_ms, None).expect("plain data"));
        digests.push(cluster.digest());
    }
    (frames, digests)
}

fn second(i: usize) -> Millis {
    Millis(1_000 + i as u64 * 1_000)
}

#[test]
fn every_moment_is_reached_from_every_side() {
    // With 2,000 blocks a batch copies are made on the way, with 10 none.
    for blocks in [10, 2_000] {
        let (frames, digests) = recorded(blocks);
        let mut segment = HistorySegment::open(body(&frames), second(60)).expect("whole");
        let mut shown = Cluster::default();
        let mut i = 17;
        for _ in 0..150 {
            i = (i * 29 + 7) % digests.len();
            segment.seek(&mut shown, Millis(second(i).0 + 300)).expect("sound");
            assert_eq!(shown.digest(), digests[i], "second {i} of batches of {blocks} blocks");
        }
        assert_eq!(segment.copies.len() > 2, blocks == 2_000, "{}", segment.copies.len());
        segment.detach();
        segment.seek(&mut shown, second(3)).expect("sound");
        assert_eq!(shown.digest(), digests[3], "after another one's state was shown");
    }
}

#[test]
fn forward_it_goes_on_from_the_state_shown() {
    let (frames, _) = recorded(10);
    let mut segment = HistorySegment::open(body(&frames), second(60)).expect("whole");
    let mut shown = Cluster::default();
    assert!(segment.seek(&mut shown, second(5)).expect("sound"), "from the keyframe");
    assert!(!segment.seek(&mut shown, second(9)).expect("sound"));
    assert!(segment.seek(&mut shown, second(8)).expect("sound"), "back is from a copy");
}

#[test]
fn what_came_since_is_added() {
    let (frames, digests) = recorded(10);
    let cut = frames.len() - 20;
    let mut segment = HistorySegment::open(body(&frames[..cut]), second(40)).expect("whole");
    let mut shown = Cluster::default();
    segment.seek(&mut shown, second(60)).expect("sound");
    assert_eq!(shown.digest(), digests[40]);
    let mut rest = vec![hello().encode().expect("plain data")];
    // Two batches come twice.
    rest.extend_from_slice(&frames[cut - 2..]);
    let rest = HistorySegment::open(body(&rest), second(60)).expect("readable");
    assert!(!rest.is_whole());
    segment.extend(&rest).expect("it follows");
    assert_eq!(segment.known_to_ms, second(60));
    segment.seek(&mut shown, second(60)).expect("sound");
    assert_eq!(shown.digest(), digests[60]);
    let whole = HistorySegment::open(body(&frames), second(60)).expect("whole");
    assert!(segment.extend(&whole).is_err(), "not a rest");
}

#[test]
fn a_keyframe_alone_is_a_moment_and_goes_on() {
    let (frames, digests) = recorded(10);
    let mut segment =
        HistorySegment::open(body(&frames[..frames.len() - MOMENTS as usize]), Millis(0)).expect("whole");
    assert_eq!((segment.known_to_ms, segment.last_seq()), (second(0), Seq(1)));
    let mut shown = Cluster::default();
    assert!(!segment.is_shown());
    segment.seek(&mut shown, segment.known_to_ms).expect("sound");
    assert_eq!((shown.digest(), segment.is_shown()), (digests[0], true));
    let mut rest = vec![hello().encode().expect("plain data")];
    rest.extend_from_slice(&frames[frames.len() - MOMENTS as usize..]);
    segment.extend(&HistorySegment::open(body(&rest), second(60)).expect("readable")).expect("it follows");
    segment.seek(&mut shown, second(31)).expect("sound");
    assert_eq!(shown.digest(), digests[31]);
    segment.detach();
    assert!(!segment.is_shown());
}

#[test]
fn a_jump_makes_no_copies_but_going_back_does() {
    let (frames, digests) = recorded(2_000);
    let mut segment = HistorySegment::open(body(&frames), second(60)).expect("whole");
    let mut shown = Cluster::default();
    segment.seek(&mut shown, second(60)).expect("sound");
    assert!(segment.copies.is_empty());
    segment.seek(&mut shown, second(40)).expect("sound");
    assert!(segment.copies.len() > 2, "{}", segment.copies.len());
    assert_eq!(shown.digest(), digests[40]);
}

#[test]
fn steps_lead_to_what_is_looked_for() {
    let (frames, _) = recorded(10);
    let segment = HistorySegment::open(body(&frames), second(60)).expect("whole");
    let find = |at, is_forward, step| segment.find(at, is_forward, step);
    assert_eq!(find(second(10), true, StepTarget::Decision), Some(second(20)));
    assert_eq!(find(second(20), false, StepTarget::Decision), Some(second(10)));
    assert_eq!(find(Millis(second(20).0 + 1), false, StepTarget::Decision), Some(second(20)));
    assert_eq!(find(second(60), true, StepTarget::Decision), None);
    assert_eq!(find(second(3), true, StepTarget::BlocksOf(WorkerIx(0))), Some(second(4)));
    assert_eq!(find(second(3), true, StepTarget::BlocksOf(WorkerIx(1))), None);
}

#[test]
fn what_is_cut_or_wrong_is_refused_with_a_reason() {
    let (frames, _) = recorded(10);
    let whole = body(&frames);
    for cut in [1, 3, 5, whole.len() / 2, whole.len() - 1] {
        let opened = HistorySegment::open(whole[..cut].to_vec(), second(60));
        assert!(opened.is_err(), "cut at {cut}");
    }
    let mut other = whole.clone();
    other[LENGTH] ^= 0x40;
    assert!(HistorySegment::open(other, second(60)).is_err_and(|why| why.contains("protocol version")));
    let mut none = HistorySegment::open(body(&frames[..1]), second(60)).expect("readable");
    assert!(none.seek(&mut Cluster::default(), second(5)).is_err_and(|why| why.contains("not whole")));
}
