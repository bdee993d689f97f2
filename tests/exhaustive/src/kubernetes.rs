//! An API server of Kubernetes, as far as Dynamo's discovery goes: lists in pages, watches, versions that expire, tokens and
//! refusals, over real sockets. Holds a `DynamoWorkerMetadata` for each pod and one `EndpointSlice`; pods, their logs and
//! connections to them (`pods`).

mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State as Shared};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::stream;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use radixscope_tests::nats::make_certificates;

pub use pods::USER;

/// The namespace that everything is in.
pub const NAMESPACE: &str = "dynamo-system";
const WORKERS: &str = "/apis/nvidia.com/v1alpha1/namespaces/dynamo-system/dynamoworkermetadatas";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/dynamo-system/endpointslices";
const PODS: &str = "/api/v1/namespaces/dynamo-system/pods";
const SERVICES: &str = "/api/v1/namespaces/dynamo-system/services";
const POOLS: &str = "/apis/inference.networking.k8s.io/v1/namespaces/dynamo-system/inferencepools";
const GRAPHS: &str = "/apis/nvidia.com/v1alpha1/namespaces/dynamo-system/dynamographdeployments";
const SELECTOR: &str = "nvidia.com/dynamo-discovery-enabled=true";
const SLICE: &str = "agg-worker-7xk2p";

/// See the module.
pub struct Kubernetes {
    api: Arc<Api>,
    at: SocketAddr,
    folder: TempDir,
}

#[derive(Default)]
struct Api {
    state: Mutex<State>,
    /// Changes with every change of the state.
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    version: u64,
    /// JSON of each object, by the path of its kind and its name.
    objects: BTreeMap<(&'static str, String), String>,
    /// What became of them, oldest first: version, path, what happened, JSON.
    log: Vec<(u64, &'static str, &'static str, String)>,
    /// Versions before this one are no longer kept.
    oldest: u64,
    ready: BTreeSet<String>,
    data: BTreeMap<String, Value>,
    token: Option<String>,
    refusal: Option<(&'static str, u16, String)>,
    pods: pods::OfPods,
    /// How often all watches were ended.
    cuts: u64,
    /// Method and address of each request.
    requests: Vec<String>,
}

impl Kubernetes {
    /// One that answers everybody in the clear, as `kubectl proxy`.
    pub async fn start() -> Self {
        let (this, listener) = Self::bind().await;
        let router = router(&this.api);
        tokio::spawn(async move { axum::serve(listener, router).await });
        this
    }

    /// One that speaks TLS and answers who shows this token.
    pub async fn start_with_token(token: &str) -> Self {
        let (this, listener) = Self::bind().await;
        this.set_token(token);
        make_certificates(this.folder.path());
        let chain = CertificateDer::from_pem_file(this.file("server.pem")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(this.file("server.key")).expect("a key");
        let config = ServerConfig::builder_with_provider(
            tokio_rustls::rustls::crypto::ring::default_provider().into(),
        )
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![chain], key))
        .expect("its own certificate");
        let listener = Tls { listener, acceptor: TlsAcceptor::from(Arc::new(config)) };
        let router = router(&this.api);
        tokio::spawn(async move { axum::serve(listener, router).await });
        this
    }

    async fn bind() -> (Self, TcpListener) {
        let folder = tempfile::Builder::new().prefix("radixscope-k8s-").tempdir().expect("a writable folder");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        (Self { api: Arc::default(), at, folder }, listener)
    }

    /// What `--discovery` takes.
    pub fn url(&self) -> String {
        format!("kubernetes:{NAMESPACE}@http://{}", self.at)
    }

    /// A kubeconfig with a context for it.
    pub fn kubeconfig(&self) -> PathBuf {
        let file = self.file("kubeconfig");
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "stand-in",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", self.at)}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "stand-in", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}]});
        // JSON is YAML.
        std::fs::write(&file, config.to_string()).expect("a writable folder");
        file
    }

    /// The same with TLS.
    pub fn tls_url(&self) -> String {
        format!("kubernetes:{NAMESPACE}@https://localhost:{}", self.at.port())
    }

    /// Port that it listens on.
    pub fn port(&self) -> u16 {
        self.at.port()
    }

    /// `ca.pem`, and files of one's own.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A pod registers an entry; its resource is made with the first.
    pub fn put(&self, pod: &str, key: &str, value: &Value) {
        let (map, path) = map_of(key);
        let mut state = self.state();
        // Dynamo 1.6 leaves kinds without entries out, older versions write them as null or empty.
        let data =
            state.data.entry(pod.to_owned()).or_insert_with(|| json!({"endpoints": {}, "model_cards": null}));
        data[map][path] = value.clone();
        self.write_resource(state, pod);
    }

    /// A pod takes an entry back.
    pub fn remove(&self, pod: &str, key: &str) {
        let (map, path) = map_of(key);
        let mut state = self.state();
        let maps = state.data.get_mut(pod).and_then(|data| data[map].as_object_mut());
        maps.expect("it registered").remove(path).expect("it registered that");
        self.write_resource(state, pod);
    }

    /// The `spec` of a pod's resource is this from now on, whatever it is. If it is no JSON, neither is any list.
    pub fn put_spec(&self, pod: &str, spec: &str) {
        let state = self.state();
        let metadata = metadata(pod, state.version + 1);
        self.change(state, WORKERS, pod, Some(format!(r#"{{"metadata":{metadata},"spec":{spec}}}"#)));
    }

    /// A pod's resource is gone.
    pub fn delete(&self, pod: &str) {
        let mut state = self.state();
        state.data.remove(pod);
        self.change(state, WORKERS, pod, None);
    }

    /// A pod is ready, or is not.
    pub fn set_ready(&self, pod: &str, is_ready: bool) {
        let mut state = self.state();
        if is_ready {
            state.ready.insert(pod.to_owned())
        } else {
            state.ready.remove(pod)
        };
        self.write_slice(state);
    }

    /// All pods that registered are ready.
    pub fn set_all_ready(&self) {
        let mut state = self.state();
        state.ready = state.data.keys().cloned().collect();
        self.write_slice(state);
    }

    fn write_slice(&self, state: MutexGuard<'_, State>) {
        let endpoint = |pod: &String| {
            json!({"addresses": ["10.0.0.7"], "conditions": {"ready": state.ready.contains(pod), "serving": true},
                "targetRef": {"kind": "Pod", "namespace": NAMESPACE, "name": pod, "uid": uid(pod)}})
        };
        let pods: BTreeSet<String> = state.data.keys().chain(&state.ready).cloned().collect();
        let endpoints: Vec<Value> = pods.iter().map(endpoint).collect();
        let metadata = metadata(SLICE, state.version + 1);
        let slice =
            json!({"addressType": "IPv4", "metadata": metadata, "endpoints": endpoints, "ports": null});
        self.change(state, SLICES, SLICE, Some(slice.to_string()));
    }

    /// Ends all watches in the middle of a line.
    pub fn cut(&self) {
        let mut state = self.state();
        state.cuts += 1;
        self.notify(state);
    }

    /// Keeps no version but the latest.
    pub fn expire(&self) {
        let mut state = self.state();
        // As if something else had changed: the versions that are known now are too old.
        state.version += 1;
        state.oldest = state.version;
        self.notify(state);
    }

    /// Refuses requests whose address has this in it, from now on and with this body.
    pub fn refuse(&self, part: &'static str, status: u16, body: &str) {
        let mut state = self.state();
        state.refusal = Some((part, status, body.to_owned()));
        state.cuts += 1;
        self.notify(state);
    }

    /// Refuses no more.
    pub fn allow(&self) {
        self.state().refusal = None;
    }

    /// Only this token is accepted from now on; watches go on.
    pub fn set_token(&self, token: &str) {
        self.state().token = Some(format!("Bearer {token}"));
    }

    /// Method and address of each request so far.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    fn write_resource(&self, state: MutexGuard<'_, State>, pod: &str) {
        let mut metadata = metadata(pod, state.version + 1);
        metadata["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid(pod), "controller": false}]);
        metadata["managedFields"] = json!([{"manager": "dynamo-worker", "operation": "Apply"}]);
        let object = json!({"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoWorkerMetadata", "metadata": metadata,
            "spec": {"data": state.data[pod]}});
        self.change(state, WORKERS, pod, Some(object.to_string()));
    }

    fn change(
        &self,
        mut state: MutexGuard<'_, State>,
        path: &'static str,
        name: &str,
        object: Option<String>,
    ) {
        state.version += 1;
        let (version, key) = (state.version, (path, name.to_owned()));
        let (kind, object) = match object {
            Some(object) => {
                let known = state.objects.insert(key, object.clone());
                (if known.is_some() { "MODIFIED" } else { "ADDED" }, object)
            }
            None => ("DELETED", state.objects.remove(&key).expect("it was there")),
        };
        state.log.push((version, path, kind, object));
        self.notify(state);
    }

    fn notify(&self, state: MutexGuard<'_, State>) {
        drop(state);
        self.api.changed.send_modify(|changes| *changes += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.api.state()
    }
}

impl Api {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panicked with it")
    }
}

fn uid(of: &str) -> String {
    format!("uid-of-{of}")
}

fn metadata(name: &str, version: u64) -> Value {
    json!({"name": name, "namespace": NAMESPACE, "uid": format!("object-{name}"), "resourceVersion": version.to_string()})
}

/// Where an entry of a key is in `spec.data`.
fn map_of(key: &str) -> (&'static str, &str) {
    let (kind, path) =
        key.strip_prefix("v1/").and_then(|rest| rest.split_once('/')).expect("a key of Dynamo's");
    let map = match kind {
        "instances" => "endpoints",
        "mdc" => "model_cards",
        "event_channels" => "event_channels",
        "event_sources" => "event_sources",
        _ => panic!("{key} has no map"),
    };
    (map, path)
}

fn router(api: &Arc<Api>) -> Router {
    Router::new()
        .route("/api/v1/namespaces/{namespace}/pods/{pod}/log", get(pods::log))
        .route("/api/v1/namespaces/{namespace}/pods/{pod}/portforward", get(pods::port_forward))
        .route("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", post(pods::review_access))
        .route("/apis/authentication.k8s.io/v1/selfsubjectreviews", post(pods::review_user))
        .fallback(response)
        .with_state(Arc::clone(api))
}

async fn response(
    Shared(api): Shared<Arc<Api>>,
    Query(query): Query<BTreeMap<String, String>>,
    method: axum::http::Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let mut state = api.state();
    state.requests.push(format!("{method} {uri}"));
    let status = |code: u16, message: &str| {
        let body =
            json!({"kind": "Status", "status": "Failure", "code": code, "message": message}).to_string();
        (StatusCode::from_u16(code).expect("a status"), body).into_response()
    };
    let shown = headers.get("authorization").and_then(|token| token.to_str().ok());
    if state.token.as_deref().is_some_and(|token| shown != Some(token)) {
        return status(401, "Unauthorized");
    }
    if let Some((_, code, body)) = state.refusal.as_ref().filter(|(part, ..)| uri.to_string().contains(part))
    {
        return (StatusCode::from_u16(*code).expect("a status"), body.clone()).into_response();
    }
    let path = match uri.path() {
        WORKERS => WORKERS,
        PODS => PODS,
        SERVICES => SERVICES,
        GRAPHS => GRAPHS,
        // Its kind is installed with the first.
        POOLS if state.log.iter().any(|(_, path, ..)| *path == POOLS) => POOLS,
        SLICES if query.get("labelSelector").map(String::as_str) == Some(SELECTOR) => SLICES,
        _ => return (StatusCode::NOT_FOUND, "404 page not found").into_response(),
    };
    let is_watch = query.get("watch").is_some_and(|watch| watch == "true");
    let resource = path.rsplit('/').next().unwrap_or_default();
    let right = format!("{} {resource}", if is_watch { "watch" } else { "list" });
    if let Some(refused) = pods::refusal(&state, &right) {
        return refused;
    }
    let number = |name: &str| query.get(name).and_then(|number| number.parse::<u64>().ok());
    if is_watch {
        let from = number("resourceVersion").expect("a version to watch from");
        let lasts = Duration::from_secs(number("timeoutSeconds").expect("a time"));
        let cuts = state.cuts;
        drop(state);
        return watching(api, path, from, (lasts, cuts)).into_response();
    }
    let limit = usize::try_from(number("limit").expect("a limit")).expect("a small limit");
    let decoded = |token: &String| String::from_utf8(BASE64_STANDARD.decode(token).ok()?).ok();
    let (version, after) = match query.get("continue").and_then(decoded) {
        Some(token) => {
            let (version, after) = token.split_once(':').expect("our own token");
            (version.parse().expect("our own token"), after.to_owned())
        }
        None => (state.version, String::new()),
    };
    if version < state.oldest {
        return status(410, "The provided continue parameter is too old");
    }
    let selector = query.get("labelSelector").filter(|_| path == PODS);
    let is_selected = |object: &str| selector.is_none_or(|selector| pods::is_selected(object, selector));
    let of_kind = || {
        let of_kind = state.objects.iter().filter(|((of, name), _)| *of == path && *name > after);
        of_kind.filter(|(_, object)| is_selected(object))
    };
    let items: Vec<&str> = of_kind().take(limit).map(|(_, object)| &**object).collect();
    let next = match of_kind().nth(limit.saturating_sub(1)) {
        Some(((_, name), _)) if of_kind().count() > limit => {
            BASE64_STANDARD.encode(format!("{version}:{name}"))
        }
        _ => String::new(),
    };
    let metadata = json!({"resourceVersion": version.to_string(), "continue": next});
    format!(r#"{{"kind":"List","metadata":{metadata},"items":[{}]}}"#, items.join(",")).into_response()
}

/// A watch of one kind that ends after a time, by a cut, or because its version is no longer kept.
fn watching(api: Arc<Api>, path: &'static str, from: u64, (lasts, cuts): (Duration, u64)) -> Body {
    let ends = tokio::time::Instant::now() + lasts;
    let changed = api.changed.subscribe();
    let line = |kind: &str, object: &str| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
    Body::from_stream(stream::unfold(
        (api, changed, from, false),
        move |(api, mut changed, from, is_over)| async move {
            if is_over {
                return None;
            }
            loop {
                let (now, oldest, cuts_now, lines) = {
                    let state = api.state();
                    let new = state.log.iter().filter(|(version, of, ..)| *version > from && *of == path);
                    let lines: String = new.map(|(_, _, kind, object)| line(kind, object)).collect();
                    (state.version, state.oldest, state.cuts, lines)
                };
                if cuts_now != cuts {
                    return Some((Err(std::io::Error::other("cut")), (api, changed, from, true)));
                }
                if from < oldest {
                    let status =
                        json!({"kind": "Status", "code": 410, "message": "too old resource version"});
                    return Some((Ok(line("ERROR", &status.to_string())), (api, changed, from, true)));
                }
                if !lines.is_empty() {
                    return Some((Ok(lines), (api, changed, now, false)));
                }
                tokio::select! {
                    _ = changed.changed() => {}
                    () = tokio::time::sleep_until(ends) => {
                        let bookmark = json!({"kind": "Some", "apiVersion": "v1", "metadata": {"resourceVersion": now.to_string()}});
                        return Some((Ok(line("BOOKMARK", &bookmark.to_string())), (api, changed, now, true)));
                    }
                }
            }
        },
    ))
}

struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, from)) = self.listener.accept().await else { continue };
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
