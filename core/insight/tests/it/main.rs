//! Analyses of recorded deployments and of simulated clusters, received as by a server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures beside what is asserted")]

mod captures;
mod checks_demo;
mod counterfactual;
mod recorded_log;
mod sim_reuse;
mod simulated;
mod whatif_sim;
