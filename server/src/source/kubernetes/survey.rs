//! One look at a cluster: what of Dynamo and of engines is there, where NATS and etcd are, and what may not be read.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::core::{NamespaceResourceScope, ObjectList, PartialObjectMeta};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::places::{Place, Places, Service};
use super::pods::{PodInfo, Role, Selectors};
use super::pools::Pool;
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

    fn dynamic(&self, of: Resource, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(of.group, of.version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, of.name);
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// The API of InferencePools.
    pub(crate) fn pools(&self) -> Api<DynamicObject> {
        self.dynamic(POOLS, "InferencePool")
    }

    /// Describes failures.
    pub(crate) fn failures(&self) -> Failures {
        Failures { api: self.reach.shown().to_owned(), namespace: self.namespace.clone() }
    }
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
    pub(crate) services: Vec<Service>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) places: Places,
    /// Whether there are resources in which processes of Dynamo registered.
    pub(crate) has_workers: bool,
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
            typed(cluster, SERVICES, Service::of),
            inference_pools(cluster),
            asked,
        );
        let no_services = Vec::new();
        let known = services.as_ref().unwrap_or(&no_services);
        let of_gateways = pools.as_deref().unwrap_or_default();
        let selectors = Selectors::of(of_gateways.iter(), known.iter());
        // A pod has some ten kilobytes, of which little is held.
        let pods = typed(cluster, PODS, |pod: Pod| PodInfo::of(pod, &selectors)).await;
        let mut rows = vec![
            row("DynamoGraphDeployments", &graphs, |graphs| names(graphs.iter().map(name_of))),
            row("DynamoWorkerMetadata", &workers, |workers| count(workers.len(), "process", "processes")),
            row("EndpointSlices", &slices, |slices| count(slices.len(), "of Dynamo", "of Dynamo")),
            row("InferencePools", &pools, |pools| names(pools.iter().map(|pool| pool.name.clone()))),
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
        let mut places = Places::of(pods.iter(), known.iter());
        rows.push(place_row("NATS", places.nats.as_ref()));
        rows.push(place_row("etcd", places.etcd.as_ref()));
        places.is_registered_here |= has_workers;
        let table = Table {
            api: cluster.reach.shown().to_owned(),
            namespace: namespace.clone(),
            is_inside,
            user,
            rows,
            rights,
        };
        let (services, pools) = (services.unwrap_or_default(), pools.unwrap_or_default());
        Self { table, pods, services, pools, places, has_workers }
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
    let api = cluster.dynamic(of, kind);
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

/// Of a kind that has a type.
async fn typed<T, K>(cluster: &Cluster, of: Resource, keep: impl Fn(T) -> Option<K>) -> Listed<K>
where
    T: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let api = cluster.api::<T>();
    let page = |params: ListParams| {
        let api = api.clone();
        async move { api.list(&params).await }
    };
    list(page, keep, of, &cluster.failures()).await
}

async fn inference_pools(cluster: &Cluster) -> Listed<Pool> {
    let api = cluster.pools();
    let page = |params: ListParams| {
        let api = api.clone();
        async move { api.list(&params).await }
    };
    list(page, Pool::of, POOLS, &cluster.failures()).await
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
        Some(place) => {
            Row { what, outcome: Outcome::Found, detail: format!("{} ({})", place.shown(), place.why) }
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
