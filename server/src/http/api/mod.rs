//! `/api/v1`: the state as JSON, for people, scripts and tests.

mod cluster;
mod decisions;
mod json;
pub(super) mod params;
mod prompt;
mod score;
mod tree;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{any, get, post};

use super::App;
use super::error::{ApiError, code};

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/cluster", get(cluster::cluster))
        .route("/api/v1/tree", get(tree::tree))
        .route("/api/v1/decisions", get(decisions::decisions))
        .route("/api/v1/prompt", get(prompt::prompt))
        .route("/api/v1/score", post(score::score).layer(DefaultBodyLimit::max(score::MAX_BODY_BYTES)))
        .route("/api", any(unknown))
        .route("/api/{*path}", any(unknown))
}

async fn unknown(uri: axum::http::Uri) -> ApiError {
    let message = format!(
        "there is no {} here; there are /api/v1/cluster, /api/v1/tree, /api/v1/decisions, /api/v1/prompt and \
         /api/v1/score",
        uri.path().chars().take(200).collect::<String>()
    );
    ApiError::new(code::NOT_FOUND, message)
}
