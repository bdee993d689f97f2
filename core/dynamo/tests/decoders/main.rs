//! The decoders against real, damaged and made-up messages.
#![allow(unreachable_pub, reason = "a test binary has no outside")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may fail")]

mod allocation;
mod captures;
mod client_results;
mod engines;
mod hostile;
mod log_hostile;
mod log_shapes;
mod log_versions;
mod logs;
mod messages;
mod other_routers;
mod pickers;
mod plain;
mod shapes;
mod topologies;
mod traces;
mod transcript;
mod tree_queries;
