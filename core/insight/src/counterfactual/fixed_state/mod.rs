//! What the same decisions would have been under another setting, each judged on the very state it saw.
//!
//! The state is *fixed* because nothing that follows from a different choice is followed up: no cache warms elsewhere, no
//! load moves. That makes it exact for one decision and an estimate for many; what a setting does over time takes a
//! simulation of the arrivals. Must not know records, clusters or clocks.

mod evaluate;
mod expected;
mod noise;
mod outcome;
mod recommend;
mod sweep;
#[cfg(test)]
mod tests;

pub use expected::{Expected, LEAST_REQUESTS, slope};
pub use noise::{Interval, Part};
pub use outcome::{ChangedDecision, FixedStateOutcome, LoadImbalance, MAX_LISTED_CHANGES, WorkerShare};
pub(super) use recommend::recommend;
pub use recommend::{Recommendation, Suggestion};
pub use sweep::Grid;
