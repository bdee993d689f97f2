//! What is exported of simulated clusters.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod consistency;
mod exhaustive;
mod sessions;

use radixscope_model::id::Millis;

/// When simulations begin.
const START: Millis = Millis(1_767_225_600_000);
