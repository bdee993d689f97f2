//! Recordings written, read, cut off and of earlier versions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod recorded;
mod upgraded;
