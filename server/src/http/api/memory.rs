//! `GET /api/v1/memory`: use of every worker's KV memory, with the sources of the figures.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;

use radixscope_export::Memories;

use super::params::Params;
use crate::http::error::ApiError;
use crate::hub::Hub;

pub(super) async fn memory(State(hub): State<Hub>, uri: Uri) -> Result<Json<Memories>, ApiError> {
    Params::of(&uri, &[])?;
    Ok(Json(hub.read(|view| Memories::of(view.cluster, view.at_ms)).await?))
}
