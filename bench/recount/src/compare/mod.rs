//! What Radixscope answers, held against the recount.

mod cells;
pub mod cluster;
pub mod decisions;
pub mod latency;
pub mod live;
mod pairs;
pub mod table;

pub use cells::Ratio;

/// One figure that was counted and is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// What it counts.
    pub what: String,
    /// By the recount.
    pub recorded: String,
    /// By Radixscope.
    pub shown: String,
    /// Whether they agree.
    pub is_equal: bool,
}

impl Figure {
    /// Two figures that have to read the same.
    fn new(what: impl Into<String>, recorded: impl ToString, shown: impl ToString) -> Self {
        let (recorded, shown) = (recorded.to_string(), shown.to_string());
        let is_equal = recorded == shown;
        Self { what: what.into(), recorded, shown, is_equal }
    }
}
