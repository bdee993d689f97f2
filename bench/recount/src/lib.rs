//! What a recording of Dynamo holds, counted without any of Radixscope's own code, and compared with what Radixscope
//! shows. Slow and plain on purpose. Must never depend on a crate of ours; only tests do.
//!
//! # How it works
//!
//! `recount` reads a recording without any of our own code: each `Selected worker` line is a decision, and every
//! value of it is *reported* by some line or message, *not reported*, or *unsure* where the line may be about another
//! decision. It is checked against the clients' own notes. The comparison goes by `/api/v1/decisions`: a reported
//! value has to be shown exactly, one that is not has to be `null`, an unsure one is not judged. Costs called
//! reconstructed have to equal the router's. Where a router logs the cost of every candidate, those lines are also
//! kept back once, and what is reconstructed instead is held against them. The mean hit rate has to equal the
//! router's histogram.
//!
//! `cargo xtask test decisions` replays recordings through the library, every line and message at its own time plus a
//! delay: what is shown must not depend on which source is received first. `cargo xtask live VERSION` does the same
//! beside a running Dynamo, with the log followed as it grows, and compares `/api/v1/cluster` and `/api/v1/latency`
//! as well.
//!
//! Pools, and where prefill and decode are apart both choices of a request, are counted by the subjects of messages and
//! the model cards of discovery. With replica sync every message about a request is replayed by itself: tokens that wait
//! on a worker and different blocks that run there make the cost of the next choice.
//!
//! `reuse` counts where the blocks of each visible prompt were cached, block for block as of the choice, what became of those that were
//! gone, and what engines report to have reused; the test `reuse` holds it against what Radixscope computes.
#![forbid(unsafe_code)]

pub mod capture;
pub mod compare;
pub mod discovery;
mod files;
mod loads;
pub mod log;
pub mod metrics;
pub mod recording;
pub mod reuse;
pub mod router;

/// A worker's id and its data-parallel rank.
pub type Worker = (u64, u64);
