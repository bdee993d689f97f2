//! What a pod is to Radixscope: its role, where its metrics are, and which of its containers has a log about routing. By the labels,
//! names and ports that Dynamo's operator, llm-d and engines give.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Container, Pod};

use radixscope_model::record::Engine;

use super::engine::{self, PodEngine};

/// Label of all pods of a DynamoGraphDeployment: its name.
const GRAPH: &str = "nvidia.com/dynamo-graph-deployment-name";
/// What a pod of a DynamoGraphDeployment is.
const COMPONENT: &str = "nvidia.com/dynamo-component-type";
/// Pods of llm-d's engines.
const LLM_D: &str = "llm-d.ai/inference-serving";
/// The engine in such a pod.
const ENGINE: &str = "llm-d.ai/engine-type";
/// The operator's name for the container of Dynamo itself.
const MAIN: &str = "main";
/// Port of a frontend unless its container names one.
const FRONTEND_PORT: u16 = 8000;
/// Port of the metrics of an EPP unless its container names one.
const EPP_PORT: u16 = 9090;

/// Labels of an object, or a selector of them.
pub(crate) type Labels = BTreeMap<String, String>;

/// What a pod is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Role {
    Frontend,
    /// Endpoint picker of an inference gateway: routes in place of frontends.
    Epp,
    Worker,
    /// Planner or another part of a deployment of Dynamo's.
    OtherOfDynamo,
    /// vLLM or SGLang of llm-d, without Dynamo.
    LlmD,
    /// An engine that an InferencePool selects, without Dynamo or llm-d.
    InPool,
    /// vLLM without any of them.
    Vllm,
    /// SGLang without any of them.
    Sglang,
    Nats,
    Etcd,
}

impl Role {
    /// In lists, after a number.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Frontend => "frontend",
            Self::Epp => "EPP",
            Self::Worker => "worker",
            Self::OtherOfDynamo => "other of Dynamo",
            Self::LlmD => "llm-d engine",
            Self::InPool => "engine of an InferencePool",
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::Nats => "NATS",
            Self::Etcd => "etcd",
        }
    }
}

/// A pod that matters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PodInfo {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Differs between two pods of one name.
    pub(crate) uid: String,
    pub(crate) ip: Option<IpAddr>,
    pub(crate) role: Role,
    /// The DynamoGraphDeployment that it belongs to.
    pub(crate) graph: Option<String>,
    /// Whether all of its containers run and are ready.
    pub(crate) is_ready: bool,
    /// Port of its metrics.
    pub(crate) metrics_port: Option<u16>,
    /// The engine in it, if it is one without Dynamo.
    pub(crate) engine: Option<PodEngine>,
    /// The container whose log tells of routing.
    pub(crate) log_container: Option<String>,
    /// How often that container was restarted.
    pub(crate) restarts: i32,
    /// Addresses that its containers are given, by the variable: `NATS_SERVER`, `ETCD_ENDPOINTS`, `DYN_DISCOVERY_BACKEND`.
    pub(crate) variables: BTreeMap<&'static str, String>,
    /// Labels, which selectors of services and pools name.
    pub(crate) labels: Labels,
}

/// The variables of Dynamo that name where its parts meet.
pub(crate) const VARIABLES: [&str; 3] = ["NATS_SERVER", "ETCD_ENDPOINTS", "DYN_DISCOVERY_BACKEND"];

/// What selects the pods of inference gateways.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Selectors {
    /// Of the services of endpoint pickers.
    pub(crate) epps: Vec<Labels>,
    /// Of InferencePools: engines.
    pub(crate) engines: Vec<Labels>,
}

impl PodInfo {
    /// `None`: it has nothing to do with Dynamo or an engine, or is over.
    pub(crate) fn of(pod: Pod, selectors: &Selectors) -> Option<Self> {
        let labels = pod.metadata.labels.unwrap_or_default();
        let (spec, status) = (pod.spec?, pod.status.unwrap_or_default());
        if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
            return None;
        }
        let is_selected_by = |all: &[Labels]| all.iter().any(|by| is_selected(&labels, by));
        let role = match role(&labels, &spec.containers) {
            _ if is_selected_by(&selectors.epps) => Role::Epp,
            None | Some(Role::Vllm | Role::Sglang) if is_selected_by(&selectors.engines) => Role::InPool,
            role => role?,
        };
        let is_engine = matches!(role, Role::LlmD | Role::InPool | Role::Vllm | Role::Sglang);
        let engine = is_engine.then(|| PodEngine::of(&labels, &spec.containers)).flatten();
        let main = main_container(&spec.containers)?;
        let statuses = status.container_statuses.unwrap_or_default();
        let restarts =
            statuses.iter().find(|of| of.name == main.name).map_or(0, |container| container.restart_count);
        let has_log = matches!(role, Role::Frontend | Role::Epp);
        Some(Self {
            namespace: pod.metadata.namespace.unwrap_or_default(),
            name: pod.metadata.name?,
            uid: pod.metadata.uid.unwrap_or_default(),
            ip: status.pod_ip.and_then(|ip| ip.parse().ok()),
            role,
            graph: labels.get(GRAPH).cloned(),
            is_ready: !statuses.is_empty() && statuses.iter().all(|container| container.ready),
            metrics_port: metrics_port(role, main)
                .or_else(|| engine.as_ref().and_then(|engine| engine.metrics_port)),
            engine,
            log_container: has_log.then(|| main.name.clone()),
            restarts,
            variables: variables(&spec.containers),
            labels,
        })
    }

    /// Its name as processes and logs have it; with its namespace if several are shown.
    pub(crate) fn shown(&self, with_namespace: bool) -> String {
        if with_namespace { format!("{}/{}", self.namespace, self.name) } else { self.name.clone() }
    }
}

/// Whether a selector of labels names something. An empty one names nothing.
pub(crate) fn is_selected(labels: &Labels, by: &Labels) -> bool {
    !by.is_empty() && by.iter().all(|(key, value)| labels.get(key) == Some(value))
}

fn role(labels: &Labels, containers: &[Container]) -> Option<Role> {
    let label = |name: &str| labels.get(name).map(String::as_str);
    match label(COMPONENT) {
        Some("frontend") => return Some(Role::Frontend),
        Some("epp") => return Some(Role::Epp),
        Some("worker" | "prefill" | "decode") => return Some(Role::Worker),
        _ if label(GRAPH).is_some() => return Some(Role::OtherOfDynamo),
        _ => {}
    }
    if label(LLM_D) == Some("true") || label(ENGINE).is_some() {
        return Some(Role::LlmD);
    }
    // Names that the charts of both give, and that Dynamo's platform chart takes over.
    match label("app.kubernetes.io/name").or(label("app")) {
        Some("nats") => return Some(Role::Nats),
        Some("etcd") => return Some(Role::Etcd),
        _ => {}
    }
    containers.iter().find_map(engine::started).and_then(|engine| match engine {
        Engine::Vllm => Some(Role::Vllm),
        Engine::Sglang => Some(Role::Sglang),
        Engine::TensorRtLlm => None,
    })
}

/// The operator's main container, or the first one.
fn main_container(containers: &[Container]) -> Option<&Container> {
    containers.iter().find(|container| container.name == MAIN).or(containers.first())
}

fn metrics_port(role: Role, main: &Container) -> Option<u16> {
    let named = |name: &str| {
        let port = main.ports.iter().flatten().find(|port| port.name.as_deref() == Some(name))?;
        u16::try_from(port.container_port).ok()
    };
    match role {
        Role::Frontend => Some(named("http").unwrap_or(FRONTEND_PORT)),
        Role::Worker => named("system"),
        Role::Epp => Some(named("metrics").unwrap_or(EPP_PORT)),
        // Of an engine its command tells.
        Role::LlmD | Role::InPool | Role::Vllm | Role::Sglang => None,
        Role::OtherOfDynamo | Role::Nats | Role::Etcd => None,
    }
}

fn variables(containers: &[Container]) -> BTreeMap<&'static str, String> {
    let given = |name: &str| {
        let mut all = containers.iter().flat_map(|container| container.env.iter().flatten());
        all.find(|of| of.name == name).and_then(|of| of.value.clone()).filter(|value| !value.is_empty())
    };
    VARIABLES.into_iter().filter_map(|name| Some((name, given(name)?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(labels: Value, containers: Value) -> Option<PodInfo> {
        let pod = json!({"metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": labels},
            "spec": {"containers": containers}, "status": {"podIP": "10.0.0.7", "phase": "Running",
                "containerStatuses": [{"name": "main", "ready": true, "restartCount": 2, "image": "", "imageID": ""}]}});
        PodInfo::of(serde_json::from_value(pod).unwrap(), &Selectors::default())
    }

    #[test]
    fn pods_of_the_operator_are_known_by_their_labels() {
        let frontend = pod(
            json!({"nvidia.com/dynamo-graph-deployment-name": "agg", "nvidia.com/dynamo-component-type": "frontend"}),
            json!([{"name": "istio-proxy"}, {"name": "main", "ports": [{"name": "http", "containerPort": 8001}],
                "env": [{"name": "NATS_SERVER", "value": "nats://n:4222"}, {"name": "OTHER", "value": "x"}]}]),
        )
        .unwrap();
        assert_eq!(
            (frontend.role, frontend.metrics_port, frontend.restarts),
            (Role::Frontend, Some(8001), 2)
        );
        assert_eq!(
            (frontend.log_container.as_deref(), frontend.graph.as_deref()),
            (Some("main"), Some("agg"))
        );
        assert_eq!(frontend.variables, BTreeMap::from([("NATS_SERVER", "nats://n:4222".to_owned())]));
        let of = |kind: &str, ports: Value| {
            let labels = json!({"nvidia.com/dynamo-graph-deployment-name": "agg", "nvidia.com/dynamo-component-type": kind});
            pod(labels, json!([{"name": "main", "ports": ports}]))
                .map(|pod| (pod.role, pod.metrics_port, pod.log_container.is_some()))
        };
        let system = json!([{"name": "system", "containerPort": 9090}]);
        for kind in ["worker", "prefill", "decode"] {
            assert_eq!(of(kind, system.clone()), Some((Role::Worker, Some(9090), false)));
        }
        assert_eq!(of("worker", json!([])), Some((Role::Worker, None, false)), "unknown is not guessed");
        assert_eq!(of("epp", json!([])), Some((Role::Epp, Some(9090), true)));
        assert_eq!(of("planner", json!([])), Some((Role::OtherOfDynamo, None, false)));
    }

    #[test]
    fn engines_without_dynamo_and_stores_are_known_too() {
        let role = |labels: Value, containers: Value| pod(labels, containers).map(|pod| pod.role);
        let plain = json!([{"name": "c"}]);
        assert_eq!(role(json!({"llm-d.ai/inference-serving": "true"}), plain.clone()), Some(Role::LlmD));
        assert_eq!(role(json!({"app.kubernetes.io/name": "nats"}), plain.clone()), Some(Role::Nats));
        assert_eq!(role(json!({"app.kubernetes.io/name": "etcd"}), plain.clone()), Some(Role::Etcd));
        let sglang = json!([{"name": "c", "command": ["python3", "-m", "sglang.launch_server"]}]);
        assert_eq!(role(json!({}), sglang), Some(Role::Sglang));
        let vllm = json!([{"name": "c", "args": ["vllm serve m"]}]);
        assert_eq!(role(json!({}), vllm), Some(Role::Vllm));
        assert_eq!(role(json!({"app": "web"}), plain), None);
    }

    #[test]
    fn selectors_name_pods_by_all_of_their_labels() {
        let labels = |of: &[(&str, &str)]| {
            of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Labels>()
        };
        let pod = labels(&[("a", "b"), ("x", "y")]);
        assert!(is_selected(&pod, &labels(&[("a", "b")])));
        assert!(!is_selected(&pod, &labels(&[("a", "b"), ("c", "d")])));
        assert!(!is_selected(&pod, &labels(&[])));
        let epp = json!({"metadata": {"name": "p", "labels": {"inferencepool": "llama-epp"}},
            "spec": {"containers": [{"name": "epp", "ports": [{"name": "metrics", "containerPort": 9091}]}]}});
        let selectors =
            Selectors { epps: vec![labels(&[("inferencepool", "llama-epp")])], ..Selectors::default() };
        let of = PodInfo::of(serde_json::from_value(epp).unwrap(), &selectors);
        assert_eq!(of.map(|pod| (pod.role, pod.metrics_port)), Some((Role::Epp, Some(9091))));
    }
}
