//! Where `radixscope sources` looks: where it is told to, and where Dynamo's own variables point. Told nothing, it also looks
//! where such things listen on this machine; told of one place, what happens to listen here is another deployment's.

use std::env;
use std::time::Duration;

use serde::Serialize;
use tokio::net::TcpStream;
use url::Url;

use crate::config::{DiscoveryAt, MetricsUrl, Sources};

/// How long a port of this machine has to answer.
const PROBE_WITHIN: Duration = Duration::from_millis(300);

/// Why a place is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reason {
    /// It was given.
    Given,
    /// A variable of Dynamo names it.
    Variable(&'static str),
    /// Something listens there on this machine.
    Default,
}

/// A kind of place, and why it is looked at. `None`: it is not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) discovery: Option<Reason>,
    pub(super) nats: Option<Reason>,
    pub(super) frontend: Option<Reason>,
}

/// Completes what was given.
pub(super) async fn find(from: &mut Sources) -> Places {
    let given = |is_given: bool| is_given.then_some(Reason::Given);
    let mut places = Places {
        discovery: given(from.discovery.discovery.is_some()),
        nats: given(!from.nats.nats.is_empty()),
        frontend: given(!from.prometheus.prometheus.is_empty()),
    };
    let is_bare =
        places.discovery.or(places.nats).or(places.frontend).is_none() && from.zmq.zmq_broker.is_empty();
    if places.discovery.is_none()
        && let Some((at, reason)) = discovery(is_bare).await
    {
        from.discovery.discovery = Some(at);
        places.discovery = Some(reason);
    }
    if places.nats.is_none()
        && let Some((url, reason)) = nats(is_bare).await
    {
        from.nats.nats = vec![url];
        places.nats = Some(reason);
    }
    if is_bare && let Some(url) = frontend().await {
        from.prometheus.prometheus = vec![url];
        places.frontend = Some(Reason::Default);
    }
    places
}

async fn discovery(is_bare: bool) -> Option<(DiscoveryAt, Reason)> {
    let file = || Some((variable("DYN_FILE_KV").map(|folder| format!("file:{folder}"))?, "DYN_FILE_KV"));
    let etcd = || Some((variable("ETCD_ENDPOINTS")?, "ETCD_ENDPOINTS"));
    let named = match variable("DYN_DISCOVERY_BACKEND").as_deref() {
        Some("kubernetes") => Some(("kubernetes".to_owned(), "DYN_DISCOVERY_BACKEND")),
        Some("file") => file().or_else(etcd),
        _ => etcd().or_else(file),
    };
    match named {
        Some((at, name)) => at.parse().ok().map(|at| (at, Reason::Variable(name))),
        None if is_bare && listens(2379).await => {
            "etcd://127.0.0.1:2379".parse().ok().map(|at| (at, Reason::Default))
        }
        None => None,
    }
}

async fn nats(is_bare: bool) -> Option<(Url, Reason)> {
    match variable("NATS_SERVER") {
        Some(url) => {
            let url = if url.contains("://") { url } else { format!("nats://{url}") };
            url.parse().ok().map(|url| (url, Reason::Variable("NATS_SERVER")))
        }
        None if is_bare && listens(4222).await => {
            "nats://127.0.0.1:4222".parse().ok().map(|url| (url, Reason::Default))
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
