//! Which decisions become hits, and where.

use std::borrow::Cow;

use radixscope_model::id::{BlockHash, DecisionId, Millis, PoolIx, Seq, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{
    Block, Candidate, Completeness, Decision, DecisionSource, Entry, PathEnd, Record,
};
use radixscope_state::cluster::{Cluster, touch};

const AT: u64 = 1_800_000_000_000;
const MINUTE: u64 = 60_000;

struct Fold {
    cluster: Cluster,
    at: u64,
}

impl Fold {
    /// Two workers. The first holds the blocks 1 to 5 of a prompt, the second 1 to 3.
    fn new() -> Self {
        let mut fold = Self { cluster: Cluster::default(), at: AT };
        for worker in [WorkerIx(0), WorkerIx(1)] {
            let id = Worker::new(u64::from(worker.0), 0);
            fold.fold(Record::new_worker(worker, id, "dynamo", "backend"));
        }
        for (worker, last) in [(0, 5), (1, 3)] {
            let block = |n| Block { block_hash: BlockHash(n), tokens_hash: TokensHash(n) };
            let blocks = (1..=last).map(block).collect();
            fold.fold(Record::Stored { worker: WorkerIx(worker), parent: None, blocks: Cow::Owned(blocks) });
        }
        fold
    }

    fn fold(&mut self, record: Record<'_>) {
        let seq = Seq(self.cluster.seq().0 + 1);
        self.cluster.fold(seq, &Entry { at_ms: Millis(self.at), record });
    }

    fn decide(&mut self, id: u64, worker: u16, more: impl FnOnce(&mut Decision)) {
        let mut decision =
            Decision::new(DecisionId(id), WorkerIx(worker.into()), DecisionSource::ActiveSequences);
        more(&mut decision);
        self.fold(Record::Decision(Box::new(decision)));
    }

    /// Blocks of the prompt at whose end each hit is, the oldest first; 0 is the root.
    fn hits(&self) -> Vec<u64> {
        let tree = self.cluster.tree(PoolIx(0));
        tree.hits().map(|(node, _)| tree.tokens_hash(node).0).collect()
    }
}

/// The prompt's held prefix ends at block 5 of the first worker.
fn path() -> Option<PathEnd> {
    Some(PathEnd { worker: WorkerIx(0), block_hash: BlockHash(5), blocks: 5 })
}

fn weighed(overlaps: [u32; 2]) -> Vec<Candidate> {
    let candidate = |(worker, overlap_blocks)| Candidate {
        worker: WorkerIx(worker),
        overlap_blocks,
        host_blocks: 0,
        disk_blocks: 0,
        prefill_blocks: 0.0,
        decode_blocks: 0.0,
        cost: 0.0,
        tree_size: None,
    };
    [0, 1].into_iter().zip(overlaps).map(candidate).collect()
}

#[test]
fn a_hit_ends_where_what_the_chosen_worker_held_ended() {
    let mut fold = Fold::new();
    for (id, worker) in [(1, 0), (2, 1)] {
        fold.decide(id, worker, |d| {
            (d.path, d.candidates) = (path(), weighed([5, 3]));
            // The router counts in other blocks; what the tree shows goes before it.
            d.overlap_blocks = Some(1);
        });
    }
    assert_eq!(fold.hits(), [5, 3]);
}

#[test]
fn where_no_candidates_are_known_the_routers_count_gives_the_depth() {
    let mut fold = Fold::new();
    fold.decide(1, 0, |d| (d.path, d.overlap_blocks) = (path(), Some(2)));
    fold.decide(2, 0, |d| (d.path, d.overlap_blocks) = (path(), Some(70)));
    assert_eq!(fold.hits(), [2, 5], "never beyond the path's end");
    fold.decide(3, 1, |d| (d.path, d.overlap_blocks) = (path(), Some(5)));
    assert_eq!(fold.hits(), [2, 5, 3], "never at a block that the worker does not hold");
}

#[test]
fn a_request_of_which_the_chosen_worker_held_nothing_is_counted_at_the_root() {
    let mut fold = Fold::new();
    fold.decide(1, 0, |d| (d.path, d.overlap_blocks) = (path(), Some(0)));
    fold.decide(2, 0, |d| {
        // No worker held its first block.
        (d.completeness, d.candidates) = (Completeness::Reconstructed, weighed([0, 0]));
    });
    assert_eq!(fold.hits(), [0, 0]);
}

#[test]
fn what_is_not_known_is_neither_a_hit_nor_a_request() {
    let mut fold = Fold::new();
    fold.decide(1, 0, |d| d.path = path());
    fold.decide(2, 0, |d| d.overlap_blocks = Some(3));
    fold.decide(3, 0, |_| ());
    fold.decide(4, 9, |d| (d.path, d.overlap_blocks) = (path(), Some(3)));
    assert_eq!(fold.hits(), [0; 0]);
}

#[test]
fn a_decision_counts_once_as_soon_as_its_path_is_known() {
    let mut fold = Fold::new();
    fold.decide(1, 0, |d| d.overlap_blocks = Some(3));
    assert_eq!(fold.hits(), [0; 0]);
    fold.at += MINUTE;
    fold.decide(1, 0, |d| (d.path, d.overlap_blocks) = (path(), Some(3)));
    assert_eq!(fold.hits(), [3]);
    assert!(fold.cluster.tree(PoolIx(0)).hits().all(|(_, at)| at == touch(Millis(AT + MINUTE))));
    fold.decide(1, 0, |d| (d.path, d.candidates) = (path(), weighed([5, 3])));
    assert_eq!(fold.hits(), [3]);
}

#[test]
fn a_miss_that_is_reported_once_more_after_its_blocks_were_stored_stays_a_miss() {
    let mut fold = Fold::new();
    let unheld = |d: &mut Decision| {
        (d.completeness, d.candidates) = (Completeness::Reconstructed, weighed([0, 0]));
    };
    fold.decide(1, 0, unheld);
    fold.decide(1, 0, |d| (d.path, d.candidates) = (path(), weighed([5, 3])));
    assert_eq!(fold.hits(), [0]);
}

#[test]
fn a_path_whose_end_has_gone_meanwhile_counts_at_the_root() {
    let mut fold = Fold::new();
    let gone = PathEnd { worker: WorkerIx(0), block_hash: BlockHash(99), blocks: u32::MAX };
    fold.decide(1, 0, |d| (d.path, d.overlap_blocks) = (Some(gone), Some(3)));
    let absurd = PathEnd { block_hash: BlockHash(5), ..gone };
    fold.decide(2, 0, |d| (d.path, d.overlap_blocks) = (Some(absurd), Some(3)));
    assert_eq!(fold.hits(), [0, 0]);
}

#[test]
fn hits_expire_after_fifteen_minutes_whatever_is_received() {
    let mut fold = Fold::new();
    fold.decide(1, 0, |d| (d.path, d.overlap_blocks) = (path(), Some(3)));
    fold.at += 15 * MINUTE;
    fold.fold(Record::Rejoined { worker: WorkerIx(1) });
    assert_eq!(fold.hits(), [3]);
    fold.at += 100;
    fold.fold(Record::Rejoined { worker: WorkerIx(1) });
    assert_eq!(fold.hits(), [0; 0]);
}
