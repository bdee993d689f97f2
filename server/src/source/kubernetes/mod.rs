//! Kubernetes' API by the crate `kube`: how it is reached, within which bounds, and why something could not be read. Only reads:
//! get, list, watch, logs and port-forward.

mod bounds;
pub(crate) mod engine;
mod failure;
pub(crate) mod follow;
pub(crate) mod places;
pub(crate) mod pods;
mod pools;
mod reach;
pub(crate) mod reached;
pub(crate) mod rights;
pub(crate) mod survey;
pub(crate) mod tunnel;

pub(crate) use failure::{Failed, Failures};
pub(crate) use reach::Reach;

/// How long a watch lasts; the next begins where it ended. A dead connection is noticed so late.
pub(crate) const WATCH_S: u32 = 30;
/// Objects of a page: the second and third where pages are too long, as a list must not be longer than
/// [`MAX_RESPONSE_BYTES`](bounds::MAX_RESPONSE_BYTES). One object has at most 1.5 MiB.
pub(crate) const PAGES: [u32; 3] = [100, 10, 1];

/// A kind of object that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Resource {
    /// As in addresses, in the plural; a part of it behind a slash.
    pub(crate) name: &'static str,
    /// "" is the core group.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
}

/// What a process of Dynamo registered, in a resource that is named after its pod.
pub(crate) const WORKERS: Resource =
    Resource { name: "dynamoworkermetadatas", group: "nvidia.com", version: "v1alpha1" };
/// Which pods are ready.
pub(crate) const SLICES: Resource =
    Resource { name: "endpointslices", group: "discovery.k8s.io", version: "v1" };
/// The label of Dynamo's slices that its own processes ask for. Its source names another one too, which its client drops before
/// it asks.
pub(crate) const SELECTOR: &str = "nvidia.com/dynamo-discovery-enabled=true";
/// Deployments of Dynamo's operator.
pub(crate) const GRAPHS: Resource =
    Resource { name: "dynamographdeployments", group: "nvidia.com", version: "v1alpha1" };
/// Pools of engines behind an inference gateway.
pub(crate) const POOLS: Resource =
    Resource { name: "inferencepools", group: "inference.networking.k8s.io", version: "v1" };
pub(crate) const PODS: Resource = Resource { name: "pods", group: "", version: "v1" };
pub(crate) const SERVICES: Resource = Resource { name: "services", group: "", version: "v1" };
/// Logs of pods.
pub(crate) const POD_LOGS: Resource = Resource { name: "pods/log", ..PODS };
/// Connections to pods.
pub(crate) const PORT_FORWARD: Resource = Resource { name: "pods/portforward", ..PODS };
