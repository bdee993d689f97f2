//! The prefix tree mirror against a plain model of it, and against time, memory and hostile bytes.

mod changed_blocks;
mod hits;
mod limit;
mod model;
mod sequences;
mod size;
mod snapshots;
