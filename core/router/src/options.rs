//! What a router's operator can set that enters a choice, by Dynamo's own names, with defaults and limits (reference
//! §5.2, §5.9). Must not know workers or requests.

use serde::{Deserialize, Serialize};

pub use radixscope_model::formula::Formula;
use radixscope_model::formula::major_minor;

use super::numbers::{BadOption, NUMBERS, NumberDoc};

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
            (1, 2..=7) => TieBreak::Random,
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

    /// Sets `overlap_score_weight` as Dynamo reads it: from 1.2 on it is a deprecated name of the scale, and 0 also
    /// takes away the credit (reference §5.4).
    pub const fn set_overlap_score_weight(&mut self, weight: f64) {
        self.set_prefill_factor(weight);
        if !matches!(self.formula, Formula::A) && weight == 0.0 {
            self.overlap_score_credit = 0.0;
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
            ("1.7.0.dev20261026", Formula::E, TieBreak::Random),
        ];
        for (version, formula, tie_break) in known {
            let options = Options::of_version(version).unwrap();
            assert_eq!((options.formula, options.tie_break), (formula, tie_break), "{version}");
        }
        for unknown in ["", "0.7.1", "1.8.0", "2.0", "1", "1.x", "main"] {
            assert_eq!(Options::of_version(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn the_deprecated_weight_is_a_scale_and_0_takes_the_credit_away() {
        let after = |formula, weight| {
            let mut options = Options::new(formula);
            options.set_overlap_score_weight(weight);
            (options.overlap_score_weight, options.prefill_load_scale, options.overlap_score_credit)
        };
        assert_eq!(after(Formula::A, 0.0), (0.0, 1.0, 1.0));
        assert_eq!(after(Formula::B, 2.0), (1.0, 2.0, 1.0));
        assert_eq!(after(Formula::E, 0.0), (1.0, 0.0, 0.0));
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
