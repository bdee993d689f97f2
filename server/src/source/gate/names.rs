//! The names that Dynamo gives: namespaces, components, endpoints that answer queries, subjects, streams. What goes out is
//! built from them, field by field; text from outside is only compared with it.

use radixscope_dynamo::request_plane::{QueryEndpoint, RequestTransport};

/// Longest name. Kubernetes' are at most 63 characters, and Dynamo's operator joins three.
const MAX_NAME_BYTES: usize = 200;
/// Longest name of a host (RFC 1035).
const MAX_HOST_BYTES: usize = 253;
/// The endpoints that answer queries for blocks: of 0.9, of 1.0 to 1.3, of 1.4 and later.
const QUERY: &str = "worker_kv_indexer_query";
const RANK_QUERY: &str = "worker_kv_indexer_query_dp";
const SOURCE_QUERY: &str = "worker_kv_query_source_";
/// The topics of messages that are decoded.
const TOPICS: [&str; 5] =
    ["kv-events", "kv_metrics", "active_sequences_events", "session_affinity_events", "kv-hit-rate"];

/// A part of a name: what Dynamo accepts, and capitals, which it wrote before it checked.
fn is_part(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !part.is_empty() && part.bytes().all(is_plain)
}

/// A component.
fn is_component(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && is_part(name)
}

/// A namespace: parts with dots between them.
fn is_namespace(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES && name.split('.').all(is_part)
}

/// Whether an endpoint is one that answers queries for blocks, written as Dynamo writes it.
fn is_query(endpoint: &str, instance_id: u64) -> bool {
    if endpoint == QUERY {
        return true;
    }
    if let Some(rest) = endpoint.strip_prefix(RANK_QUERY) {
        let (rank, worker) = rest.split_once("_worker").map_or((rest, None), |(rank, id)| (rank, Some(id)));
        let is_rank = rank.parse::<u32>().is_ok_and(|number| number.to_string() == rank);
        return is_rank && worker.is_none_or(|id| *id == instance_id.to_string());
    }
    let publisher = endpoint.strip_prefix(SOURCE_QUERY);
    publisher.is_some_and(|id| u64::from_str_radix(id, 16).is_ok_and(|number| format!("{number:x}") == id))
}

/// What is wrong with a name, for a sentence that names where it stands.
pub(super) type Wrong = String;

/// Where a query goes: built from what the endpoint is, and equal to what names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination<'e> {
    /// A TCP socket, still to be resolved and checked.
    Tcp {
        /// Host and port.
        address: &'e str,
        /// Path of the endpoint.
        path: String,
    },
    /// A NATS subject.
    Nats {
        /// The subject.
        subject: String,
    },
}

/// Where a query to this endpoint goes.
pub(super) fn destination(endpoint: &QueryEndpoint) -> Result<Destination<'_>, Wrong> {
    let QueryEndpoint { worker, namespace, component, endpoint: name, transport, .. } = endpoint;
    let id = worker.id.0;
    if !is_namespace(namespace) || !is_component(component) {
        return Err(format!("{}.{} is no namespace and component", quoted(namespace), quoted(component)));
    }
    if !is_query(name, id) {
        return Err(format!("the endpoint {} answers no queries for blocks", quoted(name)));
    }
    match transport {
        RequestTransport::Tcp { address, path } => {
            // Up to 1.5, and later.
            let paths = [format!("{id:x}/{name}"), format!("{id:x}/{namespace}/{component}/{name}")];
            let known = paths.into_iter().find(|known| known == path);
            let path =
                known.ok_or_else(|| format!("the path {} is not that of the endpoint", quoted(path)))?;
            Ok(Destination::Tcp { address, path })
        }
        RequestTransport::Nats { subject } => {
            let known = format!("{}.{name}-{id:x}", service(namespace, component));
            if known != *subject {
                return Err(format!("the NATS subject {} is not that of the endpoint", quoted(subject)));
            }
            Ok(Destination::Nats { subject: known })
        }
    }
}

/// The name of a component's NATS service: in small letters, and what is not plain an underscore, but for the first.
fn service(namespace: &str, component: &str) -> String {
    let whole = format!("{namespace}_{component}").to_ascii_lowercase().replace('.', "_");
    whole.trim_start_matches('_').to_owned()
}

/// Whether a subject that discovery names may be one of Dynamo's: plain tokens, of which the last is a topic that is decoded. All
/// that are built as usual are subscribed to anyway; these are of prefixes that processes choose. `$` and `_` begin the
/// subjects of NATS itself.
pub(super) fn is_event_subject(subject: &str) -> bool {
    let Some((scope, topic)) = subject.rsplit_once('.') else { return false };
    let is_plain = scope.split('.').all(is_part) && !scope.starts_with('_');
    subject.len() <= 2 * MAX_NAME_BYTES && is_plain && TOPICS.contains(&topic)
}

/// Whether a stream has a name as Dynamo's publishers make it: a slug.
pub(super) fn is_stream(name: &str) -> bool {
    name.len() <= 2 * MAX_NAME_BYTES
        && radixscope_dynamo::subject::is_kv_event_stream(name)
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Host and port of an address as processes register it. Names of hosts are looked up only if they are such.
pub(super) fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let port = port.parse().ok().filter(|&port| port != 0)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bare {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_host(host),
    };
    is_host.then_some((bare.unwrap_or(host), port))
}

fn is_host(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    matches!(host.len(), 1..=MAX_HOST_BYTES) && host.bytes().all(is_plain)
}

/// Text from outside in a sentence: short, escaped.
pub(super) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    let short: String = text.chars().take(MAX_CHARS).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", short.escape_default())
}
