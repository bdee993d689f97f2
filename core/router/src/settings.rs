//! What a router's operator can set that enters a choice, by Dynamo's own names, with defaults and limits (reference
//! §5.2, §5.9): [`RouterSettings`], and [`RouterOverrides`] where only some are given. Must not know workers or requests.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use radixscope_model::formula::Formula;
use radixscope_model::formula::major_minor;
pub use radixscope_model::record::Role;
use radixscope_model::record::{Decision, RouterNumbers};

use super::numbers::{NUMBERS, NumberDoc, OVERLAP_SCORE_WEIGHT, PREFILL_LOAD_SCALE, RefusedNumber};

/// The numbers of [`RouterSettings`] or [`RouterOverrides`], in the order of [`NUMBERS`]: `numbers_of!(self)` their values,
/// `numbers_of!(&mut self)` their places.
macro_rules! numbers_of {
    ($self:ident) => { numbers_of!(@ () $self) };
    (&mut $self:ident) => { numbers_of!(@ (&mut) $self) };
    (@ ($($by:tt)*) $self:ident) => {
        [
            $($by)* $self.overlap_score_weight,
            $($by)* $self.prefill_load_scale,
            $($by)* $self.overlap_score_credit,
            $($by)* $self.overlap_score_credit_decay,
            $($by)* $self.host_cache_hit_weight,
            $($by)* $self.disk_cache_hit_weight,
            $($by)* $self.shared_cache_multiplier,
            $($by)* $self.decode_active_request_weight,
            $($by)* $self.router_temperature,
        ]
    };
}

/// How requests find a worker (`--router-mode`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouterMode {
    /// By cached prefix and load.
    #[default]
    Kv,
    /// Each worker in its turn.
    RoundRobin,
}

/// Who wins among workers of exactly equal, lowest cost at temperature 0 (reference §5.8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// Everything set that enters a choice. What a formula does not know is ignored by it.
///
/// In JSON it stands by Dynamo's names, of the numbers those that the formula knows: what [`RouterOverrides`] reads. Binary
/// forms have every field, which is what the derives write.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct RouterSettings {
    /// How requests find a worker.
    pub router_mode: RouterMode,
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
    pub router_temperature: f64,
    /// Whether prompts count as load until their first token (from 1.1).
    pub track_prefill_tokens: bool,
    /// Whether the blocks of running requests count. A prefill router of Dynamo's starts without.
    pub router_track_active_blocks: bool,
    /// Whether decode pools of a disaggregated deployment may prefill (E); it keeps their cache credit.
    pub conditional_disaggregation: bool,
}

impl Serialize for RouterSettings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if !to.is_human_readable() {
            return Self::serialize(self, to);
        }
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("router_mode", &self.router_mode)?;
        map.serialize_entry("formula", &self.formula)?;
        map.serialize_entry("tie_break", &self.tie_break)?;
        map.serialize_entry("role", &self.role)?;
        for (number, value) in self.numbers() {
            if number.formulas.contains(&self.formula) {
                map.serialize_entry(number.name, &value)?;
            }
        }
        map.serialize_entry("track_prefill_tokens", &self.track_prefill_tokens)?;
        map.serialize_entry("router_track_active_blocks", &self.router_track_active_blocks)?;
        map.serialize_entry("conditional_disaggregation", &self.conditional_disaggregation)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for RouterSettings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::deserialize(from)
    }
}

impl Default for RouterSettings {
    fn default() -> Self {
        Self::new(Formula::default())
    }
}

impl RouterSettings {
    /// Dynamo's defaults.
    pub const fn new(formula: Formula) -> Self {
        Self {
            router_mode: RouterMode::Kv,
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
            router_temperature: 0.0,
            track_prefill_tokens: true,
            router_track_active_blocks: true,
            conditional_disaggregation: false,
        }
    }

    /// As far as a decision names them: formula and factor of the prefill term, all else Dynamo's defaults. `None` where
    /// the formula is not known.
    pub fn of_decision(decision: &Decision) -> Option<Self> {
        let mut settings = Self::new(decision.formula?);
        settings.set_prefill_factor(decision.prefill_factor?);
        Some(settings)
    }

    /// What blocks in host memory and on disk or outside earn together, in blocks.
    pub fn tier_credit(&self, host_blocks: u32, disk_blocks: u32) -> f64 {
        self.host_cache_hit_weight * f64::from(host_blocks)
            + self.disk_cache_hit_weight * f64::from(disk_blocks)
    }

    /// What Dynamo sets beyond that for the router of a pool with this role: a prefill router leaves out what runs, a decode
    /// router the prompt.
    #[must_use]
    pub const fn in_role(self, role: Role) -> Self {
        match role {
            Role::Prefill => Self { role, router_track_active_blocks: false, ..self },
            // Formula A has no switch for it; its decode routers weigh the prompt by 0.
            Role::Decode if matches!(self.formula, Formula::A) => Self { role, ..self },
            Role::Decode => Self { role, track_prefill_tokens: false, ..self },
            Role::Aggregated => Self { role, ..self },
        }
    }

    /// Each worker in its turn.
    pub const fn round_robin() -> Self {
        Self { router_mode: RouterMode::RoundRobin, ..Self::new(Formula::A) }
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

    /// What the factor of the prefill term is called in this formula.
    pub const fn prefill_factor_number(&self) -> NumberDoc {
        match self.formula {
            Formula::A => OVERLAP_SCORE_WEIGHT,
            _ => PREFILL_LOAD_SCALE,
        }
    }

    /// Credit of a block on the device that prefill blocks of this formula contain; A takes off whole blocks.
    pub const fn device_credit(&self) -> f64 {
        match self.formula {
            Formula::A => 1.0,
            _ => self.overlap_score_credit,
        }
    }

    /// Whether the router keeps an index of KV blocks: round-robin does not, and weight 0 starts none (reference §5.3).
    pub fn keeps_index(&self) -> bool {
        self.router_mode == RouterMode::Kv && self.prefill_factor() > 0.0
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

    /// With the numbers that are reported. The factor of the prefill term counts under either of its names: up to 1.1 routers log
    /// a weight, later ones a scale, and what computes a cost may know the version less exactly than the line.
    #[must_use]
    pub fn with_numbers(mut self, reported: &RouterNumbers) -> Self {
        for (name, value) in reported.named() {
            if let Some(value) = value {
                self.set(name, value);
            }
        }
        let (weight, scale) = (reported.overlap_score_weight, reported.prefill_load_scale);
        let factor = if self.formula == Formula::A { weight.or(scale) } else { scale.or(weight) };
        if let Some(factor) = factor {
            self.set_prefill_factor(factor);
        }
        self
    }

    /// Every number with what it is set to, in the order of [`NUMBERS`].
    pub fn numbers(&self) -> [(NumberDoc, f64); NUMBERS.len()] {
        let values = numbers_of!(self);
        std::array::from_fn(|at| (NUMBERS[at], values[at]))
    }

    /// Sets a number by its name in [`NUMBERS`]; false for any other name.
    pub fn set(&mut self, name: &str, value: f64) -> bool {
        let Some(at) = NUMBERS.iter().position(|number| number.name == name) else { return false };
        *numbers_of!(&mut self)[at] = value;
        true
    }

    /// # Errors
    /// The first number that Dynamo would refuse.
    pub fn validate(&self) -> Result<(), RefusedNumber> {
        self.numbers().iter().try_for_each(|(number, value)| number.check(*value))
    }
}

/// Settings as far as they are given, by Dynamo's names; the rest stays as it is. Dynamo's own `RouterConfigOverride`
/// does so for one request.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is that of `RouterSettings`")]
pub struct RouterOverrides {
    pub router_mode: Option<RouterMode>,
    pub formula: Option<Formula>,
    pub tie_break: Option<TieBreak>,
    pub role: Option<Role>,
    pub overlap_score_weight: Option<f64>,
    pub prefill_load_scale: Option<f64>,
    pub overlap_score_credit: Option<f64>,
    pub overlap_score_credit_decay: Option<f64>,
    pub host_cache_hit_weight: Option<f64>,
    pub disk_cache_hit_weight: Option<f64>,
    pub shared_cache_multiplier: Option<f64>,
    pub decode_active_request_weight: Option<f64>,
    pub router_temperature: Option<f64>,
    pub track_prefill_tokens: Option<bool>,
    pub router_track_active_blocks: Option<bool>,
    pub conditional_disaggregation: Option<bool>,
}

impl RouterOverrides {
    /// Each worker in its turn.
    pub fn round_robin() -> Self {
        Self { router_mode: Some(RouterMode::RoundRobin), ..Self::default() }
    }

    /// The numbers that are given, in the order of [`NUMBERS`].
    fn numbers(&self) -> impl Iterator<Item = (NumberDoc, f64)> {
        NUMBERS.into_iter().zip(numbers_of!(self)).filter_map(|(number, given)| Some((number, given?)))
    }

    /// # Errors
    /// The first number that Dynamo would refuse.
    pub fn validate(&self) -> Result<(), RefusedNumber> {
        self.numbers().try_for_each(|(number, value)| number.check(value))
    }

    /// These over `base`. A formula starts from its own defaults; `overlap_score_weight` counts as Dynamo reads it, see
    /// [`RouterSettings::set_overlap_score_weight`].
    pub fn over(&self, base: RouterSettings) -> RouterSettings {
        let mut settings = match self.formula {
            Some(formula) => RouterSettings { router_mode: base.router_mode, ..RouterSettings::new(formula) },
            None => base,
        };
        // `overlap_score_weight` comes first: under its newer names a setting counts before it.
        for (number, value) in self.numbers() {
            if number == OVERLAP_SCORE_WEIGHT {
                settings.set_overlap_score_weight(value);
            } else {
                settings.set(number.name, value);
            }
        }
        RouterSettings {
            router_mode: self.router_mode.unwrap_or(settings.router_mode),
            tie_break: self.tie_break.unwrap_or(settings.tie_break),
            role: self.role.unwrap_or(settings.role),
            track_prefill_tokens: self.track_prefill_tokens.unwrap_or(settings.track_prefill_tokens),
            router_track_active_blocks: self
                .router_track_active_blocks
                .unwrap_or(settings.router_track_active_blocks),
            conditional_disaggregation: self
                .conditional_disaggregation
                .unwrap_or(settings.conditional_disaggregation),
            ..settings
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_as_json_can_be_used_again() {
        for formula in Formula::ALL {
            let mut given = RouterSettings::new(formula);
            given.router_temperature = 0.5;
            given.set_prefill_factor(1.5);
            let text = serde_json::to_string(&given).expect("plain data");
            let overrides: RouterOverrides = serde_json::from_str(&text).expect(&text);
            assert_eq!(overrides.over(RouterSettings::default()), given, "{text}");
        }
        let of_e = serde_json::to_string(&RouterSettings::new(Formula::E)).expect("plain data");
        assert!(!of_e.contains("overlap_score_weight"), "{of_e}");
    }

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
            let options = RouterSettings::of_version(version).unwrap();
            assert_eq!((options.formula, options.tie_break), (formula, tie_break), "{version}");
        }
        for unknown in ["", "0.7.1", "1.8.0", "2.0", "1", "1.x", "main"] {
            assert_eq!(RouterSettings::of_version(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn the_deprecated_weight_is_a_scale_and_0_takes_the_credit_away() {
        let after = |formula, weight| {
            let mut options = RouterSettings::new(formula);
            options.set_overlap_score_weight(weight);
            (options.overlap_score_weight, options.prefill_load_scale, options.overlap_score_credit)
        };
        assert_eq!(after(Formula::A, 0.0), (0.0, 1.0, 1.0));
        assert_eq!(after(Formula::B, 2.0), (1.0, 2.0, 1.0));
        assert_eq!(after(Formula::E, 0.0), (1.0, 0.0, 0.0));
    }

    #[test]
    fn numbers_that_dynamo_refuses_are_named() {
        let refused = |change: fn(&mut RouterSettings)| {
            let mut options = RouterSettings::new(Formula::E);
            change(&mut options);
            options.validate().map_err(|e| e.to_string())
        };
        assert_eq!(refused(|_| {}), Ok(()));
        assert_eq!(
            refused(|o| o.router_temperature = f64::NAN),
            Err("router_temperature is NaN; it must be a finite number, 0 or more".to_owned())
        );
        assert!(refused(|o| o.overlap_score_credit = -0.5).is_err());
        assert_eq!(
            refused(|o| o.host_cache_hit_weight = 1.5),
            Err("host_cache_hit_weight is 1.5; Dynamo takes 0 to 1".to_owned())
        );
    }

    #[test]
    fn overrides_change_what_they_name_and_nothing_else() {
        let base = RouterSettings { router_temperature: 0.5, ..RouterSettings::new(Formula::E) };
        let over = |text: &str| {
            let overrides: RouterOverrides = serde_json::from_str(text).map_err(|error| error.to_string())?;
            overrides.validate().map_err(|error| error.to_string())?;
            Ok::<_, String>(overrides.over(base))
        };
        assert_eq!(over("{}"), Ok(base));
        let changed = RouterSettings { prefill_load_scale: 2.0, router_temperature: 0.0, ..base };
        assert_eq!(over(r#"{"prefill_load_scale":2,"router_temperature":0}"#), Ok(changed));
        assert_eq!(over(r#"{"overlap_score_weight":2,"router_temperature":0}"#), Ok(changed));
        assert_eq!(
            over(r#"{"formula":"A","role":"prefill"}"#).map(|s| (s.formula, s.role, s.router_temperature)),
            Ok((Formula::A, Role::Prefill, 0.0))
        );
        assert_eq!(
            over(r#"{"router_mode":"round-robin"}"#).map(|s| s.router_mode),
            Ok(RouterMode::RoundRobin)
        );
        assert!(
            over(r#"{"overlap_score_weight":-1}"#)
                .is_err_and(|e| e.starts_with("overlap_score_weight is -1"))
        );
        assert!(over(r#"{"weight":1}"#).is_err_and(|e| e.contains("unknown field `weight`")));
    }

    #[test]
    fn every_number_can_be_set_by_its_name() {
        for (at, number) in NUMBERS.iter().enumerate() {
            let mut settings = RouterSettings::default();
            assert!(settings.set(number.name, 0.125), "{}", number.name);
            assert_eq!(settings.numbers()[at].1, 0.125, "{}", number.name);
        }
        assert!(!RouterSettings::default().set("weight", 1.0));
    }

    /// The record names the numbers that exist here, in the same order.
    #[test]
    fn every_number_can_be_reported() {
        let names = RouterNumbers::default().named().map(|(name, _)| name);
        assert_eq!(names, NUMBERS.map(|number| number.name));
        let reported = RouterNumbers {
            overlap_score_weight: Some(2.0),
            prefill_load_scale: Some(3.0),
            router_temperature: Some(0.25),
            ..RouterNumbers::default()
        };
        for (formula, factor) in [(Formula::A, 2.0), (Formula::E, 3.0)] {
            let settings = RouterSettings::new(formula).with_numbers(&reported);
            assert_eq!((settings.prefill_factor(), settings.router_temperature), (factor, 0.25));
            assert_eq!(settings.overlap_score_credit, 1.0);
        }
        let old = RouterNumbers { overlap_score_weight: Some(2.0), ..RouterNumbers::default() };
        assert_eq!(RouterSettings::new(Formula::E).with_numbers(&old).prefill_factor(), 2.0);
    }

    #[test]
    fn the_documented_defaults_are_those_that_apply() {
        for formula in Formula::ALL {
            for (number, value) in RouterSettings::new(formula).numbers() {
                assert_eq!(number.default, value, "{}", number.name);
            }
        }
    }
}
