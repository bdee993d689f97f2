//! Which of the settings tried is worth a try in the cluster, and why.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::sweep::Grid;

/// The 95th percentile of the spread may be larger than the actual one by this share, and by one request, before it
/// counts as worse: that much one draw differs from the next.
const SPREAD_TOLERANCE: f64 = 0.1;
/// Overlap shares closer than this are taken for equal: the setting that moves fewer decisions is preferred then.
const OVERLAP_EQUAL: f64 = 0.001;
/// Overlap must rise by this share of all prompt blocks for a change to be worth it.
const OVERLAP_GAIN: f64 = 0.005;
/// Overlap that may be given up for a much smaller spread.
const OVERLAP_PRICE: f64 = 0.01;
/// A spread is much smaller if it falls by this share and by [`SPREAD_FALL_REQUESTS`].
const SPREAD_FALL: f64 = 0.25;
/// See [`SPREAD_FALL`].
const SPREAD_FALL_REQUESTS: u32 = 2;

/// What a grid suggests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suggestion {
    /// More overlap while workers stay as even.
    MoreOverlap,
    /// Workers more even for little overlap.
    MoreEven,
    /// Nothing tried is clearly better.
    Keep,
    /// Something is unknown that a suggestion needs.
    Unknown,
}

/// A suggestion and its trade-off in words.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Recommendation {
    /// What kind.
    pub verdict: Suggestion,
    /// Place in [`Grid::outcomes`] of the setting suggested.
    pub outcome: Option<usize>,
    /// What is won and lost, and by which rule.
    pub why: String,
}

/// Suggests one of the settings tried:
///
/// 1. of those whose 95th percentile of the in-flight spread is not above the actual one by more than a tenth and one
///    request, the one with the most overlap, if that is half a point (of all prompt blocks) above the actual share;
/// 2. else the one with the smallest spread, if that is a quarter and two requests below the actual one and costs at
///    most one point of overlap;
/// 3. else none.
///
/// Overlap alone is no reason: what it saves, a worker that gets all requests at once loses again in its queue.
pub fn recommend(grid: &Grid) -> Recommendation {
    let unknown =
        |why: &str| Recommendation { verdict: Suggestion::Unknown, outcome: None, why: why.to_owned() };
    let Some(actual) = figures(&grid.actual) else {
        return unknown(if grid.actual.overlap_share.is_none() {
            "No prompt's length in blocks is known, so overlap shares cannot be compared."
        } else {
            "No request's end is known, so nothing tells how evenly workers would be loaded; overlap alone would \
             always ask for a higher weight."
        });
    };
    let tried = || {
        let figures = |(at, outcome)| Some((at, outcome, figures(outcome)?));
        grid.outcomes.iter().enumerate().filter_map(figures)
    };
    let limit = f64::from(actual.p95) * (1.0 + SPREAD_TOLERANCE) + 1.0;
    let even: Vec<_> = tried().filter(|(.., f)| f64::from(f.p95) <= limit).collect();
    let most = even.iter().map(|(.., f)| f.overlap).fold(f64::NEG_INFINITY, f64::max);
    let best = even
        .iter()
        .filter(|(.., f)| f.overlap >= most - OVERLAP_EQUAL)
        .min_by(|a, b| a.1.flips_expected.total_cmp(&b.1.flips_expected));
    if let Some((at, outcome, figures)) = best
        && figures.overlap >= actual.overlap + OVERLAP_GAIN
    {
        let rule = format!(
            "Of {} settings tried, {} keep that spread within a tenth and one request of the actual one; this one \
             finds the most of each prompt.",
            grid.outcomes.len(),
            even.len()
        );
        return suggestion(Suggestion::MoreOverlap, *at, grid, outcome, *figures, actual, &rule);
    }
    let evener = tried()
        .filter(|(.., f)| {
            f.overlap >= actual.overlap - OVERLAP_PRICE
                && f64::from(f.p95) <= f64::from(actual.p95) * (1.0 - SPREAD_FALL)
                && f.p95 + SPREAD_FALL_REQUESTS <= actual.p95
        })
        .min_by(|a, b| (a.2.p95).cmp(&b.2.p95).then(b.2.overlap.total_cmp(&a.2.overlap)));
    if let Some((at, outcome, figures)) = evener {
        let rule = "No setting finds clearly more overlap at that spread; this one is the most even of those that give \
                    up at most one point of overlap.";
        return suggestion(Suggestion::MoreEven, at, grid, outcome, figures, actual, rule);
    }
    let why = format!(
        "None of {} settings tried finds half a point more of the prompts than the actual {:.1} % without a larger \
         spread than {} requests in flight (95th percentile), and none is much more even for at most one point.",
        grid.outcomes.len(),
        actual.overlap * 100.0,
        actual.p95
    );
    Recommendation { verdict: Suggestion::Keep, outcome: None, why }
}

/// What settings are compared by.
#[derive(Clone, Copy)]
struct Figures {
    overlap: f64,
    p95: u32,
}

fn figures(outcome: &Outcome) -> Option<Figures> {
    Some(Figures { overlap: outcome.overlap_share?, p95: outcome.spread?.p95 })
}

fn suggestion(
    verdict: Suggestion,
    at: usize,
    grid: &Grid,
    outcome: &Outcome,
    figures: Figures,
    actual: Figures,
    rule: &str,
) -> Recommendation {
    let settings = outcome.settings.unwrap_or(grid.recorded);
    let saved = match outcome.prefill_saved_tokens {
        Some(tokens) if tokens >= 0.5 => format!(" About {tokens:.0} prompt tokens fewer to compute."),
        Some(tokens) if tokens <= -0.5 => format!(" About {:.0} prompt tokens more to compute.", -tokens),
        _ => String::new(),
    };
    let why = format!(
        "{settings}: {:.1} % of the prompts' blocks found instead of {:.1} %, with workers {} requests in flight apart instead \
         of {} (95th percentile); {:.0} of {} decisions go elsewhere.{saved} {rule} Judged on the state that each \
         decision saw: caches and loads that would change with the choices are not followed.",
        figures.overlap * 100.0,
        actual.overlap * 100.0,
        figures.p95,
        actual.p95,
        outcome.flips_expected,
        outcome.decisions,
    );
    Recommendation { verdict, outcome: Some(at), why }
}
