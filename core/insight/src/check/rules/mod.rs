//! The rules, one file each; adding one is a file and a line here.

mod approximate_mode;
mod behind;
mod block_size;
mod cascade;
pub(super) mod churn;
mod cold_tree;
mod engine_hashes_differ;
mod errors;
mod event_gaps;
mod event_lines_mixed;
mod event_path;
mod ghost_worker;
pub(super) mod hot_worker;
mod joined_late;
pub(super) mod memory_full;
mod no_events;
mod nothing_heard;
mod own_losses;
mod prediction_differs;
mod queueing;
mod replicas_disagree;
mod router_hears_no_events;
mod router_restarted;
mod slo_breach;
mod source_down;
mod spread;
pub(super) mod starved_worker;
mod unknown_parents;
mod unknown_removals;
mod worker_gone;
mod worse_than_round_robin;
mod zero_overlap;

#[cfg(test)]
mod tests;

use super::Rule;

/// Every rule, in the order in which they are listed.
pub(super) const ALL: &[&dyn Rule] = &[
    &block_size::BlockSizeMismatch,
    &no_events::NoEvents,
    &nothing_heard::NothingHeard,
    &event_lines_mixed::EventLinesMixed,
    &router_hears_no_events::RouterHearsNoEvents,
    &approximate_mode::ApproximateMode,
    &zero_overlap::ZeroOverlap,
    &cold_tree::ColdTree,
    &unknown_parents::UnknownParents,
    &unknown_removals::UnknownRemovals,
    &event_gaps::EventGaps,
    &joined_late::JoinedLate,
    &engine_hashes_differ::EngineHashesDiffer,
    &worker_gone::WorkerGone,
    &ghost_worker::GhostWorker,
    &router_restarted::RouterRestarted,
    &churn::Churn,
    &memory_full::MemoryFull,
    &hot_worker::HotWorker,
    &starved_worker::StarvedWorker,
    &spread::Spread,
    &cascade::Cascade,
    &queueing::Queueing,
    &prediction_differs::PredictionDiffers,
    &replicas_disagree::ReplicasDisagree,
    &slo_breach::SloBreach,
    &worse_than_round_robin::WorseThanRoundRobin,
    &errors::Errors,
    &behind::Behind,
    &source_down::SourceDown,
    &own_losses::OwnLosses,
];
