//! Every fault of the simulated cluster as an observer sees it: through the decoders and the fold that hear a real one.
//! The signatures are those that were measured on a real Dynamo 0.9.1 (reference §9.1).
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod observer;
mod table;
