//! What every candidate would have cost: bars from the cheapest on, with the whole sums as text.

use radixscope_model::id::WorkerIx;
use radixscope_router::explain::Short;
use radixscope_state::cluster::{CostParts, DecisionEntry};

use crate::costs::CostScale;
use crate::format;

/// Beyond so many candidates only the best are shown at first.
pub(super) const MANY: usize = 16;
/// How many of them.
pub(super) const BEST: usize = 8;

/// The candidates of a decision.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidates {
    /// Cheapest first.
    pub rows: Vec<CandidateRow>,
    /// What all of them cost.
    pub shared: String,
    /// The costs at both ends of the scale.
    pub scale: [String; 2],
    /// What shows all of them; `None`: all are shown.
    pub show_all: Option<String>,
}

/// A candidate.
#[derive(Clone, PartialEq, Debug)]
pub struct CandidateRow {
    /// Which.
    pub worker: WorkerIx,
    /// Its cost, blocks.
    pub cost: f64,
    /// Blocks of the prompt that it had cached.
    pub overlap_blocks: u64,
    /// Whether it was chosen.
    pub is_chosen: bool,
    /// That it was, or that it shares the lowest cost.
    pub note: &'static str,
    /// Widths of the bar's parts for the style sheet: prefill, decode, other terms; `None`: it has none.
    pub bar: [Option<String>; 3],
    /// The whole sum.
    pub sum: String,
    /// How much of the prompt it had cached; `None` where that did not matter.
    pub cached: Option<String>,
    /// At the chosen one, how far the next best is.
    pub gap: Option<CostGap>,
    /// Whether it is shown before all are asked for.
    pub is_first: bool,
}

/// How far the costs of the chosen candidate and of the next best lie apart.
#[derive(Clone, PartialEq, Debug)]
pub struct CostGap {
    /// Where it begins, for the style sheet.
    pub left: String,
    /// How wide it is.
    pub width: String,
    /// The same as text.
    pub text: String,
}

impl Candidates {
    /// Of a decision whose candidates are known.
    pub fn of(decided: &DecisionEntry) -> Self {
        let parts = decided.cost_parts();
        let costs = parts.iter().map(|part| (part.candidate.cost, terms(part)));
        let scale = CostScale::of(costs, std::iter::empty());
        let tied = decided.tied_at_lowest();
        let gap =
            decided.next_best().ok().map(|next| next.cost).zip(decided.chosen().map(|chosen| chosen.cost));
        let has_many = parts.len() > MANY;
        let row = |(at, part): (usize, &CostParts)| CandidateRow {
            is_first: !has_many || at < BEST || part.is_chosen,
            ..row(decided, &scale, part, tied, gap)
        };
        Self {
            rows: parts.iter().enumerate().map(row).collect(),
            shared: scale.shared_text(),
            scale: [scale.base, scale.end].map(|cost| Short((cost * 10.0).round() / 10.0).to_string()),
            show_all: has_many.then(|| show_all_text(parts.len())),
        }
    }
}

/// On the button that shows all candidates.
pub(super) fn show_all_text(total: usize) -> String {
    let candidates = format::plural(total as u64, "candidate", "candidates");
    format!("Show all {candidates}: the best {BEST} and the chosen one are shown")
}

fn terms(part: &CostParts) -> [f64; 3] {
    [part.prefill_cost, part.candidate.decode_blocks, part.other_cost]
}

fn row(
    decided: &DecisionEntry,
    scale: &CostScale,
    part: &CostParts,
    tied: usize,
    gap: Option<(f64, f64)>,
) -> CandidateRow {
    let overlap_blocks = u64::from(part.candidate.overlap_blocks);
    let gap = gap.filter(|_| part.is_chosen).map(|(next, chosen)| {
        let (from, to) = (chosen.min(next), chosen.max(next));
        let text = if next < chosen { "blocks above the lowest cost" } else { "blocks to the next best" };
        CostGap {
            left: scale.width(from),
            width: scale.width(scale.base + to - from),
            text: format!("Cost gap {} {text}", Short(to - from)),
        }
    });
    CandidateRow {
        worker: part.candidate.worker,
        cost: part.candidate.cost,
        overlap_blocks,
        is_chosen: part.is_chosen,
        note: match (part.is_chosen, part.is_lowest && tied > 1) {
            (true, true) => "chosen, tied",
            (true, false) => "chosen",
            (false, true) => "tied",
            (false, false) => "",
        },
        bar: scale.bar(part.candidate.cost, terms(part)),
        sum: part.sum(),
        cached: (!decided.ignores_cache)
            .then(|| format!(", {} cached", format::plural(overlap_blocks, "block", "blocks"))),
        gap,
        is_first: true,
    }
}
