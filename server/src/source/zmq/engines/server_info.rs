//! What SGLang says of its publishers: `kv_events` of `GET /server_info`.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Deserialize;
use url::Url;

use crate::config::{InvalidOption, ZmqEndpoint};
use crate::source::SourceStatus;
use crate::source::http_client::{Bounds, HttpClient};

/// SGLang's own responses have some kilobytes.
const BOUNDS: Bounds = Bounds { within: Duration::from_secs(5), most_bytes: 4 << 20 };
/// Most ranks that are believed.
const MAX_RANKS: u16 = 1_024;

/// Asks SGLang's servers.
#[derive(Clone)]
pub(super) struct Client(HttpClient);

/// Where a rank of an engine publishes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Socket {
    pub(super) endpoint: ZmqEndpoint,
    /// Where it sends recent batches again.
    pub(super) replay: Option<ZmqEndpoint>,
    /// `None`: the engine has no others.
    pub(super) rank: Option<u32>,
}

/// Where an engine publishes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// One for each rank.
    pub(super) sockets: Vec<Socket>,
    /// Whether it named another host than the one that was asked.
    pub(super) is_elsewhere: bool,
}

#[derive(Deserialize)]
struct ServerInfo {
    kv_events: Option<KvEvents>,
}

#[derive(Deserialize)]
struct KvEvents {
    endpoint_host: String,
    endpoint_port_base: u16,
    dp_size: u32,
    replay_endpoint_port_base: Option<u16>,
}

impl Layout {
    /// Ranks at the port of the first and those after it.
    pub(super) fn of_ranks(first: &ZmqEndpoint, replay: Option<&ZmqEndpoint>, ranks: u16) -> Self {
        let replays = replay.map(|first| ranks_of(first, ranks)).unwrap_or_default();
        let sockets = ranks_of(first, ranks).into_iter().enumerate().map(|(rank, endpoint)| Socket {
            endpoint,
            replay: replays.get(rank).cloned(),
            rank: (ranks > 1).then_some(rank as u32),
        });
        Self { sockets: sockets.collect(), is_elsewhere: false }
    }
}

/// Sockets of the ranks of an engine, that of the first given.
pub(super) fn ranks_of(first: &ZmqEndpoint, ranks: u16) -> Vec<ZmqEndpoint> {
    let socket = |rank| Some(ZmqEndpoint { host: first.host.clone(), port: first.port.checked_add(rank)? });
    (0..ranks).filter_map(socket).collect()
}

impl Client {
    pub(super) fn new() -> Result<Self, InvalidOption> {
        HttpClient::new().map(Self)
    }

    /// Asks where an engine publishes. `host`: where it is, if that is another host than the one that is asked.
    pub(super) async fn layout(&self, server: &Url, host: Option<&str>) -> Result<Layout, SourceStatus> {
        let url = server
            .join("server_info")
            .map_err(|error| SourceStatus::refused(format!("{server}: {error}")))?;
        match self.0.get(&url, BOUNDS).await? {
            (StatusCode::OK, body) => layout(server, host, &body),
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => Err(SourceStatus::refused(format!(
                "{url} asks for an API key; name the sockets instead: sglang=tcp://HOST:PORT"
            ))),
            (status, _) => Err(SourceStatus::refused(format!("{url} responds with {status}; is it SGLang?"))),
        }
    }
}

fn layout(server: &Url, host: Option<&str>, body: &[u8]) -> Result<Layout, SourceStatus> {
    let info: ServerInfo = serde_json::from_slice(body).map_err(|error| {
        SourceStatus::refused(format!("{server}server_info is not what SGLang sends: {error}"))
    })?;
    let Some(KvEvents { endpoint_host, endpoint_port_base, dp_size, replay_endpoint_port_base }) =
        info.kv_events
    else {
        return Err(SourceStatus::refused(format!(
            "{server} publishes no KV events over TCP. Start SGLang with --kv-events-config \
             '{{\"publisher\":\"zmq\",\"endpoint\":\"tcp://*:5557\",\"replay_endpoint\":\"tcp://*:5558\"}}'"
        )));
    };
    let own = host.or(server.host_str()).unwrap_or_default().trim_matches(['[', ']']);
    let told = endpoint_host.trim_matches(['[', ']']);
    let is_elsewhere = !matches!(told, "*" | "0.0.0.0" | "::" | "") && told != own;
    let host = if is_elsewhere { told } else { own };
    let ranks = u16::try_from(dp_size).ok().filter(|ranks| (1..=MAX_RANKS).contains(ranks));
    let first = |base: u16| match ranks {
        Some(ranks) if base > 0 && base.checked_add(ranks - 1).is_some() => {
            Ok((ZmqEndpoint { host: host.to_owned(), port: base }, ranks))
        }
        _ => Err(SourceStatus::refused(format!("{server} names {dp_size} ranks at port {base}"))),
    };
    let replay = replay_endpoint_port_base.map(first).transpose()?;
    let (publisher, ranks) = first(endpoint_port_base)?;
    let layout = Layout::of_ranks(&publisher, replay.as_ref().map(|(at, _)| at), ranks);
    Ok(Layout { is_elsewhere, ..layout })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(server: &str, body: &str) -> Result<(Vec<String>, Vec<String>, bool), String> {
        let server = Url::parse(server).unwrap();
        layout(&server, None, body.as_bytes())
            .map(|Layout { sockets, is_elsewhere }| {
                let replays = sockets.iter().filter_map(|socket| socket.replay.as_ref());
                let replays = replays.map(ToString::to_string).collect();
                (sockets.iter().map(|socket| socket.endpoint.to_string()).collect(), replays, is_elsewhere)
            })
            .map_err(|failed| failed.detail)
    }

    #[test]
    fn ranks_have_the_ports_after_the_first() {
        // As SGLang 0.5.23 sends it, shortened.
        let body = r#"{"model_path":"m","kv_events":{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":5557,"topic":"",
            "block_size":64,"dp_size":2,"load_endpoint_port_base":5561,"load_topic":"load","replay_endpoint_port_base":5559}}"#;
        let (publishers, replays, is_elsewhere) = read("http://10.0.0.7:30000", body).unwrap();
        assert_eq!(publishers, ["tcp://10.0.0.7:5557", "tcp://10.0.0.7:5558"]);
        assert_eq!(replays, ["tcp://10.0.0.7:5559", "tcp://10.0.0.7:5560"]);
        assert!(!is_elsewhere);
        let v6 = r#"{"kv_events":{"endpoint_host":"[fd00::2]","endpoint_port_base":5557,"dp_size":1}}"#;
        assert_eq!(
            read("http://[fd00::1]:30000", v6).unwrap(),
            (vec!["tcp://[fd00::2]:5557".into()], vec![], true)
        );
    }

    #[test]
    fn behind_a_tunnel_it_is_where_its_pod_is() {
        let server = Url::parse("http://127.0.0.1:40001").unwrap();
        let body = r#"{"kv_events":{"endpoint_host":"*","endpoint_port_base":5557,"dp_size":1}}"#;
        let found =
            layout(&server, Some("fd00::7"), body.as_bytes()).map_err(|failed| failed.detail).unwrap();
        assert_eq!(found.sockets[0].endpoint.to_string(), "tcp://[fd00::7]:5557");
        assert!(!found.is_elsewhere);
    }

    #[test]
    fn a_server_that_does_not_publish_says_what_to_set() {
        let error = read("http://h:30000", r#"{"kv_events":null}"#).unwrap_err();
        assert!(error.contains("--kv-events-config"), "{error}");
        assert!(read("http://h:30000", "[]").unwrap_err().contains("not what SGLang sends"));
        let many = r#"{"kv_events":{"endpoint_host":"*","endpoint_port_base":65000,"dp_size":1000}}"#;
        assert!(read("http://h:30000", many).unwrap_err().contains("1000 ranks"));
    }
}
