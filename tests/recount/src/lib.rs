//! What a recording of Dynamo holds, counted without any of Radixscope's own code, and compared with what Radixscope
//! shows. Slow and plain on purpose. Must never depend on `radixscope-core`.
#![forbid(unsafe_code)]

pub mod capture;
pub mod compare;
mod files;
pub mod log;
pub mod metrics;
pub mod recording;
pub mod router;

/// A worker's id and its data-parallel rank.
pub type Worker = (u64, u64);
