//! What the objects that Kubernetes has now register together: the entries of each process whose pod is ready. Knows no network.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use radixscope_dynamo::discovery::kubernetes::{WorkerMetadata, worker_metadata};
use radixscope_dynamo::error::{DecodeError, Reason};
use xxhash_rust::xxh3::xxh3_64;

use super::super::budget::{MAX_HELD_BYTES, MAX_OBJECT_BYTES, bound, size};
use super::super::entries::{EntryValue, Found, wants};
use super::object::{Object, Pod, ResourceKind};

/// Most objects of a kind that are held: ten thousand workers are more than a cluster has pods for.
const MAX_OBJECTS: usize = 10_000;
/// Most objects that cannot be read of which the names are held.
const MAX_UNREADABLE: usize = 1_000;
/// What an object, an entry or a pod takes beside its texts.
const OVERHEAD_BYTES: usize = 120;

/// See the module.
#[derive(Default)]
pub(super) struct Registry {
    /// The namespace of Dynamo's to read; all otherwise.
    namespace: Option<String>,
    workers: BTreeMap<String, Worker>,
    slices: BTreeMap<String, Slice>,
    /// What they hold.
    bytes: usize,
    /// Pods that are ready, and how many slices say so.
    ready: BTreeMap<Pod, usize>,
    /// Names of pods, each with a process that goes with it.
    by_pod: BTreeSet<(String, String)>,
    /// Processes that may have to be handed over anew.
    changed: BTreeSet<String>,
    /// How many of the processes that count have a key, by a sum over it.
    holders: HashMap<u64, u32>,
    /// Keys that a process had when it was handed over last, and may have no more.
    withdrawn: BTreeSet<String>,
    /// Objects that cannot be read, and why.
    unreadable: BTreeMap<(ResourceKind, String), Unreadable>,
    /// Faults that were not handed over yet.
    faults: Vec<DecodeError>,
    /// Numbers of the lists that are being read, of workers and of slices.
    passes: [u32; 2],
}

/// A process that registered.
struct Worker {
    /// Of the resource.
    uid: String,
    pod: Pod,
    entries: Vec<Found>,
    bytes: usize,
    /// Whether its entries were handed over.
    counts: bool,
    pass: u32,
}

/// The ready pods of an `EndpointSlice`, in order.
struct Slice {
    pods: Vec<Pod>,
    bytes: usize,
    pass: u32,
}

struct Unreadable {
    error: DecodeError,
    pass: u32,
}

impl Registry {
    pub(super) fn new(namespace: Option<String>) -> Self {
        Self { namespace, ..Self::default() }
    }

    /// A list of all objects of a kind begins.
    pub(super) fn begin_pass(&mut self, kind: ResourceKind) {
        let pass = &mut self.passes[kind as usize];
        *pass = pass.wrapping_add(1);
    }

    fn pass(&self, kind: ResourceKind) -> u32 {
        self.passes[kind as usize]
    }

    /// An object is so now. One that cannot be read stays as it was, as in Dynamo's own discovery, unless it is another one of
    /// that name.
    pub(super) fn put(&mut self, object: &Object) {
        let kind = object.kind();
        let (name, read) = match object.name() {
            Some(name) => (name.clone(), self.read(name, object)),
            None => (
                String::new(),
                Err(DecodeError::new(Reason::MissingField, "discovery: metadata.name is missing")),
            ),
        };
        let pass = self.pass(kind);
        match kind {
            ResourceKind::Worker => drop(self.workers.get_mut(&name).map(|known| known.pass = pass)),
            ResourceKind::Slice => drop(self.slices.get_mut(&name).map(|known| known.pass = pass)),
        }
        let key = (kind, name);
        let Err(error) = read else { return drop(self.unreadable.remove(&key)) };
        let is_full = self.unreadable.len() == MAX_UNREADABLE;
        match self.unreadable.get_mut(&key) {
            Some(known) if known.error == error => known.pass = pass,
            None if is_full => self.faults.push(error),
            _ => {
                self.faults.push(error.clone());
                self.unreadable.insert(key, Unreadable { error, pass });
            }
        }
    }

    /// What was wrong with objects since the last call.
    pub(super) fn take_faults(&mut self) -> Vec<DecodeError> {
        std::mem::take(&mut self.faults)
    }

    fn read(&mut self, name: String, object: &Object) -> Result<(), DecodeError> {
        let kind = object.kind();
        let known_bytes = match kind {
            ResourceKind::Worker => self.workers.get(&name).map(|known| known.bytes),
            ResourceKind::Slice => self.slices.get(&name).map(|known| known.bytes),
        };
        let count = if kind == ResourceKind::Worker { self.workers.len() } else { self.slices.len() };
        if known_bytes.is_none() && count == MAX_OBJECTS {
            return Err(DecodeError::new(Reason::TooLarge, "discovery: more than 10,000 objects of a kind"));
        }
        let room = MAX_HELD_BYTES - self.bytes + known_bytes.unwrap_or(0);
        match object {
            Object::Slice(_) => {
                let pods = object.ready_pods();
                // Each is held here and among those that are ready.
                let of_pod = |pod: &Pod| 2 * (pod.name.len() + pod.uid.len() + OVERHEAD_BYTES);
                let bytes = name.len() + OVERHEAD_BYTES + pods.iter().map(of_pod).sum::<usize>();
                within(bytes, room)?;
                self.put_slice(name, pods, bytes);
            }
            Object::Worker(worker) => {
                let uid = worker.metadata.uid.clone().unwrap_or_default();
                if self.workers.get(&name).is_some_and(|known| known.uid != uid) {
                    self.remove_worker(&name);
                }
                let spec = worker.spec.as_ref().map_or("null", |spec| spec.get());
                if spec.len() > MAX_OBJECT_BYTES {
                    let (is, most) = (size(spec.len() as u64), bound(MAX_OBJECT_BYTES));
                    let detail = format!("discovery: an object of {is}, more than {most}");
                    return Err(DecodeError::new(Reason::TooLarge, detail));
                }
                let process = name.rsplit('/').next().unwrap_or_default();
                let entries = entries(process, worker_metadata(spec)?, self.namespace.as_deref());
                let pod = object.owner().unwrap_or_else(|| Pod { name: name.clone(), uid: String::new() });
                let of_entry = |found: &Found| match &found.value {
                    EntryValue::Read(value) => found.key.len() + value.len() + OVERHEAD_BYTES,
                    EntryValue::TooLarge { .. } => found.key.len() + OVERHEAD_BYTES,
                };
                let texts =
                    2 * (name.len() + pod.name.len()) + uid.len() + pod.uid.len() + 2 * OVERHEAD_BYTES;
                let bytes = texts + entries.iter().map(of_entry).sum::<usize>();
                within(bytes, room)?;
                self.remove_worker(&name);
                self.bytes += bytes;
                self.by_pod.insert((pod.name.clone(), name.clone()));
                self.changed.insert(name.clone());
                let pass = self.pass(kind);
                let worker = Worker { uid, pod, entries, bytes, counts: false, pass };
                self.workers.insert(name, worker);
            }
        }
        Ok(())
    }

    fn put_slice(&mut self, name: String, mut pods: Vec<Pod>, bytes: usize) {
        pods.sort_unstable();
        pods.dedup();
        let known = self.slices.remove(&name);
        self.bytes = self.bytes + bytes - known.as_ref().map_or(0, |known| known.bytes);
        let before = known.map(|known| known.pods).unwrap_or_default();
        self.readiness(&before, &pods);
        let pass = self.pass(ResourceKind::Slice);
        self.slices.insert(name, Slice { pods, bytes, pass });
    }

    /// A slice that listed some pods as ready lists others now.
    fn readiness(&mut self, before: &[Pod], now: &[Pod]) {
        let (is_new, is_old) =
            (|pod: &&Pod| before.binary_search(pod).is_err(), |pod: &&Pod| now.binary_search(pod).is_err());
        for pod in now.iter().filter(is_new) {
            *self.ready.entry(pod.clone()).or_default() += 1;
        }
        for pod in before.iter().filter(is_old) {
            if let Some(slices) = self.ready.get_mut(pod) {
                *slices -= 1;
                if *slices == 0 {
                    self.ready.remove(pod);
                }
            }
        }
        for pod in now.iter().filter(is_new).chain(before.iter().filter(is_old)) {
            let of_pod = self.by_pod.range((pod.name.clone(), String::new())..);
            let names = of_pod.take_while(|(of, _)| *of == pod.name).map(|(_, name)| name.clone());
            self.changed.extend(names);
        }
    }

    fn remove_worker(&mut self, name: &str) {
        let Some(worker) = self.workers.remove(name) else { return };
        self.bytes -= worker.bytes;
        self.by_pod.remove(&(worker.pod.name.clone(), name.to_owned()));
        if worker.counts {
            self.withdraw(&worker.entries);
        }
    }

    fn remove_slice(&mut self, name: &str) {
        let Some(slice) = self.slices.remove(name) else { return };
        self.bytes -= slice.bytes;
        self.readiness(&slice.pods, &[]);
    }

    /// A process that counted has these entries no more.
    fn withdraw(&mut self, entries: &[Found]) {
        for Found { key, .. } in entries {
            if let Some(holders) = self.holders.get_mut(&xxh3_64(key.as_bytes())) {
                *holders = holders.saturating_sub(1);
            }
            self.withdrawn.insert(key.clone());
        }
    }

    /// An object is gone.
    pub(super) fn end(&mut self, object: &Object) {
        // One without a name was never held.
        if let Some(name) = object.name() {
            self.remove(object.kind(), name);
        }
    }

    fn remove(&mut self, kind: ResourceKind, name: String) {
        match kind {
            ResourceKind::Worker => self.remove_worker(&name),
            ResourceKind::Slice => self.remove_slice(&name),
        }
        self.unreadable.remove(&(kind, name));
    }

    /// The list of all objects of a kind is complete: there are no others.
    pub(super) fn end_pass(&mut self, kind: ResourceKind) {
        let pass = self.pass(kind);
        let removed: Vec<String> = match kind {
            ResourceKind::Worker => names(&self.workers, |worker| worker.pass != pass),
            ResourceKind::Slice => names(&self.slices, |slice| slice.pass != pass),
        };
        removed.into_iter().for_each(|name| self.remove(kind, name));
        self.unreadable.retain(|(of, _), unreadable| *of != kind || unreadable.pass == pass);
    }

    /// Every process is handed over anew with the next changes.
    pub(super) fn hand_over_all(&mut self) {
        self.changed.extend(self.workers.keys().cloned());
    }

    /// What changed since the last call: entries of processes that count, and keys that none of them has any more.
    pub(super) fn changes(&mut self) -> (Vec<Found>, Vec<String>) {
        let mut put = Vec::new();
        self.collect(&mut put);
        let withdrawn = std::mem::take(&mut self.withdrawn);
        let (removed, shared): (Vec<String>, Vec<String>) = withdrawn.into_iter().partition(|key| {
            let sum = xxh3_64(key.as_bytes());
            let is_gone = self.holders.get(&sum).is_none_or(|holders| *holders == 0);
            if is_gone {
                self.holders.remove(&sum);
            }
            is_gone
        });
        // Another process has the same key, as none of Dynamo's does: what it says of it counts now.
        if !shared.is_empty() {
            self.hand_over_all();
            self.collect(&mut put);
        }
        (put, removed)
    }

    fn collect(&mut self, put: &mut Vec<Found>) {
        for name in std::mem::take(&mut self.changed) {
            let Some(mut worker) = self.workers.remove(&name) else { continue };
            let counted = std::mem::replace(&mut worker.counts, self.is_ready(&worker.pod));
            if counted && !worker.counts {
                self.withdraw(&worker.entries);
            }
            if worker.counts {
                for found in &worker.entries {
                    let holders = self.holders.entry(xxh3_64(found.key.as_bytes())).or_default();
                    *holders += u32::from(!counted);
                    self.withdrawn.remove(&found.key);
                    put.push(found.clone());
                }
            }
            self.workers.insert(name, worker);
        }
    }

    /// A pod of the same name may be another one: it then counts only with the resource that it wrote.
    fn is_ready(&self, Pod { name, uid }: &Pod) -> bool {
        let from = Pod { name: name.clone(), uid: String::new() };
        let mut same_name = self.ready.range(from..).map(|(pod, _)| pod).take_while(|of| of.name == *name);
        same_name.any(|of| uid.is_empty() || of.uid.is_empty() || of.uid == *uid)
    }

    /// What it is that is registered and does not count, in words; "" if there is nothing. As of the last changes.
    pub(super) fn remarks(&self) -> String {
        let mut waiting =
            self.workers.iter().filter(|(_, worker)| !worker.counts).map(|(name, _)| shown(name));
        let mut detail = match (waiting.next(), waiting.count()) {
            (None, _) => String::new(),
            (Some(name), 0) => format!(" 1 more process is registered ({name}); its pod is not ready."),
            (Some(name), others) => format!(
                " {} more processes are registered ({name}, …); their pods are not ready.",
                others + 1
            ),
        };
        if let Some(((_, name), Unreadable { error, .. })) = self.unreadable.first_key_value() {
            let count = self.unreadable.len();
            let more = if count == MAX_UNREADABLE { " or more" } else { "" };
            let name = shown(name);
            detail.push_str(&format!(" Invalid objects: {count}{more}, the first is {name:?} ({error})."));
        }
        detail
    }
}

/// An object without a namespace has its name only.
fn shown(name: &str) -> &str {
    name.strip_prefix('/').unwrap_or(name)
}

fn names<T>(of: &BTreeMap<String, T>, which: impl Fn(&T) -> bool) -> Vec<String> {
    of.iter().filter(|(_, object)| which(object)).map(|(name, _)| name.clone()).collect()
}

fn within(bytes: usize, room: usize) -> Result<(), DecodeError> {
    if bytes > room {
        let detail = format!("discovery: objects of more than {} together", bound(MAX_HELD_BYTES));
        return Err(DecodeError::new(Reason::TooLarge, detail));
    }
    Ok(())
}

/// A resource's entries as a store of keys would have them.
fn entries(process: &str, read: WorkerMetadata<'_>, namespace: Option<&str>) -> Vec<Found> {
    let WorkerMetadata { instance_id, entries } = read;
    let entry = |(mut key, value): (String, &str)| {
        // Dynamo 0.8 leaves the process out of `namespace/component/endpoint/process`.
        let is_of_all =
            (key.starts_with("v1/instances/") || key.starts_with("v1/mdc/")) && key.matches('/').count() == 4;
        if is_of_all {
            key = format!("{key}/{process}");
        }
        // In etcd the lease is the process.
        let value = EntryValue::of(value.len(), || Bytes::copy_from_slice(value.as_bytes()));
        wants(namespace, &key).then_some(Found { key, value, lease: instance_id })
    };
    entries.into_iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn worker(name: &str, uid: &str, pod_uid: &str, endpoints: Value) -> Object {
        let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod_uid}]);
        let worker = json!({"metadata": {"name": name, "uid": uid, "ownerReferences": owner},
            "spec": {"data": {"endpoints": endpoints}}});
        Object::Worker(serde_json::from_str(&worker.to_string()).unwrap())
    }

    fn slice(name: &str, pods: &[(&str, &str)]) -> Object {
        let endpoint = |(name, uid): &(&str, &str)| json!({"addresses": [], "conditions": {"ready": true}, "targetRef": {"kind": "Pod", "name": name, "uid": uid}});
        let endpoints: Vec<Value> = pods.iter().map(endpoint).collect();
        let slice = json!({"metadata": {"name": name}, "addressType": "IPv4", "endpoints": endpoints});
        Object::Slice(serde_json::from_value(slice).unwrap())
    }

    /// A registry, and the keys that its changes come to.
    #[derive(Default)]
    struct Followed {
        registry: Registry,
        keys: BTreeSet<String>,
    }

    impl Followed {
        fn keys(&mut self) -> Vec<&str> {
            let (put, removed) = self.registry.changes();
            self.keys.extend(put.into_iter().map(|found| found.key));
            removed.iter().for_each(|key| assert!(self.keys.remove(key), "{key} was never put"));
            self.keys.iter().map(|key| &**key).collect()
        }
    }

    impl std::ops::Deref for Followed {
        type Target = Registry;
        fn deref(&self) -> &Registry {
            &self.registry
        }
    }

    impl std::ops::DerefMut for Followed {
        fn deref_mut(&mut self) -> &mut Registry {
            &mut self.registry
        }
    }

    const NONE: [&str; 0] = [];

    const ENTRY: &str = "v1/instances/n/c/e/2a";

    #[test]
    fn a_process_counts_while_its_own_pod_is_ready() {
        let mut registry = Followed::default();
        let endpoints = json!({"n/c/e/2a": {"instance_id": 42}});
        registry.put(&worker("a", "c1", "p1", endpoints.clone()));
        assert_eq!(registry.keys(), NONE);
        assert!(registry.remarks().contains("not ready"));
        // A pod may be in two slices for a moment.
        registry.put(&slice("s", &[("a", "p1")]));
        registry.put(&slice("t", &[("a", "p1"), ("b", "p2")]));
        registry.put(&slice("s", &[]));
        let (put, _) = registry.changes();
        assert_eq!(
            put.iter().map(|found| (&*found.key, found.lease)).collect::<Vec<_>>(),
            [(ENTRY, Some(42))]
        );
        assert_eq!(registry.remarks(), "");
        registry.keys.insert(ENTRY.to_owned());
        // The next pod of that name did not register yet.
        registry.put(&slice("t", &[("a", "p3")]));
        assert_eq!(registry.keys(), NONE);
        registry.put(&worker("a", "c2", "p3", endpoints));
        assert_eq!(registry.keys(), [ENTRY]);
        registry.end(&worker("a", "c2", "p3", json!(null)));
        assert_eq!(registry.keys(), NONE);
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_was_and_is_reported_once() {
        let mut registry = Followed::default();
        registry.put(&slice("s", &[("a", "p1")]));
        registry.put(&worker("a", "c1", "p1", json!({"n/c/e/2a": {}})));
        let bad = worker("a", "c1", "p1", json!([7]));
        registry.put(&bad);
        assert_eq!(registry.take_faults().len(), 1);
        registry.put(&bad);
        assert_eq!(registry.take_faults(), []);
        assert_eq!(registry.keys(), [ENTRY]);
        assert!(
            registry.remarks().contains("Invalid objects: 1, the first is \"a\""),
            "{}",
            registry.remarks()
        );
        // Another resource of that name: what the one before registered is gone.
        registry.put(&worker("a", "c2", "p1", json!([7])));
        assert_eq!(registry.keys(), NONE);
        registry.begin_pass(ResourceKind::Worker);
        registry.end_pass(ResourceKind::Worker);
        assert_eq!(registry.remarks(), "");
        registry.take_faults();
        let nameless = Object::Worker(serde_json::from_str("{}").unwrap());
        registry.put(&nameless);
        registry.end(&nameless);
        assert_eq!(registry.take_faults().len(), 1);
    }

    #[test]
    fn keys_without_a_process_are_distinguished() {
        let mut registry = Followed::default();
        registry.put(&slice("s", &[("a", "p"), ("b", "p")]));
        for name in ["a", "b"] {
            registry.put(&worker(name, "c", "p", json!({"n/c/e": {}})));
        }
        assert_eq!(registry.keys(), ["v1/instances/n/c/e/a", "v1/instances/n/c/e/b"]);
    }

    #[test]
    fn a_change_hands_over_what_changed_and_not_the_rest() {
        let mut registry = Followed::default();
        let names: Vec<String> = (0..1_000).map(|n| format!("w{n}")).collect();
        let pods: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "p")).collect();
        registry.put(&slice("s", &pods));
        let endpoints = |n: usize, value: u32| {
            let entries = (0..10).map(|e| (format!("n/c/e{e}/{n:x}"), json!({"instance_id": n, "v": value})));
            Value::Object(entries.collect())
        };
        for (n, name) in names.iter().enumerate() {
            registry.put(&worker(name, "c", "p", endpoints(n, 0)));
        }
        assert_eq!(registry.keys().len(), 10_000);
        registry.put(&worker("w7", "c", "p", endpoints(7, 1)));
        let (put, removed) = registry.changes();
        assert_eq!((put.len(), removed.len()), (10, 0));
        registry.put(&slice("s", &pods[3..]));
        let (put, removed) = registry.changes();
        assert_eq!((put.len(), removed.len()), (0, 30));
        assert!(registry.changes() == (vec![], vec![]));
    }

    #[test]
    fn a_key_of_two_processes_stays_until_both_are_gone() {
        let mut registry = Followed::default();
        registry.put(&slice("s", &[("a", "p"), ("b", "p")]));
        for name in ["a", "b"] {
            registry.put(&worker(name, "c", "p", json!({"n/c/e/2a": {"of": name}})));
        }
        assert_eq!(registry.keys(), [ENTRY]);
        registry.end(&worker("b", "c", "p", json!(null)));
        let (put, removed) = registry.changes();
        assert_eq!((put.len(), removed.len()), (1, 0));
        assert!(matches!(&put[0].value, super::EntryValue::Read(value) if value.ends_with(b"\"a\"}")));
        registry.end(&worker("a", "c", "p", json!(null)));
        assert_eq!(registry.keys(), NONE);
    }

    #[test]
    fn what_all_objects_hold_is_bounded_and_given_back() {
        let mut registry = Followed::default();
        let large: serde_json::Map<_, _> =
            (0..20).map(|n| (format!("n/c/e{n}/2a"), json!("x".repeat(60_000)))).collect();
        let pods: Vec<String> = (0..1_000).map(|n| format!("{n:0200}")).collect();
        let pods: Vec<(&str, &str)> = pods.iter().map(|name| (&**name, "p")).collect();
        for n in 0..30 {
            registry.put(&worker(&format!("w{n}"), "c", "p", large.clone().into()));
            registry.put(&slice(&format!("s{n}"), &pods));
            assert!(registry.bytes <= MAX_HELD_BYTES);
        }
        assert!(
            registry.remarks().contains("objects of more than 24 MiB together"),
            "{}",
            registry.remarks()
        );
        assert!(!registry.take_faults().is_empty());
        for kind in [ResourceKind::Worker, ResourceKind::Slice] {
            registry.begin_pass(kind);
            registry.end_pass(kind);
        }
        assert_eq!((registry.bytes, registry.ready.len(), registry.by_pod.len()), (0, 0, 0));
        assert_eq!(registry.remarks(), "");
    }

    #[test]
    fn an_object_that_is_too_large_is_named_and_stays_as_it_was() {
        let mut registry = Followed::default();
        registry.put(&slice("s", &[("a", "p1")]));
        registry.put(&worker("a", "c1", "p1", json!({"n/c/e/2a": {}})));
        registry.put(&worker("a", "c1", "p1", json!({"n/c/e/2a": "x".repeat(3_000_000)})));
        assert_eq!(registry.keys(), [ENTRY]);
        let remarks = registry.remarks();
        assert!(
            remarks.contains(r#"the first is "a" (discovery: an object of 3 MB, more than 2 MiB)"#),
            "{remarks}"
        );
        registry.end(&worker("a", "c1", "p1", json!(null)));
        assert_eq!(registry.keys(), NONE);
        assert_eq!(registry.remarks(), "");
    }

    #[test]
    fn objects_of_one_name_in_two_namespaces_are_two() {
        let mut registry = Followed::default();
        let within = |mut object: Object, namespace: &str| {
            let meta = match &mut object {
                Object::Worker(worker) => &mut worker.metadata,
                Object::Slice(slice) => &mut slice.metadata,
            };
            meta.namespace = Some(namespace.to_owned());
            object
        };
        for (namespace, key) in [("x", "n/c/e/1"), ("y", "n/c/e/2")] {
            registry.put(&within(worker("a", "c1", "p1", json!({key: {}})), namespace));
        }
        registry.put(&within(slice("s", &[("a", "p1")]), "x"));
        assert_eq!(registry.keys(), ["v1/instances/n/c/e/1"], "the pod of y is not ready");
        registry.put(&within(slice("s", &[("a", "p1")]), "y"));
        assert_eq!(registry.keys(), ["v1/instances/n/c/e/1", "v1/instances/n/c/e/2"]);
    }
}
