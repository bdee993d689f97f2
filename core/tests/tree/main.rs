//! The prefix tree mirror against a plain model of it, and against time, memory and hostile bytes.

mod limit;
mod model;
mod sequences;
mod size;
mod snapshots;
