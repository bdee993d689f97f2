//! What the objects that Kubernetes has now register together: the entries of each process whose pod is ready. Knows no network.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use radixscope_dynamo::discovery::kubernetes::{
    Meta, Pod, WorkerMetadata, meta, ready_pods, worker_metadata,
};
use radixscope_dynamo::error::{DecodeError, Reason};

use super::super::Entry;

/// Most objects of a kind that are kept: ten thousand workers are more than a cluster has pods for.
const MAX_OBJECTS: usize = 10_000;

/// A kind of object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Worker,
    Slice,
}

/// See the module.
#[derive(Default)]
pub(super) struct Registry {
    workers: BTreeMap<String, Worker>,
    /// Ready pods of each `EndpointSlice`.
    slices: BTreeMap<String, Vec<Pod>>,
    /// Objects that cannot be read, and why.
    unreadable: BTreeMap<(Kind, String), DecodeError>,
    /// Those among them that were not handed over yet.
    untold: Vec<DecodeError>,
}

/// A process that registered.
struct Worker {
    /// Of the resource.
    uid: String,
    pod: Pod,
    entries: Vec<Entry>,
}

impl Registry {
    /// An object is so now; gives its name. One that cannot be read stays as it was, as in Dynamo's own discovery, unless it is
    /// another one of that name.
    pub(super) fn put(&mut self, kind: Kind, object: &[u8]) -> String {
        let (name, read) = match meta(object) {
            Ok(meta) => (meta.name.clone(), self.read(kind, meta, object)),
            Err(error) => (String::new(), Err(error)),
        };
        let key = (kind, name.clone());
        match read {
            Ok(()) => drop(self.unreadable.remove(&key)),
            Err(error)
                if self.unreadable.get(&key) == Some(&error) || self.unreadable.len() == MAX_OBJECTS => {}
            Err(error) => {
                self.untold.push(error.clone());
                self.unreadable.insert(key, error);
            }
        }
        name
    }

    /// What was wrong with objects since this was asked last.
    pub(super) fn untold(&mut self) -> Vec<DecodeError> {
        std::mem::take(&mut self.untold)
    }

    fn read(&mut self, kind: Kind, meta: Meta, object: &[u8]) -> Result<(), DecodeError> {
        let Meta { name, uid, owner, .. } = meta;
        let is_full = match kind {
            Kind::Worker => self.workers.len() == MAX_OBJECTS && !self.workers.contains_key(&name),
            Kind::Slice => self.slices.len() == MAX_OBJECTS && !self.slices.contains_key(&name),
        };
        if is_full {
            return Err(DecodeError::new(Reason::TooLarge, "discovery: more than 10,000 objects of a kind"));
        }
        match kind {
            Kind::Slice => drop(self.slices.insert(name, ready_pods(object)?)),
            Kind::Worker => {
                if self.workers.get(&name).is_some_and(|known| known.uid != uid) {
                    self.workers.remove(&name);
                }
                let entries = entries(&name, worker_metadata(object)?);
                let pod = owner.unwrap_or_else(|| Pod { name: name.clone(), uid: String::new() });
                self.workers.insert(name, Worker { uid, pod, entries });
            }
        }
        Ok(())
    }

    /// An object is gone.
    pub(super) fn end(&mut self, kind: Kind, object: &[u8]) {
        let name = match meta(object) {
            Ok(meta) => meta.name,
            Err(error) => return self.untold.push(error),
        };
        match kind {
            Kind::Worker => drop(self.workers.remove(&name)),
            Kind::Slice => drop(self.slices.remove(&name)),
        }
        self.unreadable.remove(&(kind, name));
    }

    /// There are no other objects of a kind.
    pub(super) fn retain(&mut self, kind: Kind, names: &BTreeSet<String>) {
        match kind {
            Kind::Worker => self.workers.retain(|name, _| names.contains(name)),
            Kind::Slice => self.slices.retain(|name, _| names.contains(name)),
        }
        self.unreadable.retain(|(of, name), _| *of != kind || names.contains(name));
    }

    /// The entries of all processes whose pods are ready.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let ready = self.ready();
        self.workers
            .values()
            .filter(|worker| is_ready(&ready, worker))
            .flat_map(|worker| worker.entries.iter().cloned())
            .collect()
    }

    fn ready(&self) -> BTreeSet<(&str, &str)> {
        self.slices.values().flatten().map(|pod| (&*pod.name, &*pod.uid)).collect()
    }

    /// What it is that is registered and does not count, in words; "" if there is nothing.
    pub(super) fn remarks(&self) -> String {
        let ready = self.ready();
        let waiting: Vec<&str> = self
            .workers
            .iter()
            .filter(|(_, worker)| !is_ready(&ready, worker))
            .map(|(name, _)| &**name)
            .collect();
        let mut words = match *waiting {
            [] => String::new(),
            [name] => format!(" 1 more process is registered ({name}); its pod is not ready."),
            [name, ..] => {
                format!(
                    " {} more processes are registered ({name}, …); their pods are not ready.",
                    waiting.len()
                )
            }
        };
        if let Some(((_, name), error)) = self.unreadable.first_key_value() {
            let count = self.unreadable.len();
            words.push_str(&format!(
                " Objects that cannot be read: {count}, the first is {name:?} ({error})."
            ));
        }
        words
    }
}

/// A pod of the same name may be another one: it then counts only with the resource that it wrote.
fn is_ready(ready: &BTreeSet<(&str, &str)>, worker: &Worker) -> bool {
    let Pod { name, uid } = &worker.pod;
    let mut same_name = ready.range((&**name, "")..).take_while(|(of, _)| of == name);
    same_name.any(|(_, of)| uid.is_empty() || of.is_empty() || of == uid)
}

/// A resource's entries as a store of keys would have them.
fn entries(name: &str, read: WorkerMetadata<'_>) -> Vec<Entry> {
    let WorkerMetadata { instance_id, entries } = read;
    let entry = |(mut key, value): (String, &[u8])| {
        // Dynamo 0.8 leaves the process out of `namespace/component/endpoint/process`.
        let is_of_all =
            (key.starts_with("v1/instances/") || key.starts_with("v1/mdc/")) && key.matches('/').count() == 4;
        if is_of_all {
            key = format!("{key}/{name}");
        }
        // In etcd the lease is the process.
        Entry { key, value: Bytes::copy_from_slice(value), lease: instance_id }
    };
    entries.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn worker(name: &str, uid: &str, pod_uid: &str, endpoints: Value) -> Vec<u8> {
        let owner = json!([{"kind": "Pod", "name": name, "uid": pod_uid}]);
        json!({"metadata": {"name": name, "uid": uid, "ownerReferences": owner},
            "spec": {"data": {"endpoints": endpoints}}})
        .to_string()
        .into_bytes()
    }

    fn slice(name: &str, pods: &[(&str, &str)]) -> Vec<u8> {
        let endpoint = |(name, uid): &(&str, &str)| json!({"conditions": {"ready": true}, "targetRef": {"kind": "Pod", "name": name, "uid": uid}});
        let endpoints: Vec<Value> = pods.iter().map(endpoint).collect();
        json!({"metadata": {"name": name}, "endpoints": endpoints}).to_string().into_bytes()
    }

    fn keys(registry: &Registry) -> Vec<String> {
        registry.entries().into_iter().map(|entry| entry.key).collect()
    }

    const ENTRY: &str = "v1/instances/n/c/e/2a";

    #[test]
    fn a_process_counts_while_its_own_pod_is_ready() {
        let mut registry = Registry::default();
        let endpoints = json!({"n/c/e/2a": {"instance_id": 42}});
        registry.put(Kind::Worker, &worker("a", "c1", "p1", endpoints.clone()));
        assert_eq!(keys(&registry), Vec::<String>::new());
        assert!(registry.remarks().contains("not ready"));
        // A pod may be in two slices for a moment.
        registry.put(Kind::Slice, &slice("s", &[("a", "p1")]));
        registry.put(Kind::Slice, &slice("t", &[("a", "p1"), ("b", "p2")]));
        registry.put(Kind::Slice, &slice("s", &[]));
        assert_eq!((keys(&registry), registry.remarks()), (vec![ENTRY.to_owned()], String::new()));
        assert_eq!(registry.entries()[0].lease, Some(42));
        // The next pod of that name did not register yet.
        registry.put(Kind::Slice, &slice("t", &[("a", "p3")]));
        assert_eq!(keys(&registry), Vec::<String>::new());
        registry.put(Kind::Worker, &worker("a", "c2", "p3", endpoints));
        assert_eq!(keys(&registry), [ENTRY]);
        registry.end(Kind::Worker, &worker("a", "c2", "p3", json!(null)));
        assert_eq!(keys(&registry), Vec::<String>::new());
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_was_and_is_said_once() {
        let mut registry = Registry::default();
        registry.put(Kind::Slice, &slice("s", &[("a", "p1")]));
        registry.put(Kind::Worker, &worker("a", "c1", "p1", json!({"n/c/e/2a": {}})));
        let bad = worker("a", "c1", "p1", json!([7]));
        registry.put(Kind::Worker, &bad);
        assert_eq!(registry.untold().len(), 1);
        registry.put(Kind::Worker, &bad);
        assert_eq!(registry.untold(), []);
        assert_eq!(keys(&registry), [ENTRY]);
        assert!(
            registry.remarks().contains("cannot be read: 1, the first is \"a\""),
            "{}",
            registry.remarks()
        );
        // Another resource of that name: what the one before registered is gone.
        registry.put(Kind::Worker, &worker("a", "c2", "p1", json!([7])));
        assert_eq!(keys(&registry), Vec::<String>::new());
        registry.retain(Kind::Worker, &BTreeSet::new());
        assert_eq!(registry.remarks(), "");
        registry.untold();
        registry.put(Kind::Slice, b"{}");
        registry.end(Kind::Slice, b"[]");
        assert_eq!(registry.untold().len(), 2);
    }

    #[test]
    fn keys_without_a_process_are_told_apart() {
        let mut registry = Registry::default();
        registry.put(Kind::Slice, &slice("s", &[("a", "p"), ("b", "p")]));
        for name in ["a", "b"] {
            registry.put(Kind::Worker, &worker(name, "c", "p", json!({"n/c/e": {}})));
        }
        assert_eq!(keys(&registry), ["v1/instances/n/c/e/a", "v1/instances/n/c/e/b"]);
    }
}
