//! The state against plain models of it, and from damaged bytes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster_snapshot;
mod fold_hits;
mod tree;
