//! `/api/v1/stage`: what can be steered, and one change to it. Exists only where the server has a stage: what is steered is the
//! simulator, or the load that this process makes; never a deployment.

use std::sync::Arc;

use axum::http::{Uri, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use axum::{Extension, Json};
use radixscope_export::stage::{StageChange, StageReport};

use super::params::Params;
use super::posted::Posted;
use crate::http::App;
use crate::http::error::{ApiError, code};
use crate::http::origin::OwnPage;
use crate::stage::{Controls, NotChanged};

/// Its address.
pub(super) const PATH: &str = "/api/v1/stage";
/// Largest body: a change is a key and a value.
const MAX_BODY_BYTES: usize = 1_024;
/// Retry-After of what can be tried again.
const RETRY_AFTER_S: u32 = 1;

pub(super) fn route(controls: &Arc<Controls>) -> MethodRouter<App> {
    get(report).post(change).layer(Extension(Arc::clone(controls)))
}

async fn report(
    Extension(controls): Extension<Arc<Controls>>,
    uri: Uri,
) -> Result<impl IntoResponse, ApiError> {
    Params::of(&uri, &[])?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(controls.report())))
}

async fn change(
    _: OwnPage,
    Extension(controls): Extension<Arc<Controls>>,
    Posted(change): Posted<StageChange, MAX_BODY_BYTES>,
) -> Result<Json<StageReport>, ApiError> {
    let changed = controls.change(change).await;
    changed.map(Json).map_err(|why| {
        let code = match why {
            NotChanged::Invalid(_) => code::BAD_PARAMETER,
            NotChanged::TooMany => code::TOO_MANY_POSTS,
            NotChanged::NotReady | NotChanged::NotTaken => code::BUSY,
        };
        let error = ApiError::new(code, why.to_string());
        if code == code::BAD_PARAMETER { error } else { error.retry_after(RETRY_AFTER_S) }
    })
}
