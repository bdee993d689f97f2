//! `/api/v1`: the state as JSON, for people, scripts and tests.

mod cluster;
pub(super) mod counterfactual;
mod decisions;
mod findings;
mod knowledge;
mod latency;
mod memory;
pub(super) mod params;
mod posted;
mod prompt;
mod score;
pub(super) mod tree;
mod tree_dumps;

use axum::Router;
use axum::routing::{any, get, post};

use super::App;
use super::error::{ApiError, code};
pub(super) use score::Scores;

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/api/v1/cluster", get(cluster::cluster))
        .route("/api/v1/tree", get(tree::tree))
        .route("/api/v1/tree/block", get(tree::block))
        .route("/api/v1/tree/prefixes", get(tree::prefixes))
        .route("/api/v1/tree.svg", get(tree::svg))
        .route("/api/v1/decisions", get(decisions::decisions))
        .route("/api/v1/findings", get(findings::findings))
        .route("/api/v1/latency", get(latency::latency))
        .route("/api/v1/memory", get(memory::memory))
        .route("/api/v1/prompt", get(prompt::prompt))
        .route("/api/v1/score", post(score::score).fallback(only_post))
        .route("/api/v1/arrivals", get(counterfactual::arrivals))
        .route("/api/v1/counterfactual", post(counterfactual::counterfactual).fallback(only_post))
        .route("/api/v1/tree-dumps", post(tree_dumps::tree_dumps).fallback(only_post_asks))
        .route("/api", any(unknown))
        .route("/api/{*path}", any(unknown))
}

async fn only_post(method: axum::http::Method) -> ApiError {
    let message = format!("{method} is not possible here; what to compute is asked with POST");
    ApiError::new(code::METHOD_NOT_ALLOWED, message)
}

async fn only_post_asks(method: axum::http::Method) -> ApiError {
    let message = format!("{method} is not possible here; workers are asked for their blocks with POST");
    ApiError::new(code::METHOD_NOT_ALLOWED, message)
}

async fn unknown(uri: axum::http::Uri) -> ApiError {
    let message = format!(
        "there is no {} here; there are /api/v1/cluster, /api/v1/tree, /api/v1/tree/block, \
         /api/v1/tree/prefixes, /api/v1/tree.svg, /api/v1/decisions, /api/v1/findings, /api/v1/latency, \
         /api/v1/memory, /api/v1/prompt, /api/v1/score, /api/v1/arrivals, /api/v1/counterfactual and \
         /api/v1/tree-dumps",
        uri.path().chars().take(200).collect::<String>()
    );
    ApiError::new(code::NOT_FOUND, message)
}
