//! What a router's operator can set that enters a choice, by Dynamo's own names, with defaults and limits (reference
//! §5.2, §5.9). Must not know workers or requests.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which of Dynamo's cost formulas (reference §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Formula {
    /// 0.8 to 1.1: weight · prefill + decode.
    #[default]
    A,
    /// 1.2: credits for what lies in device, host, disk and shared caches.
    B,
    /// 1.3: as B, with credit that decays under prefill load, and preferred taints.
    C,
    /// 1.4 and 1.5: as C, with a cost for each active request, and a rule of its own for decode pools.
    D,
    /// 1.6: D restated; no cache input at all for plain decode pools.
    E,
}

impl Formula {
    /// All, oldest first.
    pub const ALL: [Formula; 5] = [Formula::A, Formula::B, Formula::C, Formula::D, Formula::E];

    /// Its letter.
    pub const fn as_str(self) -> &'static str {
        match self {
            Formula::A => "A",
            Formula::B => "B",
            Formula::C => "C",
            Formula::D => "D",
            Formula::E => "E",
        }
    }

    /// The default formula of a Dynamo version such as `0.9.1`, `v1.4.2` or `1.6.1rc2`; `None` for versions that the
    /// reference does not cover (before 0.8, after 1.6).
    pub fn of_version(version: &str) -> Option<Formula> {
        Some(match major_minor(version)? {
            (0, 8 | 9) | (1, 0 | 1) => Formula::A,
            (1, 2) => Formula::B,
            (1, 3) => Formula::C,
            (1, 4 | 5) => Formula::D,
            (1, 6) => Formula::E,
            _ => return None,
        })
    }
}

/// Who wins among workers of exactly equal, lowest cost at temperature 0 (reference §5.8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum TieBreak {
    /// 0.8, 0.9: the smallest tree; among equal trees whichever the router's hash map yields first, which looks
    /// random from outside.
    #[default]
    SmallestTree,
    /// 1.0, 1.1: at random if all tied trees are equally large, else the smallest tree. From outside the same chances
    /// as [`TieBreak::SmallestTree`].
    SmallestTreeThenRandom,
    /// From 1.2: at random.
    Random,
}

impl TieBreak {
    /// The rule of a Dynamo version; `None` as [`Formula::of_version`].
    pub fn of_version(version: &str) -> Option<TieBreak> {
        Some(match major_minor(version)? {
            (0, 8 | 9) => TieBreak::SmallestTree,
            (1, 0 | 1) => TieBreak::SmallestTreeThenRandom,
            (1, 2..=6) => TieBreak::Random,
            _ => return None,
        })
    }

    /// The rule that goes with a formula; for A that of 0.8 and 0.9.
    pub const fn of_formula(formula: Formula) -> TieBreak {
        match formula {
            Formula::A => TieBreak::SmallestTree,
            _ => TieBreak::Random,
        }
    }
}

/// The two first numbers of a version.
fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix('v').unwrap_or(version).split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?;
    let end = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
    Some((major, minor[..end].parse().ok()?))
}

/// What the workers chosen among do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Role {
    /// Prefill and decode.
    #[default]
    Aggregated,
    /// Prefill of a disaggregated deployment.
    Prefill,
    /// Decode of a disaggregated deployment.
    Decode,
    /// Encoding of images and the like.
    Encode,
}

impl Role {
    /// `worker_type` in the router's log: everything but a prefill pool says `decode` (reference §5.7, §7.3).
    pub const fn worker_type(self) -> &'static str {
        match self {
            Role::Prefill => "prefill",
            Role::Aggregated | Role::Decode | Role::Encode => "decode",
        }
    }
}

/// Everything set that enters a choice. Options that a formula does not know are ignored by it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The formula.
    pub formula: Formula,
    /// Who wins a tie at temperature 0.
    pub tie_break: TieBreak,
    /// The pool chosen from.
    pub role: Role,
    /// `k`, factor of the prefill term (A).
    pub overlap_score_weight: f64,
    /// `s`, factor of the prefill term (B–E).
    pub prefill_load_scale: f64,
    /// `c`, credit of a block on the device (B–E).
    pub overlap_score_credit: f64,
    /// `d`, how fast that credit decays with prefill load above the least loaded worker's (C–E).
    pub overlap_score_credit_decay: f64,
    /// `h`, credit of a block in host memory (B–E).
    pub host_cache_hit_weight: f64,
    /// `g`, credit of a block on disk or outside (B–E).
    pub disk_cache_hit_weight: f64,
    /// `m`, credit of a block in a shared cache (B–E); Dynamo's own default is 0, or 0.5 with `hicache`.
    pub shared_cache_multiplier: f64,
    /// `r`, cost of an active request in blocks (D, E).
    pub decode_active_request_weight: f64,
    /// `T`, 0 takes the lowest cost.
    pub temperature: f64,
    /// Whether prompts count as load until their first token (from 1.1).
    pub track_prefill_tokens: bool,
    /// Whether decode pools of a disaggregated deployment may prefill (E); it keeps their cache credit.
    pub conditional_disaggregation: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self::new(Formula::default())
    }
}

impl Options {
    /// Dynamo's defaults.
    pub const fn new(formula: Formula) -> Self {
        Self {
            formula,
            tie_break: TieBreak::of_formula(formula),
            role: Role::Aggregated,
            overlap_score_weight: 1.0,
            prefill_load_scale: 1.0,
            overlap_score_credit: 1.0,
            overlap_score_credit_decay: 0.0,
            host_cache_hit_weight: 0.75,
            disk_cache_hit_weight: 0.25,
            shared_cache_multiplier: 0.0,
            decode_active_request_weight: 0.0,
            temperature: 0.0,
            track_prefill_tokens: true,
            conditional_disaggregation: false,
        }
    }

    /// Dynamo's defaults of a version, with its rule for ties; `None` as [`Formula::of_version`].
    pub fn of_version(version: &str) -> Option<Self> {
        let formula = Formula::of_version(version)?;
        Some(Self { tie_break: TieBreak::of_version(version)?, ..Self::new(formula) })
    }

    /// The factor of the prefill term: weight in A, scale in B–E.
    pub const fn prefill_factor(&self) -> f64 {
        match self.formula {
            Formula::A => self.overlap_score_weight,
            _ => self.prefill_load_scale,
        }
    }

    /// Sets the factor of the prefill term by its name in this formula.
    pub const fn set_prefill_factor(&mut self, factor: f64) {
        match self.formula {
            Formula::A => self.overlap_score_weight = factor,
            _ => self.prefill_load_scale = factor,
        }
    }

    /// Every number with what it is set to, in the order of [`NUMBERS`].
    pub fn numbers(&self) -> [(NumberDoc, f64); NUMBERS.len()] {
        let values = [
            self.overlap_score_weight,
            self.prefill_load_scale,
            self.overlap_score_credit,
            self.overlap_score_credit_decay,
            self.host_cache_hit_weight,
            self.disk_cache_hit_weight,
            self.shared_cache_multiplier,
            self.decode_active_request_weight,
            self.temperature,
        ];
        std::array::from_fn(|at| (NUMBERS[at], values[at]))
    }

    /// # Errors
    /// The first number that Dynamo would refuse.
    pub fn validate(&self) -> Result<(), BadOption> {
        self.numbers().iter().try_for_each(|(number, value)| number.check(*value))
    }
}

/// A number that Dynamo would refuse.
#[derive(Clone, Copy, PartialEq, Debug, Error)]
pub enum BadOption {
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
    /// Environment variable of the frontend.
    pub variable: &'static str,
    /// Command-line flag of the frontend, where the reference names one.
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
    fn check(&self, value: f64) -> Result<(), BadOption> {
        let name = self.name;
        if !value.is_finite() || value < 0.0 {
            return Err(BadOption::NotFiniteOrNegative { name, value });
        }
        match self.most {
            Some(most) if value > most => Err(BadOption::TooLarge { name, value, most }),
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
    meaning: "Credit for a prompt block that the worker holds on its device",
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
    meaning: "0 takes the lowest cost; above, workers are drawn, the costlier the rarer",
};

/// Every number of [`Options`], in the order of the formulas.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_its_formula_and_its_rule_for_ties() {
        let known = [
            ("0.8.1", Formula::A, TieBreak::SmallestTree),
            ("v0.9.1", Formula::A, TieBreak::SmallestTree),
            ("1.0.2", Formula::A, TieBreak::SmallestTreeThenRandom),
            ("1.1.1", Formula::A, TieBreak::SmallestTreeThenRandom),
            ("1.2.1", Formula::B, TieBreak::Random),
            ("1.3.1", Formula::C, TieBreak::Random),
            ("1.4.2", Formula::D, TieBreak::Random),
            ("1.5.1", Formula::D, TieBreak::Random),
            ("1.6.1rc1", Formula::E, TieBreak::Random),
            ("1.6", Formula::E, TieBreak::Random),
        ];
        for (version, formula, tie_break) in known {
            let options = Options::of_version(version).unwrap();
            assert_eq!((options.formula, options.tie_break), (formula, tie_break), "{version}");
        }
        for unknown in ["", "0.7.1", "1.7.0", "2.0", "1", "1.x", "main"] {
            assert_eq!(Options::of_version(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn numbers_that_dynamo_refuses_are_named() {
        let refused = |change: fn(&mut Options)| {
            let mut options = Options::new(Formula::E);
            change(&mut options);
            options.validate().map_err(|e| e.to_string())
        };
        assert_eq!(refused(|_| {}), Ok(()));
        assert_eq!(
            refused(|o| o.temperature = f64::NAN),
            Err("router_temperature is NaN; it must be a finite number, 0 or more".to_owned())
        );
        assert!(refused(|o| o.overlap_score_credit = -0.5).is_err());
        assert_eq!(
            refused(|o| o.host_cache_hit_weight = 1.5),
            Err("host_cache_hit_weight is 1.5; Dynamo takes 0 to 1".to_owned())
        );
    }

    #[test]
    fn the_documented_defaults_are_those_that_apply() {
        for formula in Formula::ALL {
            for (number, value) in Options::new(formula).numbers() {
                assert_eq!(number.default, value, "{}", number.name);
            }
        }
    }
}
