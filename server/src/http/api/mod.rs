//! `/api/v1`: the state as JSON, for people, scripts and tests.

mod baselines;
mod cluster;
pub(super) mod counterfactual;
mod decisions;
mod findings;
mod knowledge;
mod latency;
mod memory;
mod mooncake;
pub(super) mod params;
mod posted;
mod prompt;
mod recording;
mod reuse;
mod score;
mod settings;
mod stage;
mod summary;
pub(super) mod tree;
mod tree_dumps;

use std::sync::Arc;

use axum::Router;
use axum::http::{Uri, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, any, get, post};

use super::App;
use super::error::{ApiError, code};
pub(super) use recording::Readers;
pub(super) use score::Scores;

use crate::stage::Controls;

/// The description of `/api/v1`; tests compare it with the routes and their responses.
const OPENAPI: &str = include_str!("openapi.json");

/// Every path with its handler.
fn routes() -> [(&'static str, MethodRouter<App>); 21] {
    [
        ("/api/v1/cluster", get(cluster::cluster)),
        ("/api/v1/tree", get(tree::tree)),
        ("/api/v1/tree/block", get(tree::block)),
        ("/api/v1/tree/prefixes", get(tree::prefixes)),
        ("/api/v1/tree.svg", get(tree::svg)),
        ("/api/v1/decisions", get(decisions::decisions)),
        ("/api/v1/baselines.csv", get(baselines::csv)),
        ("/api/v1/findings", get(findings::findings)),
        ("/api/v1/latency", get(latency::latency)),
        ("/api/v1/memory", get(memory::memory)),
        ("/api/v1/mooncake", get(mooncake::trace)),
        ("/api/v1/prompt", get(prompt::prompt)),
        ("/api/v1/recording", get(recording::recording)),
        ("/api/v1/report", get(recording::report)),
        ("/api/v1/reuse", get(reuse::reuse)),
        ("/api/v1/score", post(score::score).fallback(only_post)),
        ("/api/v1/arrivals", get(counterfactual::arrivals)),
        ("/api/v1/counterfactual", post(counterfactual::counterfactual).fallback(only_post)),
        ("/api/v1/summary", get(summary::summary)),
        ("/api/v1/tree-dumps", post(tree_dumps::tree_dumps).fallback(only_post_asks)),
        ("/api/v1/openapi.json", get(openapi)),
    ]
}

/// `controls`: of what the stage steers, if there is one.
pub(super) fn router(controls: Option<&Arc<Controls>>) -> Router<App> {
    let mut known =
        routes().into_iter().fold(Router::new(), |router, (path, response)| router.route(path, response));
    if let Some(controls) = controls {
        known = known.route(stage::PATH, stage::route(controls));
    }
    known.route("/api", any(unknown)).route("/api/{*path}", any(unknown))
}

async fn openapi(uri: Uri) -> Result<impl IntoResponse, ApiError> {
    params::Params::of(&uri, &[])?;
    Ok(([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], OPENAPI))
}

async fn only_post(method: axum::http::Method) -> ApiError {
    let message = format!("{method} is not supported here; use POST");
    ApiError::new(code::METHOD_NOT_ALLOWED, message)
}

async fn only_post_asks(method: axum::http::Method) -> ApiError {
    let message = format!("{method} is not supported here; use POST to query workers for their blocks");
    ApiError::new(code::METHOD_NOT_ALLOWED, message)
}

async fn unknown(uri: Uri) -> ApiError {
    let shown: String = uri.path().chars().take(200).collect();
    let names = routes().map(|(path, _)| path.strip_prefix("/api/v1/").unwrap_or(path));
    let message = format!("{shown} does not exist; there are, below /api/v1/, {}", names.join(", "));
    ApiError::new(code::NOT_FOUND, message)
}

#[cfg(test)]
pub(in crate::http) mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn the_description_has_the_very_paths_that_are_answered() {
        assert_describes(OPENAPI, routes().iter().map(|(path, _)| *path).chain([stage::PATH]));
    }

    /// A description has the very paths that are answered, and is of this release.
    #[track_caller]
    pub(in crate::http) fn assert_describes(openapi: &str, answered: impl Iterator<Item = &'static str>) {
        let openapi: Value = serde_json::from_str(openapi).unwrap();
        let described: BTreeSet<&str> =
            openapi["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(described, answered.collect());
        assert_eq!(openapi["info"]["version"], env!("CARGO_PKG_VERSION"));
    }
}
