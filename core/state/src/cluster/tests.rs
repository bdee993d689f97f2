//! Behaviour of the fold, record by record.

use super::*;
use radixscope_model::id::{BlockHash, DecisionId, TokensHash};
use radixscope_model::record::{
    Block, Candidate, Completeness, Decision, DecisionSource, Entry, LinkState, MissedCause, Progress,
    Record, SourceKind, Topic,
};

const NOW: u64 = 1_800_000_000_000;

struct Fold {
    cluster: Cluster,
    seq: u64,
    at: u64,
}

impl Fold {
    /// Two workers, one source.
    fn new() -> Self {
        let mut fold = Self { cluster: Cluster::default(), seq: 0, at: NOW };
        fold.fold(Record::Source { source: SourceIx(0), name: "nats://n".into(), kind: SourceKind::Nats });
        for w in 0..2 {
            let id = Worker::new(100 - u64::from(w), 0);
            fold.fold(Record::new_worker(WorkerIx(w), id, "dynamo", "backend"));
        }
        fold
    }

    fn fold(&mut self, record: Record<'_>) -> &mut Self {
        self.seq += 1;
        self.cluster.fold(Seq(self.seq), &Entry { at_ms: Millis(self.at), record });
        self
    }

    fn store(&mut self, worker: u16, parent: Option<u64>, blocks: &[u64]) -> &mut Self {
        let blocks: Vec<Block> =
            blocks.iter().map(|&b| Block { block_hash: BlockHash(b), tokens_hash: TokensHash(b) }).collect();
        let parent = parent.map(BlockHash);
        self.fold(Record::Stored { worker: WorkerIx(worker.into()), parent, blocks: blocks.into() })
    }

    fn remove(&mut self, worker: u16, hashes: &[u64]) -> &mut Self {
        let hashes: Vec<BlockHash> = hashes.iter().map(|&h| BlockHash(h)).collect();
        self.fold(Record::Removed { worker: WorkerIx(worker.into()), hashes: hashes.into() })
    }

    fn decide(&mut self, worker: u16, isl: u64, overlap: u64) -> &mut Self {
        let id = DecisionId(self.seq + 1);
        let new = Decision::new(id, WorkerIx(worker.into()), DecisionSource::KvHitRate);
        let request_id = Some("r".to_owned());
        let (isl_blocks, overlap_blocks) = (Some(isl), Some(overlap));
        self.fold(Record::Decision(Box::new(Decision { request_id, isl_blocks, overlap_blocks, ..new })))
    }

    /// The latest decision again, with more that is known of it from the log.
    fn complete(&mut self, more: impl FnOnce(&mut Decision)) -> &mut Self {
        let mut decision = self.cluster.decisions().newest(0).expect("decided").decision.clone();
        decision.sources.insert(DecisionSource::Log);
        more(&mut decision);
        self.fold(Record::Decision(Box::new(decision)))
    }

    /// The source says where its link stands, at `at`.
    fn link(&mut self, state: LinkState, at: u64) -> &mut Self {
        let now = std::mem::replace(&mut self.at, at);
        self.fold(Record::SourceState { source: SourceIx(0), state, detail: "".into() });
        self.at = now;
        self
    }

    fn restored(&self) -> Cluster {
        let mut parts = Vec::new();
        self.cluster.snapshot(|part| parts.push(part)).expect("encodes");
        let mut reader = SnapshotReader::default();
        parts.iter().find_map(|part| reader.part(part).expect("decodes")).expect("complete")
    }
}

#[test]
fn a_record_folded_twice_counts_once() {
    let mut fold = Fold::new();
    fold.store(0, None, &[1, 2]);
    let digest = fold.cluster.digest();
    fold.seq -= 1;
    fold.store(0, None, &[1, 2]);
    assert_eq!(fold.cluster.digest(), digest);
    assert_eq!(fold.cluster.workers()[0].stored_total, 2);
}

#[test]
fn a_tier_that_holds_nothing_is_restored_as_one() {
    let mut fold = Fold::new();
    let stored = |blocks: &[Block]| Record::TierStored {
        worker: WorkerIx(0),
        tier: Tier::Host,
        parent: None,
        blocks: blocks.to_vec().into(),
    };
    fold.fold(stored(&[]));
    assert_eq!(fold.restored().digest(), fold.cluster.digest(), "its only event was empty");
    fold.fold(stored(&[Block { block_hash: BlockHash(1), tokens_hash: TokensHash(1) }]));
    let hashes = vec![BlockHash(1)].into();
    fold.fold(Record::TierRemoved { worker: WorkerIx(0), tier: Tier::Host, hashes });
    assert_eq!(fold.cluster.tier_blocks(WorkerIx(0), Tier::Host), Some(0));
    assert_eq!(fold.restored().digest(), fold.cluster.digest(), "all was evicted");
}

#[test]
fn a_record_about_a_stranger_changes_nothing_but_the_place_in_the_log() {
    let mut fold = Fold::new();
    fold.store(7, None, &[1]).decide(7, 5, 5);
    assert_eq!(fold.cluster.tree(PoolIx(0)).totals().resident, 0);
    assert_eq!(fold.cluster.decisions().totals().count, 0);
    assert_eq!(fold.cluster.seq(), Seq(fold.seq));
}

#[test]
fn the_blocks_of_a_worker_without_events_are_unknown_not_zero() {
    let mut fold = Fold::new();
    fold.store(0, None, &[1]).remove(0, &[1]);
    assert_eq!(fold.cluster.blocks(WorkerIx(0)), Some(0));
    assert_eq!(fold.cluster.blocks(WorkerIx(1)), None);
}

#[test]
fn an_empty_store_with_an_unknown_parent_is_counted_as_both() {
    let mut fold = Fold::new();
    fold.store(0, Some(9), &[]);
    let w = &fold.cluster.workers()[0];
    assert_eq!((w.store_events_total, w.empty_stores_total, w.unknown_parents_total), (1, 1, 1));
    assert_eq!(fold.cluster.tree(PoolIx(0)).allocated(), 0);
}

#[test]
fn a_removal_of_what_was_never_stored_is_counted_and_is_no_error() {
    let mut fold = Fold::new();
    fold.store(0, None, &[1]).remove(0, &[1, 2, 3]);
    let w = &fold.cluster.workers()[0];
    assert_eq!((w.removed_total, w.unknown_removed_total), (3, 2));
}

#[test]
fn every_kind_of_change_changes_the_digest() {
    let mut fold = Fold::new();
    let mut seen = vec![fold.cluster.digest()];
    let steps: [&dyn Fn(&mut Fold); 7] = [
        &|f| {
            f.store(0, None, &[1, 2, 3]);
        },
        &|f| {
            f.store(1, None, &[1, 2]);
        },
        &|f| {
            f.store(1, Some(77), &[9]);
        },
        &|f| {
            f.remove(0, &[3]);
        },
        &|f| {
            f.decide(0, 10, 3);
        },
        &|f| {
            f.fold(Record::Missed {
                source: SourceIx(0),
                worker: None,
                topic: Topic::KvEvents,
                cause: MissedCause::QueueFull,
                count: 4,
            });
        },
        &|f| {
            f.fold(Record::SourceState {
                source: SourceIx(0),
                state: LinkState::Live,
                detail: "connected".into(),
            });
        },
    ];
    for step in steps {
        step(&mut fold);
        let digest = fold.cluster.digest();
        assert!(!seen.contains(&digest));
        seen.push(digest);
    }
}

#[test]
fn a_restored_state_goes_on_like_the_original() {
    let mut fold = Fold::new();
    fold.store(0, None, &[1, 2, 3]).store(1, None, &[1, 2]).store(1, Some(50), &[51, 52]).decide(1, 8, 2);
    let restored = fold.restored();
    assert_eq!(restored.digest(), fold.cluster.digest());
    let mut other = Fold { cluster: restored, seq: fold.seq, at: fold.at };
    for f in [&mut fold, &mut other] {
        f.at += 1500;
        f.store(1, Some(2), &[50]).remove(0, &[1, 3]).decide(0, 4, 4);
    }
    assert_eq!(other.cluster.digest(), fold.cluster.digest());
    assert_eq!(other.cluster.tree(PoolIx(0)).totals(), fold.cluster.tree(PoolIx(0)).totals());
    assert_eq!(other.cluster.tree(PoolIx(0)).totals().unattached, 0, "50 has come, 51 and 52 hang below it");
}

#[test]
fn rates_count_full_seconds_only_and_forget_what_is_old() {
    let mut fold = Fold::new();
    fold.store(0, None, &[1, 2, 3, 4]);
    fold.at += 1000;
    fold.store(0, Some(4), &[5]).remove(0, &[5]);
    let now = Millis(fold.at);
    fold.link(LinkState::Live, NOW - 60_000);
    let mean = |now: u64, seconds| fold.cluster.rate_per_second(WorkerIx(0), Millis(now), seconds);
    assert_eq!(mean(now.0, 2), Some((2.0, 0.0)), "the running second is not complete");
    assert_eq!(mean(now.0 + 1000, 2), Some((2.5, 0.5)));
    assert_eq!(mean(now.0 + 100_000, 10), Some((0.0, 0.0)));
}

#[test]
fn rates_before_listening_and_while_the_connection_is_lost_are_not_known() {
    let mut fold = Fold::new();
    fold.link(LinkState::Live, NOW);
    fold.store(0, None, &[1, 2]);
    fold.link(LinkState::Connecting, NOW + 2_500);
    fold.link(LinkState::Live, NOW + 4_500);
    let at = Millis(NOW + 7_000);
    let stored = |worker| -> Vec<Option<u32>> {
        fold.cluster.rates(worker, at, 10).map(|(_, bucket)| Some(bucket?.stored)).collect()
    };
    let (none, zero) = (None, Some(0));
    assert_eq!(stored(WorkerIx(0)), [none, none, none, Some(2), zero, none, none, none, zero, zero]);
    assert_eq!(stored(WorkerIx(1)), [None; 10], "no KV event of it was received");
    assert_eq!(fold.cluster.rate_per_second(WorkerIx(0), at, 4), Some((0.0, 0.0)), "of the seconds known");
    assert_eq!(fold.cluster.rate_per_second(WorkerIx(0), Millis(NOW + 4_000), 1), None);
}

#[test]
fn history_makes_rates_known_from_its_first_event_on() {
    let mut fold = Fold::new();
    fold.at = NOW - 5_000;
    fold.store(0, None, &[1]);
    fold.link(LinkState::Live, NOW);
    let stored: Vec<Option<u32>> =
        fold.cluster.rates(WorkerIx(0), Millis(NOW), 6).map(|(_, bucket)| Some(bucket?.stored)).collect();
    assert_eq!(stored, [None, Some(1), Some(0), Some(0), Some(0), Some(0)]);
}

#[test]
fn history_that_arrives_late_goes_where_it_belongs() {
    let mut fold = Fold::new();
    fold.store(0, None, &[1]);
    fold.at -= 5000;
    fold.store(0, Some(1), &[2, 3]);
    fold.link(LinkState::Live, NOW - 60_000);
    let buckets: Vec<Option<u32>> =
        fold.cluster.rates(WorkerIx(0), Millis(NOW + 1000), 6).map(|(_, b)| Some(b?.stored)).collect();
    assert_eq!(buckets, [2, 0, 0, 0, 0, 1].map(Some));
    assert_eq!(fold.cluster.now_ms(), Millis(NOW), "time does not run backwards");
}

#[test]
fn a_worker_is_quiet_after_ten_seconds_and_never_seen_if_only_routers_speak_of_it() {
    let mut fold = Fold::new();
    fold.store(0, None, &[1]);
    fold.fold(Record::RouterLoad {
        worker: WorkerIx(1),
        router: Some(9),
        decode_blocks: Some(1),
        prefill_tokens: Some(1),
    });
    let sign = |fold: &Fold, w: usize, after| fold.cluster.workers()[w].sign(Millis(NOW + after));
    assert_eq!(sign(&fold, 0, QUIET_AFTER_MS), Liveness::Active);
    assert_eq!(sign(&fold, 0, QUIET_AFTER_MS + 1), Liveness::Quiet);
    assert_eq!(sign(&fold, 1, 0), Liveness::NeverSeen);
}

#[test]
fn decisions_are_bounded_one_by_one_and_complete_in_sum() {
    let mut fold = Fold::new();
    for _ in 0..MAX_DECISIONS + 5 {
        fold.decide(0, 10, 8);
    }
    let decisions = fold.cluster.decisions();
    assert_eq!(decisions.newest_first().len(), MAX_DECISIONS);
    assert_eq!(decisions.totals().count, MAX_DECISIONS as u64 + 5);
    assert_eq!(decisions.totals().overlap_share(), Some(0.8));
    assert_eq!(decisions.totals_of(WorkerIx(1)).overlap_share(), None);
}

fn candidate(worker: u16, overlap_blocks: u32) -> Candidate {
    let (prefill_blocks, decode_blocks, cost) = (1.0, 2.0, 3.0);
    Candidate {
        worker: WorkerIx(worker.into()),
        overlap_blocks,
        host_blocks: 0,
        disk_blocks: 0,
        prefill_blocks,
        decode_blocks,
        cost,
        tree_size: None,
    }
}

#[test]
fn a_later_record_of_a_decision_replaces_the_one_before_and_its_place_stays() {
    let mut fold = Fold::new();
    fold.decide(0, 10, 8).decide(1, 10, 0);
    let first = fold.cluster.decisions().newest(1).expect("retained").clone();
    let mut whole = first.decision.clone();
    whole.sources.insert(DecisionSource::Log);
    whole.candidates = vec![candidate(0, 7)];
    whole.completeness = Completeness::AllCandidates;
    (whole.isl_blocks, whole.overlap_blocks, whole.request_id) = (Some(20), Some(7), None);
    fold.fold(Record::Decision(Box::new(whole.clone())));
    for output_tokens in [7, 9] {
        let progress = Progress { output_tokens: Some(output_tokens), ..Progress::default() };
        fold.fold(Record::Progress { decision: whole.id, progress: Box::new(progress) });
    }
    let decisions = fold.cluster.decisions();
    let replaced = decisions.newest(1).expect("retained");
    assert_eq!((replaced.seq, replaced.at_ms), (first.seq, first.at_ms), "when it was first received");
    assert_eq!(replaced.decision, whole, "nothing of the record before is left");
    assert_eq!(replaced.sources().collect::<Vec<_>>(), [DecisionSource::KvHitRate, DecisionSource::Log]);
    assert_eq!(replaced.progress.output_tokens, Some(9));
    let totals = decisions.totals();
    assert_eq!((totals.count, totals.isl_blocks, totals.overlap_blocks), (2, 30, 7));
}

#[test]
fn an_overlap_that_becomes_known_later_enters_the_sums() {
    let mut fold = Fold::new();
    let new = Decision::new(DecisionId(1), WorkerIx(0), DecisionSource::ActiveSequences);
    fold.fold(Record::Decision(Box::new(Decision { isl_blocks: Some(10), ..new })));
    assert_eq!(fold.cluster.decisions().totals().overlap_share(), None);
    fold.complete(|more| more.overlap_blocks = Some(5));
    assert_eq!(fold.cluster.decisions().totals().overlap_share(), Some(0.5));
    assert_eq!(fold.cluster.decisions().totals_of(WorkerIx(0)).overlap_share(), Some(0.5));
}

#[test]
fn with_many_workers_old_decisions_lose_their_candidates_and_nothing_else() {
    let mut fold = Fold::new();
    let many: Vec<Candidate> = (0..4_096).map(|w| candidate(w, 6)).collect();
    for _ in 0..MAX_CANDIDATES / many.len() + 3 {
        fold.decide(0, 10, 6);
        fold.complete(|more| {
            more.candidates = many.clone();
            more.completeness = Completeness::AllCandidates;
        });
    }
    let decisions = fold.cluster.decisions();
    let retained: usize = decisions.newest_first().map(|d| d.decision.candidates.len()).sum();
    assert_eq!(retained, MAX_CANDIDATES);
    let oldest = decisions.newest_first().next_back().expect("kept");
    assert!(oldest.candidates_forgotten() && oldest.overlap_blocks() == Some(6));
    assert_eq!(decisions.totals().overlap_share(), Some(0.6));
}

#[test]
fn the_digest_of_a_restored_state_follows_the_same_changes() {
    let mut fold = Fold::new();
    for n in 0..50 {
        fold.decide(n % 2, 10, u64::from(n));
        fold.complete(|more| more.logit = Some(f64::from(n)));
    }
    let mut restored = fold.restored();
    assert_eq!(restored.digest(), fold.cluster.digest());
    let before = fold.cluster.digest();
    fold.complete(|more| more.tied = true);
    assert_ne!(before, fold.cluster.digest());
    let more = fold.cluster.decisions().newest(0).expect("decided").decision.clone();
    restored
        .fold(fold.cluster.seq(), &Entry { at_ms: Millis(NOW), record: Record::Decision(Box::new(more)) });
    assert_eq!(restored.digest(), fold.cluster.digest());
}

#[test]
fn the_api_lists_workers_by_id_as_numbers() {
    let fold = Fold::new();
    assert_eq!(fold.cluster.workers_by_id(), [WorkerIx(1), WorkerIx(0)]);
}
