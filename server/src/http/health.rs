//! Liveness and readiness probes.

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
use super::access::Unauthenticated;
use super::error::ApiError;
use crate::hub::Hub;

#[derive(Serialize)]
struct Readiness {
    ready: bool,
    /// What is missing.
    message: String,
    /// Whether every cached block is known. It may stay `false` if workers cannot be queried, so readiness does not depend on
    /// it.
    complete: bool,
    /// Coverage as text.
    coverage: String,
    sources: Vec<SourceReadiness>,
}

/// Readiness does not depend on queries to workers, which may be unreachable permanently (`complete` shows the effect), nor on
/// what is written, which no view depends on.
fn is_needed(source: &SourceState) -> bool {
    source.kind != SourceKind::WorkerTrees && !source.kind.is_output()
}

#[derive(Serialize)]
struct SourceReadiness {
    name: String,
    state: LinkState,
    detail: String,
}

/// A present worker without a slot is counted again within this time.
const RECENT_MS: u64 = 60_000;

/// With `?once`, a server counts as ready after this time at the latest.
const ONCE_AT_MOST: Duration = Duration::from_secs(60);

/// Liveness: the process runs and the hub responds.
pub(super) async fn alive(State(hub): State<Hub>) -> Result<Json<serde_json::Value>, ApiError> {
    let uptime_s = hub.read(|view| view.stats.started.elapsed().as_secs()).await?;
    Ok(Json(serde_json::json!({
        "alive": true,
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": uptime_s,
    })))
}

/// Readiness. `complete` in the body reports whether the tree is complete too. 200 once every configured source is connected,
/// current and has all permissions, and every present worker has a slot. Queries to workers do not count. Without
/// authentication the body has no details. With `?once` also from the first 200 on, and [`ONCE_AT_MOST`] after the start:
/// Kubernetes removes pods that are not ready from a Service, but the page should stay reachable while NATS is down.
pub(super) async fn ready(
    State(app): State<App>,
    uri: Uri,
    unauthenticated: Option<Extension<Unauthenticated>>,
) -> Result<Response, ApiError> {
    let sources = app.hub.read(|view| {
        let source = |s: &SourceState| SourceReadiness {
            name: s.name.clone(),
            state: s.state,
            detail: s.detail.clone(),
        };
        let coverage = view.cluster.coverage(view.cluster.pools_in_use());
        // An ended simulation or recording is complete.
        let is_live = |state: LinkState| matches!(state, LinkState::Live | LinkState::Ended);
        let all = view.cluster.sources();
        let waiting = all.iter().filter(|s| is_needed(s) && !is_live(s.state)).map(|s| s.name.clone());
        let waiting: Vec<String> = waiting.collect();
        let sources: Vec<_> = all.iter().map(source).collect();
        let is_late = view.stats.started.elapsed() >= ONCE_AT_MOST;
        (sources, waiting, lacks_slots(view.cluster), coverage, is_late)
    });
    let (sources, waiting, lacks_slots, coverage, is_late) = sources.await?;
    let complete = coverage.complete == coverage.workers;
    let ready = waiting.is_empty() && !lacks_slots;
    let message = if ready && coverage.is_whole() {
        "every source is connected and current".to_owned()
    } else if ready {
        format!("every source is connected and current; the tree lacks blocks: {}", coverage_text(&coverage))
    } else if waiting.is_empty() {
        "there are more workers than slots: some are not shown".to_owned()
    } else {
        let refused = sources.iter().filter(|source| source.state == LinkState::Partial);
        let text: Vec<_> = refused.map(|source| format!("{}: {}", source.name, source.detail)).collect();
        let more = if text.is_empty() { String::new() } else { format!("; {}", text.join("; ")) };
        format!(
            "sources that are not connected, not current or not allowed to read everything: {}{more}",
            waiting.join(", ")
        )
    };
    let is_known = unauthenticated.is_none();
    let message =
        if is_known { message } else { "details need the access token or the trusted proxy".to_owned() };
    let sources = if is_known { sources } else { Vec::new() };
    let coverage = if is_known { coverage_text(&coverage) } else { String::new() };
    let was_ready = app.was_ready.fetch_or(ready, Ordering::Relaxed);
    let is_taken = ready || uri.query() == Some("once") && (was_ready || is_late);
    let status = if is_taken { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok((status, Json(Readiness { ready, message, complete, coverage, sources })).into_response())
}

/// Whether there are workers without a slot.
fn lacks_slots(cluster: &Cluster) -> bool {
    let now = cluster.now_ms();
    let lately = |missed: &MissedCount| {
        missed.cause == MissedCause::TooManyWorkers && now.since(missed.last_ms) <= RECENT_MS
    };
    cluster.sources().iter().any(|source| source.missed.iter().any(lately))
}
