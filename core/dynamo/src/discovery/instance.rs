//! Instances of endpoints: a process that takes requests there (reference §8.2). A frontend's `/health` lists the same.

use super::Name;
use crate::request_plane::{Codec, QueryEndpoint, RequestTransport};
use crate::typed::or_default;
use radixscope_model::id::{Worker, WorkerId};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The endpoint of a worker that takes requests; others answer the router's questions.
const REQUESTS: &str = "generate";
/// Components that have such an endpoint and are no workers: the standalone router, and the router in a frontend (0.9).
const ROUTERS: [&str; 2] = ["router", "kv-router"];
/// Endpoints that answer queries for blocks: of one component (0.9), of one rank (1.0 to 1.3), of one publisher (≥ 1.4).
const QUERIES: &str = "worker_kv_indexer_query";
const RANK_QUERIES: &str = "worker_kv_indexer_query_dp";
const SOURCE_QUERIES: &str = "worker_kv_query_source_";

/// An endpoint of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// The process; of a worker its worker id.
    pub instance_id: WorkerId,
    /// Dynamo namespace.
    pub namespace: String,
    /// Dynamo component.
    pub component: String,
    /// Dynamo endpoint.
    pub endpoint: String,
    /// Where it takes requests. `None`: in a way that is not known here, as over HTTP (0.9).
    pub transport: Option<RequestTransport>,
    /// How requests are written.
    pub codec: Codec,
}

impl Instance {
    /// Where a worker takes requests, as far as it is known by who lists no addresses.
    pub fn worker(instance_id: WorkerId, namespace: &str, component: &str) -> Self {
        Self {
            instance_id,
            namespace: namespace.into(),
            component: component.into(),
            endpoint: REQUESTS.into(),
            transport: None,
            codec: Codec::default(),
        }
    }

    /// Whether it is where a worker takes requests.
    pub fn is_worker(&self) -> bool {
        self.endpoint == REQUESTS && !ROUTERS.contains(&&*self.component)
    }

    /// As the endpoint that answers queries for blocks. `None`: it is not, or it cannot be reached.
    pub fn query_endpoint(&self) -> Option<QueryEndpoint> {
        let Query { dp_rank, publisher_id } = Query::of(&self.endpoint)?;
        Some(QueryEndpoint {
            worker: Worker { id: self.instance_id, dp_rank: dp_rank.unwrap_or(0) },
            is_rank_known: dp_rank.is_some(),
            namespace: self.namespace.clone(),
            component: self.component.clone(),
            endpoint: self.endpoint.clone(),
            transport: self.transport.clone()?,
            codec: self.codec,
            publisher_id,
        })
    }
}

/// What is read from the name of a query endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Query {
    dp_rank: Option<u32>,
    publisher_id: Option<u64>,
}

impl Query {
    fn of(endpoint: &str) -> Option<Self> {
        if endpoint == QUERIES {
            return Some(Self { dp_rank: None, publisher_id: None });
        }
        if let Some(rest) = endpoint.strip_prefix(RANK_QUERIES) {
            // 1.3 also names the worker: `…_dp0_worker42`.
            let rank = rest.split_once("_worker").map_or(rest, |(rank, _)| rank);
            return Some(Self { dp_rank: Some(rank.parse().ok()?), publisher_id: None });
        }
        let publisher = endpoint.strip_prefix(SOURCE_QUERIES)?;
        let publisher_id = u64::from_str_radix(publisher, 16).ok()?;
        Some(Self { dp_rank: None, publisher_id: Some(publisher_id) })
    }
}

impl<'de> Deserialize<'de> for Instance {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields<'a> {
            instance_id: u64,
            namespace: Name,
            component: Name,
            endpoint: Name,
            #[serde(borrow)]
            transport: Option<&'a RawValue>,
            #[serde(borrow)]
            request_plane_codec: Option<&'a RawValue>,
        }
        /// `{"tcp":"HOST:PORT/PATH"}`, `{"nats_tcp":"SUBJECT"}`, or what is not known here.
        #[derive(Deserialize, Default)]
        struct Transport {
            tcp: Option<Name>,
            nats_tcp: Option<Name>,
        }
        let fields = Fields::deserialize(from)?;
        let Transport { tcp, nats_tcp } = or_default(fields.transport);
        let nats = nats_tcp.map(|Name(subject)| RequestTransport::Nats { subject });
        let codec: String = or_default(fields.request_plane_codec);
        Ok(Self {
            instance_id: WorkerId(fields.instance_id),
            namespace: fields.namespace.0,
            component: fields.component.0,
            endpoint: fields.endpoint.0,
            transport: nats.or_else(|| tcp.and_then(|Name(address)| self::tcp(&address))),
            codec: if codec == "msgpack" { Codec::MsgPack } else { Codec::Json },
        })
    }
}

fn tcp(text: &str) -> Option<RequestTransport> {
    let text = text.strip_prefix("tcp://").unwrap_or(text);
    let (address, path) = text.split_once('/')?;
    let is_whole = !address.is_empty() && !path.is_empty();
    is_whole.then(|| RequestTransport::Tcp { address: address.into(), path: path.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Instance {
        serde_json::from_str(text).expect("an instance")
    }

    #[test]
    fn endpoints_that_answer_queries_are_known_by_their_names() {
        for (endpoint, expected) in [
            ("worker_kv_indexer_query", Some((None, None))),
            ("worker_kv_indexer_query_dp3", Some((Some(3), None))),
            ("worker_kv_indexer_query_dp1_worker7668682361299439878", Some((Some(1), None))),
            ("worker_kv_query_source_cd50057603889", Some((None, Some(0x000c_d500_5760_3889)))),
            ("worker_kv_indexer_query_dpx", None),
            ("worker_kv_query_source_", None),
            ("worker_kv_query_source_11112222333344445", None),
            ("generate", None),
        ] {
            let read = Query::of(endpoint).map(|query| (query.dp_rank, query.publisher_id));
            assert_eq!(read, expected, "{endpoint}");
        }
    }

    #[test]
    fn an_instance_of_each_request_plane() {
        let of = |transport: &str| {
            read(&format!(
                r#"{{"type":"Endpoint","component":"backend","endpoint":"generate","namespace":"dynamo","instance_id":7,"transport":{transport}}}"#
            ))
        };
        let tcp = |address: &str, path: &str| {
            Some(RequestTransport::Tcp { address: address.into(), path: path.into() })
        };
        for (text, transport) in [
            (r#"{"tcp":"10.0.0.1:40673/7/generate"}"#, tcp("10.0.0.1:40673", "7/generate")),
            (r#"{"tcp":"tcp://[::1]:1/7/a/b/generate"}"#, tcp("[::1]:1", "7/a/b/generate")),
            (
                r#"{"nats_tcp":"dynamo_backend.generate-7"}"#,
                Some(RequestTransport::Nats { subject: "dynamo_backend.generate-7".into() }),
            ),
            (r#"{"http":"http://10.0.0.1:1/x"}"#, None),
            (r#"{"tcp":"nothing"}"#, None),
            (r#"{"tcp":7}"#, None),
            ("null", None),
        ] {
            let instance = of(text);
            assert_eq!(instance.transport, transport, "{text}");
            assert_eq!(instance.codec, Codec::Json);
            assert!(instance.is_worker());
        }
    }

    #[test]
    fn a_query_endpoint_has_what_its_name_gives() {
        let query = read(
            r#"{"component":"backend","endpoint":"worker_kv_query_source_14f","namespace":"d","instance_id":7,"transport":{"tcp":"h:1/7/d/backend/x"},"request_plane_codec":"msgpack"}"#,
        );
        assert!(!query.is_worker());
        let endpoint = query.query_endpoint().expect("answers queries");
        assert_eq!((endpoint.worker, endpoint.is_rank_known), (Worker::new(7, 0), false));
        assert_eq!((endpoint.publisher_id, endpoint.codec), (Some(0x14f), Codec::MsgPack));
    }
}
