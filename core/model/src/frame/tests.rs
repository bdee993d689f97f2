//! Frames and records: what is written is read, and whatever else arrives is an error, never a panic.

use std::borrow::Cow;

use proptest::prelude::*;

use super::{BatchWriter, Bytes, Digest, Frame, FrameError, PROTOCOL_VERSION};
use crate::id::{BlockHash, DecisionId, Millis, Seq, SourceIx, TokensHash, Worker, WorkerIx};
use crate::record::*;

fn worker() -> impl Strategy<Value = WorkerIx> {
    any::<u32>().prop_map(WorkerIx)
}

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    ".{0,20}".prop_map(Cow::Owned)
}

fn topic() -> impl Strategy<Value = Topic> {
    use Topic::*;
    proptest::sample::select(vec![
        KvEvents,
        KvHitRate,
        KvMetrics,
        ActiveSequences,
        Discovery,
        TreeDump,
        Other,
    ])
}

fn blocks() -> impl Strategy<Value = Cow<'static, [Block]>> {
    let block =
        any::<(u64, u64)>().prop_map(|(b, t)| Block { block_hash: BlockHash(b), tokens_hash: TokensHash(t) });
    proptest::collection::vec(block, 0..20).prop_map(Cow::Owned)
}

fn hashes() -> impl Strategy<Value = Cow<'static, [BlockHash]>> {
    proptest::collection::vec(any::<u64>().prop_map(BlockHash), 0..20).prop_map(Cow::Owned)
}

fn about_sources() -> impl Strategy<Value = Record<'static>> {
    use LinkState::*;
    let source = || any::<u8>().prop_map(SourceIx);
    let states = vec![Connecting, CatchingUp, Live, Refused, Ended, Partial];
    let kinds = vec![SourceKind::Nats, SourceKind::Simulator];
    let causes = vec![MissedCause::EnvelopeGap, MissedCause::QueueFull, MissedCause::TooManyWorkers];
    let reasons = vec![RejectReason::Truncated, RejectReason::UnknownKind];
    prop_oneof![
        (source(), text(), proptest::sample::select(kinds)).prop_map(|(source, name, kind)| Record::Source {
            source,
            name,
            kind
        }),
        (source(), proptest::sample::select(states), text())
            .prop_map(|(source, state, detail)| Record::SourceState { source, state, detail }),
        (source(), any::<u64>(), any::<Option<i64>>())
            .prop_map(|(source, received, lag_ms)| Record::Traffic { source, received, lag_ms }),
        (source(), proptest::option::of(worker()), topic(), proptest::sample::select(causes), any::<u64>())
            .prop_map(|(source, worker, topic, cause, count)| {
                Record::Missed { source, worker, topic, cause, count }
            }),
        (source(), topic(), any::<[u64; 3]>()).prop_map(|(source, topic, [count, since, until])| {
            Record::Gaps { source, topic, count, since_ms: Millis(since), until_ms: Millis(until) }
        }),
        (source(), topic(), proptest::sample::select(reasons), any::<u64>(), text()).prop_map(
            |(source, topic, reason, count, sample)| {
                Record::Rejected { source, topic, reason, count, sample }
            }
        ),
    ]
}

fn about_blocks() -> impl Strategy<Value = Record<'static>> {
    let parent = any::<Option<u64>>().prop_map(|p| p.map(BlockHash));
    prop_oneof![
        (worker(), parent, blocks()).prop_map(|(worker, parent, blocks)| Record::Stored {
            worker,
            parent,
            blocks
        }),
        (worker(), hashes()).prop_map(|(worker, hashes)| Record::Removed { worker, hashes }),
        (worker(), any::<bool>()).prop_map(|(worker, all_ranks)| Record::Cleared { worker, all_ranks }),
        (worker(), any::<u32>(), any::<u32>()).prop_map(|(worker, stored, removed)| Record::OtherTier {
            worker,
            stored,
            removed
        }),
    ]
}

fn about_workers() -> impl Strategy<Value = Record<'static>> {
    use SequenceStep::*;
    let id = any::<(u64, u32)>().prop_map(|(id, rank)| Worker::new(id, rank));
    let decision = (
        any::<u64>(),
        worker(),
        any::<[Option<u64>; 4]>(),
        proptest::option::of(".{0,20}"),
        proptest::sample::select(vec![DecisionSource::KvHitRate, DecisionSource::Log]),
        proptest::collection::vec((worker(), any::<u32>(), any::<[i32; 3]>(), any::<Option<u64>>()), 0..5),
        proptest::option::of((worker(), any::<u64>(), any::<u32>())),
    );
    let progress = (any::<u64>(), any::<[Option<u64>; 5]>());
    prop_oneof![
        (worker(), id, text(), text()).prop_map(|(worker, id, namespace, component)| Record::new_worker(
            worker, id, namespace, component
        )),
        (worker(), any::<u64>()).prop_map(|(worker, used_blocks)| Record::EngineLoad { worker, used_blocks }),
        (worker(), any::<Option<u64>>(), any::<[Option<u64>; 2]>()).prop_map(
            |(worker, router, [decode_blocks, prefill_tokens])| {
                Record::RouterLoad { worker, router, decode_blocks, prefill_tokens }
            }
        ),
        decision.prop_map(|(id, worker, numbers, request_id, source, candidates, path)| {
            let [router, isl_tokens, isl_blocks, overlap_blocks] = numbers;
            let candidates = candidates.into_iter().map(|(worker, overlap_blocks, costs, tree_size)| {
                let [prefill_blocks, decode_blocks, cost] = costs.map(|n| f64::from(n) / 8.0);
                Candidate {
                    worker,
                    overlap_blocks,
                    host_blocks: 0,
                    disk_blocks: 0,
                    prefill_blocks,
                    decode_blocks,
                    cost,
                    tree_size,
                }
            });
            Record::Decision(Box::new(Decision {
                router,
                request_id,
                isl_tokens,
                isl_blocks,
                overlap_blocks,
                candidates: candidates.collect(),
                completeness: Completeness::AllCandidates,
                path: path.map(|(worker, hash, blocks)| PathEnd {
                    worker,
                    block_hash: BlockHash(hash),
                    blocks,
                }),
                dispatched: isl_tokens.map(|tokens| tokens % 2 == 0),
                ..Decision::new(DecisionId(id), worker, source)
            }))
        }),
        progress.prop_map(|(id, [first, ended, ttft_us, itl_us, output_tokens])| Record::Progress {
            decision: DecisionId(id),
            progress: Box::new(Progress {
                first_token_ms: first.map(Millis),
                ended_ms: ended.map(Millis),
                outcome: Some(Outcome::Success),
                ttft_us,
                queue_us: itl_us,
                prefill_us: ttft_us,
                itl_us,
                output_tokens,
                cached_tokens: None,
            })
        }),
        (any::<u64>(), any::<[Option<u64>; 3]>()).prop_map(|(ended, [elapsed_us, isl_tokens, ttft_us])| {
            let progress = Progress { ttft_us, ..Progress::default() };
            Record::Request(Box::new(Ended { ended_ms: Millis(ended), elapsed_us, isl_tokens, progress }))
        }),
        (worker(), proptest::sample::select(vec![Added, PrefillCompleted, Freed]), any::<bool>())
            .prop_map(|(worker, step, by_worker)| Record::Sequence { worker, step, by_worker }),
        (worker(), any::<Option<u64>>(), any::<Option<u32>>()).prop_map(
            |(worker, total_kv_blocks, block_size_tokens)| {
                Record::ModelCard { worker, total_kv_blocks, block_size_tokens, publishes_events: None }
            }
        ),
    ]
}

fn entries() -> impl Strategy<Value = Vec<Entry<'static>>> {
    let record = prop_oneof![about_sources(), about_blocks(), about_workers()];
    // Times come in any order: history arrives after what is live.
    let at = prop_oneof![1_790_000_000_000u64..1_800_000_000_000, any::<u64>()];
    let entry = (at, record).prop_map(|(at, record)| Entry { at_ms: Millis(at), record });
    proptest::collection::vec(entry, 0..12)
}

fn batch(first: Seq, entries: &[Entry<'_>], check: Option<u64>) -> Vec<u8> {
    let mut writer = BatchWriter::new(first);
    for entry in entries {
        writer.push(entry).unwrap();
    }
    writer.finish(Millis(7), check.map(Digest)).unwrap()
}

/// Reads everything there is to read.
fn exhaust(bytes: &[u8]) {
    if let Ok(Frame::Batch(batch)) = Frame::decode(bytes) {
        let mut failed = false;
        for entry in batch.entries() {
            assert!(!failed, "nothing follows an error");
            failed = entry.is_err();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_batch_gives_back_the_records_that_went_in(
        entries in entries(), first in 1u64..1 << 60, check in any::<Option<u64>>(),
    ) {
        let bytes = batch(Seq(first), &entries, check);
        let Frame::Batch(read) = Frame::decode(&bytes).unwrap() else { panic!("not a batch") };
        prop_assert_eq!(read.first_seq, Seq(first));
        prop_assert_eq!(read.count as usize, entries.len());
        prop_assert_eq!(read.check, check.map(Digest));
        let got: Vec<_> = read.entries().map(|e| e.unwrap()).collect();
        let want: Vec<_> = (first..).map(Seq).zip(entries).collect();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn a_record_alone_survives_its_codec(entries in entries()) {
        for entry in entries {
            let bytes = postcard::to_allocvec(&entry).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Entry<'_>>(&bytes).unwrap(), entry);
        }
    }

    #[test]
    fn a_frame_cut_short_is_an_error(entries in entries(), cut in any::<prop::sample::Index>()) {
        let bytes = batch(Seq(1), &entries, None);
        let cut = cut.index(bytes.len());
        prop_assert!(Frame::decode(&bytes[..cut]).is_err());
    }

    #[test]
    fn a_damaged_frame_never_panics(
        entries in entries(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = batch(Seq(u64::MAX - 3), &entries, None);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        exhaust(&bytes);
    }

    #[test]
    fn any_bytes_never_panic(kind in 0u8..5, mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        bytes.splice(0..0, [PROTOCOL_VERSION, kind]);
        exhaust(&bytes);
    }

    #[test]
    fn the_other_frames_are_read_as_written(
        numbers in any::<[u64; 3]>(), text in text(), part in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let [a, b, c] = numbers;
        let frames = [
            Frame::Hello { epoch: a, seq: Seq(b), at_ms: Millis(c), server: text },
            Frame::Snapshot { seq: Seq(a), part: b as u32, parts: c as u32, bytes: Bytes(&part) },
            Frame::Lag { skipped: a },
        ];
        for frame in frames {
            let bytes = frame.encode().unwrap();
            prop_assert_eq!(Frame::decode(&bytes).unwrap(), frame);
        }
    }
}

#[test]
fn a_frame_of_another_version_names_it() {
    assert_eq!(
        Frame::decode(&[PROTOCOL_VERSION + 1, 0]),
        Err(FrameError::Version { theirs: PROTOCOL_VERSION + 1 })
    );
    assert_eq!(Frame::decode(&[]), Err(FrameError::Empty));
}

#[test]
fn a_writer_goes_on_where_the_batch_before_ended() {
    let entry =
        Entry { at_ms: Millis(5), record: Record::EngineLoad { worker: WorkerIx(0), used_blocks: 1 } };
    let mut writer = BatchWriter::new(Seq(10));
    writer.push(&entry).unwrap();
    writer.finish(Millis(0), None).unwrap();
    assert_eq!((writer.count(), writer.len_bytes()), (0, 0));
    let bytes = writer.finish(Millis(0), None).unwrap();
    let Frame::Batch(empty) = Frame::decode(&bytes).unwrap() else { panic!("not a batch") };
    assert_eq!((empty.first_seq, empty.count), (Seq(11), 0));
}

#[test]
fn a_box_is_no_part_of_a_records_bytes() {
    let id = Worker::new(7, 1);
    let record = Record::new_worker(WorkerIx(5), id, "dynamo", "backend");
    let fields = (3u32, WorkerIx(5), id, "dynamo", "backend");
    assert_eq!(postcard::to_allocvec(&record).unwrap(), postcard::to_allocvec(&fields).unwrap());
    let progress = Progress { output_tokens: Some(9), ..Progress::default() };
    let record = Record::Progress { decision: DecisionId(6), progress: Box::new(progress) };
    let fields = (23u32, DecisionId(6), progress);
    assert_eq!(postcard::to_allocvec(&record).unwrap(), postcard::to_allocvec(&fields).unwrap());
}

/// Ids are read as the bits of a float: those that are no number, signalling or not, are kept like any other.
#[test]
fn every_id_keeps_its_bits() {
    let ends = [0, 1, u64::MAX, 1 << 63, 0x7ff0_0000_0000_0000, 0xfff0_0000_0000_0000];
    let no_numbers =
        (0..52).flat_map(|bit| [0x7ff0_0000_0000_0000 | 1 << bit, 0xfff8_0000_0000_0000 | 1 << bit]);
    for bits in ends.into_iter().chain(no_numbers) {
        let ids = vec![BlockHash(bits), BlockHash(!bits)];
        let bytes = postcard::to_allocvec(&ids).expect("plain data");
        assert_eq!(bytes[1..9], bits.to_le_bytes(), "{bits:x}");
        assert_eq!(postcard::from_bytes::<Vec<BlockHash>>(&bytes).expect("what was written"), ids);
        assert!(postcard::from_bytes::<Vec<BlockHash>>(&bytes[..16]).is_err(), "cut");
    }
}
