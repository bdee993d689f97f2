//! The KV hit rate beside the one that choices without a look at the caches would have had on the same caches: round-robin
//! gives every candidate the same chance. Each decision is judged by what its candidates held at its own time, so the
//! caches are those that the router's own choices filled.

use radixscope_model::id::{Millis, PoolIx};
use radixscope_state::cluster::{Cluster, DecisionEntry};

/// Both hit rates over the same decisions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SameChance {
    /// Decisions of which it is known what every candidate held.
    pub decisions: u64,
    /// Share of their prompt blocks that the chosen workers held, 0 … 1.
    pub actual: f64,
    /// The mean over the candidates, 0 … 1.
    pub round_robin: f64,
}

/// Over the decisions of `pool` in the `window_ms` before `now`. `None`: of no decision are all candidates known.
pub fn same_chance(cluster: &Cluster, pool: PoolIx, now: Millis, window_ms: u64) -> Option<SameChance> {
    let latest =
        cluster.decisions().newest_first().take_while(|decided| now.since(decided.at_ms) <= window_ms);
    let (mut decisions, mut prompts, mut actual, mut round_robin) = (0, 0.0, 0.0, 0.0);
    for (isl, held, mean) in latest.filter(|decided| decided.pool == pool).filter_map(shares) {
        decisions += 1;
        prompts += isl;
        actual += held;
        round_robin += mean;
    }
    (decisions > 0).then(|| SameChance {
        decisions,
        actual: actual / prompts,
        round_robin: round_robin / prompts,
    })
}

/// Blocks of the prompt; those that the chosen worker held, and the mean of what the candidates held.
fn shares(decided: &DecisionEntry) -> Option<(f64, f64, f64)> {
    // A decision with a next best has more than one candidate, all of them known on a whole tree.
    decided.next_best().ok()?;
    let isl = decided.decision.isl_blocks.filter(|&isl| isl > 0 && !decided.ignores_cache)?;
    let candidates = &decided.decision.candidates;
    let held = candidates.iter().map(|candidate| {
        let all = [candidate.overlap_blocks, candidate.host_blocks, candidate.disk_blocks];
        all.into_iter().map(u64::from).sum::<u64>().min(isl) as f64
    });
    let mean = held.sum::<f64>() / candidates.len() as f64;
    Some((isl as f64, decided.held_blocks()?.min(isl) as f64, mean))
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::{DecisionId, Seq, Worker, WorkerIx};
    use radixscope_model::record::{Candidate, Completeness, Decision, DecisionSource, Entry, Record};

    use super::*;

    const AT_MS: Millis = Millis(1_800_000_000_000);

    fn fold(cluster: &mut Cluster, record: Record<'_>) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: AT_MS, record });
    }

    /// Three workers, and a decision for worker 0 with what each of `held` held of 10 blocks.
    fn decided(completeness: Completeness, held: &[u32]) -> Cluster {
        let mut cluster = Cluster::default();
        for worker in 0..3 {
            let id = Worker::new(u64::from(worker) + 1, 0);
            let (namespace, component) = ("dynamo".into(), "backend".into());
            fold(&mut cluster, Record::Worker { worker: WorkerIx(worker), id, namespace, component });
        }
        let candidate = |(worker, &overlap_blocks): (u16, &u32)| Candidate {
            worker: WorkerIx(worker),
            overlap_blocks,
            prefill_blocks: f64::from(10 - overlap_blocks),
            decode_blocks: 0.0,
            cost: f64::from(10 - overlap_blocks),
            tree_size: None,
            host_blocks: 0,
            disk_blocks: 0,
        };
        let decision = Decision {
            isl_blocks: Some(10),
            overlap_blocks: held.first().map(|&held| held.into()),
            candidates: (0..).zip(held).map(candidate).collect(),
            completeness,
            ..Decision::new(DecisionId(1), WorkerIx(0), DecisionSource::Log)
        };
        fold(&mut cluster, Record::Decision(decision));
        cluster
    }

    fn of(cluster: &Cluster) -> Option<SameChance> {
        same_chance(cluster, PoolIx(0), AT_MS, 60_000)
    }

    #[test]
    fn round_robin_finds_the_mean_of_what_the_candidates_hold() {
        let both = of(&decided(Completeness::AllCandidates, &[9, 3, 0]));
        assert_eq!(both, Some(SameChance { decisions: 1, actual: 0.9, round_robin: 0.4 }));
    }

    #[test]
    fn what_is_known_of_the_chosen_worker_alone_says_nothing_of_the_others() {
        assert_eq!(of(&decided(Completeness::ChosenOnly, &[9])), None);
        assert_eq!(of(&decided(Completeness::AllCandidates, &[9])), None, "no other to choose");
    }

    #[test]
    fn decisions_before_the_window_or_of_another_pool_do_not_count() {
        let cluster = decided(Completeness::AllCandidates, &[9, 3, 0]);
        assert_eq!(same_chance(&cluster, PoolIx(0), Millis(AT_MS.0 + 60_001), 60_000), None);
        assert_eq!(same_chance(&cluster, PoolIx(1), AT_MS, 60_000), None);
    }
}
