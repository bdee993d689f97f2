//! A decision's candidates over one prompt: for each what it had cached of the prompt, what it would have computed, its load and its
//! cost, the chosen one first.

use radixscope_model::id::WorkerIx;
use radixscope_state::cluster::{CostParts, DecisionEntry};

/// Candidates listed at most: the chosen one and the cheapest.
pub const MOST: usize = 24;

/// One candidate.
#[derive(Clone, PartialEq, Debug)]
pub struct DuelLane {
    /// Who.
    pub worker: WorkerIx,
    /// Blocks of the prompt that it had cached on its device, and beyond those in lower tiers.
    pub device: u64,
    /// See `device`.
    pub lower: u64,
    /// Blocks of the prompt that it would have computed; `None`: the prompt's length is unknown, or it computes none of it.
    pub computed: Option<u64>,
    /// Blocks of its active requests, this one included.
    pub load: f64,
    /// What was compared.
    pub cost: f64,
    /// How much more that is than the chosen one's; below 0: less.
    pub beyond_chosen: f64,
    /// Whether it was chosen.
    pub is_chosen: bool,
    /// The cost as a sum, as text.
    pub sum: String,
}

/// All of them on one scale.
#[derive(Clone, PartialEq, Debug)]
pub struct Duel {
    /// Blocks of the prompt; where that is unknown, the most that any candidate had cached.
    pub prompt: u64,
    /// The greatest load.
    pub most_load: f64,
    /// The chosen one, then by cost.
    pub lanes: Vec<DuelLane>,
    /// Candidates that are not listed.
    pub left_out: usize,
}

impl Duel {
    /// Of a decision whose candidates are known.
    pub fn of(decided: &DecisionEntry) -> Option<Self> {
        let mut parts = decided.cost_parts();
        // Of those that follow, the order is that of their cost.
        parts.sort_by_key(|part| !part.is_chosen);
        let left_out = parts.len().saturating_sub(MOST);
        parts.truncate(MOST);
        let chosen_cost = decided.chosen().map(|chosen| chosen.cost);
        let lane = |part: &CostParts| {
            let candidate = part.candidate;
            let (device, lower) = (
                u64::from(candidate.overlap_blocks),
                u64::from(candidate.host_blocks) + u64::from(candidate.disk_blocks),
            );
            // A decode worker is given the prompt's blocks.
            let prompt = decided.decision.isl_blocks.filter(|_| !decided.ignores_cache);
            DuelLane {
                worker: candidate.worker,
                device,
                lower,
                computed: prompt.map(|prompt| prompt.saturating_sub(device + lower)),
                load: candidate.decode_blocks,
                cost: candidate.cost,
                beyond_chosen: chosen_cost.map_or(0.0, |chosen| candidate.cost - chosen),
                is_chosen: part.is_chosen,
                sum: part.sum(),
            }
        };
        let lanes: Vec<DuelLane> = parts.iter().map(lane).collect();
        let cached = lanes.iter().map(|lane| lane.device + lane.lower).max()?;
        let most_load =
            lanes.iter().map(|lane| lane.load).filter(|load| load.is_finite()).fold(0.0, f64::max);
        let prompt = decided.decision.isl_blocks.map_or(cached, |prompt| prompt.max(cached));
        Some(Self { prompt, most_load, lanes, left_out })
    }
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::{DecisionId, Millis, Seq, Slot, Worker};
    use radixscope_model::record::{Candidate, Decision, DecisionSource, Entry, Record};
    use radixscope_router::Formula;
    use radixscope_state::cluster::Cluster;

    use super::*;

    const W: [WorkerIx; 3] = [WorkerIx::first(Slot(0)), WorkerIx::first(Slot(1)), WorkerIx::first(Slot(2))];

    fn candidate(at: usize, (held, host): (u32, u32), (prefill, decode): (f64, f64)) -> Candidate {
        Candidate {
            worker: W[at],
            overlap_blocks: held,
            host_blocks: host,
            disk_blocks: 0,
            prefill_blocks: prefill,
            decode_blocks: decode,
            cost: prefill + decode,
            tree_size: None,
        }
    }

    /// The second of three was chosen for a prompt of 100 blocks.
    fn decided(change: impl FnOnce(&mut Decision)) -> DecisionEntry {
        let mut cluster = Cluster::default();
        let mut fold = |record| {
            let seq = Seq(cluster.seq().0 + 1);
            cluster.fold(seq, &Entry { at_ms: Millis(1_800_000_000_000), record });
        };
        for (worker, id) in W.into_iter().zip(7..) {
            fold(Record::new_worker(worker, Worker::new(id, 0), "dynamo", "backend"));
        }
        let mut decision = Decision::new(DecisionId(1), W[1], DecisionSource::Log);
        (decision.isl_blocks, decision.formula, decision.prefill_factor) =
            (Some(100), Some(Formula::A), Some(1.0));
        decision.candidates = vec![
            candidate(0, (20, 0), (80.0, 10.0)),
            candidate(1, (60, 15), (40.0, 5.0)),
            candidate(2, (0, 0), (100.0, 40.0)),
        ];
        change(&mut decision);
        fold(Record::Decision(Box::new(decision)));
        cluster.decisions().get(DecisionId(1)).expect("it was folded").clone()
    }

    #[test]
    fn each_candidate_says_what_it_had_and_would_have_computed_the_chosen_one_first() {
        let duel = Duel::of(&decided(|_| ())).expect("candidates");
        let lanes: Vec<_> = duel
            .lanes
            .iter()
            .map(|lane| (lane.worker, lane.device, lane.lower, lane.computed, lane.beyond_chosen))
            .collect();
        assert_eq!(
            lanes,
            [(W[1], 60, 15, Some(25), 0.0), (W[0], 20, 0, Some(80), 45.0), (W[2], 0, 0, Some(100), 95.0)]
        );
        assert_eq!((duel.prompt, duel.most_load, duel.left_out), (100, 40.0, 0));
        assert!(duel.lanes[0].is_chosen && !duel.lanes[1].is_chosen);
        assert_eq!(duel.lanes[1].sum, "90 = 1.0 × 80 prefill + 10 decode");
    }

    #[test]
    fn a_choice_that_cost_more_is_first_all_the_same() {
        let duel = Duel::of(&decided(|decision| decision.worker = W[2])).expect("candidates");
        assert_eq!(duel.lanes.iter().map(|lane| lane.worker).collect::<Vec<_>>(), [W[2], W[1], W[0]]);
        assert_eq!(duel.lanes[1].beyond_chosen, -95.0);
    }

    #[test]
    fn what_is_unknown_is_not_made_up() {
        let duel = Duel::of(&decided(|decision| decision.isl_blocks = None)).expect("candidates");
        assert_eq!(duel.prompt, 75, "as much as is known of it");
        assert!(duel.lanes.iter().all(|lane| lane.computed.is_none()));
        assert_eq!(Duel::of(&decided(|decision| decision.candidates.clear())), None);
    }

    #[test]
    fn of_many_candidates_the_chosen_one_is_among_the_listed() {
        let many = decided(|decision| {
            decision.candidates.extend(std::iter::repeat_n(candidate(0, (20, 0), (1.0, 1.0)), 30));
            decision.worker = W[2];
        });
        let duel = Duel::of(&many).expect("candidates");
        assert_eq!((duel.lanes.len(), duel.left_out), (MOST, 33 - MOST));
        assert_eq!(duel.lanes[0].worker, W[2]);
    }
}
