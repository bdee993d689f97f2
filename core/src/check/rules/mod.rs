//! The rules, one file each; adding one is a file and a line here.

mod cascade;
pub(super) mod churn;
mod errors;
pub(super) mod hot_worker;
pub(super) mod memory_full;
mod own_losses;
mod prediction_differs;
mod queueing;
mod replicas_disagree;
mod slo_breach;
mod spread;
pub(super) mod starved_worker;
mod worse_than_round_robin;

use super::Rule;

/// Every rule, in the order in which they are listed.
pub(super) const ALL: &[&dyn Rule] = &[
    &own_losses::OwnLosses,
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
];
