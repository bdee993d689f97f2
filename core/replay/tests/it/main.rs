//! A recording answers as the server that wrote it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod responses;
