//! What a worker of Dynamo 1.6 registers, as recorded, for a worker of one's own.

use serde_json::{Value, json};

/// A worker's entries in discovery.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Its id, which in etcd is its lease.
    pub worker_id: u64,
    /// Publisher of its KV events.
    pub publisher_id: u64,
    /// Port at which that publisher is heard.
    pub zmq_port: u16,
    /// Port of its request plane.
    pub tcp_port: u16,
}

impl Registered {
    /// Key of the endpoint at which it takes requests.
    pub fn endpoint_key(&self) -> String {
        format!("v1/instances/dynamo/backend/generate/{:x}", self.worker_id)
    }

    /// Key of its model card.
    pub fn card_key(&self) -> String {
        format!("v1/mdc/dynamo/backend/generate/{:x}", self.worker_id)
    }

    /// All entries.
    pub fn entries(&self) -> Vec<(String, Value)> {
        let Self { worker_id, publisher_id, zmq_port, .. } = *self;
        let events = "namespace/dynamo/component/backend/endpoint/generate/topic/kv-events";
        let scope = json!({"kind": "endpoint",
            "endpoint": {"namespace": "dynamo", "component": "backend", "name": "generate"}});
        let query = format!("worker_kv_query_source_{publisher_id:x}");
        let channel = json!({"type": "EventChannel", "scope": scope, "topic": "kv-events",
            "instance_id": publisher_id,
            "transport": {"kind": "Zmq", "config": {"endpoint": format!("tcp://127.0.0.1:{zmq_port}")}}});
        let source = json!({"type": "EventSource", "scope": scope, "topic": "kv-events",
            "publisher_id": publisher_id, "metadata": {"kv_state_endpoint": scope["endpoint"],
                "worker": {"worker_id": worker_id, "dp_rank": 0}, "publisher_id": publisher_id,
                "recovery_target": self.instance(&query, false)}});
        let card = json!({"type": "Model", "namespace": "dynamo", "component": "backend",
            "endpoint": "generate", "instance_id": worker_id, "card_json": {"display_name": "models/tiny-llama",
                "slug": "models_tiny-llama", "kv_cache_block_size": 16, "worker_type": "aggregated",
                "runtime_config": {"total_kv_blocks": 1600, "enable_local_indexer": true}}});
        vec![
            (format!("v1/event_channels/{events}/{publisher_id:x}"), channel),
            (format!("v1/event_sources/{events}/{publisher_id:x}"), source),
            (self.endpoint_key(), self.instance("generate", true)),
            (format!("v1/instances/dynamo/backend/{query}/{worker_id:x}"), self.instance(&query, true)),
            (self.card_key(), card),
        ]
    }

    fn instance(&self, endpoint: &str, is_typed: bool) -> Value {
        let (worker_id, port) = (self.worker_id, self.tcp_port);
        let path = format!("127.0.0.1:{port}/{worker_id:x}/dynamo/backend/{endpoint}");
        let mut instance = json!({"component": "backend", "endpoint": endpoint, "namespace": "dynamo",
            "instance_id": worker_id, "transport": {"tcp": path}, "device_type": "cuda",
            "request_plane_codec": "msgpack"});
        if is_typed {
            instance["type"] = json!("Endpoint");
        }
        instance
    }
}

/// The name of the file in which Dynamo's file store keeps an entry, below its folder.
pub fn file_name(key: &str) -> String {
    let mut parts = key.splitn(3, '/');
    let (version, kind, rest) = (parts.next(), parts.next(), parts.next().expect("a key of three parts"));
    let escaped: String = rest
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_string() } else { format!("%{:02X}", u32::from(c)) })
        .collect();
    format!("{}/{}/{escaped}", version.expect("a version"), kind.expect("a kind"))
}
