//! The objects of Kubernetes that discovery reads.

use std::borrow::Cow;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::source::kubernetes::WORKERS;

/// A kind of object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ResourceKind {
    Worker,
    Slice,
}

/// What a process registered. Its `spec` stays as it was sent, so that numbers keep their digits, depth costs nothing and what
/// cannot be read costs only this object.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct WorkerResource {
    #[serde(default)]
    pub(super) metadata: ObjectMeta,
    pub(super) spec: Option<Box<RawValue>>,
}

impl kube::Resource for WorkerResource {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "DynamoWorkerMetadata".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        WORKERS.group.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        WORKERS.version.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        WORKERS.name.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// An object of either kind.
#[derive(Clone, Debug)]
pub(super) enum Object {
    Worker(WorkerResource),
    Slice(EndpointSlice),
}

impl From<WorkerResource> for Object {
    fn from(worker: WorkerResource) -> Self {
        Self::Worker(worker)
    }
}

impl From<EndpointSlice> for Object {
    fn from(slice: EndpointSlice) -> Self {
        Self::Slice(slice)
    }
}

/// A pod.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Pod {
    /// Its name, behind its namespace and a slash.
    pub(super) name: String,
    /// Differs between two pods of one name; "" if it is not given.
    pub(super) uid: String,
}

impl Object {
    pub(super) fn kind(&self) -> ResourceKind {
        match self {
            Self::Worker(_) => ResourceKind::Worker,
            Self::Slice(_) => ResourceKind::Slice,
        }
    }

    pub(super) fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Worker(worker) => &worker.metadata,
            Self::Slice(slice) => &slice.metadata,
        }
    }

    /// Its name behind its namespace and a slash; `None`: it has none, as nothing that the API server lists.
    pub(super) fn name(&self) -> Option<String> {
        let name = self.meta().name.as_deref().filter(|name| !name.is_empty())?;
        Some(self.with_namespace(name))
    }

    fn with_namespace(&self, name: &str) -> String {
        format!("{}/{name}", self.meta().namespace.as_deref().unwrap_or_default())
    }

    /// The pod that it goes with.
    pub(super) fn owner(&self) -> Option<Pod> {
        let mut owners = self.meta().owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.kind == "Pod" && !owner.name.is_empty())?;
        Some(Pod { name: self.with_namespace(&owner.name), uid: owner.uid.clone() })
    }

    /// The pods that are ready by a slice. Without a condition a pod is not ready, as for Dynamo.
    pub(super) fn ready_pods(&self) -> Vec<Pod> {
        let Self::Slice(slice) = self else { return Vec::new() };
        let ready = slice.endpoints.iter().filter(|endpoint| {
            endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true)
        });
        let pod = |target: &k8s_openapi::api::core::v1::ObjectReference| {
            let name = target.name.as_deref().filter(|name| !name.is_empty())?;
            (target.kind.as_deref() == Some("Pod"))
                .then(|| Pod { name: self.with_namespace(name), uid: target.uid.clone().unwrap_or_default() })
        };
        ready.filter_map(|endpoint| endpoint.target_ref.as_ref().and_then(pod)).collect()
    }

    /// How much of it was sent, about.
    pub(super) fn bytes(&self) -> usize {
        const AROUND_BYTES: usize = 500;
        AROUND_BYTES
            + match self {
                Self::Worker(worker) => worker.spec.as_ref().map_or(0, |spec| spec.get().len()),
                Self::Slice(slice) => slice.endpoints.len() * AROUND_BYTES,
            }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_pods_that_are_ready_count() {
        let endpoint = |name: &str, ready: Value| {
            json!({"addresses": ["10.0.0.7"], "conditions": {"ready": ready, "serving": true},
                "targetRef": {"kind": "Pod", "name": name, "uid": "u", "namespace": "n"}})
        };
        let slice = json!({"metadata": {"name": "s", "namespace": "n"}, "addressType": "IPv4", "endpoints": [
            endpoint("a", json!(true)), endpoint("b", json!(false)), endpoint("c", json!(null)),
            {"addresses": [], "conditions": {"ready": true}},
            {"addresses": [], "conditions": {"ready": true}, "targetRef": {"kind": "Node", "name": "d"}},
            {"addresses": [], "targetRef": null, "conditions": null}]});
        let slice = Object::Slice(serde_json::from_value(slice).unwrap());
        assert_eq!(slice.ready_pods(), [Pod { name: "n/a".into(), uid: "u".into() }]);
        let empty = json!({"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": null});
        assert!(Object::Slice(serde_json::from_value(empty).unwrap()).ready_pods().is_empty());
    }

    #[test]
    fn depth_costs_only_the_object_that_has_it() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let list = format!(
            r#"{{"kind":"List","metadata":{{"resourceVersion":"1"}},"items":[
                {{"metadata":{{"name":"a"}},"spec":{deep}}},{{"metadata":{{"name":"b"}},"other":{deep},"spec":7}}]}}"#
        );
        let list: kube::core::ObjectList<WorkerResource> = serde_json::from_str(&list).unwrap();
        let names: Vec<_> =
            list.items.into_iter().map(|worker| Object::from(worker).name().unwrap()).collect();
        assert_eq!(names, ["/a", "/b"]);
        let line = format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"a"}},"spec":{deep}}}}}"#);
        let event: kube::core::WatchEvent<WorkerResource> = serde_json::from_str(&line).unwrap();
        assert!(matches!(event, kube::core::WatchEvent::Added(_)));
    }
}
