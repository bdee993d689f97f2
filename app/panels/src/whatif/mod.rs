//! What-if: a request put to a state under settings and in a cluster of the reader's choice. What is asked, field by field; what is
//! answered; and the texts of the form.

mod fleet;
mod query;
mod recorded;
mod response;
mod settings;

use radixscope_model::id::{BlockHash, DecisionId, Millis, Worker};
use radixscope_router::{Scores, example, score};

use crate::format;
use crate::time_zone::TimeZone;
use crate::url::Address;

pub use fleet::{FleetTable, LoadPart, busy, exclude, is_excluded, set_busy};
pub use query::{FetchedPrompt, InputFault, Mode, Query, TokenIds, fault_of, pool, token_blocks};
pub use recorded::{
    LISTED_WORKERS, cached_prefix_of_latest, describe, latest, newer, older, prefix_workers,
    settings_known_for,
};
pub use response::{Response, ResponseResult, name, respond};
pub use settings::{Setting, VERSIONS, defaults_of, has_roles, in_version, role_named, settings, version};

/// What the address asks about.
#[derive(Clone, PartialEq, Debug)]
pub enum Wanted {
    /// A decision.
    Decision(DecisionId),
    /// How a request would go on from a block cached on a worker.
    Prefix(Worker, BlockHash),
    /// The worked example.
    Example,
}

impl Wanted {
    /// What an address names; `None`: nothing, so the latest decision.
    pub fn of(address: &Address) -> Option<Self> {
        if let Some(id) = address.decision {
            return Some(Self::Decision(id));
        }
        let prefix = address.other("prefix");
        match prefix.as_deref().and_then(prefix_of) {
            Some((worker, block)) => Some(Self::Prefix(worker, block)),
            None => address.other("example").map(|_| Self::Example),
        }
    }
}

/// `ID/RANK:BLOCK_HASH`, or `ID:BLOCK_HASH`.
fn prefix_of(text: &str) -> Option<(Worker, BlockHash)> {
    let (worker, block) = text.rsplit_once(':')?;
    Some((worker_of(worker)?, BlockHash(block.parse().ok()?)))
}

/// `ID/RANK`, or `ID`.
fn worker_of(text: &str) -> Option<Worker> {
    let (id, rank) = text.split_once('/').unwrap_or((text, "0"));
    Some(Worker::new(id.parse().ok()?, rank.parse().ok()?))
}

/// Which state is scored, and the button that changes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MomentText {
    /// What is scored.
    pub state: String,
    /// Whether it is a copy that stays while the page's own state goes on.
    pub is_fixed: bool,
    /// What the button does.
    pub button: &'static str,
}

impl MomentText {
    /// `fixed`: the copy's time and record; `at`: the moment that the page shows, 0: the present.
    pub fn of(fixed: Option<(Millis, u64)>, at: u64, zone: TimeZone) -> Self {
        let state = match (fixed, at) {
            (Some((at_ms, seq)), _) => {
                format!("Fixed at {}, record {}", zone.time_of_day(at_ms), format::count(seq))
            }
            (None, 0) => "Live state".to_owned(),
            (None, at) => format!("State at {}", zone.time_of_day(Millis(at))),
        };
        let button = match (fixed.is_some(), at) {
            (false, _) => "Freeze",
            (true, 0) => "Back to live",
            (true, _) => "Unfreeze",
        };
        Self { state, is_fixed: fixed.is_some(), button }
    }
}

/// A worker of the example that explains the cost.
#[derive(Clone, PartialEq, Debug)]
pub struct ExampleRow {
    /// From 1.
    pub number: usize,
    /// Blocks of the prompt cached there.
    pub cached: u32,
    /// Blocks that it would have to compute.
    pub prefill: f64,
    /// Blocks that it carries.
    pub decode: f64,
    /// What it costs, in blocks.
    pub cost: f64,
    /// Whether it wins.
    pub wins: bool,
}

/// The example that everybody knows, computed by the same code as any other response.
pub fn example_rows() -> Vec<ExampleRow> {
    let workers = example::workers();
    let mut scores = Scores::default();
    score(&example::SETTINGS, &example::REQUEST, &workers, &mut scores);
    let row = |(at, worker): (usize, &radixscope_router::WorkerInput)| {
        let terms = scores.terms_of(worker);
        ExampleRow {
            number: at + 1,
            cached: worker.overlap.device,
            prefill: terms.prefill_blocks,
            decode: terms.decode_blocks,
            cost: terms.cost,
            wins: at == example::CHOSEN,
        }
    };
    workers.iter().enumerate().map(row).collect()
}
