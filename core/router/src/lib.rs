//! What Dynamo's router computes, computed again. Knows nothing of who holds which block.
#![forbid(unsafe_code)]

pub mod cost;
pub mod example;
pub mod explain;
pub mod frozen;
pub mod hash;
pub mod numbers;
pub mod pick;
pub mod score;
pub mod settings;
pub mod text;

pub use cost::{Common, Load, Overlap, Request, Terms, WorkerInput};
pub use score::{Score, Scores, score};
pub use settings::{Formula, Role, RouterMode, RouterOverrides, RouterSettings, TieBreak};
