//! How fast prompts are computed: the time to first token of prompts by their uncached tokens, and when it changed.
//!
//! Prompts of like length are compared with each other only, so that another mix of prompts or a better hit rate is no
//! change. Of each length the fastest quarter counts: a queue delays some requests, a slower GPU all of them. Knows no
//! threshold of a rule.

use std::collections::{BTreeMap, VecDeque};

use super::view::median;
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::percentile;
use radixscope_model::record::Role;
use radixscope_state::cluster::{Cluster, DecisionEntry};

/// How far back prompts are retained: what lasts longer is what is usual.
const REACH_MS: u64 = 3_600_000;
/// A request without a first token after this time is left out: what it waits for is no computing.
const FINAL_AFTER_MS: u64 = 15_000;
/// Decisions looked at once a second, the latest: 270 a second over [`FINAL_AFTER_MS`]. With more, later first tokens are missed.
const MAX_SCANNED: usize = 4_096;
/// Prompts retained of five seconds; more would not change the result.
const RETAINED_EACH_STEP: usize = 16;
/// Steps in which prompts are thinned.
const STEP_MS: u64 = 5_000;
/// Most prompts retained: an hour of them.
const MAX_RETAINED: usize = RETAINED_EACH_STEP * (REACH_MS / STEP_MS) as usize;
/// The change is looked for again after this time.
const LOOK_EVERY_MS: u64 = 3_000;
/// Shorter prompts take as long as a step whatever is computed.
const LONG_TOKENS: u64 = 384;
/// Prompts whose uncached tokens are within this factor are alike.
const LIKE: f64 = 1.5;
/// Long prompts of one kind before a change and after it that a comparison needs.
const MIN_BEFORE: usize = 24;
/// See [`MIN_BEFORE`].
const MIN_AFTER: usize = 12;
/// Long prompts after a change that a worker alone needs: a burst on it is over by then.
const MIN_AFTER_ALONE: usize = 24;
/// Standard errors that a rise needs. The best moment of healthy traffic reaches 4, prompts that take 3 times as long 10.
const SIGNIFICANT: f64 = 6.0;
/// Prompts alike on each side that a comparison needs.
const MIN_ALIKE: usize = 4;
/// A moment found again within this time is the same one.
const SAME_MS: u64 = 15_000;
/// Times that rose less did not: the best moment of any noise is no change.
const LEAST_RISE: f64 = 1.3;
/// Standard deviation of the logarithm of times, at least: times of one kind differ by their lengths alone.
const LEAST_NOISE: f64 = 0.05;

/// One prompt.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Prompt {
    at_ms: Millis,
    pool: PoolIx,
    worker: WorkerIx,
    uncached_tokens: u64,
    /// And those of prompts that were thinned out beside it.
    represented_tokens: u64,
    ttft_ms: f64,
    is_measured: bool,
}

/// The pace of prompts before a moment and after it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PaceChange {
    /// Between the last prompt before it and the first one after it.
    pub(super) at_ms: Millis,
    /// Whose prompts; ascending.
    pub(super) workers: Vec<WorkerIx>,
    /// Time to first token after it, as a multiple of that before it, of prompts alike.
    pub(super) factor: f64,
    /// Milliseconds a 1,000 uncached tokens, before and after; of the fastest quarter.
    pub(super) ms_per_1000: (f64, f64),
    /// Long prompts before and after.
    pub(super) prompts: (usize, usize),
    /// By how much longer short prompts take after it, milliseconds: what is no computing of prompts; `None`: unknown.
    pub(super) extra_of_short_ms: Option<f64>,
    /// The same of long prompts.
    pub(super) extra_of_long_ms: f64,
    /// Uncached tokens a second, before and after: what there is to compute.
    pub(super) tokens_per_s: (f64, f64),
}

/// Prompts of the last hour, and the latest change of each pool.
#[derive(Default)]
pub(super) struct Pace {
    /// By time of decision, final.
    retained: VecDeque<Prompt>,
    /// Those of the last seconds.
    fresh: Vec<Prompt>,
    /// Up to which decision prompts are final.
    final_until: Millis,
    looked_ms: Option<Millis>,
    changes: BTreeMap<PoolIx, PaceChange>,
}

impl Pace {
    pub(super) fn sample(&mut self, cluster: &Cluster, now: Millis) {
        let horizon = Millis(now.0.saturating_sub(FINAL_AFTER_MS));
        self.fresh.clear();
        let mut final_prompts = Vec::new();
        for decided in cluster.decisions().newest_first().take(MAX_SCANNED) {
            let at_ms = decided.decided_ms();
            if at_ms <= self.final_until && now.since(decided.at_ms) > 2 * FINAL_AFTER_MS {
                break;
            }
            let Some(prompt) = prompt(cluster, decided) else { continue };
            if at_ms > horizon {
                self.fresh.push(prompt);
            } else if at_ms > self.final_until {
                final_prompts.push(prompt);
            }
        }
        self.fresh.sort_by_key(|prompt| prompt.at_ms);
        final_prompts.sort_by_key(|prompt| prompt.at_ms);
        final_prompts.into_iter().for_each(|prompt| self.keep(prompt));
        self.final_until = self.final_until.max(horizon);
        while self.retained.front().is_some_and(|first| now.since(first.at_ms) > REACH_MS)
            || self.retained.len() > MAX_RETAINED
        {
            self.retained.pop_front();
        }
        if self.looked_ms.is_none_or(|last| now.since(last) >= LOOK_EVERY_MS) {
            self.looked_ms = Some(now);
            self.evaluate();
        }
    }

    /// Where time between the decision and the first token is known of too few prompts, long ones of the last `ms`: the
    /// fastest quarter's milliseconds a 1,000 uncached tokens, and how many prompts.
    pub(super) fn now(&self, now: Millis, ms: u64) -> Option<(f64, usize)> {
        let recent = self.all().filter(|prompt| prompt.is_long() && now.since(prompt.at_ms) <= ms);
        let paces: Vec<f64> = recent.map(|prompt| prompt.ms_per_1000()).collect();
        let count = paces.len();
        quarter(paces).filter(|_| count >= MIN_AFTER).map(|pace| (pace, count))
    }

    /// The latest change of a pool's pace that still lasts.
    pub(super) fn change(&self, pool: PoolIx) -> Option<&PaceChange> {
        self.changes.get(&pool)
    }

    fn all(&self) -> impl Iterator<Item = &Prompt> {
        self.retained.iter().chain(&self.fresh)
    }

    fn keep(&mut self, prompt: Prompt) {
        let step = prompt.at_ms.0 / STEP_MS;
        // Short prompts are many and are only compared with: long ones go first.
        let same = self.retained.iter().rev().take_while(|retained| retained.at_ms.0 / STEP_MS == step);
        let alike = same.filter(|retained| retained.is_long() == prompt.is_long()).count();
        if alike < RETAINED_EACH_STEP / 2 {
            self.retained.push_back(prompt);
            return;
        }
        // One that is left out was computed all the same.
        let same = self.retained.iter_mut().rev().take_while(|retained| retained.at_ms.0 / STEP_MS == step);
        let of_pool = same.filter(|retained| retained.pool == prompt.pool);
        if let Some(beside) = of_pool.max_by_key(|retained| retained.worker == prompt.worker) {
            beside.represented_tokens += prompt.uncached_tokens;
        }
    }

    fn evaluate(&mut self) {
        // A source that came or went gives other times of the same prompts.
        let is_measured = self.all().last().is_some_and(|last| last.is_measured);
        let mut pools: BTreeMap<PoolIx, Vec<Prompt>> = BTreeMap::new();
        for prompt in self.all().filter(|prompt| prompt.is_measured == is_measured) {
            pools.entry(prompt.pool).or_default().push(*prompt);
        }
        let found: BTreeMap<PoolIx, PaceChange> =
            pools.iter().filter_map(|(&pool, prompts)| Some((pool, slowest_change(prompts)?))).collect();
        let before = std::mem::replace(&mut self.changes, found);
        for (pool, change) in &mut self.changes {
            let same = before.get(pool).filter(|known| known.at_ms.0.abs_diff(change.at_ms.0) <= SAME_MS);
            change.at_ms = same.map_or(change.at_ms, |known| known.at_ms);
        }
    }
}

impl Prompt {
    const fn is_long(&self) -> bool {
        self.uncached_tokens >= LONG_TOKENS
    }

    fn ms_per_1000(&self) -> f64 {
        self.ttft_ms / self.uncached_tokens.max(1) as f64 * 1_000.0
    }

    /// Prompts of one kind are alike.
    fn kind(&self) -> i32 {
        (self.uncached_tokens.max(1) as f64).log(LIKE) as i32
    }
}

/// A prompt whose first token came; `None`: something of it is not known.
fn prompt(cluster: &Cluster, decided: &DecisionEntry) -> Option<Prompt> {
    let decision = &decided.decision;
    let only_decodes = cluster.role(decided.pool).is_some_and(|(role, _)| role == Role::Decode);
    if only_decodes || decided.ignores_cache || decision.dispatched == Some(false) {
        return None;
    }
    let block = u64::from(decision.block_size_tokens?);
    let prompt_tokens = decision.isl_tokens.or_else(|| decision.isl_blocks?.checked_mul(block))?;
    let cached = decided.held_blocks()?.saturating_mul(block);
    let (ttft_ms, is_measured) = decided.time_to_first_token_ms()?;
    // The last token is computed even if all are cached.
    let uncached_tokens = prompt_tokens.saturating_sub(cached).max(1);
    Some(Prompt {
        at_ms: decided.decided_ms(),
        pool: decided.pool,
        worker: decision.worker,
        uncached_tokens,
        represented_tokens: uncached_tokens,
        ttft_ms,
        is_measured,
    })
}

/// The change of all workers, else that of the worker whose prompts became slowest. `prompts` ascend.
fn slowest_change(prompts: &[Prompt]) -> Option<PaceChange> {
    let of = |worker: WorkerIx| -> Vec<Prompt> {
        prompts.iter().filter(|prompt| prompt.worker == worker).copied().collect()
    };
    let workers: std::collections::BTreeSet<WorkerIx> = prompts.iter().map(|prompt| prompt.worker).collect();
    // Where only some workers are slow, the fastest quarter of all is as fast as before.
    if let Some(all) = change(prompts, MIN_AFTER) {
        let slower = |&worker: &WorkerIx| {
            let (before, after): (Vec<_>, Vec<_>) = of(worker).into_iter().partition(|p| p.at_ms < all.at_ms);
            Sides::of(&before, &after).is_none_or(|sides| sides.factor > all.factor.sqrt())
        };
        let workers = workers.into_iter().filter(slower).collect();
        return Some(PaceChange { workers, ..all });
    }
    let each = workers.into_iter().filter_map(|worker| {
        let change = change(&of(worker), MIN_AFTER_ALONE)?;
        Some(PaceChange { workers: vec![worker], ..change })
    });
    each.max_by(|a, b| a.factor.total_cmp(&b.factor))
}

/// The moment at which times of prompts alike rose most, and what they are before and after it. After it have to be
/// `min_after` long prompts.
fn change(prompts: &[Prompt], min_after: usize) -> Option<PaceChange> {
    let long: Vec<&Prompt> = prompts.iter().filter(|prompt| prompt.is_long()).collect();
    let (at, significance) = rise(&long, min_after)?;
    if significance < SIGNIFICANT {
        return None;
    }
    let at_ms = long[at].at_ms;
    let (before, after): (Vec<Prompt>, Vec<Prompt>) = prompts.iter().partition(|p| p.at_ms < at_ms);
    let sides = Sides::of(&before, &after)?;
    // It has to last: those that came last are slow too.
    let latest: Vec<Prompt> = long[long.len() - MIN_AFTER..].iter().map(|prompt| **prompt).collect();
    let is_over = Sides::of(&before, &latest).is_some_and(|latest| latest.factor < sides.factor.sqrt());
    (!is_over && sides.factor >= LEAST_RISE).then_some(PaceChange {
        at_ms,
        workers: Vec::new(),
        factor: sides.factor,
        ms_per_1000: sides.ms_per_1000,
        prompts: sides.prompts,
        extra_of_short_ms: sides.extra_of_short_ms,
        extra_of_long_ms: sides.extra_of_long_ms,
        tokens_per_s: (tokens_per_s(&before), tokens_per_s(&after)),
    })
}

/// Uncached tokens a second of prompts that ascend.
fn tokens_per_s(prompts: &[Prompt]) -> f64 {
    let span_ms =
        prompts.first().zip(prompts.last()).map_or(0, |(first, last)| last.at_ms.since(first.at_ms));
    let tokens: u64 = prompts.iter().map(|prompt| prompt.represented_tokens).sum();
    tokens as f64 / (span_ms.max(1_000) as f64 / 1e3)
}

/// Place of the first prompt after the moment at which the logarithm of times, each against the median of its kind, rose
/// most for its noise, and by how many standard errors. `None`: too few prompts.
fn rise(long: &[&Prompt], min_after: usize) -> Option<(usize, f64)> {
    if long.len() < MIN_BEFORE + min_after {
        return None;
    }
    let mut kinds: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
    for prompt in long {
        kinds.entry(prompt.kind()).or_default().push(prompt.ttft_ms.max(1.0).ln());
    }
    let usual: BTreeMap<i32, f64> =
        kinds.into_iter().filter_map(|(kind, times)| Some((kind, median(times)?))).collect();
    // One request that waits for ever must not decide.
    let above = |prompt: &&Prompt| {
        (prompt.ttft_ms.max(1.0).ln() - usual.get(&prompt.kind()).copied().unwrap_or(0.0)).clamp(-1.5, 1.5)
    };
    let values: Vec<f64> = long.iter().map(above).collect();
    let (count, sum) = (values.len() as f64, values.iter().sum::<f64>());
    let mut so_far = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (at, value) in values.iter().enumerate() {
        if at >= MIN_BEFORE && values.len() - at >= min_after {
            let (before, after) = (at as f64, count - at as f64);
            let rise = ((sum - so_far) / after - so_far / before) * (before * after / count).sqrt();
            if rise > 0.0 && best.is_none_or(|(_, most)| rise > most) {
                best = Some((at, rise));
            }
        }
        so_far += value;
    }
    let (at, most) = best?;
    let (before, after) = values.split_at(at);
    let noise = ((squares(before) + squares(after)) / (count - 2.0)).sqrt();
    Some((at, most / noise.max(LEAST_NOISE)))
}

/// Squared distances from the mean, summed.
fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Prompts before and after a moment, compared.
struct Sides {
    factor: f64,
    ms_per_1000: (f64, f64),
    prompts: (usize, usize),
    extra_of_short_ms: Option<f64>,
    extra_of_long_ms: f64,
}

impl Sides {
    fn of(before: &[Prompt], after: &[Prompt]) -> Option<Self> {
        let long = |of: &[Prompt]| of.iter().filter(|prompt| prompt.is_long()).copied().collect::<Vec<_>>();
        let short = |of: &[Prompt]| of.iter().filter(|prompt| !prompt.is_long()).copied().collect::<Vec<_>>();
        let (long_before, long_after) = (long(before), long(after));
        let alike = alike(&long_before, &long_after);
        let factor = weighted_median(alike.iter().map(|of| (of.after_ms / of.before_ms, of.prompts)))?;
        let extra = weighted_median(alike.iter().map(|of| (of.after_ms - of.before_ms, of.prompts)))?;
        let of_short = alike_ms(&short(before), &short(after));
        let pace = |of: &[Prompt]| quarter(of.iter().map(Prompt::ms_per_1000).collect());
        Some(Self {
            factor,
            ms_per_1000: (pace(&long_before)?, pace(&long_after)?),
            prompts: (long_before.len(), long_after.len()),
            extra_of_short_ms: of_short,
            extra_of_long_ms: extra,
        })
    }
}

/// Prompts of one kind before and after.
struct ComparablePrompts {
    before_ms: f64,
    after_ms: f64,
    prompts: usize,
}

fn alike(before: &[Prompt], after: &[Prompt]) -> Vec<ComparablePrompts> {
    let mut kinds: BTreeMap<i32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    before.iter().for_each(|prompt| kinds.entry(prompt.kind()).or_default().0.push(prompt.ttft_ms));
    after.iter().for_each(|prompt| kinds.entry(prompt.kind()).or_default().1.push(prompt.ttft_ms));
    let compared = kinds.into_values().filter(|(b, a)| b.len() >= MIN_ALIKE && a.len() >= MIN_ALIKE);
    let of = |(before, after): (Vec<f64>, Vec<f64>)| {
        let prompts = before.len().min(after.len());
        Some(ComparablePrompts { before_ms: quarter(before)?.max(1.0), after_ms: quarter(after)?, prompts })
    };
    compared.filter_map(of).collect()
}

fn alike_ms(before: &[Prompt], after: &[Prompt]) -> Option<f64> {
    weighted_median(alike(before, after).iter().map(|of| (of.after_ms - of.before_ms, of.prompts)))
}

/// What the fastest quarter takes at most.
fn quarter(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    percentile::nearest_rank(&times, 25)
}

fn weighted_median(values: impl Iterator<Item = (f64, usize)>) -> Option<f64> {
    let mut values: Vec<(f64, usize)> = values.collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<usize>().div_ceil(2);
    let mut so_far = 0;
    let is_half = |&&(_, weight): &&(f64, usize)| {
        so_far += weight;
        so_far >= half
    };
    values.iter().find(is_half).map(|&(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One prompt a second on each of two workers, by turns long and short; `ms_per_1000` gives the pace of one.
    fn prompts(
        seconds: u64,
        ms_per_1000: impl Fn(u64, u16) -> f64,
        wait_ms: impl Fn(u64) -> f64,
    ) -> Vec<Prompt> {
        let of = |second: u64, worker: u16| {
            let uncached_tokens = [150, 700, 1_100, 2_600, 160, 3_500][(second % 6) as usize];
            Prompt {
                at_ms: Millis(1_000 * second),
                pool: PoolIx(0),
                worker: WorkerIx(worker.into()),
                uncached_tokens,
                represented_tokens: uncached_tokens,
                ttft_ms: 60.0
                    + wait_ms(second)
                    + uncached_tokens as f64 * ms_per_1000(second, worker) / 1_000.0,
                is_measured: false,
            }
        };
        (0..seconds).flat_map(|second| [of(second, 0), of(second, 1)]).collect()
    }

    #[test]
    fn the_moment_at_which_prompts_became_slower_is_found_with_the_pace_on_both_sides() {
        let all = prompts(150, |second, _| if second < 120 { 110.0 } else { 440.0 }, |_| 0.0);
        let change = slowest_change(&all).unwrap();
        assert!(change.at_ms.0.abs_diff(120_000) <= 2_000, "{change:?}");
        assert!((3.0..4.2).contains(&change.factor), "{change:?}");
        assert_eq!(change.workers, [WorkerIx(0), WorkerIx(1)]);
        assert!(change.extra_of_long_ms > 3.0 * change.extra_of_short_ms.unwrap(), "{change:?}");
    }

    #[test]
    fn one_slow_worker_is_named_alone() {
        let slow = |second: u64, worker| if second >= 120 && worker == 1 { 440.0 } else { 110.0 };
        let change = slowest_change(&prompts(180, slow, |_| 0.0)).unwrap();
        assert_eq!(change.workers, [WorkerIx(1)], "{change:?}");
        assert!(change.factor > 2.5 && change.at_ms.0.abs_diff(120_000) <= 2_000, "{change:?}");
    }

    #[test]
    fn a_burst_on_one_worker_is_no_change_yet() {
        let burst = |second: u64, worker| if second >= 160 && worker == 1 { 440.0 } else { 110.0 };
        assert_eq!(slowest_change(&prompts(180, burst, |_| 0.0)), None);
        // By chance those that came last took longer.
        let noise = |second: u64, worker| {
            let chance = (second * 2_654_435_761 + u64::from(worker) * 40_503) % 1_009;
            60.0 + chance as f64 / 1_009.0 * if second >= 150 && worker == 1 { 260.0 } else { 200.0 }
        };
        assert_eq!(slowest_change(&prompts(200, noise, |_| 0.0)), None);
    }

    #[test]
    fn prompts_that_are_thinned_out_were_computed_too() {
        let mut pace = Pace::default();
        let all = prompts(10, |_, _| 110.0, |_| 0.0);
        for _ in 0..20 {
            all.iter().filter(|prompt| prompt.at_ms.0 < 5_000).for_each(|prompt| pace.keep(*prompt));
        }
        let received: u64 = all.iter().filter(|p| p.at_ms.0 < 5_000).map(|p| 20 * p.uncached_tokens).sum();
        assert_eq!(pace.retained.iter().map(|prompt| prompt.represented_tokens).sum::<u64>(), received);
        assert!(pace.retained.len() <= RETAINED_EACH_STEP);
    }

    #[test]
    fn a_queue_delays_short_prompts_as_much_as_long_ones() {
        let wait = |second: u64| if second < 120 { 0.0 } else { 3_000.0 };
        let change = slowest_change(&prompts(150, |_, _| 110.0, wait)).unwrap();
        assert!(change.extra_of_long_ms < 1.5 * change.extra_of_short_ms.unwrap(), "{change:?}");
    }

    #[test]
    fn other_lengths_are_no_change_and_what_is_over_is_none() {
        let mut all = prompts(240, |_, _| 110.0, |_| 0.0);
        all.retain(|prompt| prompt.at_ms.0 < 120_000 || prompt.uncached_tokens < 1_000);
        assert!(slowest_change(&all).is_none_or(|change| change.factor < 1.1));
        let for_a_minute = |second: u64, _| if (120..180).contains(&second) { 440.0 } else { 110.0 };
        assert!(
            slowest_change(&prompts(300, for_a_minute, |_| 0.0)).is_none_or(|change| change.factor < 1.5)
        );
    }
}
