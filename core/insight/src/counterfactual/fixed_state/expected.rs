//! What a setting would make of the measured times to the first token: each with the prompt tokens computed that the
//! setting saves or costs, at the pace that the recorded requests show.
//!
//! Queues are not followed: that takes a simulation of the arrivals.

use serde::{Deserialize, Serialize};

use super::super::sample::{EvaluatedDecision, Sample};
use super::noise::{Interval, gain, part_of, percentile_of};
use super::outcome::FixedStateOutcome;
use radixscope_router::RouterSettings;

/// With fewer measured requests the pace is unknown.
pub const LEAST_REQUESTS: usize = 60;

/// Expected figures of a setting, with their intervals.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Expected {
    /// KV hit rate above the actual one, as a share of all prompt blocks.
    pub hit_rate_gain: Interval,
    /// Median time to the first token, in milliseconds; `None` where too few were measured.
    pub ttft_p50_ms: Option<Interval>,
    /// The 95th percentile.
    pub ttft_p95_ms: Option<Interval>,
    /// As measured: median and 95th percentile, in milliseconds.
    pub measured_ttft_ms: Option<(f64, f64)>,
}

impl Sample {
    /// What is expected under `settings`, of which `outcome` came; `None` where no prompt's length is known.
    pub fn expected(
        &self,
        settings: &RouterSettings,
        outcome: &FixedStateOutcome,
        actual: &FixedStateOutcome,
    ) -> Option<Expected> {
        let hit_rate_gain = gain(&outcome.parts, &actual.parts)?;
        let none = Expected { hit_rate_gain, ttft_p50_ms: None, ttft_p95_ms: None, measured_ttft_ms: None };
        let Some(ms_per_token) = self.ms_per_token() else { return Some(none) };
        let saved = self.saved_tokens(settings);
        let (mut measured, mut expected) = (Vec::new(), Vec::new());
        for (place, &at) in self.by_start.iter().enumerate() {
            if let Some(ttft_ms) = self.decisions[at as usize].decision.ttft_ms {
                let part = part_of(place, self.len());
                measured.push((part, ttft_ms));
                expected.push((part, ttft_ms - ms_per_token * saved[at as usize]));
            }
        }
        // No worker is faster than the fastest.
        let least = measured.iter().map(|(_, ms)| *ms).fold(f64::INFINITY, f64::min);
        expected.iter_mut().for_each(|(_, ms)| *ms = ms.max(least));
        let real = |percent| Some(percentile_of(&measured, percent)?.value);
        Some(Expected {
            ttft_p50_ms: percentile_of(&expected, 50),
            ttft_p95_ms: percentile_of(&expected, 95),
            measured_ttft_ms: real(50).zip(real(95)),
            ..none
        })
    }

    /// How much longer the first token takes for each prompt token to compute, in milliseconds: between the medians of the
    /// third of the requests with the fewest and of the third with the most of them.
    fn ms_per_token(&self) -> Option<f64> {
        let computed = |judged: &EvaluatedDecision| {
            let decision = &judged.decision;
            let overlap = self.overlap_blocks[judged.candidates()][usize::from(decision.chosen)];
            let cached = decision.cached_tokens(overlap)?;
            Some((decision.isl_tokens? as f64 - cached, decision.ttft_ms?))
        };
        let mut known: Vec<(f64, f64)> = self.decisions.iter().filter_map(computed).collect();
        let slope = if known.len() < LEAST_REQUESTS { None } else { slope(&mut known) };
        slope.filter(|&slope| slope > 0.0)
    }
}

/// By how much the second figure rises for each one of the first: between the medians of the third with the least of it and
/// of the third with the most, so that single slow requests do not count. Sorts `known`. `None` where the first is the same for
/// nearly all.
pub fn slope(known: &mut [(f64, f64)]) -> Option<f64> {
    known.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let third = known.len() / 3;
    let median = |of: &[(f64, f64)]| {
        let mut ms: Vec<f64> = of.iter().map(|(_, ms)| *ms).collect();
        ms.sort_by(f64::total_cmp);
        Some((of.get(of.len() / 2)?.0, *ms.get(ms.len() / 2)?))
    };
    let (few, many) = (median(&known[..third])?, median(&known[known.len() - third..])?);
    let slope = (many.1 - few.1) / (many.0 - few.0);
    slope.is_finite().then_some(slope)
}
