//! Decisions and findings as others read them: JSON as the API gives it, CSV, and findings in Markdown. Knows no file and
//! no request.
//!
//! Ids and hashes are decimal strings in JSON, because a JavaScript number keeps 53 bits.
#![forbid(unsafe_code)]

mod checks;
mod cluster_summary;
pub mod colour;
pub mod engines;
pub mod finding_ticket;
pub mod fleet;
pub mod indexers;
mod memory;
pub mod mooncake;
pub mod other_routers;
pub mod panel;
mod reuse;
pub mod rows;
pub mod stage;
mod trace_url;
pub mod tree;

pub use checks::{FindingFilter, Findings, Incident, Summary, pending_text};
pub use cluster_summary::{
    ClusterSummary, FindingCounts, HitRate, RequestRate, ReuseLoss, SourceCounts, TtftFigure, WorkerCounts,
    WorstFinding, WorstLoss,
};
pub use memory::Memories;
pub use reuse::ReuseReport;
pub use rows::{Decisions, DecisionsOf, Totals, decision_row};
pub use trace_url::{InvalidTraceUrl, TraceUrl};
