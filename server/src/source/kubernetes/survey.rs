//! One look at a cluster: what of Dynamo and of engines is there, where NATS and etcd are, and what may not be read.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::core::{NamespaceResourceScope, ObjectList, PartialObjectMeta};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use url::Url;

use super::pods::{Labels, PodInfo, Role, Selectors, is_selected};
use super::rights::{Right, rights, user};
use super::{
    Failed, Failures, GRAPHS, PAGES, PODS, POOLS, Reach, Resource, SELECTOR, SERVICES, SLICES, WORKERS,
};
use crate::config::{InKubernetes, InvalidOption};

/// Most pages of a list: ten thousand objects.
const MAX_PAGES: usize = 100;
/// Names that a line shows.
const SHOWN_NAMES: usize = 5;

/// A cluster, as it is reached.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) reach: Reach,
    pub(crate) client: Client,
    /// `None`: all.
    pub(crate) namespace: Option<String>,
}

impl Cluster {
    /// As the options say; `namespace` is that of `--namespace`.
    pub(crate) async fn connect(
        options: &InKubernetes,
        namespace: Option<String>,
    ) -> Result<Self, InvalidOption> {
        let (reach, of_context) = Reach::as_kubectl(options.context.clone()).await?;
        let client = reach.connect().await;
        let client = client.map_err(|failed| InvalidOption::new("--kubernetes", failed.detail))?;
        let namespace = (!options.all_namespaces).then(|| namespace.unwrap_or(of_context));
        Ok(Self { reach, client, namespace })
    }

    /// An API of objects in the namespace, or in all.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    fn dynamic(&self, of: Resource, kind: &str) -> (Api<DynamicObject>, ApiResource) {
        let kind = GroupVersionKind::gvk(of.group, of.version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, of.name);
        let api = match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        (api, resource)
    }

    /// Describes failures.
    pub(crate) fn failures(&self) -> Failures {
        Failures { api: self.reach.shown().to_owned(), namespace: self.namespace.clone() }
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

/// The pods behind a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Behind {
    pub(crate) namespace: String,
    /// Of the service.
    pub(crate) name: String,
    pub(crate) selector: Labels,
    pub(crate) port: u16,
}

/// What became of looking for something.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Found,
    Missing,
    Refused,
    /// There was no answer that says.
    Unknown,
}

/// A line of the table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) outcome: Outcome,
    pub(crate) detail: String,
}

/// What was found, as it is shown.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Table {
    /// The address of the API server.
    pub(crate) api: String,
    /// `None`: all.
    pub(crate) namespace: Option<String>,
    /// Whether this is a pod.
    pub(crate) is_inside: bool,
    /// As the API server names who asks. `None`: it does not say.
    pub(crate) user: Option<String>,
    pub(crate) rows: Vec<Row>,
    pub(crate) rights: Vec<Right>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) table: Table,
    pub(crate) pods: Vec<PodInfo>,
    /// What selects the pods of inference gateways.
    pub(crate) selectors: Selectors,
    pub(crate) nats: Option<Place>,
    pub(crate) etcd: Option<Place>,
    /// Whether Dynamo's processes register in Kubernetes.
    pub(crate) is_registered_here: bool,
}

/// Objects of a kind, or why there are none.
type Listed<T> = Result<Vec<T>, Failed>;

impl Survey {
    pub(crate) async fn of(cluster: &Cluster) -> Self {
        let Cluster { client, namespace, .. } = cluster;
        let is_inside = cluster.reach.is_inside();
        let failures = &cluster.failures();
        let asked = async {
            let user = user(client).await;
            (rights(client, namespace.as_deref(), user.as_deref(), is_inside).await, user)
        };
        let (graphs, workers, slices, services, pools, (rights, user)) = tokio::join!(
            metadata(cluster, GRAPHS, "DynamoGraphDeployment", failures),
            metadata(cluster, WORKERS, "DynamoWorkerMetadata", failures),
            list(
                |params: ListParams| {
                    let (api, params) = (cluster.api::<EndpointSlice>(), params.labels(SELECTOR));
                    async move { api.list_metadata(&params).await }
                },
                Some,
                SLICES,
                failures,
            ),
            list(
                |params: ListParams| {
                    let api = cluster.api::<Service>();
                    async move { api.list(&params).await }
                },
                Some,
                SERVICES,
                failures,
            ),
            dynamic(cluster, POOLS, "InferencePool", failures),
            asked,
        );
        let no_services = Vec::new();
        let known = services.as_ref().unwrap_or(&no_services);
        let of_gateways = pools.as_deref().unwrap_or_default();
        let selectors = Selectors { epps: epps(of_gateways, known), engines: engines(of_gateways) };
        // A pod has some ten kilobytes, of which little is held.
        let pods = list(
            |params: ListParams| {
                let api = cluster.api::<Pod>();
                async move { api.list(&params).await }
            },
            |pod| PodInfo::of(pod, &selectors),
            PODS,
            failures,
        );
        let pods = pods.await;
        let mut rows = vec![
            row("DynamoGraphDeployments", &graphs, |graphs| names(graphs.iter().map(name_of))),
            row("DynamoWorkerMetadata", &workers, |workers| count(workers.len(), "process", "processes")),
            row("EndpointSlices", &slices, |slices| count(slices.len(), "of Dynamo", "of Dynamo")),
            row("InferencePools", &pools, |pools| {
                names(pools.iter().filter_map(|pool| pool.metadata.name.clone()))
            }),
        ];
        let has_workers = workers.as_ref().is_ok_and(|workers| !workers.is_empty());
        let pods = pods.map(|mut pods| {
            pods.sort_by(|a, b| (a.role, &a.namespace, &a.name).cmp(&(b.role, &b.namespace, &b.name)));
            pods
        });
        for (what, of) in [
            ("Frontends", &[Role::Frontend][..]),
            ("Endpoint pickers", &[Role::Epp]),
            ("Workers", &[Role::Worker]),
            ("Engines without Dynamo", &[Role::LlmD, Role::InPool, Role::Vllm, Role::Sglang]),
        ] {
            rows.push(row(what, &pods, |pods| {
                let all: Vec<_> = pods.iter().filter(|pod| of.contains(&pod.role)).collect();
                described(&all)
            }));
        }
        let pods = pods.unwrap_or_default();
        let nats = place("NATS_SERVER", ("nats", 4222), Role::Nats, &pods, known);
        let etcd = place("ETCD_ENDPOINTS", ("http", 2379), Role::Etcd, &pods, known);
        rows.push(place_row("NATS", nats.as_ref()));
        rows.push(place_row("etcd", etcd.as_ref()));
        let names_kubernetes = |pod: &PodInfo| {
            pod.variables.get("DYN_DISCOVERY_BACKEND").is_some_and(|backend| backend == "kubernetes")
                || pod.labels.get(BACKEND).is_some_and(|backend| backend == "kubernetes")
        };
        let is_registered_here =
            has_workers || pods.iter().any(names_kubernetes) || (etcd.is_none() && workers.is_ok());
        let table = Table {
            api: cluster.reach.shown().to_owned(),
            namespace: namespace.clone(),
            is_inside,
            user,
            rows,
            rights,
        };
        Self { table, pods, selectors, nats, etcd, is_registered_here }
    }
}

impl Table {
    /// The namespace that is read; `None`: all.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place =
            self.namespace.as_ref().map_or("all namespaces".to_owned(), |name| format!("namespace {name}"));
        let from = if self.is_inside { "inside the cluster" } else { "from outside, through port-forward" };
        writeln!(f, "Kubernetes     {}, {place}, {from}", self.api)?;
        for Row { what, outcome, detail } in &self.rows {
            let outcome = match outcome {
                Outcome::Found => "found",
                Outcome::Missing => "missing",
                Outcome::Refused => "refused",
                Outcome::Unknown => "unknown",
            };
            writeln!(f, "  {outcome:<8} {what:<24} {detail}")?;
        }
        writeln!(f, "\nRights of {}", self.user.as_deref().unwrap_or("this user"))?;
        for Right { resource, verbs, purpose, refused, grant } in &self.rights {
            let may = match refused.as_deref() {
                Some([]) => "yes".to_owned(),
                Some(refused) if refused.len() == verbs.len() => "no".to_owned(),
                Some(refused) => format!("no {}", refused.join(", ")),
                None => "?".to_owned(),
            };
            let right = format!("{} {resource}", verbs.join(", "));
            writeln!(f, "  {may:<8} {right:<53} {purpose}")?;
            if let Some(grant) = grant {
                writeln!(f, "           {grant}")?;
            }
        }
        Ok(())
    }
}

/// Label by which Dynamo's operator says where a pod registers.
const BACKEND: &str = "nvidia.com/dynamo-discovery-backend";

/// Lists everything, in pages that are as small as needed, and keeps of each object what `keep` makes of it.
async fn list<T: Clone + Debug + DeserializeOwned, K>(
    page: impl AsyncFn(ListParams) -> kube::Result<ObjectList<T>>,
    keep: impl Fn(T) -> Option<K>,
    of: Resource,
    failures: &Failures,
) -> Listed<K> {
    let mut last = None;
    for limit in PAGES {
        let mut all = Vec::new();
        let mut token = None::<String>;
        let listed = async {
            for _ in 0..MAX_PAGES {
                let params =
                    ListParams { limit: Some(limit), continue_token: token.take(), ..ListParams::default() };
                let list = page(params).await?;
                all.extend(list.items.into_iter().filter_map(&keep));
                token = list.metadata.continue_.filter(|token| !token.is_empty());
                if token.is_none() {
                    break;
                }
            }
            Ok::<_, kube::Error>(())
        };
        match listed.await {
            Ok(()) => return Ok(all),
            Err(error) => match failures.of_request("list", of, &error) {
                Failed::TooLong(status) => last = Some(Failed::TooLong(status)),
                failed => return Err(failed),
            },
        }
    }
    Err(last.unwrap_or(Failed::Expired))
}

async fn metadata(
    cluster: &Cluster,
    of: Resource,
    kind: &str,
    failures: &Failures,
) -> Listed<PartialObjectMeta<DynamicObject>> {
    let (api, _) = cluster.dynamic(of, kind);
    list(
        |params: ListParams| {
            let api = api.clone();
            async move { api.list_metadata(&params).await }
        },
        Some,
        of,
        failures,
    )
    .await
}

async fn dynamic(cluster: &Cluster, of: Resource, kind: &str, failures: &Failures) -> Listed<DynamicObject> {
    let (api, _) = cluster.dynamic(of, kind);
    list(
        |params: ListParams| {
            let api = api.clone();
            async move { api.list(&params).await }
        },
        Some,
        of,
        failures,
    )
    .await
}

/// What the services of the endpoint pickers of pools select.
fn epps(pools: &[DynamicObject], services: &[Service]) -> Vec<Labels> {
    let picker = |pool: &DynamicObject| {
        let spec = pool.data.get("spec")?;
        // `extensionRef` before the API was stable.
        let picker = spec.get("endpointPickerRef").or_else(|| spec.get("extensionRef"))?;
        let name = picker.get("name")?.as_str()?;
        let is_it = |service: &&Service| {
            service.metadata.name.as_deref() == Some(name)
                && service.metadata.namespace == pool.metadata.namespace
        };
        services.iter().find(is_it)?.spec.as_ref()?.selector.clone()
    };
    pools.iter().filter_map(picker).collect()
}

/// What InferencePools select.
fn engines(pools: &[DynamicObject]) -> Vec<Labels> {
    let selected = |pool: &DynamicObject| {
        let selector = pool.data.get("spec")?.get("selector")?;
        // Labels by themselves before the API was stable.
        let labels = selector.get("matchLabels").unwrap_or(selector);
        Labels::deserialize(labels).ok()
    };
    pools.iter().filter_map(selected).collect()
}

/// Where a service is: as pods are told, or by its pods.
fn place(
    variable: &str,
    (scheme, usual_port): (&str, u16),
    role: Role,
    pods: &[PodInfo],
    services: &[Service],
) -> Option<Place> {
    let told = pods.iter().find_map(|pod| {
        let address = pod.variables.get(variable)?;
        // Of several, any leads to the same.
        let first = address.split(',').next().unwrap_or_default();
        let text = if first.contains("://") { first.to_owned() } else { format!("{scheme}://{first}") };
        let mut url = Url::parse(&text).ok()?;
        if url.port_or_known_default().is_none() || (url.port().is_none() && url.scheme().starts_with("http"))
        {
            url.set_port(Some(usual_port)).ok()?;
        }
        let behind = behind(&url, &pod.namespace, services);
        Some(Place { url, behind, why: format!("{variable} of {}", pod.name) })
    });
    told.or_else(|| {
        let found = pods.iter().filter(|pod| pod.role == role);
        found.into_iter().find_map(|pod| {
            services.iter().find_map(|service| {
                let spec = service.spec.as_ref()?;
                let is_its = service.metadata.namespace.as_deref() == Some(&*pod.namespace)
                    && is_selected(&pod.labels, spec.selector.as_ref()?);
                let has_port = spec.ports.iter().flatten().any(|port| port.port == i32::from(usual_port));
                // One without an address of its own leads to pods that are not ready, too.
                (is_its && has_port).then_some(())?;
                let name = service.metadata.name.as_deref()?;
                let url =
                    Url::parse(&format!("{scheme}://{name}.{}.svc:{usual_port}", pod.namespace)).ok()?;
                let behind = behind(&url, &pod.namespace, services);
                Some(Place { url, behind, why: format!("service {name}") })
            })
        })
    })
}

/// The pods behind the service that an address names: `NAME`, `NAME.NAMESPACE` or `NAME.NAMESPACE.svc…`.
fn behind(url: &Url, of_pod: &str, services: &[Service]) -> Option<Behind> {
    let mut labels = url.host_str()?.split('.');
    let (name, namespace) = (labels.next()?, labels.next().unwrap_or(of_pod));
    let service = services.iter().find(|service| {
        service.metadata.name.as_deref() == Some(name)
            && service.metadata.namespace.as_deref() == Some(namespace)
    })?;
    let spec = service.spec.as_ref()?;
    let port = url.port_or_known_default()?;
    let target = spec.ports.iter().flatten().find(|of| of.port == i32::from(port));
    // A port that has a name in the pod is the same in the charts of both.
    let port = match target.and_then(|of| of.target_port.as_ref()) {
        Some(IntOrString::Int(target)) => u16::try_from(*target).unwrap_or(port),
        Some(IntOrString::String(_)) | None => port,
    };
    Some(Behind {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        selector: spec.selector.clone()?,
        port,
    })
}

fn row<T>(what: &'static str, listed: &Listed<T>, detail: impl FnOnce(&[T]) -> Option<String>) -> Row {
    match listed {
        Ok(all) => match detail(all) {
            Some(detail) => Row { what, outcome: Outcome::Found, detail },
            None => Row { what, outcome: Outcome::Missing, detail: "none".to_owned() },
        },
        Err(Failed::NoSuchResource(_)) => {
            Row { what, outcome: Outcome::Missing, detail: "not installed".to_owned() }
        }
        Err(Failed::Forbidden(_)) => Row {
            what,
            outcome: Outcome::Refused,
            detail: "may not be listed, see the rights below".to_owned(),
        },
        Err(failed) => Row { what, outcome: Outcome::Unknown, detail: failed.to_text() },
    }
}

fn place_row(what: &'static str, place: Option<&Place>) -> Row {
    match place {
        Some(Place { url, why, .. }) => {
            let mut url = url.clone();
            // Fails only for an address without a host.
            let _ = (url.set_username(""), url.set_password(None));
            Row { what, outcome: Outcome::Found, detail: format!("{url} ({why})") }
        }
        None => Row { what, outcome: Outcome::Missing, detail: "none".to_owned() },
    }
}

fn name_of(object: &PartialObjectMeta<DynamicObject>) -> String {
    object.metadata.name.clone().unwrap_or_default()
}

fn names(all: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = all.collect();
    let shown = all.iter().take(SHOWN_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match all.len() {
        0 => None,
        len if len > SHOWN_NAMES => Some(format!("{len}: {shown}, …")),
        len => Some(format!("{len}: {shown}")),
    }
}

fn count(count: usize, one: &str, more: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {more}")),
    }
}

/// Pods in words: how many, of what, and how many of them are ready.
fn described(pods: &[&PodInfo]) -> Option<String> {
    let listed = names(pods.iter().map(|pod| pod.name.clone()))?;
    let mut of = BTreeMap::<&str, usize>::new();
    for pod in pods {
        *of.entry(pod.role.as_str()).or_default() += 1;
    }
    let kinds: Vec<String> = of.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if of.len() > 1 { format!(" ({})", kinds.join(", ")) } else { String::new() };
    let waiting = pods.iter().filter(|pod| !pod.is_ready).count();
    let waiting = if waiting == 0 { String::new() } else { format!("; {waiting} not ready") };
    Some(format!("{listed}{kinds}{waiting}"))
}
