//! How an operator sets the numbers of a router: by flags and variables up to 1.5, from 1.6 in the file that
//! `--router-policy-config` (`DYN_ROUTER_POLICY_CONFIG`) names. Must not know why they are set.
//!
//! From 1.6 the flags and variables print a warning and are to be removed. Checked with `dynamo.frontend` of 1.6.1 and
//! 1.7.0.dev20261026: the name `default` is refused because it stands for the built-in policy without parameters, the built-in
//! policy with parameters has the type `dynamo-default-cost-fn`, and a parameter that it does not know stops the frontend.

use std::fmt::Write as _;

use super::numbers::NumberDoc;
use super::settings::{Formula, Role};

/// First line of the file: where its name goes.
const HEAD: &str = "# the file of --router-policy-config (DYN_ROUTER_POLICY_CONFIG), on every frontend";
/// Type of the policy that weighs cached blocks against load.
pub const POLICY_TYPE: &str = "dynamo-default-cost-fn";
/// What the file calls it.
const INSTANCE: &str = "weighted";

/// Whether a router with this formula takes its numbers from the file.
const fn takes_file(formula: Formula) -> bool {
    matches!(formula, Formula::E)
}

impl NumberDoc {
    /// Whether the file may have it.
    pub fn is_parameter(&self) -> bool {
        self.formulas.iter().any(|formula| takes_file(*formula))
    }

    /// What an operator sets on a router with this formula: a flag, a variable where no flag is known, or a parameter of the file.
    pub fn option(&self, formula: Formula) -> &'static str {
        if takes_file(formula) { self.name } else { self.flag.unwrap_or(self.variable) }
    }

    /// The same in words: where a parameter stands too.
    pub fn option_text(&self, formula: Formula) -> String {
        match self.flag {
            _ if takes_file(formula) => format!("{} in the file of --router-policy-config", self.name),
            Some(flag) => format!("{} or {flag}", self.variable),
            None => self.variable.to_owned(),
        }
    }

    /// The setting with its value, up to 1.5, as it is copied.
    fn flag_line(&self, value: f64) -> String {
        match self.flag {
            Some(flag) => format!("{flag} {value}"),
            None => format!("{}={value}", self.variable),
        }
    }
}

/// The file up to its parameters, for the router of a pool with this role.
fn file_head(role: Role) -> String {
    let pool = match role {
        Role::Aggregated => "aggregated",
        Role::Prefill => "prefill",
        Role::Decode => "decode",
    };
    format!(
        "{HEAD}\nworker_selection:\n  {pool}: {INSTANCE}\n  instances:\n    - name: {INSTANCE}\n      type: {POLICY_TYPE}\n      \
         parameters:"
    )
}

/// The file with one parameter, without its value: what a value is written after.
pub fn file_up_to(name: &str, role: Role) -> String {
    format!("{}\n        {name}:", file_head(role))
}

/// The whole file with these parameters.
fn file(numbers: &[(NumberDoc, f64)], role: Role) -> String {
    let mut text = file_head(role);
    for (number, value) in numbers {
        // With a fraction always, as the router reads it: `2.0`.
        let _ = write!(text, "\n        {}: {value:?}", number.name);
    }
    text
}

/// What is to be set on a router with this formula, each to be copied as it stands: lines, or one file.
pub fn to_set(numbers: &[(NumberDoc, f64)], formula: Formula, role: Role) -> Vec<String> {
    match numbers {
        [] => Vec::new(),
        _ if takes_file(formula) => vec![file(numbers, role)],
        _ => numbers.iter().map(|(number, value)| number.flag_line(*value)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::{
        NUMBERS, OVERLAP_SCORE_CREDIT, OVERLAP_SCORE_WEIGHT, PREFILL_LOAD_SCALE, TEMPERATURE,
    };

    #[test]
    fn each_version_gets_what_it_takes() {
        let file = |role: &str, parameters: &str| {
            format!(
                "# the file of --router-policy-config (DYN_ROUTER_POLICY_CONFIG), on every frontend\nworker_selection:\n  {role}: \
                 weighted\n  instances:\n    - name: weighted\n      type: dynamo-default-cost-fn\n      parameters:\n        \
                 {parameters}"
            )
        };
        let weight = (OVERLAP_SCORE_WEIGHT, 0.5);
        let (scale, credit, temperature) =
            ((PREFILL_LOAD_SCALE, 2.0), (OVERLAP_SCORE_CREDIT, 0.5), (TEMPERATURE, 0.25));
        let flags = ["--kv-overlap-score-weight 0.5", "--router-temperature 0.25"];
        let variables = ["DYN_ROUTER_PREFILL_LOAD_SCALE=2", "--router-temperature 0.25"];
        let in_file = file("aggregated", "prefill_load_scale: 2.0\n        router_temperature: 0.25");
        for (version, numbers, role, expected) in [
            ("0.8.1", [weight, temperature].as_slice(), Role::Aggregated, flags.as_slice()),
            ("0.9.1", &[weight, temperature], Role::Aggregated, &flags),
            ("1.0.2", &[weight, temperature], Role::Aggregated, &flags),
            ("1.1.1", &[weight, temperature], Role::Aggregated, &flags),
            ("1.2.1", &[scale, temperature], Role::Aggregated, &variables),
            ("1.3.1", &[scale, temperature], Role::Prefill, &variables),
            ("1.4.2", &[scale, temperature], Role::Aggregated, &variables),
            ("1.5.1", &[credit], Role::Aggregated, &["DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT=0.5"]),
            ("1.6.1", &[scale, temperature], Role::Aggregated, &[&in_file]),
            ("1.7.0.dev20261026", &[scale, temperature], Role::Aggregated, &[&in_file]),
            ("1.6.1", &[credit], Role::Prefill, &[&file("prefill", "overlap_score_credit: 0.5")]),
            ("1.6.1", &[temperature], Role::Decode, &[&file("decode", "router_temperature: 0.25")]),
            ("1.6.1", &[], Role::Aggregated, &[]),
        ] {
            let formula = Formula::of_version(version).unwrap();
            assert_eq!(to_set(numbers, formula, role), expected, "{version}");
        }
    }

    /// The names that `dynamo.frontend` 1.6.1 prints for a parameter that it does not know.
    #[test]
    fn the_file_has_only_parameters_that_the_router_knows() {
        let known = [
            "overlap_score_credit",
            "overlap_score_credit_decay",
            "prefill_load_scale",
            "decode_active_request_weight",
            "host_cache_hit_weight",
            "disk_cache_hit_weight",
            "shared_cache_multiplier",
            "router_temperature",
        ];
        let ours = NUMBERS.iter().filter(|number| number.is_parameter()).map(|n| n.name);
        let (mut ours, mut known): (Vec<_>, Vec<_>) = (ours.collect(), known.to_vec());
        ours.sort_unstable();
        known.sort_unstable();
        assert_eq!(ours, known);
    }

    #[test]
    fn a_value_is_written_after_the_name_of_its_parameter() {
        let whole = file(&[(TEMPERATURE, 0.3)], Role::Aggregated);
        assert_eq!(format!("{} 0.3", file_up_to("router_temperature", Role::Aggregated)), whole);
    }
}
