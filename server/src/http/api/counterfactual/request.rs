//! The request body, parsed strictly: unknown keys are errors.

use serde::Deserialize;

use radixscope_insight::counterfactual::{DecisionRange, Selection, validate_axes};
use radixscope_router::{RouterMode, RouterOverrides};
use radixscope_state::cluster::{Cluster, MAX_DECISIONS};

use crate::http::api::params::{PoolFilter, WorkerFilter};
use crate::http::api::posted::bad;
use crate::http::error::ApiError;

const DEFAULT_LAST: u32 = 1_000;
/// Maximum window; retention is bounded anyway.
const MAX_WINDOW_MS: u64 = 7 * 24 * 3_600_000;

/// The body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http::api) struct CounterfactualBody {
    mode: Mode,
    last: Option<u32>,
    window_ms: Option<u64>,
    worker: Option<String>,
    pool: Option<String>,
    model: Option<String>,
    settings: Option<RouterOverrides>,
    sweep: Option<SweepBody>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[serde(rename = "frozen")]
    FixedState,
    Resimulated,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepBody {
    overlap_score_weight: Vec<f64>,
    router_temperature: Vec<f64>,
}

/// The computation.
pub(super) enum Work {
    OfflineReplay(RouterOverrides),
    /// Values of `overlap_score_weight` and of `router_temperature`.
    Sweep(Vec<f64>, Vec<f64>),
    Resimulate(RouterOverrides),
}

/// A validated request.
pub(super) struct CounterfactualRequest {
    pub(super) work: Work,
    pub(super) span: DecisionRange,
    worker: Option<WorkerFilter>,
    pools: PoolFilter,
}

impl CounterfactualRequest {
    pub(super) fn of(body: CounterfactualBody) -> Result<Self, ApiError> {
        let span = match (body.last, body.window_ms) {
            (Some(_), Some(_)) => return Err(bad("give last or window_ms, not both")),
            (None, Some(ms)) if (1..=MAX_WINDOW_MS).contains(&ms) => DecisionRange::Ms(ms),
            (None, Some(_)) => return Err(bad(format!("window_ms must be 1 to {MAX_WINDOW_MS}"))),
            (last, None) => {
                let last = last.unwrap_or(DEFAULT_LAST);
                if !(1..=MAX_DECISIONS as u32).contains(&last) {
                    return Err(bad(format!("last is {last}; it must be 1 to {MAX_DECISIONS}")));
                }
                DecisionRange::Last(last)
            }
        };
        let worker = body.worker.as_deref().map(WorkerFilter::parse).transpose()?;
        let work = match (body.mode, body.settings, body.sweep) {
            (_, Some(_), Some(_)) => return Err(bad("give settings or sweep, not both")),
            (Mode::FixedState, None, Some(sweep)) => {
                validate_axes(&sweep.overlap_score_weight, &sweep.router_temperature)
                    .map_err(|error| bad(error.to_string()))?;
                Work::Sweep(sweep.overlap_score_weight, sweep.router_temperature)
            }
            (Mode::Resimulated, None, Some(_)) => {
                return Err(bad("sweep needs mode frozen"));
            }
            (Mode::FixedState, settings, None) => Work::OfflineReplay(tried(settings)?),
            (Mode::Resimulated, settings, None) => Work::Resimulate(tried(settings)?),
        };
        if worker.is_some() && !matches!(work, Work::OfflineReplay(_)) {
            return Err(bad("worker is only for mode frozen without a sweep"));
        }
        let pools = PoolFilter::new(body.pool, body.model);
        Ok(Self { work, span, worker, pools })
    }

    pub(super) fn selection(&self, cluster: &Cluster) -> Result<Selection, ApiError> {
        let worker = match self.worker {
            None => None,
            Some(filter) => match filter.among(cluster)?[..] {
                [worker] => Some(worker),
                _ => return Err(bad("this worker has several ranks; expected ID/RANK")),
            },
        };
        Ok(Selection { span: self.span, worker, pool: self.pools.one_of_many(cluster)? })
    }
}

/// Settings that a counterfactual can vary; without any, the recorded ones.
fn tried(settings: Option<RouterOverrides>) -> Result<RouterOverrides, ApiError> {
    let settings = settings.unwrap_or_default();
    let varied = match settings.router_mode {
        Some(RouterMode::RoundRobin) => RouterOverrides::round_robin(),
        _ => RouterOverrides {
            router_mode: settings.router_mode,
            overlap_score_weight: settings.overlap_score_weight,
            prefill_load_scale: settings.prefill_load_scale,
            overlap_score_credit: settings.overlap_score_credit,
            router_temperature: settings.router_temperature,
            ..RouterOverrides::default()
        },
    };
    if settings != varied {
        return Err(bad(
            "settings takes overlap_score_weight or prefill_load_scale, overlap_score_credit and router_temperature; \
             router_mode round-robin takes nothing else",
        ));
    }
    settings.validate().map_err(|error| bad(error.to_string()))?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::api::posted::read;

    fn request(body: &str) -> Result<CounterfactualRequest, ApiError> {
        CounterfactualRequest::of(read(body.as_bytes())?)
    }

    fn refused(body: &str) -> String {
        match request(body) {
            Ok(_) => panic!("{body} is taken"),
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn invalid_requests_are_rejected_with_a_reason() {
        let cases = [
            ("", "is not valid"),
            ("[]", "is not valid"),
            (r#"{"mode":"live"}"#, "live"),
            (r#"{"mode":"frozen","lst":3}"#, "lst"),
            (r#"{"mode":"frozen","last":0}"#, "last is 0"),
            (r#"{"mode":"frozen","last":10001}"#, "last is 10001"),
            (r#"{"mode":"frozen","last":1,"window_ms":5}"#, "give last or window_ms, not both"),
            (r#"{"mode":"frozen","window_ms":0}"#, "window_ms"),
            (r#"{"mode":"frozen","worker":"w1"}"#, "worker"),
            (r#"{"mode":"frozen","settings":{"overlap_score_weight":-1}}"#, "overlap_score_weight"),
            (
                r#"{"mode":"frozen","settings":{"overlap_score_weight":1e999}}"#,
                "settings.overlap_score_weight: ",
            ),
            (
                r#"{"mode":"frozen","settings":{"router_mode":"round-robin","overlap_score_weight":1}}"#,
                "round-robin",
            ),
            (r#"{"mode":"frozen","settings":{"weight":1}}"#, "overlap_score_weight"),
            (r#"{"mode":"frozen","settings":{"formula":"E"}}"#, "settings takes"),
            (
                r#"{"mode":"frozen","sweep":{"overlap_score_weight":[],"router_temperature":[0]}}"#,
                "overlap_score_weight has 0",
            ),
            (
                r#"{"mode":"resimulated","sweep":{"overlap_score_weight":[1],"router_temperature":[0]}}"#,
                "sweep needs mode frozen",
            ),
            (r#"{"mode":"resimulated","worker":"1"}"#, "worker is only for mode frozen"),
        ];
        for (body, expected) in cases {
            let message = refused(body);
            assert!(message.contains(expected), "{body}: {message}");
        }
    }

    #[test]
    fn without_settings_the_recorded_ones_are_tried() {
        let request = request(r#"{"mode":"frozen"}"#).unwrap();
        assert!(
            matches!(request.work, Work::OfflineReplay(settings) if settings == RouterOverrides::default())
        );
        assert_eq!(request.span, DecisionRange::Last(DEFAULT_LAST));
    }
}
