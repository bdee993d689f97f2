//! The numbers among a router's options, as the operator meets them: name, variable, flag, default, limit (reference
//! §5.9). Must not know how they are used.

use thiserror::Error;

use super::settings::Formula;

/// A number that Dynamo would refuse.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
pub enum RefusedNumber {
    /// Infinite, not a number, or below 0.
    #[error("{name} is {value}; it must be a finite number, 0 or more")]
    NotFiniteOrNegative {
        /// The option.
        name: &'static str,
        /// What it was set to.
        value: f64,
    },
    /// Above what Dynamo takes.
    #[error("{name} is {value}; Dynamo takes 0 to {most}")]
    TooLarge {
        /// The option.
        name: &'static str,
        /// What it was set to.
        value: f64,
        /// The largest allowed.
        most: f64,
    },
}

/// How a number is set where the router runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NumberDoc {
    /// Dynamo's name.
    pub name: &'static str,
    /// Its symbol in the formulas.
    pub symbol: &'static str,
    /// Environment variable of the frontend, up to 1.5; from 1.6 it is a parameter of [`super::policy_file`].
    pub variable: &'static str,
    /// Command-line flag of the frontend up to 1.5, where the reference names one.
    pub flag: Option<&'static str>,
    /// Dynamo's default.
    pub default: f64,
    /// The largest value Dynamo takes, if it has a limit.
    pub most: Option<f64>,
    /// The formulas that use it.
    pub formulas: &'static [Formula],
    /// What it does.
    pub meaning: &'static str,
}

impl NumberDoc {
    /// # Errors
    /// Dynamo would refuse the value.
    pub fn check(&self, value: f64) -> Result<(), RefusedNumber> {
        let name = self.name;
        if !value.is_finite() || value < 0.0 {
            return Err(RefusedNumber::NotFiniteOrNegative { name, value });
        }
        match self.most {
            Some(most) if value > most => Err(RefusedNumber::TooLarge { name, value, most }),
            _ => Ok(()),
        }
    }
}

const FROM_B: &[Formula] = &[Formula::B, Formula::C, Formula::D, Formula::E];

/// `k`.
pub const OVERLAP_SCORE_WEIGHT: NumberDoc = NumberDoc {
    name: "overlap_score_weight",
    symbol: "k",
    variable: "DYN_KV_OVERLAP_SCORE_WEIGHT",
    flag: Some("--kv-overlap-score-weight"),
    default: 1.0,
    most: None,
    formulas: &[Formula::A],
    meaning: "Weight of prompt tokens still to compute against blocks in use; 0 starts no index at all",
};
/// `s`.
pub const PREFILL_LOAD_SCALE: NumberDoc = NumberDoc {
    name: "prefill_load_scale",
    symbol: "s",
    variable: "DYN_ROUTER_PREFILL_LOAD_SCALE",
    flag: None,
    default: 1.0,
    most: None,
    formulas: FROM_B,
    meaning: "Scale of prompt blocks still to compute after all credits",
};
/// `c`.
pub const OVERLAP_SCORE_CREDIT: NumberDoc = NumberDoc {
    name: "overlap_score_credit",
    symbol: "c",
    variable: "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT",
    flag: None,
    default: 1.0,
    most: None,
    formulas: FROM_B,
    meaning: "Credit for a prompt block cached on the worker's device",
};
/// `d`.
pub const OVERLAP_SCORE_CREDIT_DECAY: NumberDoc = NumberDoc {
    name: "overlap_score_credit_decay",
    symbol: "d",
    variable: "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT_DECAY",
    flag: None,
    default: 0.0,
    most: None,
    formulas: &[Formula::C, Formula::D, Formula::E],
    meaning: "How fast that credit shrinks with prefill load above the least loaded worker's",
};
/// `h`.
pub const HOST_CACHE_HIT_WEIGHT: NumberDoc = NumberDoc {
    name: "host_cache_hit_weight",
    symbol: "h",
    variable: "DYN_ROUTER_HOST_CACHE_HIT_WEIGHT",
    flag: None,
    default: 0.75,
    most: Some(1.0),
    formulas: FROM_B,
    meaning: "Credit for a prompt block in the worker's host memory",
};
/// `g`.
pub const DISK_CACHE_HIT_WEIGHT: NumberDoc = NumberDoc {
    name: "disk_cache_hit_weight",
    symbol: "g",
    variable: "DYN_ROUTER_DISK_CACHE_HIT_WEIGHT",
    flag: None,
    default: 0.25,
    most: Some(1.0),
    formulas: FROM_B,
    meaning: "Credit for a prompt block on the worker's disk or in external storage",
};
/// `m`.
pub const SHARED_CACHE_MULTIPLIER: NumberDoc = NumberDoc {
    name: "shared_cache_multiplier",
    symbol: "m",
    variable: "DYN_SHARED_CACHE_MULTIPLIER",
    flag: None,
    default: 0.0,
    most: Some(1.0),
    formulas: FROM_B,
    meaning: "Credit for a prompt block in a cache that all workers share; 0.5 unless set with hicache",
};
/// `r`.
pub const DECODE_ACTIVE_REQUEST_WEIGHT: NumberDoc = NumberDoc {
    name: "decode_active_request_weight",
    symbol: "r",
    variable: "DYN_ROUTER_DECODE_ACTIVE_REQUEST_WEIGHT",
    flag: None,
    default: 0.0,
    most: None,
    formulas: &[Formula::D, Formula::E],
    meaning: "Cost in blocks of each active request on a worker",
};
/// `T`.
pub const TEMPERATURE: NumberDoc = NumberDoc {
    name: "router_temperature",
    symbol: "T",
    variable: "DYN_ROUTER_TEMPERATURE",
    flag: Some("--router-temperature"),
    default: 0.0,
    most: None,
    formulas: &Formula::ALL,
    meaning: "0 takes the lowest cost; above, workers are drawn, those of higher cost more rarely",
};

/// Every number of [`super::RouterSettings`], in the order of the formulas.
pub const NUMBERS: [NumberDoc; 9] = [
    OVERLAP_SCORE_WEIGHT,
    PREFILL_LOAD_SCALE,
    OVERLAP_SCORE_CREDIT,
    OVERLAP_SCORE_CREDIT_DECAY,
    HOST_CACHE_HIT_WEIGHT,
    DISK_CACHE_HIT_WEIGHT,
    SHARED_CACHE_MULTIPLIER,
    DECODE_ACTIVE_REQUEST_WEIGHT,
    TEMPERATURE,
];
