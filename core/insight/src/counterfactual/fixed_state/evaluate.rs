//! One pass over the columns for one setting.

use super::super::sample::{EvaluatedDecision, Sample};
use super::noise::{PARTS, Part, part_of};
use super::outcome::{ChangedDecision, FixedStateOutcome, LoadImbalance, MAX_LISTED_CHANGES, WorkerShare};
use radixscope_model::percentile;
use radixscope_router::pick::{self, round_robin};
use radixscope_router::{RouterMode, RouterSettings, TieBreak};

/// What places requests, the real router included.
#[derive(Clone, Copy)]
enum Placing {
    Actual,
    RoundRobin,
    Cost { prefill_factor: f64, credit: f64, temperature: f64, tie_break: TieBreak },
}

impl Placing {
    fn of(settings: &RouterSettings) -> Self {
        match settings.router_mode {
            RouterMode::RoundRobin => Placing::RoundRobin,
            RouterMode::Kv => Placing::Cost {
                prefill_factor: settings.prefill_factor(),
                credit: settings.device_credit(),
                temperature: settings.router_temperature,
                tie_break: settings.tie_break,
            },
        }
    }
}

/// Buffers for the candidates of one decision, and the sums so far.
struct Pass {
    costs: Vec<f64>,
    chances: Vec<f64>,
    shares: Vec<f64>,
    /// By decision: the slot of the worker drawn.
    drawn: Vec<u16>,
    /// By decision: expected prompt tokens that need no computing, more than with the actual choice.
    saved: Vec<f64>,
    parts: Vec<Part>,
    changed: Vec<ChangedDecision>,
    certain_changes: u64,
    expected_unchanged: f64,
    ties: u64,
    overlap_blocks: f64,
    isl_blocks: f64,
    overlap_decisions: u64,
    saved_tokens: f64,
    prefill_decisions: u64,
}

impl Sample {
    /// What would have become of the decisions under `settings`, each on the state it saw. A credit below the recorded one
    /// favours workers that held more than they had to compute: how much more, recorded prefill blocks of 0 do not say.
    pub fn outcome(&self, settings: &RouterSettings) -> FixedStateOutcome {
        self.pass(Placing::of(settings), Some(*settings))
    }

    /// By decision, expected prompt tokens that need no computing under `settings`, more than with the actual choice.
    pub(super) fn saved_tokens(&self, settings: &RouterSettings) -> Vec<f64> {
        self.pass_each(Placing::of(settings), Some(*settings)).1
    }

    /// What happened, as recorded, in the same figures; nothing changes. Ties are those of the recorded terms.
    pub fn actual(&self) -> FixedStateOutcome {
        self.pass(Placing::Actual, None)
    }

    fn pass(&self, placing: Placing, settings: Option<RouterSettings>) -> FixedStateOutcome {
        self.pass_each(placing, settings).0
    }

    /// The same, and by decision the expected prompt tokens that need no computing, more than with the actual choice.
    fn pass_each(&self, placing: Placing, settings: Option<RouterSettings>) -> (FixedStateOutcome, Vec<f64>) {
        let candidates = self.decisions.iter().map(|judged| judged.candidates().len());
        let most_candidates = candidates.max().unwrap_or(0);
        let mut pass = Pass {
            costs: vec![0.0; most_candidates],
            chances: vec![0.0; most_candidates],
            shares: vec![0.0; self.workers.len()],
            drawn: vec![0; self.len()],
            saved: vec![0.0; self.len()],
            parts: vec![Part::default(); PARTS],
            changed: Vec::new(),
            certain_changes: 0,
            expected_unchanged: 0.0,
            ties: 0,
            overlap_blocks: 0.0,
            isl_blocks: 0.0,
            overlap_decisions: 0,
            saved_tokens: 0.0,
            prefill_decisions: 0,
        };
        for (place, &at) in self.by_start.iter().enumerate() {
            self.decision(placing, at, part_of(place, self.len()), &mut pass);
        }
        let decisions = self.len() as u64;
        let share = |sum: f64| if decisions == 0 { 0.0 } else { sum / decisions as f64 };
        let outcome = FixedStateOutcome {
            settings,
            decisions,
            certain_changes: pass.certain_changes,
            // Sums of chances round; a change less than none would be odd to read.
            expected_changes: (decisions as f64 - pass.expected_unchanged).max(0.0),
            changed: pass.changed,
            ties: pass.ties,
            overlap_share: (pass.isl_blocks > 0.0).then(|| pass.overlap_blocks / pass.isl_blocks),
            overlap_decisions: pass.overlap_decisions,
            prefill_saved_tokens: (pass.prefill_decisions > 0).then_some(pass.saved_tokens),
            prefill_decisions: pass.prefill_decisions,
            shares: self
                .workers
                .iter()
                .zip(&pass.shares)
                .map(|(&worker, &sum)| WorkerShare { worker, share: share(sum) })
                .collect(),
            // Of the requests of one worker alone nothing follows about loads beside each other.
            imbalance: if self.is_of_one_worker { None } else { self.imbalance(&pass.drawn) },
            parts: pass.parts,
        };
        (outcome, pass.saved)
    }

    fn decision(&self, placing: Placing, at: u32, part: usize, pass: &mut Pass) {
        let judged = &self.decisions[at as usize];
        let decision = &judged.decision;
        let recorded = self.settings_of(judged);
        let all = judged.candidates();
        let len = all.len();
        let slots = &self.slots[all.clone()];
        let (costs, chances) = (&mut pass.costs[..len], &mut pass.chances[..len]);
        let actual = usize::from(decision.chosen);

        let (factor, credit) = match placing {
            Placing::Cost { prefill_factor, credit, .. } => (prefill_factor, credit),
            _ => (recorded.prefill_factor(), recorded.device_credit()),
        };
        self.costs(judged, factor, credit, costs);
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        pass.ties += u64::from(costs.iter().filter(|cost| **cost == least).count() > 1);
        match placing {
            Placing::Cost { temperature, tie_break, .. } => {
                let tree_sizes = &self.tree_size_blocks[all.clone()];
                pick::probabilities(costs, temperature, tie_break, |at| tree_sizes[at], chances);
            }
            Placing::Actual => certainly(actual, chances),
            Placing::RoundRobin => {
                let workers = slots.iter().map(|&slot| self.workers[usize::from(slot)]);
                certainly(round_robin(workers, decision.turn).unwrap_or(actual), chances);
            }
        }

        let mut overlap = 0.0;
        for ((chance, slot), held) in chances.iter().zip(slots).zip(&self.overlap_blocks[all.clone()]) {
            pass.shares[usize::from(*slot)] += chance;
            overlap += chance * held;
        }
        if let Some(isl_blocks) = decision.isl_blocks().filter(|&blocks| blocks > 0) {
            pass.overlap_blocks += overlap;
            pass.isl_blocks += isl_blocks as f64;
            pass.overlap_decisions += 1;
            pass.parts[part].overlap_blocks += overlap;
            pass.parts[part].isl_blocks += isl_blocks as f64;
        }
        let overlaps = &self.overlap_blocks[all.clone()];
        if let Some(actual_tokens) = decision.cached_tokens(overlaps[actual]) {
            let cached = |overlap: f64| decision.cached_tokens(overlap).unwrap_or(0.0);
            let expected: f64 =
                overlaps.iter().zip(&*chances).map(|(&overlap, chance)| chance * cached(overlap)).sum();
            let saved = expected - actual_tokens;
            pass.saved[at as usize] = saved;
            pass.saved_tokens += saved;
            pass.prefill_decisions += 1;
        }
        let actual_probability = chances[actual];
        pass.expected_unchanged += actual_probability;
        pass.certain_changes += u64::from(actual_probability == 0.0);
        let (mut likeliest, mut chance) = (0, 0.0);
        for (at, &c) in chances.iter().enumerate() {
            if c > chance {
                (likeliest, chance) = (at, c);
            }
        }
        if actual_probability < chance && pass.changed.len() < MAX_LISTED_CHANGES {
            let worker = |at: usize| self.workers[usize::from(slots[at])];
            pass.changed.push(ChangedDecision {
                decision: decision.id,
                from: worker(actual),
                to: worker(likeliest),
                actual_probability,
                from_cost: costs[actual],
                to_cost: costs[likeliest],
            });
        }
        let drawn = pick::draw(chances, uniform(at)).unwrap_or(actual);
        pass.drawn[at as usize] = slots[drawn];
    }

    /// Costs of a decision's candidates at another factor and credit. With the recorded credit nothing is added to the
    /// recorded blocks, so that the same setting gives the same bits.
    fn costs(&self, judged: &EvaluatedDecision, factor: f64, credit: f64, out: &mut [f64]) {
        let all = judged.candidates();
        let more = self.settings_of(judged).device_credit() - credit;
        let columns = self.overlap_blocks[all.clone()]
            .iter()
            .zip(&self.prefill_blocks[all.clone()])
            .zip(&self.decode_blocks[all]);
        for (cost, ((overlap, prefill), decode)) in out.iter_mut().zip(columns) {
            *cost = factor * (prefill + more * overlap).max(0.0) + decode;
        }
    }

    fn imbalance(&self, drawn: &[u16]) -> Option<LoadImbalance> {
        let mut in_flight = vec![0_u32; self.workers.len()];
        let mut differences: Vec<u32> = Vec::with_capacity(self.len());
        let mut ends = self.by_end.iter().map(|&at| at as usize).peekable();
        for &at in &self.by_start {
            let judged = &self.decisions[at as usize];
            let now = Some(judged.decision.at_ms);
            while let Some(ended) = ends.next_if(|&at| self.decisions[at].decision.ended_ms <= now) {
                in_flight[usize::from(drawn[ended])] -= 1;
            }
            if judged.decision.is_in_flight() {
                in_flight[usize::from(drawn[at as usize])] += 1;
            }
            let candidates = judged.candidates();
            if candidates.len() > 1 {
                let counts = self.slots[candidates].iter().map(|&slot| in_flight[usize::from(slot)]);
                let (least, most) = counts.fold((u32::MAX, 0), |(l, m), n| (l.min(n), m.max(n)));
                differences.push(most - least);
            }
        }
        if self.by_end.is_empty() || differences.is_empty() {
            return None;
        }
        let half = differences.len() / 2;
        let p95_of = |part: &[u32]| {
            let mut part = part.to_vec();
            let rank = percentile::index(part.len(), 95)?;
            Some(*part.select_nth_unstable(rank).1)
        };
        let halves = (p95_of(&differences[..half]), p95_of(&differences[half..]));
        let mean = differences.iter().map(|&s| f64::from(s)).sum::<f64>() / differences.len() as f64;
        let rank = percentile::index(differences.len(), 95)?;
        let (_, &mut p95, above) = differences.select_nth_unstable(rank);
        let most = above.iter().copied().max().unwrap_or(p95);
        let p95_halves = [halves.0.unwrap_or(p95), halves.1.unwrap_or(p95)];
        Some(LoadImbalance { mean, p95, most, ended_decisions: self.by_end.len() as u64, p95_halves })
    }
}

fn certainly(chosen: usize, chances: &mut [f64]) {
    chances.fill(0.0);
    chances[chosen] = 1.0;
}

/// A number in `[0, 1)` that depends on the decision alone.
fn uniform(decision: u32) -> f64 {
    (mixed(u64::from(decision)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Bits that look random and depend on `place` alone (SplitMix64).
pub(super) const fn mixed(place: u64) -> u64 {
    let mut z = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
