//! The setting that the sweep recommends to try, as the answer at the top: what to set, what it brings in figures, and on demand how it
//! was found.

use radixscope_insight::counterfactual::{
    Grid, Interval, Recommendation, SweepReport, expected_to_text, options_to_set,
};

use crate::format;

/// Lines of a setting up to which it is shown at once.
const SHOWN_LINES: usize = 3;

/// A figure as it was, as it would be, and what is known of the difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effect {
    /// The figure.
    pub what: &'static str,
    /// As it was, with an arrow; empty: it was nothing.
    pub from: String,
    /// As it would be.
    pub to: String,
    /// What is known of the difference.
    pub note: String,
}

/// The answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Whether a setting is recommended at all.
    pub is_recommended: bool,
    /// `★ Recommended to try`.
    pub head: &'static str,
    /// The setting, or why there is none.
    pub text: String,
    /// What it changes.
    pub effects: Vec<Effect>,
    /// Lines to set where the router runs; empty: nothing is to be set.
    pub to_set: String,
    /// Whether those lines are few enough to be shown at once.
    pub is_short: bool,
    /// How it was found, a paragraph each.
    pub how_found: Vec<String>,
}

impl Answer {
    /// Of a sweep with a recommendation.
    pub fn of(report: &SweepReport) -> Option<Self> {
        let (grid, advice) = (report.grid.as_ref()?, report.recommendation.as_ref()?);
        let texts = |texts: Vec<String>| texts.into_iter().filter(|text| !text.is_empty()).collect();
        let Some(settings) = advice.settings(grid) else {
            return Some(Self {
                is_recommended: false,
                head: "No recommendation. ",
                text: advice.why.clone(),
                effects: Vec::new(),
                to_set: String::new(),
                is_short: true,
                how_found: texts(vec![advice.method.clone()]),
            });
        };
        let to_set = options_to_set(&settings, &grid.recorded).join("\n");
        let mut found = vec![format!("{}.", advice.why.trim_end_matches('.'))];
        found.extend(advice.expected.as_ref().and_then(expected_to_text));
        found.push(advice.method.clone());
        Some(Self {
            is_recommended: true,
            head: if advice.is_repeated { "★ Still recommended to try" } else { "★ Recommended to try" },
            text: settings.to_string(),
            effects: effects(grid, advice),
            is_short: to_set.lines().count() <= SHOWN_LINES,
            to_set,
            how_found: texts(found),
        })
    }
}

/// What a recommended setting changes.
fn effects(grid: &Grid, advice: &Recommendation) -> Vec<Effect> {
    let Some(outcome) = advice.outcome.and_then(|at| grid.outcomes.get(at)) else { return Vec::new() };
    let mut all = Vec::new();
    if let (Some(share), Some(expected)) = (grid.actual.overlap_share, &advice.expected) {
        let Interval { value, low, high } = expected.hit_rate_gain;
        let points = |share: f64| format!("{:+.1}", share * 100.0).replace('-', "−");
        all.push(Effect {
            what: "KV hit rate",
            from: format!("{:.1} → ", share * 100.0),
            to: format!("{:.1} %", (share + value) * 100.0),
            note: format!("{} points, {} to {}", points(value), points(low), points(high)),
        });
    }
    if let Some(expected) = &advice.expected
        && let (Some(of), Some((_, from))) = (expected.ttft_p95_ms, expected.measured_ttft_ms)
    {
        let interval = format!("{:.0} to {:.0} ms", of.low, of.high);
        all.push(Effect {
            what: "TTFT p95, expected",
            from: format!("{from:.0} → "),
            to: format!("{:.0} ms", of.value),
            note: match (of.low..=of.high).contains(&from) {
                true => format!("{interval}: the change is within its uncertainty"),
                false => interval,
            },
        });
    }
    if let (Some(from), Some(to)) = (grid.actual.imbalance, outcome.imbalance) {
        all.push(Effect {
            what: "In-flight imbalance p95",
            from: format!("{} → ", from.p95),
            to: to.p95.to_string(),
            note: "requests".to_owned(),
        });
    }
    let saved = outcome.prefill_saved_tokens.map_or(String::new(), |tokens| {
        let fewer = if tokens < 0.0 { "more" } else { "fewer" };
        format!("{} prompt tokens {fewer} to compute", format::count(tokens.abs().round() as u64))
    });
    all.push(Effect {
        what: "Decisions that change worker",
        from: String::new(),
        to: format!("{:.0} of {}", outcome.expected_changes, format::count(outcome.decisions)),
        note: saved,
    });
    all
}
