//! `GET /api/v1/summary`: the cluster in a few figures, for `radixscope fleet` and for scripts.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;

use radixscope_export::ClusterSummary;

use super::params::Params;
use crate::http::error::ApiError;
use crate::hub::Hub;

pub(super) async fn summary(State(hub): State<Hub>, uri: Uri) -> Result<Json<ClusterSummary>, ApiError> {
    Params::of(&uri, &[])?;
    let read = hub.read(|view| {
        let from_ms = view.history().and_then(|retained| retained.from_ms);
        ClusterSummary::of(view.cluster, view.at_ms, view.is_replay, from_ms)
    });
    Ok(Json(read.await?))
}
