//! `GET /api/v1/reuse`: where the reuse of prompts is lost, of the decisions that are retained or of a window of them.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;

use radixscope_export::ReuseReport;
use radixscope_model::id::Millis;
use radixscope_state::cluster::DecisionEntry;

use super::params::Params;
use crate::http::error::ApiError;
use crate::hub::Hub;

/// A day: more decisions than are retained.
const MAX_WINDOW_S: u64 = 86_400;

pub(super) async fn reuse(State(hub): State<Hub>, uri: Uri) -> Result<Json<ReuseReport>, ApiError> {
    let params = Params::of(&uri, &["worker", "pool", "model", "session", "window_s"])?;
    let (filter, pools) = (params.worker()?, params.pools());
    let session = params.get("session").map(str::to_owned);
    let window_s = params.within("window_s", 1, MAX_WINDOW_S)?;
    let report = hub.read(move |view| {
        let cluster = view.cluster;
        let workers = filter.map(|filter| filter.among(cluster)).transpose()?;
        let pools = pools.among(cluster)?;
        let after = window_s.map(|seconds| Millis(view.at_ms.0.saturating_sub(seconds * 1_000)));
        let is_meant = |decided: &&DecisionEntry| {
            workers.as_ref().is_none_or(|workers| workers.contains(&decided.decision.worker))
                && pools.as_ref().is_none_or(|pools| pools.contains(&decided.pool))
                && session.as_ref().is_none_or(|session| decided.decision.session.as_ref() == Some(session))
                && after.is_none_or(|after| decided.decided_ms() > after)
        };
        let meant = cluster.decisions().newest_first().filter(is_meant);
        Ok::<_, ApiError>(ReuseReport::of(cluster, view.at_ms, meant))
    });
    Ok(Json(report.await??))
}
