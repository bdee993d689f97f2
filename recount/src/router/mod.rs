//! What routers themselves say of every choice they made: in their logs, and over NATS where they publish it.

mod join;
mod read;

use crate::Worker;

pub(crate) use join::{added, first_tokens, hit_rates};
pub use read::read;

/// Whether something is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fact<T> {
    /// Nobody says it.
    #[default]
    Untold,
    /// It is said, but not surely of this choice, or it follows from what is said: not judged.
    Unsure,
    /// It is said.
    Told(T),
}

impl<T> Fact<T> {
    /// What is said.
    pub fn told(&self) -> Option<&T> {
        match self {
            Self::Told(value) => Some(value),
            Self::Untold | Self::Unsure => None,
        }
    }

    /// Takes what another source says, unless it is said already.
    pub(crate) fn or_told(&mut self, value: Option<T>) {
        if let (Some(value), None) = (value, self.told()) {
            *self = Self::Told(value);
        }
    }
}

/// A worker as the router weighed it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Formula {
    /// Who.
    pub worker: Worker,
    /// Blocks of the prompt that it held.
    pub overlap_blocks: f64,
    /// Its cost in blocks, with three decimals.
    pub cost: f64,
}

/// A router's choice: one `Selected worker` line of a KV router.
#[derive(Clone, Debug)]
pub struct Choice {
    /// When the line was written, Unix seconds.
    pub at_s: f64,
    /// The chosen worker.
    pub worker: Worker,
    /// Its cost in blocks.
    pub logit: f64,
    /// Whether that is exact; else it has three decimals.
    pub is_exact: bool,
    /// The router's id of the request.
    pub request_id: Fact<String>,
    /// Blocks of the prompt that the chosen worker held.
    pub overlap_blocks: Fact<u64>,
    /// Length of the prompt in tokens.
    pub isl_tokens: Fact<u64>,
    /// Length of the prompt in blocks, rounded up.
    pub isl_blocks: Fact<u64>,
    /// Every worker that was weighed.
    pub candidates: Vec<Formula>,
    /// Whether the hashes of the prompt's blocks are said, so that what each worker would have cost can be computed.
    pub is_prompt_known: bool,
    /// Time to the first token, ms.
    pub ttft_ms: Fact<f64>,
    /// Mean time between tokens, ms.
    pub itl_ms: Fact<f64>,
    /// Tokens of the response.
    pub output_tokens: Fact<u64>,
    /// When the first token was published, Unix seconds.
    pub first_token_s: Fact<f64>,
    /// Whether the worker was really given the request; `None`: nobody says.
    pub is_dispatched: Option<bool>,
    /// Id of the HTTP request that the line names, until the router's own is found by it.
    http_id: Option<String>,
}

impl Choice {
    /// Whether a cost that is shown is the one the router wrote, as far as it wrote it.
    pub fn is_logit(&self, cost: f64) -> bool {
        (cost - self.logit).abs() <= if self.is_exact { 1e-9 } else { HALF_A_DECIMAL }
    }
}

/// Three decimals are right to this.
pub(crate) const HALF_A_DECIMAL: f64 = 0.000_5 + 1e-9;
