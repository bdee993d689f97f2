//! How dumps and what is known of workers change the state, record by record.

use super::{Cluster, ResidentSource, SnapshotReader};
use radixscope_model::id::{BlockHash, Millis, PoolIx, Seq, SourceIx, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{
    Block, DepartureCause, Divergence, Entry, KnowledgeWhy, MissedCause, QueryState, Record, SourceKind,
    Topic, TreeKnowledge,
};

const NOW: u64 = 1_800_000_000_000;
const W: WorkerIx = WorkerIx(0);

struct Fold {
    cluster: Cluster,
    seq: u64,
}

fn blocks(names: &[u64]) -> Vec<Block> {
    names.iter().map(|&b| Block { block_hash: BlockHash(b), tokens_hash: TokensHash(b) }).collect()
}

fn hashes(names: &[u64]) -> Vec<BlockHash> {
    names.iter().map(|&b| BlockHash(b)).collect()
}

impl Fold {
    /// Two workers of one pool, one source.
    fn new() -> Self {
        let mut fold = Self { cluster: Cluster::default(), seq: 0 };
        fold.fold(Record::Source { source: SourceIx(0), name: "nats://n".into(), kind: SourceKind::Nats });
        for worker in 0..2 {
            let (worker, id) = (WorkerIx(worker), Worker::new(100 + u64::from(worker), 0));
            fold.fold(Record::new_worker(worker, id, "dynamo", "backend"));
        }
        fold
    }

    fn fold(&mut self, record: Record<'_>) -> &mut Self {
        self.seq += 1;
        self.cluster.fold(Seq(self.seq), &Entry { at_ms: Millis(NOW + self.seq), record });
        self
    }

    fn dump(&mut self, parent: Option<u64>, names: &[u64]) -> &mut Self {
        let blocks = blocks(names).into();
        self.fold(Record::TreeDumpStored { worker: W, tier: None, parent: parent.map(BlockHash), blocks })
    }

    fn store(&mut self, parent: Option<u64>, names: &[u64]) -> &mut Self {
        let blocks = blocks(names).into();
        self.fold(Record::Stored { worker: W, parent: parent.map(BlockHash), blocks })
    }

    fn remove(&mut self, names: &[u64]) -> &mut Self {
        self.fold(Record::Removed { worker: W, hashes: hashes(names).into() })
    }

    fn know(&mut self, knowledge: TreeKnowledge, why: KnowledgeWhy) -> &mut Self {
        self.fold(Record::Knowledge { worker: W, knowledge, why })
    }

    fn ask(&mut self, state: QueryState) -> &mut Self {
        self.fold(Record::QueryState { worker: W, state, detail: "words".into() })
    }
}

#[test]
fn a_dump_changes_the_tree_and_no_total() {
    let mut fold = Fold::new();
    fold.dump(None, &[1, 2, 3]).dump(Some(2), &[4]);
    fold.fold(Record::TreeDumpRemoved { worker: W, tier: None, hashes: hashes(&[3, 9]).into() });
    let state = &fold.cluster.workers()[0];
    let counted =
        (state.stored_total, state.removed_total, state.store_events_total, state.remove_events_total);
    assert_eq!(counted, (0, 0, 0, 0));
    assert_eq!((state.unknown_removed_total, state.unknown_parents_total), (0, 0));
    let tree = fold.cluster.tree(PoolIx(0));
    assert_eq!(tree.totals().nodes, 3);
    assert_eq!(tree.totals().unattached, 0);
    let node = tree.find(W.slot(), BlockHash(4)).expect("held");
    assert_eq!((tree.touched(node), tree.first_stored(node)), (0, 0), "its stored event was not received");
}

#[test]
fn blocks_that_a_dump_repeats_keep_their_times() {
    let mut fold = Fold::new();
    fold.store(None, &[1, 2]);
    let times = |fold: &Fold| {
        let tree = fold.cluster.tree(PoolIx(0));
        let node = tree.find(W.slot(), BlockHash(2)).expect("held");
        (tree.touched(node), tree.first_stored(node))
    };
    let before = times(&fold);
    assert!(before.0 > 0 && before.1 > 0);
    fold.dump(None, &[1, 2, 3]);
    assert_eq!(times(&fold), before);
}

#[test]
fn a_dump_attaches_what_waited_for_its_parent() {
    let mut fold = Fold::new();
    fold.store(Some(2), &[3]);
    assert_eq!(fold.cluster.tree(PoolIx(0)).totals().unattached, 1);
    fold.dump(None, &[1, 2]);
    let totals = fold.cluster.tree(PoolIx(0)).totals();
    assert_eq!((totals.unattached, totals.nodes), (0, 3));
}

#[test]
fn in_the_overlap_unknown_removals_and_parents_are_nothing_to_count() {
    let mut fold = Fold::new();
    fold.remove(&[7]).store(Some(8), &[9]);
    let counts = |fold: &Fold| {
        let state = &fold.cluster.workers()[0];
        (state.unknown_removed_total, state.unknown_parents_total)
    };
    assert_eq!(counts(&fold), (1, 1));
    fold.ask(QueryState::Dump).ask(QueryState::Joining).remove(&[17]).store(Some(18), &[19]);
    assert_eq!(counts(&fold), (1, 1));
    fold.ask(QueryState::No).remove(&[27]).store(Some(28), &[29]);
    assert_eq!(counts(&fold), (2, 2));
    let queries = fold.cluster.workers()[0].knowledge.queries;
    assert_eq!((queries.dumps, queries.applied, queries.failed), (1, 1, 0));
}

#[test]
fn events_that_a_dump_held_count_as_received_and_are_not_applied() {
    let mut fold = Fold::new();
    fold.fold(Record::SkippedEvent { worker: W, stored: Some(3), removed: None });
    fold.fold(Record::SkippedEvent { worker: W, stored: None, removed: Some(2) });
    let state = &fold.cluster.workers()[0];
    assert_eq!((state.stored_total, state.removed_total), (3, 2));
    assert_eq!((state.store_events_total, state.remove_events_total), (1, 1));
    assert_eq!(state.unknown_removed_total, 0);
    assert_eq!(fold.cluster.blocks(W), Some(0));
}

#[test]
fn knowledge_is_kept_with_its_reason_and_its_time_and_lost_with_the_worker() {
    let mut fold = Fold::new();
    assert_eq!(fold.cluster.workers()[0].knowledge.state, TreeKnowledge::Unknown);
    fold.know(TreeKnowledge::Partial, KnowledgeWhy::JoinedLate);
    let since = fold.cluster.workers()[0].knowledge.since_ms;
    fold.know(TreeKnowledge::Partial, KnowledgeWhy::JoinedLate);
    assert_eq!(fold.cluster.workers()[0].knowledge.since_ms, since, "nothing changed");
    fold.know(TreeKnowledge::Complete, KnowledgeWhy::Dump);
    assert!(fold.cluster.workers()[0].knowledge.since_ms > since);
    fold.fold(Record::Left { worker: W, why: DepartureCause::Log });
    let state = &fold.cluster.workers()[0].knowledge;
    assert_eq!((state.state, state.why), (TreeKnowledge::Unknown, KnowledgeWhy::NoEvents));
    fold.dump(None, &[1]);
    assert_eq!(fold.cluster.tree(PoolIx(0)).totals().resident, 0, "who left holds nothing");
}

#[test]
fn a_pool_is_complete_when_all_its_workers_are() {
    let mut fold = Fold::new();
    let know = |fold: &mut Fold, worker, knowledge, why| {
        fold.fold(Record::Knowledge { worker, knowledge, why });
    };
    assert!(fold.cluster.is_partial_anywhere());
    assert_eq!(fold.cluster.pool_knowledge(PoolIx(0)).state, TreeKnowledge::Unknown);
    fold.dump(None, &[1, 2]);
    know(&mut fold, W, TreeKnowledge::Complete, KnowledgeWhy::Dump);
    let pool = fold.cluster.pool_knowledge(PoolIx(0));
    assert_eq!((pool.state, pool.complete, pool.unknown), (TreeKnowledge::Partial, 1, 1));
    assert_eq!((pool.known_blocks, pool.used_blocks), (2, None), "what the other holds is not known");
    know(&mut fold, WorkerIx(1), TreeKnowledge::Complete, KnowledgeWhy::FromFirstEvent);
    let pool = fold.cluster.pool_knowledge(PoolIx(0));
    assert!(pool.is_complete() && !fold.cluster.is_partial_anywhere());
    assert_eq!(pool.share(), Some(1.0));
}

#[test]
fn a_worker_that_removes_blocks_uses_its_whole_capacity() {
    let mut fold = Fold::new();
    let card = |fold: &mut Fold| {
        let (total_kv_blocks, block_size_tokens) = (Some(1_600), Some(16));
        let publishes_events = None;
        fold.fold(Record::ModelCard { worker: W, total_kv_blocks, block_size_tokens, publishes_events });
    };
    card(&mut fold);
    fold.know(TreeKnowledge::Partial, KnowledgeWhy::JoinedLate).store(None, &[1, 2]);
    assert_eq!(fold.cluster.known_of_used(W), (2, None), "it may be filling up");
    fold.remove(&[99]);
    let (known, used) = fold.cluster.known_of_used(W);
    let used = used.expect("its cache is full");
    assert_eq!((known, used.value), (2, 1_600));
    assert!(matches!(used.source, ResidentSource::Full(_)));
}

#[test]
fn what_was_got_back_stays_counted_as_missed() {
    let mut fold = Fold::new();
    let (source, topic, cause) = (SourceIx(0), Topic::KvEvents, MissedCause::EventIdGap);
    fold.fold(Record::Missed { source, worker: Some(W), topic, cause, count: 5 });
    fold.fold(Record::Recovered { source, worker: W, topic, cause, count: 3 });
    let missed = &fold.cluster.sources()[0].missed[0];
    assert_eq!((missed.count, missed.recovered, missed.lost()), (5, 3, 2));
    let state = &fold.cluster.workers()[0];
    assert_eq!((state.missed_total, state.recovered_total), (5, 3));
    fold.fold(Record::Recovered { source, worker: W, topic, cause, count: 30 });
    assert_eq!(fold.cluster.sources()[0].missed[0].lost(), 0, "no more than were missed");
}

#[test]
fn snapshot_and_digest_hold_what_is_known() {
    let mut fold = Fold::new();
    let mut digests = vec![fold.cluster.digest()];
    let mut differs = |fold: &Fold| {
        let digest = fold.cluster.digest();
        assert!(!digests.contains(&digest));
        digests.push(digest);
    };
    fold.dump(None, &[1, 2]);
    differs(&fold);
    fold.know(TreeKnowledge::Complete, KnowledgeWhy::Dump);
    differs(&fold);
    fold.ask(QueryState::Failed { next_ms: Some(Millis(NOW)) });
    differs(&fold);
    fold.fold(Record::Divergence {
        worker: W,
        drift: Divergence { missing_blocks: 1, ..Divergence::default() },
    });
    differs(&fold);
    let mut parts = Vec::new();
    fold.cluster.snapshot(|part| parts.push(part)).expect("encodes");
    let mut reader = SnapshotReader::default();
    let restored = parts.iter().find_map(|part| reader.part(part).expect("decodes")).expect("complete");
    assert_eq!(restored.digest(), fold.cluster.digest());
    assert_eq!(restored.workers()[0].knowledge, fold.cluster.workers()[0].knowledge);
}
