//! The decoders against real, damaged and made-up bytes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod decoders;
mod plain_events;
