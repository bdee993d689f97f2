//! What Dynamo's router computes, computed again. Knows nothing of who holds which block.
//!
//! # How it works
//!
//! Costs are computed with the operations in Dynamo's order, so that they equal Dynamo's to the bit; that two costs
//! are exactly equal decides a tie. `bench/oracle/tests/it/scoring.rs` holds costs, choices and draws against Dynamo's own
//! selector on 100,000 states.
#![forbid(unsafe_code)]

pub mod cost;
pub mod example;
pub mod explain;
pub mod hash;
pub mod numbers;
pub mod pick;
pub mod policy_file;
pub mod score;
pub mod settings;
mod text;

pub use cost::{Common, Load, Overlap, RoutedRequest, Terms, WorkerInput};
pub use score::{Scores, score};
pub use settings::{Formula, Role, RouterMode, RouterOverrides, RouterSettings, TieBreak};
