//! From observations to records: worker indices, publishers' sequences, losses, the parts of a decision joined, block lifetimes.
//!
//! The one seam at which data from outside enters. Reads the state and never changes it; does no I/O.
#![forbid(unsafe_code)]

pub mod ages;
pub mod ingest;
pub mod listen;
pub mod routing;
