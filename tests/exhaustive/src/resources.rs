//! Custom resources of Kubernetes as the place where a recorded deployment registers.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use radixscope_tests::late::Registrar;
use serde_json::Value;

use crate::kubernetes::Kubernetes;

/// An API server, with the pod that made each entry.
struct Resources {
    api: Kubernetes,
    pods: BTreeMap<String, String>,
}

/// Starts the API server.
pub fn start() -> BoxFuture<'static, Box<dyn Registrar>> {
    Box::pin(async {
        Box::new(Resources { api: Kubernetes::start().await, pods: BTreeMap::new() }) as Box<dyn Registrar>
    })
}

impl Registrar for Resources {
    fn flags(&self) -> Vec<String> {
        // No pod is at a loopback address; these are.
        ["--discovery", &self.api.url(), "--allow-target", "127.0.0.0/8"].map(str::to_owned).to_vec()
    }

    fn put(&mut self, key: &str, value: &Value, lease: Option<u64>) {
        // Without a lease, whoever is named at the end of the key is somebody.
        let process = lease.map(|lease| format!("{lease:x}"));
        let process = process.unwrap_or_else(|| key.rsplit('/').next().unwrap_or_default().to_owned());
        let pod = format!("agg-worker-{process}");
        self.api.put(&pod, key, value);
        if !self.pods.values().any(|known| *known == pod) {
            self.api.set_ready(&pod, true);
        }
        self.pods.insert(key.to_owned(), pod);
    }

    fn remove(&self, key: &str) {
        self.api.remove(&self.pods[key], key);
    }
}
