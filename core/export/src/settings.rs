//! A router's settings as the API gives them: by Dynamo's names, of the numbers those that the formula knows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use radixscope_router::RouterSettings;

/// The settings by name; a number that is not finite is `null`.
pub fn settings(settings: &RouterSettings) -> BTreeMap<&'static str, Value> {
    let used =
        settings.numbers().into_iter().filter(|(number, _)| number.formulas.contains(&settings.formula));
    let mut all: BTreeMap<_, _> = used.map(|(number, value)| (number.name, value.into())).collect();
    all.insert("router_mode", json!(settings.router_mode));
    all.insert("formula", json!(settings.formula));
    all.insert("tie_break", json!(settings.tie_break));
    all.insert("role", json!(settings.role));
    all.insert("track_prefill_tokens", settings.track_prefill_tokens.into());
    all.insert("conditional_disaggregation", settings.conditional_disaggregation.into());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_router::{Formula, RouterOverrides};

    #[test]
    fn what_is_given_can_be_asked_with_again() {
        for formula in Formula::ALL {
            let mut given = RouterSettings::new(formula);
            given.router_temperature = 0.5;
            given.set_prefill_factor(1.5);
            let text = serde_json::to_string(&settings(&given)).unwrap();
            let overrides: RouterOverrides = serde_json::from_str(&text).unwrap();
            assert_eq!(overrides.over(RouterSettings::default()), given, "{text}");
        }
        assert!(!settings(&RouterSettings::new(Formula::E)).contains_key("overlap_score_weight"));
    }
}
