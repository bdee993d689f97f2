//! The model's times fitted to what was measured of the requests it plays, and how far it is off where it was not fitted.
//!
//! # How it works
//!
//! Outputs of unknown length get the length that lasts as long in the model as it really did; where lengths are known,
//! the model's steps are stretched instead. Then the recorded arrivals are played with prompts computed slower and
//! faster; each run gives a time to the first token for every request. For one half of the window the run is chosen,
//! and a constant beside it, whose times are spread most like the measured ones; the other half is what it is judged
//! by, and the other way round. So the error shown is of requests that the fit has not seen, each counted once.
//! Must not know how prompts are retained or how a report is shown.

use serde::{Deserialize, Serialize};

use super::model::Times;
use super::observed::Observed;
use super::played::Played;
use radixscope_model::percentile;
use radixscope_sim::resimulation::{
    MAX_REQUEST_TOKENS, ResimulationError, ResimulationSettings, ServedTimes, SimulatedOutcome, Timing,
};

/// Median times may be off by this share.
pub const P50_TOLERANCE: f64 = 0.15;
/// 95th percentiles may be off by this share.
pub const P95_TOLERANCE: f64 = 0.25;
/// Hit rates may be off by this much, of 1.
pub const HIT_RATE_TOLERANCE: f64 = 0.03;
/// Fewer measured requests are too few for a fit.
pub(super) const LEAST_REQUESTS: usize = 40;

/// Times have a resolution of 1 ms: a difference of 1 ms is not an error.
const CLOCK_MS: f64 = 1.0;
/// Prefill is tried this many times as fast and as slow as in the reference scenario, in powers of two.
const PREFILL_POWERS: std::ops::RangeInclusive<i32> = -5..=3;
/// And then between those, in eighths of a power of two.
const PREFILL_EIGHTHS: [i32; 6] = [-6, -4, -2, 2, 4, 6];
/// Runs that bring the lengths of outputs, or the length of a step, to what was measured.
const DECODE_RUNS: usize = 4;
/// How much of what is missing is made up for in a first such run: longer outputs also make fuller batches, whose steps are
/// longer. Later runs take what the one before came to.
const FIRST_STEP: f64 = 0.4;
/// All runs of a fit, for progress.
pub(super) const RUNS: usize = 2 * (9 + DECODE_RUNS) + DECODE_RUNS + PREFILL_EIGHTHS.len() + 2;
/// Shares of the requests at which measured and modelled times are compared, and what each weighs.
const COMPARED_AT: [(usize, f64); 6] = [(10, 1.0), (25, 1.0), (50, 3.0), (75, 1.0), (90, 1.0), (95, 3.0)];

/// Modelled times beside measured ones of the same requests.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Compared {
    /// As measured.
    pub measured: Times,
    /// By the model, which was fitted to other requests.
    pub simulated: Times,
}

impl Compared {
    /// How far the model's median is off, as a share of the measured one; below 0: too short.
    pub fn p50_error(&self) -> f64 {
        off(self.simulated.p50_ms, self.measured.p50_ms)
    }

    /// The same of the 95th percentile.
    pub fn p95_error(&self) -> f64 {
        off(self.simulated.p95_ms, self.measured.p95_ms)
    }

    fn fits(&self) -> bool {
        self.p50_error().abs() <= P50_TOLERANCE && self.p95_error().abs() <= P95_TOLERANCE
    }
}

fn off(simulated: f64, measured: f64) -> f64 {
    if (simulated - measured).abs() <= CLOCK_MS { 0.0 } else { simulated / measured.max(CLOCK_MS) - 1.0 }
}

/// How well the model fits the measurements of the window.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Calibration {
    /// Requests of the window whose TTFT is known.
    pub requests: u64,
    /// Requests whose outputs got the length that lasts as long as it really did: their lengths are unknown.
    pub answers_by_duration: u64,
    /// Time to the first token.
    pub ttft_ms: Option<Compared>,
    /// Time to the last token. Where the lengths of outputs are unknown it follows from them and is no test.
    pub e2e_ms: Option<Compared>,
    /// Blocks of the prompts that the chosen workers held over all blocks, 0 … 1: as measured, and in the model.
    pub hit_rate: Option<(f64, f64)>,
}

impl Calibration {
    /// Whether absolute figures of the model mean anything for this cluster.
    pub fn fits(&self) -> bool {
        self.ttft_ms.is_some() && self.misfits().is_empty()
    }

    /// What is too far off, as text; empty where all is near enough.
    pub fn misfits(&self) -> Vec<String> {
        let percent = |error: f64| format!("{:+.0} %", error * 100.0).replace('-', "−");
        let mut off: Vec<String> = [("TTFT", &self.ttft_ms), ("end to end", &self.e2e_ms)]
            .into_iter()
            .filter_map(|(name, compared)| Some((name, compared.as_ref().filter(|found| !found.fits())?)))
            .map(|(name, found)| {
                let (p50, p95) = (percent(found.p50_error()), percent(found.p95_error()));
                format!("{name} p50 {p50}, p95 {p95}")
            })
            .collect();
        if self.ttft_ms.is_none() {
            off.push(format!("TTFT measured of {} requests, {LEAST_REQUESTS} are needed", self.requests));
        }
        if let Some((measured, simulated)) = self.hit_rate
            && (simulated - measured).abs() > HIT_RATE_TOLERANCE
        {
            let points = (simulated - measured) * 100.0;
            off.push(format!("KV hit rate {points:+.1} points").replace('-', "−"));
        }
        off
    }
}

/// A run of the model, as far as it is compared.
struct Run {
    timing: Timing,
    /// By arrival, in milliseconds.
    ttft_ms: Vec<Option<f64>>,
}

/// The requests that are played, what was measured of them, and the settings as far as they are fitted.
pub(super) struct Fit<'a, P> {
    pub(super) played: &'a mut Played,
    pub(super) settings: &'a mut ResimulationSettings,
    pub(super) observed: &'a [Observed],
    /// Plays all arrivals once.
    pub(super) play: P,
}

impl<P> Fit<'_, P>
where
    P: FnMut(&Played, &ResimulationSettings) -> Result<SimulatedOutcome, ResimulationError>,
{
    /// Fits the settings' times and the unknown lengths of outputs.
    pub(super) fn fit(mut self) -> Result<Calibration, ResimulationError> {
        let measured = self.measured();
        let first = self.first_counted();
        let counted: Vec<usize> = (first..measured.len()).filter(|&at| measured[at].0.is_some()).collect();
        let mut found = Calibration { requests: counted.len() as u64, ..Calibration::default() };
        if counted.len() < LEAST_REQUESTS {
            let outcome = (self.play)(self.played, self.settings)?;
            found.hit_rate = self.hit_rates(&outcome);
            return Ok(found);
        }
        self.settings.timing = Timing { outside_us: 0, outside_per_token_us: 0, ..Timing::REFERENCE };
        let known: Vec<bool> = self.played.heads.iter().map(|head| head.osl_tokens.is_some()).collect();
        found.answers_by_duration = (known.iter().zip(&measured).skip(first))
            .filter(|(known, (_, decode))| !**known && decode.is_some())
            .count() as u64;
        let mut runs = Vec::new();
        for seen_after_steps in [1, 0] {
            self.settings.timing.seen_after_steps = seen_after_steps;
            self.settings.timing.per_prefill_token_ns = Timing::REFERENCE.per_prefill_token_ns;
            self.decode(&known, &measured)?;
            for power in PREFILL_POWERS {
                self.run_with(f64::from(power), &mut runs)?;
            }
        }
        let (coarse, _) = best(&runs, &measured, &counted).map_or((0, 0.0), |best| best);
        let timing = runs[coarse].timing;
        // The lengths once more, with prompts computed about as fast as they are.
        self.settings.timing = timing;
        self.decode(&known, &measured)?;
        let near = timing.per_prefill_token_ns as f64 / Timing::REFERENCE.per_prefill_token_ns as f64;
        runs.clear();
        for eighths in [0].into_iter().chain(PREFILL_EIGHTHS) {
            self.run_with(near.log2() + f64::from(eighths) / 8.0, &mut runs)?;
        }
        let Some((chosen, outside_ms)) = best(&runs, &measured, &counted) else { return Ok(found) };
        found.ttft_ms = cross_checked(&runs, &measured, &counted);
        self.settings.timing = Timing { outside_us: (outside_ms * 1e3) as u64, ..runs[chosen].timing };
        let outcome = (self.play)(self.played, self.settings)?;
        found.hit_rate = self.hit_rates(&outcome);
        found.e2e_ms = self.end_to_end(&outcome);
        Ok(found)
    }

    fn run_with(&mut self, power: f64, runs: &mut Vec<Run>) -> Result<(), ResimulationError> {
        let prefill = Timing::REFERENCE.per_prefill_token_ns as f64 * power.exp2();
        self.settings.timing.per_prefill_token_ns = prefill.round() as u64;
        let outcome = (self.play)(self.played, self.settings)?;
        let ttft = |times: &Option<ServedTimes>| Some(times.as_ref()?.ttft_us as f64 / 1e3);
        runs.push(Run { timing: self.settings.timing, ttft_ms: outcome.times.iter().map(ttft).collect() });
        Ok(())
    }

    fn first_counted(&self) -> usize {
        self.played.heads.len() * self.settings.warm_up_percent as usize / 100
    }

    fn of(&self, at: usize) -> Option<&Observed> {
        let decision = self.played.heads[at].decision;
        let found = self.observed.binary_search_by_key(&decision, |observed| observed.decision).ok()?;
        self.observed.get(found)
    }

    /// By arrival: time to the first token, and from there to the last one, in milliseconds.
    fn measured(&self) -> Vec<(Option<f64>, Option<f64>)> {
        let of = |at| {
            let observed = self.of(at);
            let ttft_ms = observed.and_then(|observed| observed.ttft_ms);
            let decode_ms = observed.and_then(|observed| Some(observed.e2e_ms? - ttft_ms?));
            (ttft_ms, decode_ms.filter(|&ms| ms >= 0.0))
        };
        (0..self.played.heads.len()).map(of).collect()
    }

    /// Brings the time from the first token to the last to what was measured.
    fn decode(
        &mut self,
        known: &[bool],
        measured: &[(Option<f64>, Option<f64>)],
    ) -> Result<(), ResimulationError> {
        let mut before: Option<(f64, f64)> = None;
        let mut part = FIRST_STEP;
        for _ in 0..DECODE_RUNS {
            let outcome = (self.play)(self.played, self.settings)?;
            let modelled = |at: usize| {
                let times: &ServedTimes = outcome.times.get(at)?.as_ref()?;
                Some((times.e2e_us - times.ttft_us) as f64 / 1e3)
            };
            let both: Vec<(usize, f64, f64)> = (0..measured.len())
                .filter_map(|at| Some((at, measured[at].1?, modelled(at).filter(|&ms| ms > 0.0)?)))
                .collect();
            // All together too short by this, as a logarithm.
            let missing = median(both.iter().map(|(_, m, s)| (m.max(CLOCK_MS) / s).ln()).collect());
            if let Some((missed, made_up)) = before.filter(|(_, made_up)| made_up.abs() > 0.01) {
                let came_of_it = (missed - missing) / made_up;
                part = if came_of_it > 0.0 { (1.0 / came_of_it).clamp(0.2, 1.0) } else { part };
            }
            before = Some((missing, part * missing));
            let damped = (-(1.0 - part) * missing).exp();
            let stretch = Self::stretch(known, &both, damped);
            let timing = &mut self.settings.timing;
            for part in [&mut timing.step_base_ns, &mut timing.per_sequence_ns, &mut timing.per_kv_token_ps] {
                *part = (*part as f64 * stretch).round() as u64;
            }
            self.lengthen(known, &both, damped / stretch);
        }
        Ok(())
    }

    /// By how much the model's steps are too short.
    fn stretch(known: &[bool], both: &[(usize, f64, f64)], damped: f64) -> f64 {
        let ratios: Vec<f64> = both.iter().filter(|(at, ..)| known[*at]).map(|(_, m, s)| m / s).collect();
        let ratio = if ratios.len() >= LEAST_REQUESTS { median(ratios) * damped } else { 1.0 };
        if ratio.is_finite() { ratio.clamp(0.01, 100.0) } else { 1.0 }
    }

    /// Gives outputs of unknown length the one that lasts as long as it really did.
    fn lengthen(&mut self, known: &[bool], both: &[(usize, f64, f64)], damped: f64) {
        let mut lengths = (0_u64, 0_u64);
        for &(at, measured, simulated) in both.iter().filter(|(at, ..)| !known[*at]) {
            let osl = self.played.heads[at].osl_tokens.unwrap_or(self.settings.mean_output_tokens);
            let longer = 1.0 + (f64::from(osl) - 1.0).max(1.0) * measured / simulated * damped;
            let osl = longer.round().clamp(1.0, f64::from(MAX_REQUEST_TOKENS / 4)) as u32;
            self.played.heads[at].osl_tokens = Some(osl);
            lengths = (lengths.0 + 1, lengths.1 + u64::from(osl));
        }
        if let Some(mean) = lengths.1.checked_div(lengths.0) {
            self.settings.mean_output_tokens = mean.max(1) as u32;
        }
    }

    fn hit_rates(&self, outcome: &SimulatedOutcome) -> Option<(f64, f64)> {
        let known =
            (self.first_counted()..self.played.heads.len()).filter_map(|at| self.of(at)?.overlap_blocks);
        let (held, all) = known.fold((0, 0), |(held, all), (overlap, blocks)| {
            (held + u64::from(overlap.min(blocks)), all + u64::from(blocks))
        });
        Some((held as f64 / all as f64, outcome.overlap_share?)).filter(|_| all > 0)
    }

    fn end_to_end(&self, outcome: &SimulatedOutcome) -> Option<Compared> {
        let both = (self.first_counted()..self.played.heads.len()).filter_map(|at| {
            let times = outcome.times.get(at)?.as_ref()?;
            Some((self.of(at)?.e2e_ms?, times.e2e_us as f64 / 1e3))
        });
        let (measured, simulated): (Vec<f64>, Vec<f64>) = both.unzip();
        Some(Compared { measured: Times::of(&measured)?, simulated: Times::of(&simulated)? })
            .filter(|_| measured.len() >= LEAST_REQUESTS)
    }
}

/// Each half of `requests` by the run that fits the other half best.
fn cross_checked(
    runs: &[Run],
    measured: &[(Option<f64>, Option<f64>)],
    requests: &[usize],
) -> Option<Compared> {
    let (early, late) = requests.split_at(requests.len() / 2);
    let (mut of_measured, mut of_model) = (Vec::new(), Vec::new());
    for (fitted, judged) in [(early, late), (late, early)] {
        let (run, outside_ms) = best(runs, measured, fitted)?;
        for &at in judged {
            if let (Some(measured), Some(modelled)) = (measured[at].0, runs[run].ttft_ms[at]) {
                of_measured.push(measured);
                of_model.push(modelled + outside_ms);
            }
        }
    }
    Some(Compared { measured: Times::of(&of_measured)?, simulated: Times::of(&of_model)? })
}

/// The run whose times to the first token are spread most like the measured ones of `requests`, and the constant, at
/// least 0, that is to be added to them, in milliseconds.
fn best(runs: &[Run], measured: &[(Option<f64>, Option<f64>)], requests: &[usize]) -> Option<(usize, f64)> {
    let mut found: Option<(usize, f64, f64)> = None;
    for (at, run) in runs.iter().enumerate() {
        let both = requests.iter().filter_map(|&at| Some((measured[at].0?, run.ttft_ms[at]?)));
        let (mut real, mut modelled): (Vec<f64>, Vec<f64>) = both.unzip();
        real.sort_by(f64::total_cmp);
        modelled.sort_by(f64::total_cmp);
        let (outside_ms, error) = beside(&real, &modelled)?;
        if found.is_none_or(|(.., least)| error < least) {
            found = Some((at, outside_ms, error));
        }
    }
    found.map(|(at, outside_ms, _)| (at, outside_ms))
}

/// The constant that brings `modelled` nearest to `real`, both sorted, and how far they are apart then.
fn beside(real: &[f64], modelled: &[f64]) -> Option<(f64, f64)> {
    let mut pairs = Vec::with_capacity(COMPARED_AT.len());
    for (percent, weight) in COMPARED_AT {
        let (real, modelled) =
            (percentile::nearest_rank(real, percent)?, percentile::nearest_rank(modelled, percent)?);
        pairs.push((real, modelled, weight));
    }
    let error = |outside_ms: f64| {
        let of = |&(real, modelled, weight): &(f64, f64, f64)| {
            weight * ((modelled + outside_ms).max(CLOCK_MS) / real.max(CLOCK_MS)).ln().powi(2)
        };
        pairs.iter().map(of).sum::<f64>()
    };
    // No more than brings the model to the measured time at one of the places, and nothing between them is far off.
    let tried = pairs.iter().map(|(real, modelled, _)| (real - modelled).max(0.0)).chain([0.0]);
    let most = tried.fold(0.0, f64::max);
    let steps = (0..=40).map(|step| most * f64::from(step) / 40.0);
    let nearest = steps.map(|outside_ms| (outside_ms, error(outside_ms)));
    nearest.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    percentile::nearest_rank(&values, 50).unwrap_or(0.0)
}
