//! Rates and times as columns, and in words what they are and their largest values.

use radixscope_insight::time_range::TimeSpan;

use super::rows::{Quantity, TimelineRow, columns, line, most, top};
use crate::format;

/// What is drawn.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bands {
    /// Blocks stored in each column.
    pub stored: Vec<Option<f64>>,
    /// Blocks removed in each column.
    pub removed: Vec<Option<f64>>,
    /// Top of the scale of both, so that they can be compared.
    pub top_blocks: f64,
    /// Path of the decisions.
    pub decisions: String,
    /// Path of the times to first token.
    pub ttft: String,
    /// The same in words.
    pub text: String,
}

impl Bands {
    /// Of what each second of `span` brought.
    pub fn of(rows: &[TimelineRow], span: TimeSpan) -> Self {
        let columns = |of: Quantity| columns(rows, span, of);
        let (stored, removed) = (columns(|row| Some(row.stored)), columns(|row| Some(row.removed)));
        let most_blocks = most(&stored).max(most(&removed));
        let top_blocks = top(&stored).max(top(&removed));
        let (decisions, ttft) = (columns(|row| Some(row.decisions)), columns(|row| row.ttft_p95_ms));
        let most_ttft = most(&ttft);
        let ttft_text =
            if most_ttft > 0.0 { format!("at most {most_ttft:.0} ms") } else { "not reported".to_owned() };
        let text = format!(
            "Blocks stored (up) and removed (down): at most {} /s. Decisions: at most {} /s. TTFT p95, last 60 s: {ttft_text}",
            format::rate(most_blocks),
            format::rate(most(&decisions)),
        );
        Self {
            decisions: line(&decisions, top(&decisions)),
            ttft: line(&ttft, most_ttft),
            stored,
            removed,
            top_blocks,
            text,
        }
    }
}
