//! The endpoints that `radixscope sources` probes: those given as options, and those in Dynamo's own variables. If no option is
//! given, also the default ports on this machine; otherwise those may belong to another deployment.

use std::env;
use std::time::Duration;

use serde::Serialize;
use tokio::net::TcpStream;
use url::Url;

use crate::config::{DiscoveryAt, MetricsUrl, Sources};

/// Connect timeout for default ports on this machine.
const PROBE_WITHIN: Duration = Duration::from_millis(300);

/// Why an endpoint is probed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FoundBy {
    /// Given as an option.
    Given,
    /// From a variable of Dynamo.
    Variable(&'static str),
    /// Something listens on the default port of this machine.
    Default,
}

/// The kinds of endpoints, and why each is probed. `None`: it is not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoints {
    pub(super) discovery: Option<FoundBy>,
    pub(super) nats: Option<FoundBy>,
    pub(super) frontend: Option<FoundBy>,
}

/// The given options as they are.
pub(super) fn given(from: &Sources) -> Endpoints {
    let given = |is_given: bool| is_given.then_some(FoundBy::Given);
    Endpoints {
        discovery: given(from.discovery.discovery.is_some()),
        nats: given(!from.nats.nats.is_empty()),
        frontend: given(!from.prometheus.prometheus.is_empty()),
    }
}

/// Completes the given options.
pub(super) async fn find(from: &mut Sources) -> Endpoints {
    let mut endpoints = given(from);
    let is_bare = endpoints.discovery.or(endpoints.nats).or(endpoints.frontend).is_none()
        && from.zmq.zmq_broker.is_empty()
        && from.engines.engine_events.is_empty();
    if endpoints.discovery.is_none()
        && let Some((at, reason)) = discovery(is_bare).await
    {
        from.discovery.discovery = Some(at);
        endpoints.discovery = Some(reason);
    }
    if endpoints.nats.is_none()
        && let Some((url, reason)) = nats(is_bare).await
    {
        from.nats.nats = vec![url];
        endpoints.nats = Some(reason);
    }
    if is_bare && let Some(url) = frontend().await {
        from.prometheus.prometheus = vec![url];
        endpoints.frontend = Some(FoundBy::Default);
    }
    endpoints
}

async fn discovery(is_bare: bool) -> Option<(DiscoveryAt, FoundBy)> {
    let file = || Some((variable("DYN_FILE_KV").map(|folder| format!("file:{folder}"))?, "DYN_FILE_KV"));
    let etcd = || Some((variable("ETCD_ENDPOINTS")?, "ETCD_ENDPOINTS"));
    let named = match variable("DYN_DISCOVERY_BACKEND").as_deref() {
        Some("kubernetes") => Some(("kubernetes".to_owned(), "DYN_DISCOVERY_BACKEND")),
        Some("file") => file().or_else(etcd),
        _ => etcd().or_else(file),
    };
    match named {
        Some((at, name)) => at.parse().ok().map(|at| (at, FoundBy::Variable(name))),
        None if is_bare && listens(2379).await => {
            "etcd://127.0.0.1:2379".parse().ok().map(|at| (at, FoundBy::Default))
        }
        None => None,
    }
}

async fn nats(is_bare: bool) -> Option<(Url, FoundBy)> {
    match variable("NATS_SERVER") {
        Some(url) => {
            let url = if url.contains("://") { url } else { format!("nats://{url}") };
            url.parse().ok().map(|url| (url, FoundBy::Variable("NATS_SERVER")))
        }
        None if is_bare && listens(4222).await => {
            "nats://127.0.0.1:4222".parse().ok().map(|url| (url, FoundBy::Default))
        }
        None => None,
    }
}

async fn frontend() -> Option<MetricsUrl> {
    if listens(8000).await { "http://127.0.0.1:8000".parse().ok() } else { None }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

async fn listens(port: u16) -> bool {
    let connected = tokio::time::timeout(PROBE_WITHIN, TcpStream::connect(("127.0.0.1", port))).await;
    matches!(connected, Ok(Ok(_)))
}
