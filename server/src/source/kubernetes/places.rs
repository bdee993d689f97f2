//! Where NATS and etcd are: as Dynamo's pods are told, or by their own pods and services.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use url::Url;

use super::pods::{Labels, PodInfo, Role, is_selected};

/// Label by which Dynamo's operator says where a pod registers.
const BACKEND: &str = "nvidia.com/dynamo-discovery-backend";

/// What is needed of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Service {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) selector: Option<Labels>,
    /// Each with the port of its pods.
    ports: Vec<(u16, u16)>,
}

impl Service {
    /// `None`: it has no name.
    pub(crate) fn of(service: core::Service) -> Option<Self> {
        let spec = service.spec.unwrap_or_default();
        let port = |port: core::ServicePort| {
            let own = u16::try_from(port.port).ok()?;
            // A port that has a name in the pod is the same in the charts of NATS and etcd.
            let target = match port.target_port {
                Some(IntOrString::Int(target)) => u16::try_from(target).unwrap_or(own),
                Some(IntOrString::String(_)) | None => own,
            };
            Some((own, target))
        };
        Some(Self {
            namespace: service.metadata.namespace.unwrap_or_default(),
            name: service.metadata.name?,
            selector: spec.selector,
            ports: spec.ports.into_iter().flatten().filter_map(port).collect(),
        })
    }
}

/// Where a service is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// As a pod of the cluster reaches it.
    pub(crate) url: Url,
    /// Where its pods are; `None`: not known.
    pub(crate) behind: Option<Behind>,
    /// What names it.
    pub(crate) why: String,
}

impl Place {
    /// Its address without a login.
    pub(crate) fn shown(&self) -> Url {
        let mut url = self.url.clone();
        // Fails only for an address without a host.
        let _ = (url.set_username(""), url.set_password(None));
        url
    }

    /// Whether both lead to the same, whatever names them.
    pub(crate) fn leads_where(&self, other: &Self) -> bool {
        (&self.url, &self.behind) == (&other.url, &other.behind)
    }
}

/// The pods behind a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Behind {
    pub(crate) namespace: String,
    /// Of the service.
    pub(crate) name: String,
    pub(crate) selector: Labels,
    pub(crate) port: u16,
}

/// Where Dynamo's processes meet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Places {
    pub(crate) nats: Option<Place>,
    pub(crate) etcd: Option<Place>,
    /// Whether a pod says that it registers in Kubernetes, or one has.
    pub(crate) is_registered_here: bool,
}

impl Places {
    /// The etcd that has Dynamo's discovery, unless that is in Kubernetes.
    pub(crate) fn discovery(&self) -> Option<&Place> {
        self.etcd.as_ref().filter(|_| !self.is_registered_here)
    }

    pub(crate) fn of<'a, P, S>(pods: P, services: S) -> Self
    where
        P: Iterator<Item = &'a PodInfo> + Clone,
        S: Iterator<Item = &'a Service> + Clone,
    {
        let is_kubernetes = |backend: Option<&String>| backend.is_some_and(|backend| backend == "kubernetes");
        let names_kubernetes = |pod: &PodInfo| {
            is_kubernetes(pod.variables.get("DYN_DISCOVERY_BACKEND"))
                || is_kubernetes(pod.labels.get(BACKEND))
        };
        Self {
            nats: place("NATS_SERVER", ("nats", 4222), Role::Nats, pods.clone(), services.clone()),
            etcd: place("ETCD_ENDPOINTS", ("http", 2379), Role::Etcd, pods.clone(), services),
            is_registered_here: pods.into_iter().any(names_kubernetes),
        }
    }
}

/// Where a service is: as the first pod is told that is told anything, or by its pods.
fn place<'a>(
    variable: &str,
    (scheme, usual_port): (&str, u16),
    role: Role,
    pods: impl Iterator<Item = &'a PodInfo> + Clone,
    services: impl Iterator<Item = &'a Service> + Clone,
) -> Option<Place> {
    let told = |pod: &'a PodInfo| {
        let address = pod.variables.get(variable)?;
        // Of several, any leads to the same.
        let first = address.split(',').next().unwrap_or_default();
        let text = if first.contains("://") { first.to_owned() } else { format!("{scheme}://{first}") };
        let mut url = Url::parse(&text).ok()?;
        if url.port_or_known_default().is_none() || (url.port().is_none() && url.scheme().starts_with("http"))
        {
            url.set_port(Some(usual_port)).ok()?;
        }
        Some((pod, url))
    };
    let order = |pod: &'a PodInfo| (pod.role, &*pod.namespace, &*pod.name);
    if let Some((pod, url)) = pods.clone().filter_map(told).min_by_key(|(pod, _)| order(pod)) {
        let behind = behind(&url, &pod.namespace, services);
        return Some(Place { url, behind, why: format!("{variable} of {}", pod.name) });
    }
    let found = pods.filter(|pod| pod.role == role).filter_map(|pod| {
        let is_its = |service: &&Service| {
            service.namespace == pod.namespace
                && service.selector.as_ref().is_some_and(|selector| is_selected(&pod.labels, selector))
                && service.ports.iter().any(|(port, _)| *port == usual_port)
        };
        Some((pod, services.clone().find(is_its)?))
    });
    let (pod, service) = found.min_by_key(|(pod, _)| order(pod))?;
    // One without an address of its own leads to pods that are not ready, too.
    let name = &service.name;
    let url = Url::parse(&format!("{scheme}://{name}.{}.svc:{usual_port}", pod.namespace)).ok()?;
    let behind = behind(&url, &pod.namespace, services);
    Some(Place { url, behind, why: format!("service {name}") })
}

/// The pods behind the service that an address names: `NAME`, `NAME.NAMESPACE` or `NAME.NAMESPACE.svc…`.
fn behind<'a>(url: &Url, of_pod: &str, mut services: impl Iterator<Item = &'a Service>) -> Option<Behind> {
    let mut labels = url.host_str()?.split('.');
    let (name, namespace) = (labels.next()?, labels.next().unwrap_or(of_pod));
    let service = services.find(|service| service.name == name && service.namespace == namespace)?;
    let port = url.port_or_known_default()?;
    let target = service.ports.iter().find(|(own, _)| *own == port).map_or(port, |(_, target)| *target);
    Some(Behind {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        selector: service.selector.clone()?,
        port: target,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::pods::Selectors;
    use super::*;

    fn pod(name: &str, labels: Value, env: Value) -> PodInfo {
        let pod = json!({"metadata": {"name": name, "namespace": "ns", "labels": labels},
            "spec": {"containers": [{"name": "main", "env": env}]}, "status": {"phase": "Running"}});
        PodInfo::of(serde_json::from_value(pod).unwrap(), &Selectors::default()).unwrap()
    }

    fn service(name: &str, port: u16, target: Value) -> Service {
        let service = json!({"metadata": {"name": name, "namespace": "ns"},
            "spec": {"selector": {"app": "nats"}, "ports": [{"port": port, "targetPort": target}]}});
        Service::of(serde_json::from_value(service).unwrap()).unwrap()
    }

    #[test]
    fn what_pods_are_told_counts_before_pods_of_that_name_and_the_first_pod_before_others() {
        let nats = pod("nats-0", json!({"app": "nats"}), json!([]));
        let services = [service("other", 80, json!(80)), service("nats", 4222, json!(5222))];
        let found = Places::of([&nats].into_iter(), services.iter()).nats.unwrap();
        assert_eq!((found.url.as_str(), &*found.why), ("nats://nats.ns.svc:4222", "service nats"));
        assert_eq!(found.behind.as_ref().map(|behind| behind.port), Some(5222));
        let told = |name: &str, address: &str| {
            let labels = json!({"nvidia.com/dynamo-component-type": "worker"});
            pod(name, labels, json!([{"name": "NATS_SERVER", "value": address}]))
        };
        let (first, second) = (told("a", "nats://user:secret@nats:4222"), told("b", "elsewhere:4222"));
        let places = Places::of([&nats, &second, &first].into_iter(), services.iter());
        let now = places.nats.unwrap();
        assert_eq!((now.shown().as_str(), &*now.why), ("nats://nats:4222", "NATS_SERVER of a"));
        assert_eq!(now.behind, found.behind);
        assert!(!now.leads_where(&found), "another address, although to the same pods");
        let renamed = Place { why: "NATS_SERVER of b".to_owned(), ..now.clone() };
        assert!(now.leads_where(&renamed));
        assert_eq!(Places::of([&nats].into_iter(), [].iter()), Places::default(), "no service, no address");
    }

    #[test]
    fn that_pods_register_in_kubernetes_is_told_by_a_variable_or_a_label() {
        let worker = |backend: Option<&str>, env: Value| {
            let labels =
                json!({"nvidia.com/dynamo-component-type": "worker", BACKEND: backend.unwrap_or("etcd")});
            Places::of([&pod("a", labels, env)].into_iter(), [].iter()).is_registered_here
        };
        assert!(worker(Some("kubernetes"), json!([])));
        assert!(worker(None, json!([{"name": "DYN_DISCOVERY_BACKEND", "value": "kubernetes"}])));
        assert!(!worker(None, json!([])));
    }
}
