//! What routers themselves report of every decision they made: in their logs, and over NATS where they publish it.

mod join;
mod read;

use crate::Worker;
use crate::capture::Happened;
use crate::discovery::Role;

pub(crate) use join::{added, hit_rates, link, steps};
pub use read::{read, times};

/// Whether something is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fact<T> {
    /// Not reported.
    #[default]
    NotReported,
    /// It is reported, but not surely of this decision, or it follows from what is reported: not judged.
    Unsure,
    /// It is reported.
    Reported(T),
}

impl<T> Fact<T> {
    /// What is reported.
    pub fn reported(&self) -> Option<&T> {
        match self {
            Self::Reported(value) => Some(value),
            Self::NotReported | Self::Unsure => None,
        }
    }

    /// Takes what another source reports, unless it is reported already.
    pub(crate) fn or_reported(&mut self, value: Option<T>) {
        if let (Some(value), None) = (value, self.reported()) {
            *self = Self::Reported(value);
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

/// A router's decision: one `Selected worker` line of a KV router.
#[derive(Clone, Debug)]
pub struct Decision {
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
    /// Blocks of the prompt that the chosen worker held on its device.
    pub overlap_blocks: Fact<u64>,
    /// Blocks beyond those that it held in host memory and on disk, where the line tells.
    pub below: Option<(u64, u64)>,
    /// Length of the prompt in tokens.
    pub isl_tokens: Fact<u64>,
    /// Length of the prompt in blocks, rounded up.
    pub isl_blocks: Fact<u64>,
    /// Every worker that was weighed.
    pub candidates: Vec<Formula>,
    /// Whether the hashes of the prompt's blocks are reported, so that what each worker would have cost can be computed.
    pub is_prompt_known: bool,
    /// Time to the first token, ms.
    pub ttft_ms: Fact<f64>,
    /// Mean time between tokens, ms.
    pub itl_ms: Fact<f64>,
    /// Tokens of the response.
    pub output_tokens: Fact<u64>,
    /// When the first token came.
    pub first_token: Fact<Happened>,
    /// The end of the request on this worker.
    pub ended: Fact<Happened>,
    /// The same by lines of the log, Unix seconds: on this worker, and of the whole response.
    pub log_ended_s: Vec<f64>,
    /// The pool of the chosen worker, where anything names it.
    pub pool: Option<String>,
    /// What its workers do.
    pub role: Role,
    /// The worker of the choice for the same request in another pool.
    pub other_part: Option<Worker>,
    /// What the messages about this request and those before it make of the chosen worker's cost.
    pub message_cost: Option<f64>,
    /// Whether the worker was really given the request; `None`: not reported.
    pub is_dispatched: Option<bool>,
    /// Id of the HTTP request that the line names, until the router's own is found by it.
    http_id: Option<String>,
}

impl Decision {
    /// Whether a cost that is shown is the one the router wrote, as far as it wrote it.
    pub fn is_logit(&self, cost: f64) -> bool {
        (cost - self.logit).abs() <= if self.is_exact { 1e-9 } else { HALF_A_DECIMAL }
    }
}

/// What a block in host memory counts beside one on the device, as Dynamo is set up without options.
pub(crate) const HOST_WEIGHT: f64 = 0.75;

impl Decision {
    /// What routers report as held counts blocks of lower tiers by their weight: leaves those on the device.
    pub(crate) fn on_device(&mut self) {
        let Some((host, disk)) = self.below.filter(|&below| below != (0, 0)) else { return };
        let credit = (HOST_WEIGHT * host as f64).round() as u64;
        let held = self.overlap_blocks.reported().and_then(|held| held.checked_sub(credit));
        self.overlap_blocks = held.filter(|_| disk == 0).map_or(Fact::Unsure, Fact::Reported);
    }
}

/// Three decimals are right to this.
pub(crate) const HALF_A_DECIMAL: f64 = 0.000_5 + 1e-9;
