//! `GET /api/v1/decisions`: the latest routing decisions, newest first, as far as their source tells them.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;

use radixscope_export::Decisions;
use radixscope_state::cluster::{Cluster, MAX_DECISIONS};

use super::params::{Params, WorkerFilter};
use crate::http::error::ApiError;
use crate::hub::Hub;

const DEFAULT_LIMIT: usize = 1_000;

pub(super) async fn decisions(State(hub): State<Hub>, uri: Uri) -> Result<Json<Decisions>, ApiError> {
    let params = Params::of(&uri, &["limit", "worker"])?;
    let limit = params.within("limit", 1, MAX_DECISIONS as u64)?.map_or(DEFAULT_LIMIT, |n| n as usize);
    let filter = params.worker()?;
    Ok(Json(hub.read(move |view| of(view.cluster, limit, filter)).await??))
}

fn of(cluster: &Cluster, limit: usize, filter: Option<WorkerFilter>) -> Result<Decisions, ApiError> {
    let workers = filter.map(|filter| filter.among(cluster)).transpose()?;
    let is_meant = |worker| workers.as_ref().is_none_or(|workers| workers.contains(&worker));
    let meant = cluster.decisions().newest_first().filter(|decided| is_meant(decided.decision.worker));
    Ok(Decisions::of(cluster, meant.take(limit), workers.as_deref()))
}
