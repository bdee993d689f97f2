//! Rows of the state's items with names in place of indices, each made in one place: the API, CSV, Parquet, recordings and the
//! page take them from here. Knows no file and no request.

mod decision;
mod decision_columns;
mod decision_csv;

pub use decision::{Decisions, DecisionsOf, Totals, decision_row};
pub use decision_columns::{DECISION_COLUMNS, DecisionFields, ReadColumn};
pub use decision_csv::{DecisionsCsv, decisions_csv};

use radixscope_model::formula::Formula;
use radixscope_model::record::Decision;

/// Factor of the prefill term under its name in formula A.
fn overlap_score_weight(decision: &Decision) -> Option<f64> {
    decision.prefill_factor.filter(|_| decision.formula == Some(Formula::A))
}

/// The same under its name from formula B on.
fn prefill_load_scale(decision: &Decision) -> Option<f64> {
    decision.prefill_factor.filter(|_| decision.formula != Some(Formula::A))
}
