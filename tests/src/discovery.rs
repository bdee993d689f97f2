//! What a worker of Dynamo 1.6 registers, as recorded, for a worker of one's own; and what a server makes of it.

use serde_json::{Value, json};

use crate::radixscope::Radixscope;
use crate::wait;

/// A worker's entries in discovery.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Its id, which in etcd is its lease.
    pub worker_id: u64,
    /// Publisher of its KV events.
    pub publisher_id: u64,
    /// Port of that publisher.
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

/// A folder of entries that are renewed as Dynamo's processes renew theirs, until they are removed.
pub struct Folder {
    folder: tempfile::TempDir,
    keys: std::sync::Arc<std::sync::Mutex<std::collections::BTreeSet<String>>>,
}

/// How often a process renews its entries.
const RENEW_EVERY: std::time::Duration = std::time::Duration::from_secs(3);

impl Default for Folder {
    fn default() -> Self {
        let folder = tempfile::Builder::new().prefix("radixscope-kv-").tempdir().expect("a writable folder");
        let this = Self { folder, keys: std::sync::Arc::default() };
        let (path, keys) = (this.folder.path().to_owned(), std::sync::Arc::downgrade(&this.keys));
        std::thread::spawn(move || {
            while let Some(keys) = keys.upgrade() {
                for key in keys.lock().expect("no test panicked with it").iter() {
                    let file = std::fs::File::options().append(true).open(path.join(file_name(key)));
                    let _ = file.and_then(|file| file.set_modified(std::time::SystemTime::now()));
                }
                drop(keys);
                std::thread::sleep(RENEW_EVERY);
            }
        });
        this
    }
}

impl Folder {
    /// What `--discovery` takes.
    pub fn url(&self) -> String {
        format!("file:{}", self.folder.path().display())
    }

    /// An entry is so now.
    pub fn put(&self, key: &str, value: &Value) {
        let file = self.folder.path().join(file_name(key));
        let unfinished = file.with_file_name(".tmp_entry");
        std::fs::create_dir_all(file.parent().expect("a kind")).expect("a writable folder");
        std::fs::write(&unfinished, value.to_string()).expect("a writable folder");
        std::fs::rename(&unfinished, &file).expect("a writable folder");
        self.keys.lock().expect("no test panicked with it").insert(key.to_owned());
    }

    /// An entry is gone.
    pub fn remove(&self, key: &str) {
        self.keys.lock().expect("no test panicked with it").remove(key);
        std::fs::remove_file(self.folder.path().join(file_name(key))).expect("it was there");
    }
}

/// A publisher of the default pool as it announces itself: key and entry.
pub fn event_channel(topic: &str, publisher_id: u64, endpoint: &str) -> (String, Value) {
    let key = format!(
        "v1/event_channels/namespace/dynamo/component/backend/endpoint/generate/topic/{topic}/{publisher_id:x}"
    );
    let scope = json!({"kind": "endpoint",
        "endpoint": {"namespace": "dynamo", "component": "backend", "name": "generate"}});
    let value = json!({"type": "EventChannel", "scope": scope, "topic": topic, "instance_id": publisher_id,
        "transport": {"kind": "Zmq", "config": {"endpoint": endpoint}}});
    (key, value)
}

/// Each worker that a server knows, in order: its id, why it is gone, its capacity.
pub fn workers(cluster: &Value) -> Vec<(String, Option<String>, Option<u64>)> {
    let worker = |worker: &Value| {
        let why = worker["gone"]["why"].as_str().map(str::to_owned);
        (worker["worker_id"].as_str().expect("an id").to_owned(), why, worker["capacity_blocks"].as_u64())
    };
    let mut all: Vec<_> = cluster["workers"].as_array().expect("workers").iter().map(worker).collect();
    all.sort();
    all
}

/// Waits until the workers are these, each with why it is gone.
pub async fn until_workers(server: &Radixscope, expected: &[(Registered, Option<&str>)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(of, why)| (of.worker_id.to_string(), why.map(str::to_owned), Some(1_600)))
        .collect();
    server
        .until_cluster("the workers are as registered", |cluster| {
            let now = workers(cluster);
            wait::expect(now == expected, || format!("{now:?} instead of {expected:?}"))
        })
        .await;
}

/// Waits until discovery, the first source, is in a state and says words; gives the cluster then.
pub async fn until_status(server: &Radixscope, state: &str, expected: &str) -> Value {
    server
        .until_cluster(&format!("discovery is {state}: {expected}"), |cluster| {
            let source = &cluster["sources"][0];
            let is_said = source["detail"].as_str().is_some_and(|detail| detail.contains(expected));
            wait::expect(source["state"] == state && is_said, || source.to_string())
        })
        .await
}
