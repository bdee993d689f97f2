//! The routes of `radixscope fleet`: a page and JSON about many clusters, probes, metrics. There is no cluster here, so that none of the
//! routes of one exist.

use std::sync::Arc;

use axum::extract::{FromRef, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get};
use axum::{Extension, Json, Router};
use radixscope_export::fleet::{FleetReport, MemberState};
use radixscope_model::id::Millis;

use super::access::Unauthenticated;
use super::api::params::Params;
use super::error::{ApiError, code};
use super::metrics::{self, Families, Labels, labels};
use super::{Front, method_not_allowed};
use crate::fleet::Board;

/// The description of the routes; a test compares them.
const OPENAPI: &str = include_str!("openapi.json");

#[derive(Clone)]
struct FleetApp {
    board: Arc<Board>,
    front: Front,
}

impl FromRef<FleetApp> for Front {
    fn from_ref(app: &FleetApp) -> Self {
        app.front.clone()
    }
}

impl FromRef<FleetApp> for Arc<Board> {
    fn from_ref(app: &FleetApp) -> Self {
        Arc::clone(&app.board)
    }
}

/// Every path of the API with its handler.
fn routes() -> [(&'static str, MethodRouter<FleetApp>); 2] {
    [("/api/v1/fleet", get(fleet)), ("/api/v1/openapi.json", get(openapi))]
}

pub(super) fn router(board: Arc<Board>, front: Front) -> Router {
    let known = routes().into_iter().fold(Router::new(), |router, (path, to)| router.route(path, to));
    let router = known
        .route("/api", any(unknown))
        .route("/api/{*path}", any(unknown))
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .method_not_allowed_fallback(method_not_allowed);
    front.clone().around(router).with_state(FleetApp { board, front })
}

async fn fleet(State(board): State<Arc<Board>>, uri: Uri) -> Result<Json<FleetReport>, ApiError> {
    let params = Params::of(&uri, &["after_ms"])?;
    let after = params.within("after_ms", 0, u64::MAX)?.unwrap_or_default();
    Ok(Json(board.report(Millis(after))))
}

async fn openapi(uri: Uri) -> Result<impl IntoResponse, ApiError> {
    Params::of(&uri, &[])?;
    Ok(([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-cache")], OPENAPI))
}

async fn unknown(uri: Uri) -> ApiError {
    let shown: String = uri.path().chars().take(200).collect();
    let message = format!(
        "{shown} does not exist: this is radixscope fleet, which has /api/v1/fleet; each member has the rest, at its own address"
    );
    ApiError::new(code::NOT_FOUND, message)
}

/// Liveness.
async fn alive(State(board): State<Arc<Board>>) -> Json<serde_json::Value> {
    Json(serde_json::json!({
        "alive": true,
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": board.uptime().as_secs(),
    }))
}

/// Readiness: every member was asked. It does not depend on their answers, which are what the page shows.
async fn ready(
    State(board): State<Arc<Board>>,
    unauthenticated: Option<Extension<Unauthenticated>>,
) -> Response {
    let (answering, asked, all) = board.totals();
    let ready = asked == all;
    let message = match unauthenticated {
        Some(_) => "details need the access token or the trusted proxy".to_owned(),
        None if ready => format!("{answering} of {all} members answer"),
        None => format!("{asked} of {all} members were asked so far"),
    };
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(serde_json::json!({ "ready": ready, "message": message }))).into_response()
}

async fn metrics(State(app): State<FleetApp>, headers: HeaderMap) -> Result<Response, ApiError> {
    let mut families = Families::default();
    let build = labels([("version", env!("CARGO_PKG_VERSION"))]);
    families.gauges("build_info", "Version of the server", [(build, 1.0)]);
    families.gauge("uptime_seconds", "Time since the server started", app.board.uptime().as_secs_f64());
    families.of_members(&app.board);
    if let Some(slots) = &app.front.slots {
        families.of_connections(slots);
    }
    families.of_logins(&app.front.failed_logins);
    metrics::response(families, &headers)
}

impl Families {
    fn of_members(&mut self, board: &Board) {
        let all = board.counts();
        let named = |name: &str| labels([("cluster", name)]);
        self.gauge("fleet_members", "Members that are asked", all.len() as f64);
        let up = all
            .iter()
            .map(|member| (named(&member.name), f64::from(u8::from(member.state == MemberState::Answering))));
        self.gauges("fleet_member_up", "1 while the member's last answer is a summary, else 0", up);
        let states = all.iter().flat_map(|member| {
            MemberState::ALL.map(|state| {
                let labels = labels([("cluster", &*member.name), ("state", state.as_str())]);
                (labels, f64::from(u8::from(member.state == state)))
            })
        });
        self.gauges("fleet_member_state", "1 for the current state of the member", states);
        let seconds = |ms: u64| ms as f64 / 1_000.0;
        let ages = all.iter().filter_map(|member| Some((named(&member.name), seconds(member.age_ms?))));
        let help = "Time since the member's last summary; absent if it never sent one";
        self.gauges("fleet_member_answer_age_seconds", help, ages);
        let took = all.iter().filter_map(|member| Some((named(&member.name), seconds(member.took_ms?))));
        self.gauges("fleet_member_answer_seconds", "How long the member's last summary took", took);
        let polls = all.iter().map(|member| (named(&member.name), member.polls));
        self.counters("fleet_polls", "Requests for a summary", polls);
        let failures: Vec<(Labels, u64)> = all
            .iter()
            .flat_map(|member| {
                member.failures.iter().map(|(kind, count)| {
                    (labels([("cluster", &*member.name), ("why", kind.as_str())]), *count)
                })
            })
            .collect();
        self.counters("fleet_poll_failures", "Of these, those without a summary", failures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::api::tests::assert_describes;

    #[test]
    fn the_description_has_the_very_paths_that_are_answered() {
        assert_describes(OPENAPI, routes().iter().map(|(path, _)| *path));
    }
}
