//! `GET /api/v1/baselines.csv`: the baselines of the command line (`--baseline`), in the columns that the page exports. Folders
//! of results are read again, so that a running experiment shows.

use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::response::IntoResponse;

use super::App;
use super::params::Params;
use crate::http::error::{ApiError, code};

pub(super) async fn csv(State(app): State<App>, uri: Uri) -> Result<impl IntoResponse, ApiError> {
    Params::of(&uri, &[])?;
    let files = app.options.baselines.clone();
    let text = tokio::task::spawn_blocking(move || files.csv()).await;
    let text = text.map_err(|_| ApiError::new(code::INTERNAL, "reading the baselines failed"))?;
    let kind = HeaderValue::from_static("text/csv; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))], text))
}
