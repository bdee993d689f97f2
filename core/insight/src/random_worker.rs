//! What share of the prompts a worker taken at random would have held, beside what the chosen workers held: whether the
//! choice helps. Knows no screen.
//!
//! # How it works
//!
//! Each decision of the window of which every candidate is known says how many blocks of the prompt each of them held when
//! the router chose. Their mean is what a worker taken without looking, as round-robin or a random router takes it, would
//! have held on average. That is said of these caches, which KV-aware routing has filled: a cluster that was routed at
//! random for long fills them otherwise, and only a baseline tells how fast it would be.

use radixscope_model::id::{Millis, PoolIx};
use radixscope_state::cluster::{Cluster, DecisionEntry};

/// Latest decisions that are looked at: enough for a share to whole points, few enough for every second.
pub const MAX_DECISIONS: usize = 512;

/// Blocks of prompts held by a worker taken at random and by the chosen ones, over the same decisions.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RandomWorker {
    /// Decisions of which every candidate is known.
    pub decisions: u64,
    /// Tokens of their prompts, in whole blocks.
    prompts: f64,
    /// Tokens that a candidate held on average.
    random: f64,
    /// Tokens that the chosen workers held.
    chosen: f64,
}

impl RandomWorker {
    /// KV hit rate of a worker taken at random, 0 … 1.
    pub fn hit_rate(&self) -> f64 {
        self.random / self.prompts
    }

    /// KV hit rate of the chosen workers over the same decisions, 0 … 1.
    pub fn chosen_hit_rate(&self) -> f64 {
        self.chosen / self.prompts
    }

    fn add(&mut self, decided: &DecisionEntry, block_tokens: f64) -> Option<()> {
        let decision = &decided.decision;
        let counts = !decided.partial && !decided.ignores_cache && decision.dispatched != Some(false);
        let blocks = decision.isl_blocks.filter(|&blocks| blocks > 0 && counts)?;
        let all = &decision.candidates;
        if all.is_empty() {
            return None;
        }
        let held = all.iter().map(|candidate| {
            let tiers = [candidate.overlap_blocks, candidate.host_blocks, candidate.disk_blocks];
            tiers.into_iter().map(u64::from).sum::<u64>().min(blocks) as f64
        });
        let random = held.sum::<f64>() / all.len() as f64;
        let chosen = decided.held_blocks()?.min(blocks) as f64;
        self.decisions += 1;
        self.prompts += blocks as f64 * block_tokens;
        self.random += random * block_tokens;
        self.chosen += chosen * block_tokens;
        Some(())
    }
}

/// Over the last `window_ms` before `now`, of the pools that `has` takes; blocks of unequal size are added by their tokens,
/// so that each pool's size must be known where there are several. `None`: of no decision all candidates are known.
pub fn random_worker(
    cluster: &Cluster,
    now: Millis,
    window_ms: u64,
    has: impl Fn(PoolIx) -> bool,
) -> Option<RandomWorker> {
    let mut sums = RandomWorker::default();
    let latest =
        cluster.decisions().newest_first().take_while(|decided| now.since(decided.at_ms) <= window_ms);
    for decided in latest.filter(|decided| has(decided.pool)).take(MAX_DECISIONS) {
        let tokens = cluster.block_tokens(decided.pool).unwrap_or(1);
        sums.add(decided, tokens.into());
    }
    (sums.prompts > 0.0).then_some(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{DecisionId, Seq, Worker, WorkerIx};
    use radixscope_model::record::{Candidate, Decision, DecisionSource, Entry, Record};

    const NOW: u64 = 1_800_000_000_000;

    fn fold(cluster: &mut Cluster, at: u64, record: Record<'_>) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(at), record });
    }

    fn candidate(worker: u16, overlap_blocks: u32) -> Candidate {
        Candidate {
            worker: WorkerIx(worker),
            overlap_blocks,
            host_blocks: 0,
            disk_blocks: 0,
            prefill_blocks: 0.0,
            decode_blocks: 0.0,
            cost: f64::from(100 - overlap_blocks),
            tree_size: None,
        }
    }

    /// Two workers, and decisions on prompts of 100 blocks with what each worker held.
    fn cluster(held: &[&[u32]]) -> Cluster {
        let mut cluster = Cluster::default();
        for worker in 0..2 {
            let id = Worker::new(u64::from(worker) + 1, 0);
            fold(
                &mut cluster,
                NOW,
                Record::Worker { worker: WorkerIx(worker), id, namespace: "".into(), component: "".into() },
            );
        }
        for (at, held) in (0u64..).zip(held) {
            let candidates: Vec<Candidate> =
                (0..).zip(*held).map(|(worker, &blocks)| candidate(worker, blocks)).collect();
            let decision = Decision {
                isl_blocks: Some(100),
                overlap_blocks: Some(90),
                candidates,
                ..Decision::new(DecisionId(at + 1), WorkerIx(0), DecisionSource::Log)
            };
            fold(&mut cluster, NOW + at * 1_000, Record::Decision(decision));
        }
        cluster
    }

    #[test]
    fn the_mean_of_the_candidates_counts_each_decision() {
        let cluster = cluster(&[&[90, 10], &[80, 0]]);
        let found = random_worker(&cluster, Millis(NOW + 2_000), 60_000, |_| true).unwrap();
        assert_eq!(found.decisions, 2);
        assert!((found.hit_rate() - 0.45).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn decisions_of_which_the_chosen_worker_alone_is_known_do_not_count() {
        let cluster = cluster(&[&[], &[80, 0], &[]]);
        let found = random_worker(&cluster, Millis(NOW + 3_000), 60_000, |_| true).unwrap();
        assert_eq!((found.decisions, found.hit_rate()), (1, 0.4));
        assert_eq!(random_worker(&cluster, Millis(NOW + 3_000), 500, |_| true), None, "before the window");
        assert_eq!(random_worker(&cluster, Millis(NOW + 3_000), 60_000, |_| false), None, "of another pool");
    }
}
