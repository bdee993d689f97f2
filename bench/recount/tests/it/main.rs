//! The recount held against counts that were made before by other means, and what Radixscope shows against the recount.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures beside what is asserted")]

mod played;
mod recordings;
mod reuse;
mod topologies;
