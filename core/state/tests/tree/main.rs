//! The prefix tree mirror against a plain model of it, and against time, memory and hostile bytes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod changed_blocks;
mod hits;
mod limit;
mod model;
mod sequences;
mod size;
mod snapshots;
