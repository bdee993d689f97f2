//! Liveness and readiness, in words as well as by status.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;

use radixscope_insight::completeness::coverage_text;
use radixscope_model::record::{LinkState, MissedCause, SourceKind};
use radixscope_state::cluster::{Cluster, MissedCount, SourceState};

use super::App;
use super::access::Stranger;
use super::error::ApiError;
use crate::hub::Hub;

#[derive(Serialize)]
struct Readiness {
    ready: bool,
    /// What is missing, or that nothing is.
    message: String,
    /// Whether every block that workers hold is known. It may stay `false` where workers cannot be asked, so it is no reason not
    /// to be ready.
    complete: bool,
    /// How much is known, in words.
    coverage: String,
    sources: Vec<SourceReadiness>,
}

/// Queries to workers are no reason not to be ready: they may be out of reach for good, and `complete` tells what that costs.
/// Nor is a recording: nothing that is shown comes from it.
fn is_needed(source: &SourceState) -> bool {
    !matches!(source.kind, SourceKind::WorkerTrees | SourceKind::Recording)
}

#[derive(Serialize)]
struct SourceReadiness {
    name: String,
    state: LinkState,
    detail: String,
}

/// A worker without a place is spoken of again within this time, if it is there.
const RECENT_MS: u64 = 60_000;

/// With `?once`, a server that was never ready is taken for ready after this time.
const ONCE_AT_MOST: Duration = Duration::from_secs(60);

/// The process lives and the hub answers.
pub(super) async fn alive(State(hub): State<Hub>) -> Result<Json<serde_json::Value>, ApiError> {
    let uptime_s = hub.read(|view| view.stats.started.elapsed().as_secs()).await?;
    Ok(Json(serde_json::json!({
        "alive": true,
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": uptime_s,
    })))
}

/// Whether the tree is complete as well is told beside it.
///
/// 200 once every configured source is connected, current and allowed to see all that it asks for, and every worker that
/// is there is shown. Queries to workers do not count. To strangers only whether.
///
/// With `?once` also from the first such answer on, and [`ONCE_AT_MOST`] after the start: for Kubernetes, which sends nobody to
/// a pod that is not ready. A new pod is waited for, and a page that says that NATS is down stays within reach.
pub(super) async fn ready(
    State(app): State<App>,
    uri: Uri,
    stranger: Option<Extension<Stranger>>,
) -> Result<Response, ApiError> {
    let sources = app.hub.read(|view| {
        let source = |s: &SourceState| SourceReadiness {
            name: s.name.clone(),
            state: s.state,
            detail: s.detail.clone(),
        };
        let coverage = view.cluster.coverage(view.cluster.pools_in_use());
        // A simulation or recording that has ended said all it will ever say.
        let is_live = |state: LinkState| matches!(state, LinkState::Live | LinkState::Ended);
        let all = view.cluster.sources();
        let waiting = all.iter().filter(|s| is_needed(s) && !is_live(s.state)).map(|s| s.name.clone());
        let waiting: Vec<String> = waiting.collect();
        let sources: Vec<_> = all.iter().map(source).collect();
        let is_late = view.stats.started.elapsed() >= ONCE_AT_MOST;
        (sources, waiting, lacks_places(view.cluster), coverage, is_late)
    });
    let (sources, waiting, lacks_places, coverage, is_late) = sources.await?;
    let complete = coverage.complete == coverage.workers;
    let ready = waiting.is_empty() && !lacks_places;
    let message = if ready && coverage.is_whole() {
        "every source is connected and current".to_owned()
    } else if ready {
        format!("every source is connected and current; the tree lacks blocks: {}", coverage_text(&coverage))
    } else if waiting.is_empty() {
        "there are more workers than slots: some are not shown".to_owned()
    } else {
        let refused = sources.iter().filter(|source| source.state == LinkState::Partial);
        let words: Vec<_> = refused.map(|source| format!("{}: {}", source.name, source.detail)).collect();
        let more = if words.is_empty() { String::new() } else { format!("; {}", words.join("; ")) };
        format!(
            "sources that are not connected, not current or not allowed to read everything: {}{more}",
            waiting.join(", ")
        )
    };
    let is_known = stranger.is_none();
    let message =
        if is_known { message } else { "details need the access token or the trusted proxy".to_owned() };
    let sources = if is_known { sources } else { Vec::new() };
    let coverage = if is_known { coverage_text(&coverage) } else { String::new() };
    let was_ready = app.was_ready.fetch_or(ready, Ordering::Relaxed);
    let is_taken = ready || uri.query() == Some("once") && (was_ready || is_late);
    let status = if is_taken { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok((status, Json(Readiness { ready, message, complete, coverage, sources })).into_response())
}

/// Whether there are workers that are not shown.
fn lacks_places(cluster: &Cluster) -> bool {
    let now = cluster.now_ms();
    let lately = |missed: &MissedCount| {
        missed.cause == MissedCause::TooManyWorkers && now.since(missed.last_ms) <= RECENT_MS
    };
    cluster.sources().iter().any(|source| source.missed.iter().any(lately))
}
