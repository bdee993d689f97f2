//! The same answers as Dynamo's own router crate: hashes, overlaps, costs and choices.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod captures;
mod hashes;
mod overlap;
mod scoring;
