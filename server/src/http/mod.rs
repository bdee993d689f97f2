//! The HTTP server: routes, base path, common headers. Knows the hub, but no source.

mod access;
mod api;
mod assets;
mod body;
mod error;
mod fleet;
mod health;
mod history;
mod host;
mod listen;
mod metrics;
mod origin;
mod page;
mod panel;
mod report;
mod snapshot;
mod ws;

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{FromRef, Request, State};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderValue, Method, header};
use axum::middleware;
use axum::response::Response;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::util::MapRequest;

use radixscope_export::TraceUrl;

use crate::baselines::BaselineFiles;
use crate::config::{AllowedHost, AllowedOrigin, BasePath, FrameAncestors};
use crate::fleet::Board;
use crate::hub::Hub;
use crate::shutdown::Shutdown;
use crate::stage::Controls;
pub use access::AccessRules;
pub(crate) use assets::Assets;
pub(crate) use body::{BODY_WITHIN, BodyError, discard_body, read_body};
use error::{ApiError, code};
use host::OwnNames;
use listen::ConnectionSlots;
pub(crate) use listen::{Listener, Peer};
pub use listen::{Tls, TlsFiles};
pub(crate) use report::{IncidentReport, View};

/// Options of the HTTP server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Path below which a proxy serves the page.
    pub base_path: BasePath,
    /// Sites that may frame the page.
    pub frame_ancestors: FrameAncestors,
    /// Other origins whose pages may open the WebSocket.
    pub allow_origin: Vec<AllowedOrigin>,
    /// Further host names of the server.
    pub allow_host: Vec<AllowedHost>,
    /// Listen address.
    pub listen: SocketAddr,
    /// Access rules.
    pub access: AccessRules,
    /// A notice for every reader, shown on the page.
    pub notice: Option<&'static str>,
    /// Template of the links from decisions to their traces.
    pub trace_url: Option<TraceUrl>,
    /// Baselines of the command line.
    pub baselines: Arc<BaselineFiles>,
    /// How readers steer what is shown; `None`: they cannot, and its routes do not exist.
    pub stage: Option<Arc<Controls>>,
    /// Maximum viewers.
    pub max_viewers: usize,
    /// Maximum connections.
    pub max_connections: usize,
}

/// What servers of one cluster and of many share: options, the page's files, who may read.
#[derive(Clone)]
struct Front {
    options: Arc<ServeOptions>,
    document: Document,
    assets: Arc<Assets>,
    shutdown: Shutdown,
    own_names: Arc<OwnNames>,
    /// Connection slots; `None` without a listener.
    slots: Option<Arc<ConnectionSlots>>,
    /// Requests with a wrong token.
    failed_logins: Arc<access::FailedLogins>,
}

impl Front {
    fn new(
        options: ServeOptions,
        document: Document,
        slots: Option<Arc<ConnectionSlots>>,
        shutdown: Shutdown,
    ) -> Self {
        let own_names = Arc::new(OwnNames::new(options.listen.ip(), options.allow_host.clone()));
        let options = Arc::new(options);
        let (assets, failed_logins) = (Arc::new(Assets::new()), Arc::default());
        Self { options, document, assets, shutdown, own_names, slots, failed_logins }
    }

    /// Adds the page's files, and around everything the checks of who may read and the common headers.
    fn around<S>(self, router: Router<S>) -> Router<S>
    where
        S: Clone + Send + Sync + 'static,
        Self: FromRef<S>,
    {
        router
            .fallback(assets::serve)
            .layer(middleware::from_fn_with_state(self.clone(), access::check))
            .layer(middleware::from_fn_with_state(self.clone(), origin::share))
            .layer(middleware::from_fn_with_state(self, host::check))
            .layer(middleware::map_response(common_headers))
    }
}

/// What the page shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Document {
    Cluster,
    Fleet,
}

/// Shared state of the handlers.
#[derive(Clone)]
struct App {
    hub: Hub,
    front: Front,
    /// Permits for counterfactuals.
    runs: Arc<Semaphore>,
    /// Permits for score requests.
    scores: Arc<api::Scores>,
    /// Permits for reading a copy of the tree.
    tree_reads: Arc<Semaphore>,
    /// Cached panel pictures.
    panels: Arc<panel::Panels>,
    /// Permits for compressing the state.
    snapshots: Arc<Semaphore>,
    /// Whether `/readyz` was ever 200.
    was_ready: Arc<AtomicBool>,
    /// Workers with their own series in `/metrics`.
    listed: Arc<Mutex<metrics::Listed>>,
    /// Downloads of recordings.
    readers: Arc<api::Readers>,
}

impl Deref for App {
    type Target = Front;

    fn deref(&self) -> &Front {
        &self.front
    }
}

impl FromRef<App> for Front {
    fn from_ref(app: &App) -> Self {
        app.front.clone()
    }
}

impl FromRef<App> for Arc<ServeOptions> {
    fn from_ref(app: &App) -> Self {
        Arc::clone(&app.options)
    }
}

impl FromRef<App> for Hub {
    fn from_ref(app: &App) -> Self {
        app.hub.clone()
    }
}

/// Serves until `shutdown` turns true and the last connection has ended.
pub async fn serve(
    socket: TcpListener,
    tls: Option<Tls>,
    hub: Hub,
    options: ServeOptions,
    shutdown: Shutdown,
) {
    let listener = Listener::new(socket, options.max_connections, tls);
    let service = service(hub, options, Some(listener.slots()), shutdown.clone());
    listener.serve(service, shutdown).await;
}

/// The same for a page with many clusters.
pub(crate) async fn serve_fleet(
    socket: TcpListener,
    tls: Option<Tls>,
    board: Arc<Board>,
    options: ServeOptions,
    shutdown: Shutdown,
) {
    let listener = Listener::new(socket, options.max_connections, tls);
    let base = options.base_path.clone();
    let front = Front::new(options, Document::Fleet, Some(listener.slots()), shutdown.clone());
    listener.serve(below(base, fleet::router(board, front)), shutdown).await;
}

/// The service of one cluster.
fn service(
    hub: Hub,
    options: ServeOptions,
    slots: Option<Arc<ConnectionSlots>>,
    shutdown: Shutdown,
) -> MapRequest<Router, impl FnMut(Request) -> Request + Clone + use<>> {
    let base = options.base_path.clone();
    below(base, router(hub, options, slots, shutdown))
}

/// All routes, with the base path cut off around them: a router nested at a prefix would answer 404 to `/prefix/`.
fn below(
    base: BasePath,
    router: Router,
) -> MapRequest<Router, impl FnMut(Request) -> Request + Clone + use<>> {
    MapRequest::new(router, move |mut request: Request| {
        if let Some(uri) = without_prefix(&base, request.uri()) {
            *request.uri_mut() = uri;
        }
        request
    })
}

/// All routes without a listener and base path, for in-process use.
pub fn routes(hub: Hub, options: ServeOptions, shutdown: Shutdown) -> Router {
    router(hub, options, None, shutdown)
}

fn router(
    hub: Hub,
    options: ServeOptions,
    slots: Option<Arc<ConnectionSlots>>,
    shutdown: Shutdown,
) -> Router {
    let front = Front::new(options, Document::Cluster, slots, shutdown);
    let runs = api::counterfactual::runs();
    let tree_reads = api::tree::reads();
    let (scores, panels) = (Arc::default(), Arc::default());
    let snapshots = snapshot::permits();
    let was_ready = Arc::default();
    let (listed, readers) = (Arc::default(), Arc::default());
    let app = App {
        hub,
        front: front.clone(),
        runs,
        scores,
        tree_reads,
        panels,
        snapshots,
        was_ready,
        listed,
        readers,
    };
    let router = Router::new()
        .route("/ws", get(ws::open))
        .route("/snapshot", get(snapshot::snapshot))
        .route("/history", get(history::index))
        .route("/history/segment", get(history::segment))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::metrics))
        .route("/panel/{name}", get(panel::panel))
        .merge(api::router(front.options.stage.as_ref()))
        .method_not_allowed_fallback(method_not_allowed);
    front.around(router).with_state(app)
}

async fn method_not_allowed(State(front): State<Front>, method: Method) -> ApiError {
    only_get(&front, &method)
}

fn only_get(front: &Front, method: &Method) -> ApiError {
    let how = match (front.document, &front.options.stage) {
        (Document::Cluster, None) => {
            "use GET to read, and POST only for /api/v1/score, /api/v1/counterfactual and /api/v1/tree-dumps"
        }
        (Document::Cluster, Some(_)) => {
            "use GET to read, and POST only for /api/v1/score, /api/v1/counterfactual, /api/v1/tree-dumps and /api/v1/stage"
        }
        (Document::Fleet, _) => "use GET to read",
    };
    ApiError::new(code::METHOD_NOT_ALLOWED, format!("{method} is not supported here; {how}"))
}

/// Headers of every response: no content sniffing, no referrer.
async fn common_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// `uri` without the base path; `None` if it does not start with it.
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
