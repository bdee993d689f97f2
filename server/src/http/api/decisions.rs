//! `GET /api/v1/decisions`: the latest routing decisions, newest first.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;

use radixscope_export::{Decisions, DecisionsOf};
use radixscope_state::cluster::{ByFilter, ClientFilter, Cluster, DecisionEntry, MAX_DECISIONS};

use super::params::{Params, PoolFilter, WorkerFilter};
use crate::http::ServeOptions;
use crate::http::error::ApiError;
use crate::hub::Hub;

const DEFAULT_LIMIT: usize = 1_000;

pub(super) async fn decisions(
    State(hub): State<Hub>,
    State(options): State<Arc<ServeOptions>>,
    uri: Uri,
) -> Result<Json<Decisions>, ApiError> {
    let params = Params::of(&uri, &["limit", "worker", "pool", "model", "session", "decided_by", "client"])?;
    let limit = params.within("limit", 1, MAX_DECISIONS as u64)?.map_or(DEFAULT_LIMIT, |n| n as usize);
    let (filter, pools) = (params.worker()?, params.pools());
    let session = params.get("session").map(str::to_owned);
    let by = params.one_of("decided_by", &ByFilter::ALL.map(|by| (by.as_str(), by)))?;
    let client = params.one_of("client", &ClientFilter::ALL.map(|kind| (kind.as_str(), kind)))?;
    let only = Only { session, by, client };
    Ok(Json(hub.read(move |view| of(view.cluster, limit, filter, &pools, &only, &options)).await??))
}

/// What the query selects beside workers and pools.
struct Only {
    session: Option<String>,
    by: Option<ByFilter>,
    /// Against the target of the checks.
    client: Option<ClientFilter>,
}

fn of(
    cluster: &Cluster,
    limit: usize,
    filter: Option<WorkerFilter>,
    pools: &PoolFilter,
    only: &Only,
    options: &ServeOptions,
) -> Result<Decisions, ApiError> {
    let workers = filter.map(|filter| filter.among(cluster)).transpose()?;
    let pools = pools.among(cluster)?;
    let ttft_target_us = cluster.targets().ttft_us();
    let is_meant = |decided: &&DecisionEntry| {
        workers.as_ref().is_none_or(|workers| workers.contains(&decided.decision.worker))
            && pools.as_ref().is_none_or(|pools| pools.contains(&decided.pool))
            && only.session.as_ref().is_none_or(|session| decided.decision.session.as_ref() == Some(session))
            && only.by.is_none_or(|ByFilter(by)| by == decided.decision.decided_by)
            && only.client.is_none_or(|client| client == ClientFilter::of(decided, ttft_target_us))
    };
    let meant = cluster.decisions().newest_first().filter(is_meant);
    let of = DecisionsOf {
        workers: workers.as_deref(),
        pools: pools.as_deref(),
        trace_url: options.trace_url.as_ref(),
    };
    Ok(Decisions::of(cluster, meant.take(limit), of))
}
