//! The sweep as a map: weights down, temperatures across, a figure in every cell. The present and the recommended setting are marked by a
//! sign, not by colour; keys move from cell to cell, and a cell is described as text.

use std::sync::Arc;

use radixscope_icicle::heat::STEPS;
use radixscope_insight::counterfactual::{FixedStateOutcome, Grid, SweepReport, present_setting};

use super::table::{changed, signed};
use crate::format;

/// What the cells show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// Decisions that change worker.
    Changed,
    /// KV hit rate.
    Overlap,
    /// In-flight imbalance.
    Imbalance,
    /// Prompt tokens saved.
    Saved,
}

impl Metric {
    /// All of them, in their order.
    pub const ALL: [Metric; 4] = [Metric::Changed, Metric::Overlap, Metric::Imbalance, Metric::Saved];

    /// Its value in the form.
    pub const fn key(self) -> &'static str {
        match self {
            Metric::Changed => "flips",
            Metric::Overlap => "overlap",
            Metric::Imbalance => "spread",
            Metric::Saved => "saved",
        }
    }

    /// The one with a key; the first where there is none.
    pub fn named(key: &str) -> Self {
        Self::ALL.into_iter().find(|metric| metric.key() == key).unwrap_or(Metric::Changed)
    }

    /// Its name, with its unit.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Changed => "Changed worker, % of decisions",
            Metric::Overlap => "KV hit rate, % of prompt blocks",
            Metric::Imbalance => "In-flight imbalance p95, requests",
            Metric::Saved => "Prompt tokens saved a request",
        }
    }

    fn of(self, outcome: &FixedStateOutcome) -> Option<f64> {
        match self {
            Metric::Changed => Some(outcome.expected_changes / outcome.decisions.max(1) as f64),
            Metric::Overlap => outcome.overlap_share,
            Metric::Imbalance => outcome.imbalance.map(|imbalance| f64::from(imbalance.p95)),
            Metric::Saved => {
                outcome.prefill_saved_tokens.map(|saved| saved / outcome.prefill_decisions.max(1) as f64)
            }
        }
    }

    /// A value of it as text.
    pub fn text(self, value: Option<f64>) -> String {
        let Some(value) = value else { return format::UNKNOWN.to_owned() };
        match self {
            Metric::Changed | Metric::Overlap => format!("{:.1}", value * 100.0),
            Metric::Imbalance => format!("{value:.0}"),
            Metric::Saved => signed(value),
        }
    }
}

/// A cell: row and column.
pub type CellAt = (usize, usize);

/// The map of a sweep.
#[derive(Clone, Debug)]
pub struct HeatMap {
    report: Arc<SweepReport>,
    columns: usize,
    present: Option<CellAt>,
    recommended: Option<CellAt>,
}

impl HeatMap {
    /// Of a sweep with a grid.
    pub fn of(report: Arc<SweepReport>) -> Option<Self> {
        let grid = report.grid.as_ref()?;
        let columns = grid.temperatures.len();
        let row = |factor: f64| grid.prefill_factors.iter().position(|&of| of == factor);
        let column = grid.temperatures.iter().position(|&temperature| temperature == 0.0);
        let present = row(grid.recorded.prefill_factor()).zip(column);
        let recommended = report.recommendation.as_ref().and_then(|advice| advice.outcome);
        let recommended = recommended.map(|at| (at / columns, at % columns));
        Some(Self { columns, present, recommended, report })
    }

    fn grid(&self) -> Option<&Grid> {
        self.report.grid.as_ref()
    }

    /// The weights, downward.
    pub fn weights(&self) -> &[f64] {
        self.grid().map_or(&[], |grid| &grid.prefill_factors)
    }

    /// The temperatures, across.
    pub fn temperatures(&self) -> &[f64] {
        self.grid().map_or(&[], |grid| &grid.temperatures)
    }

    /// What stands behind it: `All 165 settings`.
    pub fn name(&self) -> String {
        format!("All {} settings", self.grid().map_or(0, |grid| grid.outcomes.len()))
    }

    /// What the present setting is.
    pub fn present_text(&self) -> Option<String> {
        present_setting(&self.report)
    }

    /// How the weights are set where the router runs.
    pub fn weight_option(&self) -> &'static str {
        self.grid().map_or("", |grid| grid.recorded.prefill_factor_number().option(grid.recorded.formula))
    }

    /// The cell to begin at: the recommended one, else the present one, else the first.
    pub fn begin_at(&self) -> CellAt {
        self.recommended.or(self.present).unwrap_or((0, 0))
    }

    /// Weight and temperature of a cell.
    pub fn setting(&self, (row, column): CellAt) -> Option<(f64, f64)> {
        Some((*self.weights().get(row)?, *self.temperatures().get(column)?))
    }

    fn outcome(&self, (row, column): CellAt) -> Option<&FixedStateOutcome> {
        self.grid()?.outcome(row, column)
    }

    /// The least and the greatest value of any cell; `None` where none is known.
    pub fn range(&self, metric: Metric) -> Option<(f64, f64)> {
        let values = self.grid()?.outcomes.iter().filter_map(|outcome| metric.of(outcome));
        let (least, most) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| (least.min(v), most.max(v)));
        (least <= most).then_some((least, most))
    }

    /// The ends of the scale as text.
    pub fn legend(&self, metric: Metric) -> [String; 2] {
        let range = self.range(metric);
        [range.map(|(least, _)| least), range.map(|(_, most)| most)].map(|end| metric.text(end))
    }

    /// A cell's figure.
    pub fn text(&self, at: CellAt, metric: Metric) -> String {
        metric.text(self.outcome(at).and_then(|outcome| metric.of(outcome)))
    }

    /// Which of the [`STEPS`] shades a cell has; `None`: its value is unknown.
    pub fn shade(&self, at: CellAt, metric: Metric) -> Option<usize> {
        let value = self.outcome(at).and_then(|outcome| metric.of(outcome))?;
        Some(match self.range(metric) {
            Some((least, most)) if most > least => {
                ((value - least) / (most - least) * (STEPS - 1) as f64).round() as usize
            }
            _ => 4,
        })
    }

    /// Sign and meaning of a cell that is marked; empty where it is not.
    pub fn mark(&self, cell: CellAt) -> (&'static str, &'static str) {
        match (Some(cell) == self.present, Some(cell) == self.recommended) {
            (true, true) => ("◆★", "present, recommended"),
            (true, false) => ("◆", "present"),
            (false, true) => ("★", "recommended"),
            (false, false) => ("", ""),
        }
    }

    /// What a cell says beside its figure, its mark included.
    pub fn note(&self, at: CellAt) -> Option<String> {
        let note = self.in_text(at)?;
        Some(match self.mark(at).1 {
            "" => note,
            meaning => format!("{note} ({meaning})"),
        })
    }

    /// A cell for those who hear the page: what is seen comes first.
    pub fn label(&self, at: CellAt, metric: Metric) -> Option<String> {
        Some(format!("{}: {}", self.text(at, metric), self.note(at)?))
    }

    /// What is said of the cell that the reader is on.
    pub fn status_text(&self, at: CellAt) -> String {
        format!("{}.", self.note(at).unwrap_or_default())
    }

    fn in_text(&self, at: CellAt) -> Option<String> {
        let (grid, outcome, (weight, temperature)) = (self.grid()?, self.outcome(at)?, self.setting(at)?);
        let name = grid.recorded.prefill_factor_number().name;
        let unknown = || "unknown".to_owned();
        let overlap = |o: &FixedStateOutcome| o.overlap_share.map_or_else(unknown, format::tenths);
        let imbalance = |o: &FixedStateOutcome| o.imbalance.map_or_else(unknown, |s| s.p95.to_string());
        let saved = match Metric::Saved.of(outcome) {
            Some(saved) => format!("{} prompt tokens saved a request", signed(saved)),
            None => "prompt tokens saved unknown".to_owned(),
        };
        Some(format!(
            "{name} {weight}, router_temperature {temperature}: {} of {} decisions change worker; KV hit rate {} (actual {}); in-flight \
             imbalance p95 {} (actual {}); {saved}",
            changed(outcome),
            format::count(outcome.decisions),
            overlap(outcome),
            overlap(&grid.actual),
            imbalance(outcome),
            imbalance(&grid.actual),
        ))
    }

    /// Where a key leads from a cell; `None` for other keys.
    pub fn after(&self, (row, column): CellAt, key: &str) -> Option<CellAt> {
        let (last_row, last_column) = (self.weights().len().checked_sub(1)?, self.columns.checked_sub(1)?);
        Some(match key {
            "ArrowUp" => (row.saturating_sub(1), column),
            "ArrowDown" => ((row + 1).min(last_row), column),
            "ArrowLeft" => (row, column.saturating_sub(1)),
            "ArrowRight" => (row, (column + 1).min(last_column)),
            "Home" => (row, 0),
            "End" => (row, last_column),
            "PageUp" => (0, column),
            "PageDown" => (last_row, column),
            _ => return None,
        })
    }
}
