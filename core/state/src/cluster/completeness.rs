//! Which workers lack blocks in our tree, and how much of what workers hold is in it: the one place that decides it, for
//! figures, rules and marks alike. Knows nothing of how workers are queried.

use super::{Cluster, WorkerState};
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::record::{QueryState, TreeKnowledge};

/// How much of what the workers of some pools hold is known. Workers that publish no KV events by design do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Workers that are there.
    pub workers: u32,
    /// Of those, the ones of which every block is known.
    pub complete: u32,
    /// Of those, the ones of which blocks are known to be missing.
    pub incomplete: u32,
    /// Blocks known, of the workers of which anything is known.
    pub known_blocks: u64,
    /// Blocks that they hold; `None`: unknown for one of them.
    pub used_blocks: Option<u64>,
}

impl Coverage {
    /// Known ÷ held blocks, 0 … 1; `None`: it is not known how many are held, or none is.
    pub fn share(&self) -> Option<f64> {
        let used = self.used_blocks.filter(|&used| used > 0)?;
        Some((self.known_blocks as f64 / used as f64).min(1.0))
    }

    /// Whether no worker is known to lack blocks.
    pub const fn is_whole(&self) -> bool {
        self.incomplete == 0
    }
}

/// What of a pool decides what is expected of each of its workers.
#[derive(Clone, Copy)]
struct PoolExpectation {
    /// Its workers decode, and none of them ever published.
    is_silent: bool,
    /// One of them is known in part: somebody was there before us.
    is_old: bool,
}

impl PoolExpectation {
    fn publishes(self, state: &WorkerState) -> bool {
        state.last_event_ms.is_some() || !(state.publishes_events == Some(false) || self.is_silent)
    }

    fn lacks_blocks(self, state: &WorkerState) -> bool {
        let lacks = match state.knowledge.state {
            TreeKnowledge::Complete => false,
            TreeKnowledge::Partial => true,
            TreeKnowledge::Unknown => {
                self.is_old || matches!(state.knowledge.asking, QueryState::Failed { .. })
            }
        };
        lacks && self.publishes(state)
    }

    /// Whether a query for all blocks of a worker of which nothing is known is under way: what it holds is not known yet, which
    /// need not mean that blocks are missing.
    fn awaits_blocks(self, state: &WorkerState) -> bool {
        use QueryState::{Dump, Joining, Waiting};
        let is_asked = matches!(state.knowledge.asking, Waiting | Dump | Joining);
        state.knowledge.state == TreeKnowledge::Unknown && is_asked && self.publishes(state)
    }
}

impl Cluster {
    /// Workers of a pool that are there.
    fn present(&self, pool: PoolIx) -> impl Iterator<Item = (WorkerIx, &WorkerState)> {
        let workers = self.workers_in(pool).filter_map(|ix| Some((ix, self.worker(ix)?)));
        workers.filter(|(_, state)| state.departure.is_none())
    }

    fn peers(&self, pool: PoolIx) -> PoolExpectation {
        let decodes = self.pool(pool).is_some_and(|pool| pool.ignores_cache);
        let mut all = self.workers_in(pool).filter_map(|peer| self.worker(peer));
        PoolExpectation {
            is_silent: decodes && all.all(|peer| peer.last_event_ms.is_none()),
            is_old: self.present(pool).any(|(_, peer)| peer.knowledge.state == TreeKnowledge::Partial),
        }
    }

    /// Whether a worker may be expected to publish KV events: one that did may; decode workers in a pool without publishers need
    /// not, and others may say in their cards that they do not.
    pub fn publishes(&self, worker: WorkerIx) -> bool {
        self.worker(worker).is_some_and(|state| self.peers(state.pool).publishes(state))
    }

    /// Whether blocks of a worker that is there are known to be missing: it is known in part, or nothing of it is, though somebody
    /// of its pool was there before us, or though it was queried.
    pub fn is_incomplete(&self, worker: WorkerIx) -> bool {
        self.worker(worker).is_some_and(|state| {
            let may_be = !state.knowledge.is_complete() && state.departure.is_none();
            may_be && self.peers(state.pool).lacks_blocks(state)
        })
    }

    /// The workers of a pool of which blocks are known to be missing, see [`Cluster::is_incomplete`].
    pub fn incomplete_in(&self, pool: PoolIx) -> Vec<WorkerIx> {
        let peers = self.peers(pool);
        self.present(pool).filter(|(_, state)| peers.lacks_blocks(state)).map(|(ix, _)| ix).collect()
    }

    /// How much of what the workers of `pools` hold is known.
    pub fn coverage(&self, pools: impl IntoIterator<Item = PoolIx>) -> Coverage {
        let mut sum = Coverage { used_blocks: Some(0), ..Coverage::default() };
        for pool in pools {
            let peers = self.peers(pool);
            for (ix, state) in self.present(pool).filter(|(_, state)| peers.publishes(state)) {
                let is_incomplete = peers.lacks_blocks(state);
                sum.workers += 1;
                sum.complete += u32::from(state.knowledge.is_complete());
                sum.incomplete += u32::from(is_incomplete);
                if state.knowledge.is_complete() || is_incomplete {
                    let (known, used) = self.known_of_used(ix);
                    sum.known_blocks += known;
                    sum.used_blocks = sum.used_blocks.zip(used).map(|(sum, used)| sum + used.value);
                }
            }
        }
        sum
    }

    /// Whether the tree of a pool lacked blocks at a moment of the last seconds: it does now, got them after that moment, or a
    /// worker of which nothing is known is asked for them.
    pub fn was_incomplete(&self, pool: PoolIx, at: Millis) -> bool {
        let came_after =
            |state: &WorkerState| state.knowledge.lacked_until_ms.is_some_and(|until| until > at);
        let peers = self.peers(pool);
        let lacks = |state| came_after(state) || peers.lacks_blocks(state) || peers.awaits_blocks(state);
        self.present(pool).any(|(_, state)| lacks(state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{DecisionEntry, NoCostGap, SnapshotReader};
    use radixscope_model::id::{DecisionId, Seq, Worker};
    use radixscope_model::record::{
        Candidate, Completeness, Decision, DecisionSource, Entry, KnowledgeWhy, NotReconstructed, Record,
    };

    fn fold(cluster: &mut Cluster, at_ms: u64, record: Record<'_>) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(at_ms), record });
    }

    fn knows(cluster: &mut Cluster, at_ms: u64, worker: u16, knowledge: TreeKnowledge, why: KnowledgeWhy) {
        fold(cluster, at_ms, Record::Knowledge { worker: WorkerIx(worker.into()), knowledge, why });
    }

    /// Two workers, of which the second was there before us.
    fn cluster() -> Cluster {
        let mut cluster = Cluster::default();
        for (worker, id) in [(0, 7), (1, 8)] {
            let id = Worker::new(id, 0);
            fold(&mut cluster, 1_000, Record::new_worker(WorkerIx(worker), id, "dynamo", "backend"));
        }
        knows(&mut cluster, 1_000, 0, TreeKnowledge::Complete, KnowledgeWhy::FromFirstEvent);
        knows(&mut cluster, 1_000, 1, TreeKnowledge::Partial, KnowledgeWhy::JoinedLate);
        cluster
    }

    fn candidate(worker: u16, overlap_blocks: u32, cost: f64) -> Candidate {
        let (host_blocks, disk_blocks, prefill_blocks, decode_blocks) = (0, 0, 10.0, 0.0);
        let worker = WorkerIx(worker.into());
        Candidate {
            worker,
            overlap_blocks,
            host_blocks,
            disk_blocks,
            prefill_blocks,
            decode_blocks,
            cost,
            tree_size: None,
        }
    }

    fn decide(cluster: &mut Cluster, at_ms: u64, completeness: Completeness) -> DecisionEntry {
        let id = DecisionId(cluster.decisions().totals().count + 1);
        let decision = Decision {
            isl_blocks: Some(20),
            candidates: vec![candidate(0, 10, 10.0), candidate(1, 12, 30.0)],
            completeness,
            ..Decision::new(id, WorkerIx(0), DecisionSource::ActiveSequences)
        };
        fold(cluster, at_ms, Record::Decision(Box::new(decision)));
        cluster.decisions().get(id).unwrap().clone()
    }

    #[test]
    fn what_is_computed_on_a_tree_that_lacks_blocks_is_marked_and_not_taken_for_a_fact() {
        let mut cluster = cluster();
        let partial = decide(&mut cluster, 2_000, Completeness::Reconstructed);
        assert!(partial.partial);
        assert_eq!((partial.cost_gap_blocks(), partial.lost_affinity()), (Err(NoCostGap::PartialTree), None));
        assert_eq!(partial.overlap_blocks(), None, "no router reported it");
        assert_eq!(cluster.decisions().totals().with_blocks, 0, "it is in no hit rate");
        assert!(partial.why(|_| "W1".to_owned()).contains("lacked blocks"));
        assert!(partial.known_text().ends_with("on a tree that lacked blocks"));

        let written = decide(&mut cluster, 2_000, Completeness::AllCandidates);
        assert!(!written.partial, "the router itself wrote them");
        assert_eq!(written.lost_affinity().unwrap().more_blocks, 2);
    }

    #[test]
    fn a_decision_before_the_response_rests_on_the_tree_of_its_own_time() {
        let mut cluster = cluster();
        knows(&mut cluster, 3_000, 1, TreeKnowledge::Complete, KnowledgeWhy::Dump);
        let at = |cluster: &mut Cluster, decided_ms: u64| {
            let id = DecisionId(cluster.decisions().totals().count + 1);
            let decision = Decision {
                decided_ms: Some(Millis(decided_ms)),
                not_reconstructed: Some(NotReconstructed::Overlap),
                ..Decision::new(id, WorkerIx(0), DecisionSource::Log)
            };
            fold(cluster, 3_100, Record::Decision(Box::new(decision)));
            cluster.decisions().get(id).unwrap().partial
        };
        assert!(at(&mut cluster, 2_900), "the response came later");
        assert!(!at(&mut cluster, 3_050));
    }

    #[test]
    fn what_is_computed_before_a_worker_answered_the_first_query_is_marked() {
        let mut cluster = Cluster::default();
        let id = Worker::new(7, 0);
        fold(&mut cluster, 1_000, Record::new_worker(WorkerIx(0), id, "dynamo", "backend"));
        let decide =
            |cluster: &mut Cluster, at_ms| decide(cluster, at_ms, Completeness::Reconstructed).partial;
        assert!(!decide(&mut cluster, 1_100), "nobody was there before us, as far as is known");
        for asking in [QueryState::Waiting, QueryState::Dump] {
            let record = Record::QueryState { worker: WorkerIx(0), state: asking, detail: "".into() };
            fold(&mut cluster, 1_200, record);
            assert!(decide(&mut cluster, 1_300), "{asking:?}");
            assert!(cluster.coverage([cluster.default_pool()]).is_whole(), "it may just have started");
        }
        knows(&mut cluster, 1_400, 0, TreeKnowledge::Complete, KnowledgeWhy::Dump);
        assert!(!decide(&mut cluster, 1_500));
    }

    #[test]
    fn the_mark_is_in_snapshots_and_digests() {
        let mut cluster = cluster();
        decide(&mut cluster, 2_000, Completeness::Reconstructed);
        let mut reader = SnapshotReader::default();
        let mut restored = None;
        cluster.snapshot(|part| restored = reader.part(&part).unwrap()).unwrap();
        let restored = restored.unwrap();
        assert!(restored.decisions().newest(0).unwrap().partial);
        assert_eq!(restored.digest(), cluster.digest());
    }

    #[test]
    fn coverage_counts_blocks_and_workers_that_publish() {
        let mut cluster = cluster();
        let pool = cluster.default_pool();
        let coverage = cluster.coverage([pool]);
        assert_eq!((coverage.workers, coverage.complete, coverage.incomplete), (2, 1, 1));
        assert_eq!(coverage.share(), None, "nothing reports how many blocks the second one has");
        knows(&mut cluster, 3_000, 1, TreeKnowledge::Complete, KnowledgeWhy::Dump);
        assert!(cluster.coverage([pool]).is_whole());
        let id = Worker::new(9, 0);
        fold(&mut cluster, 4_000, Record::new_worker(WorkerIx(2), id, "dynamo", "backend"));
        let new = cluster.coverage([pool]);
        assert_eq!((new.workers, new.complete, new.incomplete), (3, 2, 0), "it may just have started");
        fold(
            &mut cluster,
            4_000,
            Record::ModelCard {
                worker: WorkerIx(2),
                total_kv_blocks: None,
                block_size_tokens: None,
                publishes_events: Some(false),
            },
        );
        assert_eq!(cluster.coverage([pool]).workers, 2, "it publishes nothing by its card");
    }
}
