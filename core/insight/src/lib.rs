//! Questions asked of the state: findings (one file a rule), latency, memory, in-flight imbalance, baselines, capacity,
//! what-if, counterfactual, round-robin for one request.
//!
//! Must not know how a response is shown or sent.
#![forbid(unsafe_code)]

pub mod baseline;
pub mod block_rates;
pub mod capacity;
pub mod changes;
pub mod check;
pub mod completeness;
pub mod counterfactual;
pub mod csv_text;
pub mod feed;
pub mod imbalance;
pub mod in_flight;
pub mod latency;
pub mod memory;
pub mod occupancy;
pub mod other_routers;
pub mod queues;
pub mod recent_window;
pub mod reuse;
pub mod round_robin;
pub mod time_range;
pub mod timeline;
pub mod view_context;
pub mod whatif;
