//! What is asked for, read strictly: a misspelt key must not be answered with something else.

use serde::Deserialize;

use radixscope_insight::counterfactual::{Selection, Span, Trial, validate_axes};
use radixscope_state::cluster::{Cluster, MAX_DECISIONS};

use super::PRESENT;
use crate::http::api::params::WorkerFilter;
use crate::http::error::{ApiError, code};

const DEFAULT_LAST: u32 = 1_000;
/// Longest window: what is kept is bounded anyway.
const MAX_WINDOW_MS: u64 = 7 * 24 * 3_600_000;

/// The body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    mode: Mode,
    last: Option<u32>,
    window_ms: Option<u64>,
    worker: Option<String>,
    setting: Option<SettingBody>,
    sweep: Option<SweepBody>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Frozen,
    Resimulated,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingBody {
    weight: Option<f64>,
    temperature: Option<f64>,
    credit: Option<f64>,
    #[serde(default)]
    round_robin: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepBody {
    weights: Vec<f64>,
    temperatures: Vec<f64>,
}

/// What is to be done.
pub(super) enum Work {
    Frozen(Trial),
    Sweep(Vec<f64>, Vec<f64>),
    Resimulate(Trial),
}

/// A request that makes sense.
pub(super) struct Asked {
    pub(super) work: Work,
    pub(super) span: Span,
    worker: Option<WorkerFilter>,
}

fn bad(message: impl Into<String>) -> ApiError {
    ApiError::new(code::BAD_PARAMETER, message)
}

impl Asked {
    pub(super) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let body: Body = serde_json::from_slice(body).map_err(|error| {
            bad(format!(
                "the body cannot be read: {error}; expected JSON like {{\"mode\":\"frozen\",\"last\":1000,\
                 \"setting\":{{\"weight\":1.5,\"temperature\":0.2}}}}"
            ))
        })?;
        let span = match (body.last, body.window_ms) {
            (Some(_), Some(_)) => return Err(bad("last and window_ms exclude each other")),
            (None, Some(ms)) if (1..=MAX_WINDOW_MS).contains(&ms) => Span::Ms(ms),
            (None, Some(_)) => return Err(bad(format!("window_ms must be 1 to {MAX_WINDOW_MS}"))),
            (last, None) => {
                let last = last.unwrap_or(DEFAULT_LAST);
                if !(1..=MAX_DECISIONS as u32).contains(&last) {
                    return Err(bad(format!("last is {last}; it must be 1 to {MAX_DECISIONS}")));
                }
                Span::Last(last)
            }
        };
        let worker = body.worker.as_deref().map(WorkerFilter::parse).transpose()?;
        let work = match (body.mode, body.setting, body.sweep) {
            (_, Some(_), Some(_)) => return Err(bad("setting and sweep exclude each other")),
            (Mode::Frozen, None, Some(SweepBody { weights, temperatures })) => {
                validate_axes(&weights, &temperatures).map_err(|error| bad(error.to_string()))?;
                Work::Sweep(weights, temperatures)
            }
            (Mode::Resimulated, None, Some(_)) => {
                return Err(bad("a sweep is possible in mode frozen alone"));
            }
            (Mode::Frozen, setting, None) => Work::Frozen(trial(setting)?),
            (Mode::Resimulated, setting, None) => Work::Resimulate(trial(setting)?),
        };
        if worker.is_some() && !matches!(work, Work::Frozen(_)) {
            return Err(bad("sweeps and the model compare workers; worker cannot be given"));
        }
        Ok(Self { work, span, worker })
    }

    pub(super) fn selection(&self, cluster: &Cluster) -> Result<Selection, ApiError> {
        let worker = match self.worker {
            None => None,
            Some(filter) => match filter.among(cluster)?[..] {
                [worker] => Some(worker),
                _ => return Err(bad("this worker has several ranks; name one as ID/RANK")),
            },
        };
        Ok(Selection { span: self.span, worker })
    }
}

fn trial(setting: Option<SettingBody>) -> Result<Trial, ApiError> {
    let Some(setting) = setting else { return Ok(PRESENT) };
    let SettingBody { weight, temperature, credit, round_robin } = setting;
    let trial = if round_robin {
        if weight.or(temperature).or(credit).is_some() {
            return Err(bad("round_robin takes no weight, temperature or credit"));
        }
        Trial::RoundRobin
    } else {
        Trial::Cost { weight, credit, temperature: temperature.unwrap_or(0.0) }
    };
    trial.validate().map_err(|error| bad(error.to_string()))?;
    Ok(trial)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        match Asked::parse(body.as_bytes()) {
            Ok(_) => panic!("{body} is taken"),
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_words() {
        let cases = [
            ("", "cannot be read"),
            ("[]", "cannot be read"),
            (r#"{"mode":"live"}"#, "live"),
            (r#"{"mode":"frozen","lst":3}"#, "lst"),
            (r#"{"mode":"frozen","last":0}"#, "last is 0"),
            (r#"{"mode":"frozen","last":10001}"#, "last is 10001"),
            (r#"{"mode":"frozen","last":1,"window_ms":5}"#, "exclude"),
            (r#"{"mode":"frozen","window_ms":0}"#, "window_ms"),
            (r#"{"mode":"frozen","worker":"w1"}"#, "worker"),
            (r#"{"mode":"frozen","setting":{"weight":-1}}"#, "overlap_score_weight"),
            (r#"{"mode":"frozen","setting":{"weight":1e999}}"#, "cannot be read"),
            (r#"{"mode":"frozen","setting":{"round_robin":true,"weight":1}}"#, "round_robin"),
            (r#"{"mode":"frozen","sweep":{"weights":[],"temperatures":[0]}}"#, "weights"),
            (r#"{"mode":"resimulated","sweep":{"weights":[1],"temperatures":[0]}}"#, "frozen alone"),
            (r#"{"mode":"resimulated","worker":"1"}"#, "worker cannot be given"),
        ];
        for (body, expected) in cases {
            let said = refused(body);
            assert!(said.contains(expected), "{body}: {said}");
        }
    }

    #[test]
    fn without_a_setting_the_present_one_is_tried() {
        let asked = Asked::parse(br#"{"mode":"frozen"}"#).unwrap();
        assert!(matches!(asked.work, Work::Frozen(PRESENT)));
        assert_eq!(asked.span, Span::Last(DEFAULT_LAST));
    }
}
