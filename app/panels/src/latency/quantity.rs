//! One quantity: its percentiles against the target, and how much was above it.

use radixscope_export::panel::latency::NO_SAMPLE;
use radixscope_insight::latency::{self, Burn, Quantity, Times};
use radixscope_model::id::Millis;
use radixscope_model::range::{Range, TargetComparison};
use radixscope_state::cluster::Cluster;

use crate::format;

/// The figures of the last minute.
#[derive(Clone, PartialEq, Debug)]
pub struct QuantityFigures {
    /// Whether any source reports the quantity.
    pub is_known: bool,
    /// p95, p50 and p99.
    pub readings: [Reading; 3],
    /// What they are of.
    pub share: String,
    /// Where they are from.
    pub source: String,
    /// How much was above the target; `None`: no sample.
    pub burn: Option<BurnText>,
}

/// A percentile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Which.
    pub name: &'static str,
    /// With its unit; where there is no sample, that.
    pub text: String,
    /// Whether there is a sample.
    pub is_sampled: bool,
    /// For the style sheet.
    pub class: String,
    /// How it compares to the target; of the 95th percentile alone, as long as it is current.
    pub standing: Option<String>,
}

/// How much was above the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BurnText {
    /// Of the last minute, else of the session.
    pub text: String,
    /// Of the session, and where from.
    pub title: String,
}

impl QuantityFigures {
    /// At `now`; those that are not current do not compare to the target.
    pub fn of(cluster: &Cluster, quantity: Quantity, target_ms: f64, now: Millis, is_current: bool) -> Self {
        let times = latency::latest(cluster, quantity, now);
        // The figure that rules judge: one function for all.
        let figure = times.iter().find(|times| times.samples > 0);
        let reading = |name, at: usize| match figure.and_then(|times| Some((times.quantiles?[at], times))) {
            Some((range, times)) => {
                let judged = (at == 1 && is_current).then_some(times);
                Reading::of(name, &range, quantity, target_ms, judged)
            }
            None => Reading {
                name,
                text: NO_SAMPLE.to_owned(),
                is_sampled: false,
                class: "quiet".to_owned(),
                standing: None,
            },
        };
        // Of the same samples as the percentiles: exact where these are.
        let above =
            figure.and_then(|times| latency::share_above(cluster, quantity, now, target_ms, &times.source));
        let burn = latency::burn(cluster, quantity, target_ms).map(|burn| {
            let target = quantity.to_text(target_ms);
            let session = session_text(&burn, &target, now);
            let title = format!("{session}, {}", burn.source.to_text());
            let latest = above.map(|share| format!("{} above {target}", share.to_text(format::percent)));
            BurnText { text: latest.unwrap_or(session), title }
        });
        Self {
            is_known: !times.is_empty(),
            readings: [reading("p95", 1), reading("p50", 0), reading("p99", 2)],
            share: figure.map_or(String::new(), Times::share_text),
            source: latency::source_text(&times, quantity),
            burn,
        }
    }
}

impl Reading {
    fn of(
        name: &'static str,
        range: &Range,
        quantity: Quantity,
        target: f64,
        judged: Option<&Times>,
    ) -> Self {
        let comparison = judged.map_or(TargetComparison::Unknown, |times| times.standing(target));
        Self {
            name,
            text: quantity.range_text(range),
            is_sampled: true,
            class: format!("reading {}", comparison.as_str()),
            standing: judged.map(|times| times.standing_text(quantity, target)),
        }
    }
}

/// How much of the session was above the target.
fn session_text(burn: &Burn, target: &str, now: Millis) -> String {
    let of = burn.samples.max(1) as f64;
    let (least, most) = burn.over;
    // They differ where the target lies inside a bucket.
    let share = Range::between(least as f64 / of, Some(most as f64 / of)).to_text(format::percent);
    let (samples, ago) = (format::count(burn.samples), format::ago(now.since(burn.since_ms)));
    format!("{share} of {samples} above {target} since {ago}")
}
