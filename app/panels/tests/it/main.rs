//! What panels show of folded states: simulated clusters, and recordings of real Dynamo.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod changes;
mod compare;
mod counterfactual;
mod decisions;
mod findings;
mod fleet;
mod folded;
mod kiosk;
mod latency;
mod losses;
mod marks;
mod memory;
mod notices;
mod overview;
mod pools;
mod rates;
mod reuse;
mod stage;
mod states;
mod status;
mod timeline;
mod tour;
mod tree;
mod whatif;
mod workers;
