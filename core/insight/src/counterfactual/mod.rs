//! What would have become of the latest decisions under other settings: from the state to a report.
//!
//! Two ways, never mixed. *Frozen* judges each decision on the very state it saw and follows nothing up; it is exact
//! for one decision. *Re-simulated* plays the recorded arrivals through a model in which caches and loads react; there
//! only model and model compare. Server and page use the same functions. Must not know how a report is shown or sent.

mod frozen;
mod model;
mod sample;
mod words;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use radixscope_model::id::WorkerIx;
use radixscope_router::frozen::Setting;
use radixscope_router::{Formula, Options};
use radixscope_state::cluster::MAX_DECISIONS;

pub use frozen::{About, Flipped, FrozenReport, SweepReport, TEMPERATURES, WEIGHTS, weights_with};
pub use model::{
    Fact, Facts, Figures, Measured, ModelError, ModelReport, Provenance, Times, arrivals_needed, resimulate,
};
pub use sample::{Reason, Sample};
pub use words::{
    FROZEN_LIMITS, NO_ARRIVALS_HINT, NO_CANDIDATES_HINT, headline, not_judged, present_setting,
    setting_in_words,
};

/// Most weights, and most temperatures, of one sweep.
pub const MAX_AXIS: usize = 21;
/// Most settings of one sweep.
pub const MAX_SETTINGS: usize = 21 * 15;

/// Which decisions are meant: the latest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Span {
    /// So many.
    Last(u32),
    /// Those of so many milliseconds before the latest record.
    Ms(u64),
}

impl Span {
    /// Everything that is kept.
    pub const ALL: Span = Span::Last(MAX_DECISIONS as u32);
}

/// Which decisions are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Selection {
    /// How far back.
    pub span: Span,
    /// Only those that went to this worker. How workers are loaded beside each other is unknown then.
    pub worker: Option<WorkerIx>,
}

/// The setting that is tried.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Trial {
    /// Each worker in its turn.
    RoundRobin,
    /// By cost.
    Cost {
        /// Overlap score weight (A) or prefill load scale (B–E); `None`: as recorded.
        weight: Option<f64>,
        /// Credit of a block on the device (B–E); `None`: as recorded.
        credit: Option<f64>,
        /// 0 takes the lowest cost.
        temperature: f64,
    },
}

/// A setting that cannot be tried.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum BadTrial {
    /// Dynamo would refuse it; why.
    #[error("{0}")]
    Option(String),
    /// An axis of a sweep has no or too many values.
    #[error("{name} has {count} values; a sweep takes 1 to {MAX_AXIS}, {MAX_SETTINGS} settings together")]
    Axis {
        /// Which.
        name: &'static str,
        /// How many there are.
        count: usize,
    },
}

impl Trial {
    /// # Errors
    /// The first number that Dynamo would refuse.
    pub fn validate(&self) -> Result<(), BadTrial> {
        let Trial::Cost { weight, credit, temperature } = *self else { return Ok(()) };
        let mut options = Options::default();
        options.overlap_score_weight = weight.unwrap_or(options.overlap_score_weight);
        options.overlap_score_credit = credit.unwrap_or(options.overlap_score_credit);
        options.temperature = temperature;
        options.validate().map_err(|error| BadTrial::Option(error.to_string()))
    }

    /// The same with what was recorded where nothing else is said.
    fn setting(self, recorded: radixscope_router::frozen::Recorded) -> Setting {
        let Trial::Cost { weight, credit, temperature } = self else { return Setting::RoundRobin };
        let Setting::Cost { prefill_factor, overlap_score_credit, tie_break, .. } =
            Setting::recorded(recorded, temperature)
        else {
            return Setting::RoundRobin;
        };
        Setting::Cost {
            prefill_factor: weight.unwrap_or(prefill_factor),
            overlap_score_credit: match recorded.formula {
                Formula::A => overlap_score_credit,
                _ => credit.unwrap_or(overlap_score_credit),
            },
            temperature,
            tie_break,
        }
    }
}

/// Checks the axes of a sweep.
///
/// # Errors
/// What cannot be tried.
pub fn validate_axes(weights: &[f64], temperatures: &[f64]) -> Result<(), BadTrial> {
    let together = weights.len() * temperatures.len();
    for (name, count) in [("weights", weights.len()), ("temperatures", temperatures.len())] {
        if count == 0 || count > MAX_AXIS || together > MAX_SETTINGS {
            return Err(BadTrial::Axis { name, count });
        }
    }
    let trial = |weight, temperature| Trial::Cost { weight, credit: None, temperature };
    weights.iter().try_for_each(|&weight| trial(Some(weight), 0.0).validate())?;
    temperatures.iter().try_for_each(|&temperature| trial(None, temperature).validate())
}

/// How the weight of a formula is called and set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightName {
    /// Dynamo's name.
    pub name: &'static str,
    /// Flag of the frontend, or its environment variable where the reference names no flag.
    pub option: &'static str,
}

/// Names of the weight of a formula.
pub fn weight_name(formula: Formula) -> WeightName {
    let name = match formula {
        Formula::A => "overlap_score_weight",
        _ => "prefill_load_scale",
    };
    let numbers = Options::new(formula).numbers();
    let option = numbers.iter().find(|(number, _)| number.name == name);
    WeightName { name, option: option.map_or(name, |(number, _)| number.flag.unwrap_or(number.variable)) }
}
