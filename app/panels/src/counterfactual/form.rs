//! The form: which decisions, which setting, which way. What is typed is read when something is to be computed.

use radixscope_insight::counterfactual::DecisionRange;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::PoolIx;
use radixscope_router::numbers::{OVERLAP_SCORE_CREDIT, TEMPERATURE};
use radixscope_router::{Formula, RouterOverrides, RouterSettings};

use crate::format;

/// Decisions looked at for the formula that is at work.
const LOOKED_AT: usize = 100;

/// What is typed and chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    /// How many decisions or seconds, as typed.
    pub amount: String,
    /// Whether that is seconds.
    pub by_time: bool,
    /// Whether the router takes workers in turns.
    pub round_robin: bool,
    /// Factor of the prompt blocks still to compute, as typed.
    pub weight: String,
    /// As typed.
    pub temperature: String,
    /// As typed.
    pub credit: String,
    /// Whether the arrivals are simulated too.
    pub with_model: bool,
}

impl Default for Form {
    /// As it is opened.
    fn default() -> Self {
        Self {
            amount: "1000".to_owned(),
            by_time: false,
            round_robin: false,
            weight: "1.5".to_owned(),
            temperature: "0".to_owned(),
            credit: "1".to_owned(),
            with_model: false,
        }
    }
}

/// What a reader requested.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RunRequest {
    /// Which decisions.
    pub span: DecisionRange,
    /// The setting tried.
    pub settings: RouterOverrides,
    /// Whether the arrivals are simulated too.
    pub with_model: bool,
}

impl Form {
    /// Which decisions.
    ///
    /// # Errors
    /// What cannot be read, as text.
    pub fn span(&self) -> Result<DecisionRange, String> {
        let text = self.amount.as_str();
        let number: Option<u32> = text.trim().parse().ok().filter(|&n| n > 0);
        match (number, self.by_time) {
            (Some(seconds), true) => Ok(DecisionRange::Ms(u64::from(seconds) * 1_000)),
            (Some(last @ ..=10_000), false) => Ok(DecisionRange::Last(last)),
            (_, false) => Err(format!("{text:?} decisions: invalid, 1 to 10000 are retained")),
            (None, true) => Err(format!("{text:?} seconds: invalid")),
        }
    }

    /// Everything.
    ///
    /// # Errors
    /// What cannot be read, as text.
    pub fn request(&self) -> Result<RunRequest, String> {
        let number = |name: &str, text: &str| {
            format::decimal(text).ok_or_else(|| format!("{name} {text:?} is not a number"))
        };
        let settings = if self.round_robin {
            RouterOverrides::round_robin()
        } else {
            RouterOverrides {
                overlap_score_weight: Some(number("overlap_score_weight", &self.weight)?),
                overlap_score_credit: Some(number("overlap_score_credit", &self.credit)?),
                router_temperature: Some(number("router_temperature", &self.temperature)?),
                ..RouterOverrides::default()
            }
        };
        settings.validate().map_err(|error| error.to_string())?;
        Ok(RunRequest { span: self.span()?, settings, with_model: self.with_model })
    }
}

/// The formula of the latest decisions of a pool; `None`: of all.
pub fn latest_formula(shown: &ViewContext<'_>, pool: Option<PoolIx>) -> Formula {
    let latest = shown.decisions().newest_first();
    let mut of_pool = latest.filter(|decided| pool.is_none_or(|pool| decided.pool == pool)).take(LOOKED_AT);
    of_pool.find_map(|decided| decided.decision.formula).unwrap_or_default()
}

/// What the fields are called in the version that runs, and which of them mean something there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldTexts {
    /// Dynamo's name of the factor.
    pub weight: &'static str,
    /// What it does and how it is set.
    pub weight_title: String,
    /// What the temperature does and how it is set.
    pub temperature_title: String,
    /// The same of the credit, or that there is none.
    pub credit_title: String,
    /// Whether there is a credit.
    pub has_credit: bool,
}

impl FieldTexts {
    /// For a formula.
    pub fn of(formula: Formula) -> Self {
        let factor = RouterSettings::new(formula).prefill_factor_number();
        let has_credit = formula != Formula::A;
        let credit_title = match has_credit {
            false => "Dynamo 0.8 to 1.1 has no overlap score credit".to_owned(),
            true => {
                let option = OVERLAP_SCORE_CREDIT.option_text(formula);
                format!("{option}: credit of a prompt block cached on the worker")
            }
        };
        Self {
            weight: factor.name,
            weight_title: format!(
                "{}: factor of the prompt blocks still to compute",
                factor.option_text(formula)
            ),
            temperature_title: format!(
                "{}: 0 takes the lowest cost, more draws",
                TEMPERATURE.option_text(formula)
            ),
            credit_title,
            has_credit,
        }
    }
}
