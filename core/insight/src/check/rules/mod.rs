//! The rules, one file each; adding one is a file and a line here.

mod approximate_mode;
mod behind;
mod block_size;
mod cascade;
pub(super) mod churn;
mod cold_tree;
mod engine_hashes_differ;
mod errors;
mod event_encoding_unknown;
mod event_gaps;
mod event_planes_mixed;
mod ghost_worker;
pub(super) mod hot_worker;
mod in_flight_imbalance;
mod indexer_differs;
pub(super) mod memory_full;
mod models_share_a_pool;
mod no_events;
mod not_kv_routing;
mod nothing_received;
mod own_losses;
mod prediction_differs;
pub(super) mod prefill_slower;
mod queueing;
mod replicas_disagree;
mod router_receives_no_events;
mod router_restarted;
mod router_settings_differ;
mod slo_breach;
mod source_down;
pub(super) mod starved_worker;
mod tree_drift;
mod tree_partial;
mod unknown_parents;
mod unknown_removals;
mod worker_gone;
pub(super) mod worker_stopped;
mod worse_than_round_robin;
mod zero_overlap;

#[cfg(test)]
mod tests;

use super::Rule;

/// What every rule uses.
mod prelude {
    pub(super) use crate::check::fixes::Fixes as _;
    pub(super) use crate::check::report::Report as _;
    pub(super) use crate::check::view::{WINDOW, WINDOW_MS, part};
    pub(super) use crate::check::{Finding, Rule, RuleOutcome, View};
    pub(super) use radixscope_model::id::{Millis, WorkerIx};
    pub(super) use radixscope_model::number_format::count;
    pub(super) use radixscope_model::record::{PanelRef, Severity};
}

/// Every rule, in the order in which they are listed.
pub(super) const ALL: &[&Rule] = &[
    &block_size::RULE,
    &no_events::RULE,
    &nothing_received::RULE,
    &event_planes_mixed::RULE,
    &models_share_a_pool::RULE,
    &not_kv_routing::RULE,
    &router_receives_no_events::RULE,
    &approximate_mode::RULE,
    &zero_overlap::RULE,
    &cold_tree::RULE,
    &unknown_parents::RULE,
    &unknown_removals::RULE,
    &event_encoding_unknown::RULE,
    &event_gaps::RULE,
    &tree_partial::RULE,
    &tree_drift::RULE,
    &indexer_differs::RULE,
    &engine_hashes_differ::RULE,
    &worker_gone::RULE,
    &worker_stopped::RULE,
    &ghost_worker::RULE,
    &router_restarted::RULE,
    &churn::RULE,
    &memory_full::RULE,
    &hot_worker::RULE,
    &starved_worker::RULE,
    &in_flight_imbalance::RULE,
    &cascade::RULE,
    &queueing::RULE,
    &prefill_slower::RULE,
    &prediction_differs::RULE,
    &replicas_disagree::RULE,
    &router_settings_differ::RULE,
    &slo_breach::RULE,
    &worse_than_round_robin::RULE,
    &errors::RULE,
    &behind::RULE,
    &source_down::RULE,
    &own_losses::RULE,
];
