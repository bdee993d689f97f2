//! `GET /api/v1/findings`: findings with causes and fixes, and the status of the checks.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;

use radixscope_export::{FindingFilter, Findings};
use radixscope_model::record::Severity;

use super::params::Params;
use crate::http::error::ApiError;
use crate::hub::Hub;

const STATES: [(&str, bool); 2] = [("present", false), ("all", true)];
const SEVERITIES: [(&str, Severity); 3] =
    [("info", Severity::Info), ("warning", Severity::Warning), ("critical", Severity::Critical)];

pub(super) async fn findings(State(hub): State<Hub>, uri: Uri) -> Result<Json<Findings>, ApiError> {
    let params = Params::of(&uri, &["state", "severity"])?;
    let default = FindingFilter::default();
    let wanted = FindingFilter {
        severity: params.one_of("severity", &SEVERITIES)?.unwrap_or(default.severity),
        cleared: params.one_of("state", &STATES)?.unwrap_or(default.cleared),
    };
    Ok(Json(hub.read(move |view| Findings::of(view.cluster, wanted, view.at_ms)).await?))
}
