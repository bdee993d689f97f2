//! Costs as bars, a row for each worker: by how much one costs more than the cheapest, and which terms that is of. Bars from 0
//! would all look the same, because candidates of a busy pool differ by a few blocks of thousands. Knows neither decisions nor
//! questions.

use radixscope_model::id::WorkerIx;
use radixscope_router::explain::Short;
use radixscope_router::{Formula, Terms};

use crate::format;

/// A row.
#[derive(Clone, PartialEq, Debug)]
pub struct CostRow {
    /// Whose colour and label to show; `None` for what is no worker of the cluster.
    pub worker: Option<WorkerIx>,
    /// Its name, for those without a chip and for tests.
    pub label: String,
    /// Place by cost, from 1.
    pub rank: u32,
    /// Blocks of the prompt it holds.
    pub overlap_blocks: u32,
    /// Cost and what it is made of.
    pub terms: Terms,
    /// Chance to be chosen, 0 … 1, if it is known.
    pub probability: Option<f64>,
    /// Whether it is the choice.
    pub is_chosen: bool,
    /// Notes on it: `actual choice`, `load changed`.
    pub marks: Vec<&'static str>,
    /// A cost to compare with, drawn as a line across the bar.
    pub ghost: Option<f64>,
    /// Where its load is from, as text.
    pub about: String,
}

/// What bars are drawn on: what every candidate costs at least is left out.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CostScale {
    /// Cost of the cheapest, in blocks, where the bars begin.
    pub base: f64,
    /// The highest cost, or what else is to be on the scale.
    pub end: f64,
    /// The terms of the cheapest.
    least: [f64; 3],
    candidates: usize,
}

impl CostScale {
    /// The scale of `costs`, each with its terms, of which it is the sum. `also`: what else is to be on it.
    pub fn of(costs: impl Iterator<Item = (f64, [f64; 3])>, also: impl Iterator<Item = f64>) -> Self {
        let mut scale = Self { base: f64::INFINITY, end: f64::NEG_INFINITY, ..Self::default() };
        for (cost, terms) in costs {
            scale.candidates += 1;
            if cost < scale.base {
                (scale.base, scale.least) = (cost, terms);
            }
            scale.end = if cost.is_finite() { scale.end.max(cost) } else { scale.end };
        }
        scale.end = also.filter(|other| other.is_finite()).fold(scale.end, f64::max);
        if scale.base.is_finite() { scale } else { Self { candidates: scale.candidates, ..Self::default() } }
    }

    /// The scale of these rows.
    pub fn of_rows(rows: &[CostRow]) -> Self {
        let costs = rows.iter().map(|row| (row.terms.cost, row.parts()));
        Self::of(costs, rows.iter().filter_map(|row| row.ghost))
    }

    /// Where a cost lies, as a width for style sheets.
    pub fn width(&self, cost: f64) -> String {
        let span = self.end - self.base;
        let beyond = if span > 0.0 { (cost - self.base) / span } else { 0.0 };
        format::width(if beyond.is_finite() { beyond } else { 1.0 })
    }

    /// The parts of a cost's bar, as widths: what it has beyond the cheapest, shared out among the terms that it has more of.
    pub fn bar(&self, cost: f64, terms: [f64; 3]) -> [Option<String>; 3] {
        let more: [f64; 3] = std::array::from_fn(|at| (terms[at] - self.least[at]).max(0.0));
        let sum: f64 = more.iter().filter(|blocks| blocks.is_finite()).sum();
        let beyond = cost - self.base;
        std::array::from_fn(|at| {
            let share =
                if sum > 0.0 && sum.is_finite() { more[at] / sum } else { f64::from(u8::from(at == 2)) };
            (beyond > 0.0 && share > 0.0).then(|| self.width(self.base + beyond * share))
        })
    }

    /// What is left out, as text.
    pub fn shared_text(&self) -> String {
        let shared = Short(hundredths(self.base));
        match self.candidates {
            0 | 1 => format!("One candidate: {shared} blocks of cost"),
            all if self.end <= self.base => format!("All {all} candidates cost {shared} blocks"),
            all => format!(
                "All {all} candidates share {shared} blocks of cost; bars show what each costs beyond"
            ),
        }
    }
}

/// What a row shows beside its numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct CostRowText {
    /// Widths of the bar's parts: prefill, decode, active requests.
    pub bar: [Option<String>; 3],
    /// Where the line of the cost to compare with lies, and what it says.
    pub ghost: Option<(String, String)>,
    /// The sum.
    pub sum: String,
    /// What the sum says of itself: where its load is from, and what its cache saved.
    pub about: String,
    /// Its cost, as people compare them; the sum has all digits.
    pub cost: String,
    /// Cached blocks of the prompt.
    pub cached: String,
    /// Its chance.
    pub probability: String,
    /// The same as a width; `None`: unknown.
    pub meter: Option<String>,
}

impl CostRow {
    /// What the cost is the sum of, in the order of the formulas: prefill, decode, active requests.
    fn parts(&self) -> [f64; 3] {
        let t = &self.terms;
        let times = t.taint_multiplier.unwrap_or(1.0);
        let decode =
            if t.is_decode_only { (t.decode_blocks - t.credit_blocks).max(0.0) } else { t.decode_blocks };
        [t.prefill_factor * t.prefill_blocks * times, decode * times, t.active_request_blocks * times]
    }

    /// What it would cost more without its cache.
    fn saved_blocks(&self) -> f64 {
        let t = &self.terms;
        let cached = if t.formula == Formula::A { f64::from(self.overlap_blocks) } else { t.credit_blocks };
        let factor = if t.is_decode_only { 1.0 } else { t.prefill_factor };
        factor * cached * t.taint_multiplier.unwrap_or(1.0)
    }

    /// On the scale of all rows.
    pub fn on(&self, scale: &CostScale) -> CostRowText {
        let saved = match self.saved_blocks() {
            saved if saved > 0.0 => format!("; {} blocks saved by the cache", Short(saved)),
            _ => String::new(),
        };
        let ghost = |ghost| (scale.width(ghost), format!("{} blocks, to compare with", Short(ghost)));
        CostRowText {
            bar: scale.bar(self.terms.cost, self.parts()),
            ghost: self.ghost.map(ghost),
            sum: self.terms.sum().to_string(),
            about: format!("{}{saved}", self.about),
            cost: Short(hundredths(self.terms.cost)).to_string(),
            cached: format::count(self.overlap_blocks.into()),
            probability: self.probability.map_or(format::UNKNOWN.to_owned(), chance),
            meter: self.probability.map(format::width),
        }
    }
}

/// Costs as people compare them.
fn hundredths(cost: f64) -> f64 {
    (cost * 100.0).round() / 100.0
}

/// A chance in percent, one decimal where it says something.
fn chance(probability: f64) -> String {
    match probability * 100.0 {
        p if p > 0.0 && p < 0.1 => "<0.1 %".to_owned(),
        p => format!("{} %", (p * 10.0).round() / 10.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cost: f64, prefill_blocks: f64, decode_blocks: f64, probability: Option<f64>) -> CostRow {
        let terms = Terms { prefill_blocks, prefill_factor: 2.0, decode_blocks, cost, ..Terms::default() };
        CostRow {
            worker: None,
            label: String::new(),
            rank: 1,
            overlap_blocks: 3,
            terms,
            probability,
            is_chosen: false,
            marks: Vec::new(),
            ghost: None,
            about: "Load: known".to_owned(),
        }
    }

    #[test]
    fn bars_begin_at_the_cheapest_and_are_of_the_terms_that_differ() {
        // 2 × 10 + 100, 2 × 15 + 110 and an unbounded one.
        let rows = [
            row(120.0, 10.0, 100.0, None),
            row(140.0, 15.0, 110.0, None),
            row(f64::INFINITY, 0.0, 0.0, None),
        ];
        let scale = CostScale::of_rows(&rows);
        assert_eq!((scale.base, scale.end), (120.0, 140.0));
        let bars = rows.each_ref().map(|row| row.on(&scale).bar);
        assert_eq!(bars[0], [None, None, None]);
        assert_eq!(bars[1], [Some("50.0%".to_owned()), Some("50.0%".to_owned()), None]);
        assert_eq!(bars[2], [None, None, Some("100.0%".to_owned())]);
        assert_eq!(
            scale.shared_text(),
            "All 3 candidates share 120 blocks of cost; bars show what each costs beyond"
        );
        assert_eq!(CostScale::of_rows(&rows[..1]).shared_text(), "One candidate: 120 blocks of cost");
        assert_eq!(
            CostScale::of_rows(&[rows[0].clone(), rows[0].clone()]).shared_text(),
            "All 2 candidates cost 120 blocks"
        );
    }

    #[test]
    fn a_row_says_what_its_cache_saved_and_its_chance() {
        let of = |probability| {
            let row = CostRow { ghost: Some(130.0), ..row(120.25, 10.0, 100.25, probability) };
            row.on(&CostScale::of_rows(std::slice::from_ref(&row)))
        };
        let text = of(Some(0.0004));
        assert_eq!((text.cost.as_str(), text.probability.as_str()), ("120.25", "<0.1 %"));
        assert_eq!(text.about, "Load: known; 6 blocks saved by the cache");
        assert_eq!(text.ghost, Some(("100.0%".to_owned(), "130 blocks, to compare with".to_owned())));
        assert_eq!(of(Some(0.1234)).probability, "12.3 %");
        assert_eq!((of(None).probability.as_str(), of(None).meter), ("–", None));
    }
}
