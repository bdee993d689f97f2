//! The router's settings in the form: versions that decide differently, and each number that a formula knows, under Dynamo's own name.

use radixscope_router::numbers::NumberDoc;
use radixscope_router::{Formula, Role, RouterSettings};

/// Versions that decide differently: a version that stands for them, and who they are.
pub const VERSIONS: [(&str, &str); 6] = [
    ("0.9", "Dynamo 0.8–0.9"),
    ("1.1", "Dynamo 1.0–1.1"),
    ("1.2", "Dynamo 1.2"),
    ("1.3", "Dynamo 1.3"),
    ("1.5", "Dynamo 1.4–1.5"),
    ("1.6", "Dynamo 1.6–1.7"),
];

/// Which of [`VERSIONS`] decides as these settings do; empty: none.
pub fn version(options: &RouterSettings) -> &'static str {
    let is = |(version, _): &&(&str, &str)| {
        RouterSettings::of_version(version)
            .is_some_and(|of| of.formula == options.formula && of.tie_break == options.tie_break)
    };
    VERSIONS.iter().find(is).map_or("", |(version, _)| version)
}

/// The same settings in another version: what both know is kept.
pub fn in_version(before: &RouterSettings, version: &str) -> RouterSettings {
    let Some(mut options) = RouterSettings::of_version(version) else { return *before };
    for (number, value) in before.numbers() {
        if number.formulas.contains(&options.formula) && number.formulas.contains(&before.formula) {
            options.set(number.name, value);
        }
    }
    options.set_prefill_factor(before.prefill_factor());
    options
}

/// What Dynamo sets in the version of these settings; as they are where it is unknown.
pub fn defaults_of(options: &RouterSettings) -> RouterSettings {
    RouterSettings::of_version(version(options)).unwrap_or(*options)
}

/// A number of the settings: slider and field.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// Dynamo's name.
    pub name: &'static str,
    /// Its symbol in the formulas.
    pub symbol: &'static str,
    /// The largest value that Dynamo takes, where it has a limit.
    pub most: Option<f64>,
    /// Where the slider ends; the field beside it takes more.
    pub slider_most: f64,
    number: NumberDoc,
    formula: Formula,
}

impl Setting {
    /// Its value in `options`.
    pub fn value(&self, options: &RouterSettings) -> f64 {
        let all = options.numbers();
        all.into_iter().find(|(of, _)| of.name == self.name).map_or(0.0, |(_, value)| value)
    }

    /// What it does, and how it is set where the router runs.
    pub fn help(&self) -> String {
        format!("{}. {}", self.number.meaning, self.number.option_text(self.formula))
    }
}

/// The numbers that a formula uses.
pub fn settings(formula: Formula) -> Vec<Setting> {
    let known = RouterSettings::new(formula).numbers().into_iter().map(|(number, _)| number);
    known
        .filter(|number| number.formulas.contains(&formula))
        .map(|number| Setting {
            name: number.name,
            symbol: number.symbol,
            most: number.most,
            slider_most: slider_most(number.name, number.most),
            number,
            formula,
        })
        .collect()
}

fn slider_most(name: &str, most: Option<f64>) -> f64 {
    most.unwrap_or(match name {
        "decode_active_request_weight" => 50.0,
        "router_temperature" => 2.0,
        _ => 4.0,
    })
}

/// Whether a formula decides otherwise in pools of other roles.
pub const fn has_roles(formula: Formula) -> bool {
    matches!(formula, Formula::D | Formula::E)
}

/// The role that an option of the form names.
pub fn role_named(name: &str) -> Role {
    match name {
        "prefill" => Role::Prefill,
        "decode" => Role::Decode,
        _ => Role::Aggregated,
    }
}
