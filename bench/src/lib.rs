//! What the measuring programs share: their report, the trees and numbers that they generate, and how fast a figure rises.
//!
//! The servers, brokers and browsers that they start are those of the end-to-end tests (`radixscope-tests`). Nothing but
//! `cargo xtask bench`, `soak`, `screens`, `late` and parts of `test` builds this package.
#![forbid(unsafe_code)]

pub mod random;
pub mod report;
pub mod slope;
pub mod synthetic_tree;
