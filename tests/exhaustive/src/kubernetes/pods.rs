//! Pods of the stand-in for Kubernetes' API: their logs, connections to their ports, and rights that are refused.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Query, State as Shared};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Api, GRAPHS, Kubernetes, NAMESPACE, PODS, POOLS, SERVICES, State, metadata, uid};

/// What `kubectl` would be told who it is.
pub const USER: &str = "ada";

/// What pods have beside their objects.
#[derive(Default)]
pub(super) struct OfPods {
    /// Lines of each pod's log.
    logs: BTreeMap<String, Vec<Line>>,
    /// How often each was restarted.
    restarts: BTreeMap<String, usize>,
    /// Where connections to their ports lead.
    routes: BTreeMap<(String, u16), SocketAddr>,
    /// Verb and resource that are refused, `get pods/log`.
    refused: Vec<String>,
}

#[derive(Clone)]
struct Line {
    /// Which of the containers, one after the other, wrote it.
    of: usize,
    /// When, in nanoseconds after a beginning.
    at: u64,
    text: String,
}

impl Kubernetes {
    /// A pod of a deployment, as Dynamo's operator makes one: `kind` is frontend, worker or epp.
    pub fn add_pod(&self, name: &str, kind: &str, ip: &str, ports: &Value, env: &Value) {
        let state = self.state();
        let mut metadata = metadata(name, state.version + 1);
        metadata["uid"] = uid(name).into();
        metadata["labels"] = json!({"nvidia.com/dynamo-graph-deployment-name": "agg", "nvidia.com/dynamo-component-type": kind});
        let pod = json!({"metadata": metadata, "spec": {"containers": [{"name": "main", "ports": ports, "env": env}]},
            "status": {"phase": "Running", "podIP": ip, "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "main", "ready": true, "restartCount": 0, "image": "", "imageID": ""}]}});
        self.change(state, PODS, name, Some(pod.to_string()));
    }

    /// A pod of an engine without Dynamo, which this command starts; it has the label `app: engine`.
    pub fn add_engine(&self, name: &str, ip: &str, command: &Value) {
        let state = self.state();
        let mut metadata = metadata(name, state.version + 1);
        metadata["uid"] = uid(name).into();
        metadata["labels"] = json!({"app": "engine"});
        let pod = json!({"metadata": metadata, "spec": {"containers": [{"name": "engine", "command": command}]},
            "status": {"phase": "Running", "podIP": ip}});
        self.change(state, PODS, name, Some(pod.to_string()));
    }

    /// A pod of NATS or etcd, with the service of its chart.
    pub fn add_store(&self, app: &str, port: u16, address: SocketAddr) {
        let (name, labels) = (format!("dynamo-platform-{app}"), json!({"app.kubernetes.io/name": app}));
        let state = self.state();
        let of_service = metadata(&name, state.version + 1);
        let service = json!({"metadata": of_service, "spec": {"selector": labels,
            "ports": [{"port": port, "targetPort": "client"}]}});
        self.change(state, SERVICES, &name, Some(service.to_string()));
        let (state, pod) = (self.state(), format!("{name}-0"));
        let mut of_pod = metadata(&pod, state.version + 1);
        of_pod["labels"] = labels;
        let object = json!({"metadata": of_pod, "spec": {"containers": [{"name": app}]}, "status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}]}});
        self.change(state, PODS, &pod, Some(object.to_string()));
        self.route(&pod, port, address);
    }

    /// An InferencePool that selects pods of this app.
    pub fn add_pool(&self, name: &str, app: &str) {
        let state = self.state();
        let pool = json!({"metadata": metadata(name, state.version + 1),
            "spec": {"selector": {"matchLabels": {"app": app}}}});
        self.change(state, POOLS, name, Some(pool.to_string()));
    }

    /// An InferencePool is gone.
    pub fn remove_pool(&self, name: &str) {
        self.change(self.state(), POOLS, name, None);
    }

    /// A deployment of Dynamo's.
    pub fn add_graph(&self, name: &str) {
        let state = self.state();
        let graph = json!({"metadata": metadata(name, state.version + 1)});
        self.change(state, GRAPHS, name, Some(graph.to_string()));
    }

    /// A pod is gone.
    pub fn remove_pod(&self, name: &str) {
        self.change(self.state(), PODS, name, None);
    }

    /// A port of a pod leads here.
    pub fn route(&self, pod: &str, port: u16, to: SocketAddr) {
        self.state().pods.routes.insert((pod.to_owned(), port), to);
    }

    /// A pod writes a line to its log.
    pub fn log(&self, pod: &str, text: &str) {
        let mut state = self.state();
        let OfPods { logs, restarts, .. } = &mut state.pods;
        let of = restarts.get(pod).copied().unwrap_or(0);
        let log = logs.entry(pod.to_owned()).or_default();
        let at = log.len() as u64 * 250_000_000;
        log.push(Line { of, at, text: text.to_owned() });
        self.notify(state);
    }

    /// The container of a pod is another one now.
    pub fn restart(&self, pod: &str) {
        let mut state = self.state();
        *state.pods.restarts.entry(pod.to_owned()).or_default() += 1;
        self.notify(state);
    }

    /// Refuses a verb of a resource, as `get pods/log`.
    pub fn forbid(&self, right: &str) {
        self.state().pods.refused.push(right.to_owned());
    }

    /// Refuses it no more.
    pub fn permit(&self, right: &str) {
        self.state().pods.refused.retain(|refused| refused != right);
    }
}

/// Whether an object has all labels of a selector.
pub(super) fn is_selected(object: &str, selector: &str) -> bool {
    let object: Value = serde_json::from_str(object).expect("an object");
    let labels = &object["metadata"]["labels"];
    selector.split(',').all(|of| {
        let (name, value) = of.split_once('=').expect("a label and its value");
        labels[name] == value
    })
}

/// 403, if this is refused.
pub(super) fn refusal(state: &State, right: &str) -> Option<Response> {
    state.pods.refused.iter().any(|refused| refused == right).then(|| {
        let message = format!("{right} is forbidden: User \"{USER}\" cannot");
        let body =
            json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": message});
        (StatusCode::FORBIDDEN, body.to_string()).into_response()
    })
}

/// `SelfSubjectAccessReview`.
pub(super) async fn review_access(Shared(api): Shared<Arc<Api>>, body: String) -> Response {
    let mut review: Value = serde_json::from_str(&body).expect("JSON");
    let asked = &review["spec"]["resourceAttributes"];
    let (verb, resource) = (asked["verb"].as_str(), asked["resource"].as_str());
    let (verb, resource) = (verb.expect("a verb"), resource.expect("a resource"));
    let subresource = asked["subresource"].as_str().map_or(String::new(), |of| format!("/{of}"));
    let right = format!("{verb} {resource}{subresource}");
    let mut state = api.state();
    state.requests.push("POST selfsubjectaccessreviews".to_owned());
    let is_refused = state.pods.refused.contains(&right);
    drop(state);
    review["status"] = json!({"allowed": !is_refused});
    (StatusCode::CREATED, review.to_string()).into_response()
}

/// `SelfSubjectReview`.
pub(super) async fn review_user() -> Response {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {},
        "status": {"userInfo": {"username": USER}}});
    (StatusCode::CREATED, review.to_string()).into_response()
}

/// The log of a pod: whole, or followed until its container is another one.
pub(super) async fn log(
    Shared(api): Shared<Arc<Api>>,
    Path((namespace, pod)): Path<(String, String)>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    assert_eq!((&*namespace, query["timestamps"].as_str()), (NAMESPACE, "true"));
    let is = |name: &str| query.get(name).is_some_and(|value| value == "true");
    let (now, cuts) = {
        let state = api.state();
        if let Some(refused) = refusal(&state, "get pods/log") {
            return refused;
        }
        (state.pods.restarts.get(&pod).copied().unwrap_or(0), state.cuts)
    };
    let of = match is("previous") {
        true if now == 0 => return StatusCode::BAD_REQUEST.into_response(),
        true => now - 1,
        false => now,
    };
    // The API gives whole seconds.
    let since = query.get("sinceTime").map_or(0, |time| seconds(time) * 1_000_000_000);
    let follows = is("follow");
    let changed = api.changed.subscribe();
    let lines = stream::unfold((api, changed, 0), move |(api, mut changed, sent)| {
        let pod = pod.clone();
        async move {
            loop {
                let (new, is_over, is_cut) = {
                    let state = api.state();
                    let log = state.pods.logs.get(&pod).cloned().unwrap_or_default();
                    let of_it = log.into_iter().filter(|line| line.of == of && line.at >= since);
                    let is_over = state.pods.restarts.get(&pod).copied().unwrap_or(0) != of || !follows;
                    (of_it.skip(sent).collect::<Vec<_>>(), is_over, state.cuts != cuts)
                };
                if is_cut && follows {
                    return Some((Err(std::io::Error::other("cut")), (api, changed, sent)));
                }
                if !new.is_empty() {
                    let text: String =
                        new.iter().map(|Line { at, text, .. }| format!("{} {text}\n", time(*at))).collect();
                    return Some((Ok(text), (api, changed, sent + new.len())));
                }
                if is_over || changed.changed().await.is_err() {
                    return None;
                }
            }
        }
    });
    Body::from_stream(lines).into_response()
}

/// RFC 3339 with nanoseconds, of an hour in which nothing happens.
fn time(at: u64) -> String {
    let (seconds, nanoseconds) = (at / 1_000_000_000, at % 1_000_000_000);
    format!("2026-01-01T00:{:02}:{:02}.{nanoseconds:09}Z", seconds / 60, seconds % 60)
}

fn seconds(time: &str) -> u64 {
    let number = |at: std::ops::Range<usize>| time[at].parse::<u64>().expect("our own time");
    number(14..16) * 60 + number(17..19)
}

/// A connection to a port of a pod, as the API server gives it over a WebSocket.
pub(super) async fn port_forward(
    Shared(api): Shared<Arc<Api>>,
    Path((_, pod)): Path<(String, String)>,
    Query(query): Query<BTreeMap<String, String>>,
    socket: WebSocketUpgrade,
) -> Response {
    let port: u16 = query["ports"].parse().expect("a port");
    let to = {
        let state = api.state();
        if let Some(refused) = refusal(&state, "get pods/portforward") {
            return refused;
        }
        state.pods.routes.get(&(pod, port)).copied()
    };
    socket.protocols(["v4.channel.k8s.io"]).on_upgrade(move |socket| carry(socket, port, to))
}

async fn carry(mut socket: WebSocket, port: u16, to: Option<SocketAddr>) {
    for channel in [0, 1] {
        let [low, high] = port.to_le_bytes();
        if socket.send(Message::Binary(vec![channel, low, high].into())).await.is_err() {
            return;
        }
    }
    let connected = match to {
        Some(to) => TcpStream::connect(to).await.ok(),
        None => None,
    };
    let Some(mut pod) = connected else {
        let _ = socket.send(Message::Binary(b"\x01connection refused".to_vec().into())).await;
        return;
    };
    let mut buffer = vec![0; 65_536];
    loop {
        tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Binary(data))) if data.first() == Some(&0) => {
                    if pod.write_all(&data[1..]).await.is_err() {
                        return;
                    }
                }
                Some(Ok(_)) => {}
                None | Some(Err(_)) => return,
            },
            read = pod.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    let data = [&[0], &buffer[..count]].concat();
                    if socket.send(Message::Binary(data.into())).await.is_err() {
                        return;
                    }
                }
            },
        }
    }
}
