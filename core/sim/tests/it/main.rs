//! The simulated cluster seen from outside.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod changes;
mod observed;
mod resimulation;
mod sim_calibration;
mod sim_frontend;
mod sim_metrics;
mod sim_pinned;
mod sim_stream;
mod sim_topologies;
