//! The state: prefix tree with its icicle layout, cluster, fold, snapshot, digest, duplicate blocks, search.
//!
//! Pure: no I/O, async, clock or randomness; time comes with the record. Must not know Dynamo's wire or how it is shown.
#![forbid(unsafe_code)]

pub mod cluster;
pub mod hash_part;
pub mod per_worker;
pub mod redact;
pub mod redundancy;
pub mod requests;
pub mod search;
pub mod sink;
pub mod tree;
