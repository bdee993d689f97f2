//! Everything that is served: routes, the base path, headers common to all answers. Knows the hub, no source.

mod api;
mod assets;
mod error;
mod health;
mod metrics;
mod origin;
mod page;
mod snapshot;
mod ws;

use std::sync::Arc;

use axum::Router;
use axum::ServiceExt;
use axum::extract::{FromRef, Request};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use axum::routing::get;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::util::MapRequest;

use crate::config::{AllowedOrigin, BasePath, FrameAncestors};
use crate::hub::Hub;
use crate::shutdown::{Shutdown, over};
use assets::Assets;
use error::{ApiError, code};

/// How we serve.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Path below which a proxy shows us.
    pub base_path: BasePath,
    /// Who may frame us.
    pub frame_ancestors: FrameAncestors,
    /// Whose pages may open the socket besides our own.
    pub allow_origin: Vec<AllowedOrigin>,
    /// Most viewers at once.
    pub max_viewers: usize,
}

/// What handlers share.
#[derive(Clone)]
struct App {
    hub: Hub,
    options: Arc<ServeOptions>,
    assets: Arc<Assets>,
    shutdown: Shutdown,
    /// Places for long computations.
    runs: Arc<Semaphore>,
    /// Places for reading a copy of the tree.
    tree_reads: Arc<Semaphore>,
    /// Places for compressing the state.
    snapshots: Arc<Semaphore>,
}

impl FromRef<App> for Hub {
    fn from_ref(app: &App) -> Self {
        app.hub.clone()
    }
}

/// Serves until `shutdown` turns true and the last connection has ended.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    listener: TcpListener,
    hub: Hub,
    options: ServeOptions,
    shutdown: Shutdown,
) -> std::io::Result<()> {
    // Batches are small and wanted at once; Nagle's algorithm would hold them back.
    let listener = listener.tap_io(|socket| {
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "no TCP_NODELAY");
        }
    });
    let service = service(hub, options, shutdown.clone());
    axum::serve(listener, ServiceExt::<Request>::into_make_service(service))
        .with_graceful_shutdown(ended(shutdown))
        .await
}

async fn ended(mut shutdown: Shutdown) {
    over(&mut shutdown).await;
}

/// All routes, with the base path cut off around them: a router nested at a prefix would answer 404 to `/prefix/`.
fn service(
    hub: Hub,
    options: ServeOptions,
    shutdown: Shutdown,
) -> MapRequest<Router, impl FnMut(Request) -> Request + Clone> {
    let base = options.base_path.clone();
    let router = router(hub, options, shutdown);
    MapRequest::new(router, move |mut request: Request| {
        if let Some(uri) = without_prefix(&base, request.uri()) {
            *request.uri_mut() = uri;
        }
        request
    })
}

fn router(hub: Hub, options: ServeOptions, shutdown: Shutdown) -> Router {
    let assets = Arc::new(Assets::new());
    assets.prepare();
    let runs = api::counterfactual::runs();
    let tree_reads = api::tree::reads();
    let snapshots = snapshot::places();
    let app = App { hub, options: Arc::new(options), assets, shutdown, runs, tree_reads, snapshots };
    Router::new()
        .route("/ws", get(ws::open))
        .route("/snapshot", get(snapshot::snapshot))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::metrics))
        .merge(api::router())
        .fallback(assets::serve)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(axum::middleware::map_response(common_headers))
        .with_state(app)
}

async fn method_not_allowed(method: Method) -> ApiError {
    ApiError::new(
        code::METHOD_NOT_ALLOWED,
        format!("{method} is not possible here; everything is read with GET, only /api/v1/score with POST"),
    )
}

/// No answer may be sniffed into another type, and nobody needs to know which page linked to us.
async fn common_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// `uri` with the base path cut off; `None` where there is nothing to cut.
fn without_prefix(base: &BasePath, uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let cut = base.cut(path);
    if cut.len() == path.len() {
        return None;
    }
    let path_and_query = match uri.query() {
        Some(query) => format!("{cut}?{query}"),
        None => cut.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path_and_query).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests;
