//! Which of the settings tried is worth a try in the cluster, and why.

use radixscope_model::number_format::count;
use serde::{Deserialize, Serialize};

use super::expected::Expected;
use super::noise::{DRAWS, Interval, PARTS, gain};
use super::outcome::{FixedStateOutcome, LoadImbalance};
use super::sweep::Grid;
use radixscope_router::RouterSettings;

/// The 95th percentile of the in-flight imbalance may be larger than the actual one by this share, and by one request,
/// before it counts as worse: that much one draw differs from the next.
const IMBALANCE_TOLERANCE: f64 = 0.1;
/// The same for a setting that was recommended before; then also by two requests.
const IMBALANCE_TOLERANCE_PREVIOUS: f64 = 0.35;
/// The hit rate must rise by this share of all prompt blocks, whatever is chance, for a change to be worth it.
const LEAST_GAIN: f64 = 0.005;
/// Of several settings the nearest to what runs that has this share of the best one's gain.
const ENOUGH: f64 = 0.7;
/// A setting that was recommended before stays while it has this share of it.
const ENOUGH_PREVIOUS: f64 = 0.45;
/// Hit rate that may be given up for a much smaller imbalance.
const GAIN_PRICE: f64 = 0.01;
/// The imbalance is much smaller if it falls by this share and by [`FALL_REQUESTS`], in both halves of the window.
const FALL: f64 = 0.25;
/// See [`FALL`].
const FALL_REQUESTS: u32 = 2;

/// What a grid suggests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suggestion {
    /// More overlap while workers stay as even.
    MoreOverlap,
    /// Workers more even for little overlap.
    MoreEven,
    /// Nothing tried is better beyond noise.
    Keep,
    /// Something is unknown that a suggestion needs.
    Unknown,
}

/// A suggestion and its trade-off as text.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Recommendation {
    /// What kind.
    pub verdict: Suggestion,
    /// Place in [`Grid::outcomes`] of the setting suggested.
    pub outcome: Option<usize>,
    /// What is won and lost.
    pub why: String,
    /// By which rule, and what it does not follow; empty where nothing could be compared.
    pub method: String,
    /// What is expected of it.
    pub expected: Option<Expected>,
    /// Whether it was recommended before, and stays.
    pub is_repeated: bool,
}

impl Recommendation {
    /// The setting suggested.
    pub fn settings(&self, grid: &Grid) -> Option<RouterSettings> {
        grid.outcomes.get(self.outcome?)?.settings
    }

    fn none(verdict: Suggestion, why: String, method: String) -> Self {
        Self { verdict, outcome: None, why, method, expected: None, is_repeated: false }
    }
}

/// A setting that may be recommended.
#[derive(Clone, Copy)]
struct Tried<'a> {
    at: usize,
    outcome: &'a FixedStateOutcome,
    settings: RouterSettings,
    imbalance: LoadImbalance,
    /// Hit rate above the actual one.
    gain: Interval,
    /// How far it is from what runs.
    change: f64,
}

/// Suggests one of the settings tried; `previous` is what was suggested last, of an earlier window.
///
/// 1. Those count whose 95th percentile of the in-flight imbalance is not above the actual one by more than a tenth and
///    one request, and whose hit rate is above the actual one beyond noise: the whole interval of the difference lies above
///    half a point (of all prompt blocks). Of those that have most of the best one's gain, the one nearest to
///    what runs; the previous one stays as long as it counts and has nearly half of that gain.
/// 2. Else the one with the smallest imbalance, if that is a quarter and two requests below the actual one in both
///    halves of the window and costs at most one point of hit rate.
/// 3. Else none: there is no clear winner.
///
/// Another setting than the previous one is suggested only if the lower end of its gain is above the previous one's gain: two that
/// differ by chance must not alternate.
///
/// A higher hit rate alone is no reason: what it saves, a worker that gets all requests at once loses again in its queue.
pub(crate) fn recommend(grid: &Grid, previous: Option<(f64, f64)>) -> Recommendation {
    let actual = &grid.actual;
    let unknown = |why: &str| Recommendation::none(Suggestion::Unknown, why.to_owned(), String::new());
    let Some(hit_rate) = actual.overlap_share else {
        return unknown("No prompt's length in blocks is known, so hit rates cannot be compared.");
    };
    let Some(imbalance) = actual.imbalance else {
        return unknown(
            "No request's end is known, so the load of the workers cannot be estimated; the hit rate alone would \
             always ask for a higher weight.",
        );
    };
    let tried: Vec<Tried<'_>> =
        grid.outcomes.iter().enumerate().filter_map(|at| Tried::of(at, grid)).collect();
    let is_previous = |tried: &Tried<'_>| previous == Some(tried.numbers());
    let more = |tried: &&Tried<'_>| {
        let within = |p95: u32, from: u32, tolerance: f64, requests: f64| {
            f64::from(p95) <= f64::from(from) * (1.0 + tolerance) + requests
        };
        if is_previous(tried) {
            // One half is enough: a single burst must not change what is recommended.
            let mut halves = tried.imbalance.p95_halves.into_iter().zip(imbalance.p95_halves);
            let is_even = halves.any(|(p95, from)| within(p95, from, IMBALANCE_TOLERANCE_PREVIOUS, 2.0));
            return is_even && tried.gain.low > 0.0;
        }
        let is_even = within(tried.imbalance.p95, imbalance.p95, IMBALANCE_TOLERANCE, 1.0);
        is_even && tried.gain.low >= LEAST_GAIN
    };
    let better: Vec<&Tried<'_>> = tried.iter().filter(more).collect();
    let most = better.iter().map(|tried| tried.gain.value).fold(0.0, f64::max);
    let nearest: Option<&&Tried<'_>> = better
        .iter()
        .filter(|tried| tried.gain.value >= ENOUGH * most)
        .min_by(|a, b| a.change.total_cmp(&b.change));
    let stays = better.iter().find(|tried| is_previous(tried) && tried.gain.value >= ENOUGH_PREVIOUS * most);
    // Another one than before has to be better than that by more than its uncertainty.
    let before = tried.iter().find(|tried| is_previous(tried)).filter(|_| stays.is_none());
    let is_clear = |found: &&&Tried<'_>| before.is_none_or(|before| found.gain.low > before.gain.value);
    if let Some(found) = stays.or(nearest.filter(is_clear)) {
        let rule = if stays.is_some() {
            "It was recommended before and nothing is clearly better.".to_owned()
        } else {
            format!(
                "Of {} settings tried, {} are better beyond noise at about that imbalance; this is the smallest change \
                 that has most of the gain.",
                grid.outcomes.len(),
                better.len()
            )
        };
        return found.suggested(Suggestion::MoreOverlap, stays.is_some(), (hit_rate, imbalance), &rule);
    }
    let falls =
        |p95: u32, from: u32| f64::from(p95) <= f64::from(from) * (1.0 - FALL) && p95 + FALL_REQUESTS <= from;
    let evener = tried
        .iter()
        .filter(|tried| tried.gain.low >= -GAIN_PRICE)
        .filter(|tried| {
            let halves = tried.imbalance.p95_halves.into_iter().zip(imbalance.p95_halves);
            falls(tried.imbalance.p95, imbalance.p95)
                && halves.into_iter().all(|(p95, from)| falls(p95, from))
        })
        .min_by(|a, b| {
            (!is_previous(a), a.imbalance.p95)
                .cmp(&(!is_previous(b), b.imbalance.p95))
                .then(a.change.total_cmp(&b.change))
        });
    if let Some(found) = evener {
        let rule = "No setting has a hit rate clearly higher at that imbalance; this one is the most even of those that \
                    give up at most one point of it, in both halves of the window.";
        return found.suggested(Suggestion::MoreEven, is_previous(found), (hit_rate, imbalance), rule);
    }
    let best = tried.iter().map(|tried| tried.gain).max_by(|a, b| a.value.total_cmp(&b.value));
    let best =
        best.map_or(String::new(), |best| format!(" The highest hit rate of all is {}.", points(best)));
    let why = format!("No clear winner: no setting is better beyond noise.{best}");
    let rule = format!(
        "None of {} tried has a KV hit rate half a point above the actual {:.1} % over its whole interval without an \
         imbalance above {} requests in flight (95th percentile), and none is much more even for at most one point. {}",
        grid.outcomes.len(),
        hit_rate * 100.0,
        imbalance.p95,
        method()
    );
    Recommendation::none(Suggestion::Keep, why, rule)
}

impl<'a> Tried<'a> {
    fn of((at, outcome): (usize, &'a FixedStateOutcome), grid: &Grid) -> Option<Self> {
        let settings = outcome.settings?;
        let gain = gain(&outcome.parts, &grid.actual.parts)?;
        // From 1 to 2 is as far as from 2 to 4; to change the temperature too is as far as that, and further the more.
        let weight = |settings: &RouterSettings| (settings.prefill_factor() + 0.1).log2();
        let change = (weight(&settings) - weight(&grid.recorded)).abs()
            + match (settings.router_temperature - grid.recorded.router_temperature).abs() {
                0.0 => 0.0,
                apart => 1.0 + 4.0 * apart,
            };
        Some(Self { at, outcome, settings, imbalance: outcome.imbalance?, gain, change })
    }

    fn numbers(&self) -> (f64, f64) {
        (self.settings.prefill_factor(), self.settings.router_temperature)
    }

    fn suggested(
        &self,
        verdict: Suggestion,
        is_repeated: bool,
        (hit_rate, imbalance): (f64, LoadImbalance),
        rule: &str,
    ) -> Recommendation {
        let saved = match self.outcome.prefill_saved_tokens {
            Some(tokens) if tokens >= 0.5 => {
                format!(" About {} prompt tokens fewer to compute.", count(tokens.round() as u64))
            }
            Some(tokens) if tokens <= -0.5 => {
                format!(" About {} prompt tokens more to compute.", count((-tokens).round() as u64))
            }
            _ => String::new(),
        };
        let why = format!(
            "{}: KV hit rate {:.1} % instead of {:.1} % ({}), in-flight imbalance {} requests instead of {} (95th \
             percentile); {:.0} of {} decisions change worker.{saved}",
            self.settings,
            (hit_rate + self.gain.value) * 100.0,
            hit_rate * 100.0,
            points(self.gain),
            self.imbalance.p95,
            imbalance.p95,
            self.outcome.expected_changes,
            count(self.outcome.decisions),
        );
        let method = format!(
            "{rule} {} Evaluated on the state that each decision saw: caches and loads that would change with the choices \
             are not followed.",
            method()
        );
        Recommendation { verdict, outcome: Some(self.at), why, method, expected: None, is_repeated }
    }
}

fn points(gain: Interval) -> String {
    let text = |share: f64| format!("{:+.1}", share * 100.0).replace('-', "−");
    format!("{} points, 95 % interval {} to {}", text(gain.value), text(gain.low), text(gain.high))
}

fn method() -> String {
    format!("Intervals: {DRAWS} draws of {PARTS} consecutive parts of the window, with replacement.")
}
