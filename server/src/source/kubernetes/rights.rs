//! The rights that Radixscope uses in Kubernetes, whether the user has them, and the command that grants one.

use futures_util::future::join_all;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Serialize;

use super::{GRAPHS, POD_LOGS, PODS, POOLS, PORT_FORWARD, Resource, SERVICES, SLICES, WORKERS};

/// A right, and what it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub(crate) resource: Resource,
    pub(crate) verbs: &'static [&'static str],
    pub(crate) purpose: &'static str,
    /// Only from outside the cluster.
    pub(crate) is_outside: bool,
}

/// Everything that is used. `deploy/kubernetes` grants the same.
pub(crate) const USES: [Use; 8] = [
    Use {
        resource: WORKERS,
        verbs: &["list", "watch"],
        purpose: "what workers registered",
        is_outside: false,
    },
    Use { resource: SLICES, verbs: &["list", "watch"], purpose: "which pods are ready", is_outside: false },
    Use {
        resource: PODS,
        verbs: &["list", "watch"],
        purpose: "frontends, endpoint pickers, workers and engines, and where their metrics are",
        is_outside: false,
    },
    Use {
        resource: POD_LOGS,
        verbs: &["get"],
        purpose: "decisions in the logs of frontends and endpoint pickers",
        is_outside: false,
    },
    Use {
        resource: SERVICES,
        verbs: &["list", "watch"],
        purpose: "where NATS, etcd and endpoint pickers are",
        is_outside: false,
    },
    Use { resource: GRAPHS, verbs: &["list"], purpose: "names of deployments", is_outside: false },
    Use {
        resource: POOLS,
        verbs: &["list", "watch"],
        purpose: "engines and endpoint pickers of inference pools",
        is_outside: false,
    },
    Use {
        resource: PORT_FORWARD,
        // A WebSocket is a GET; from 1.35 on it needs the verb of the older protocol too.
        verbs: &["get", "create"],
        purpose: "connections to pods from outside the cluster",
        is_outside: true,
    },
];

/// Whether a right is there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Right {
    /// Resource and group as `kubectl auth can-i` has them.
    pub(crate) resource: String,
    pub(crate) verbs: Vec<&'static str>,
    pub(crate) purpose: &'static str,
    /// The verbs that are refused. `None`: the API server does not say.
    pub(crate) refused: Option<Vec<&'static str>>,
    /// The command that grants what is refused.
    pub(crate) grant: Option<String>,
}

impl Use {
    /// As `kubectl` names it.
    pub(crate) fn name(&self) -> String {
        // Only pods, which have no group, have parts.
        let Resource { name, group, .. } = self.resource;
        if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
    }
}

/// Who asks, as the API server sees it.
pub(crate) async fn user(client: &Client) -> Option<String> {
    let review = Api::<SelfSubjectReview>::all(client.clone());
    let review = review.create(&PostParams::default(), &SelfSubjectReview::default()).await.ok()?;
    review.status?.user_info?.username
}

/// Asks for every right. What is asked is not kept by the API server.
pub(crate) async fn rights(
    client: &Client,
    namespace: Option<&str>,
    user: Option<&str>,
    is_inside: bool,
) -> Vec<Right> {
    let uses = USES.iter().filter(|of| !(of.is_outside && is_inside));
    join_all(uses.map(|of| right(client, namespace, user, of))).await
}

async fn right(client: &Client, namespace: Option<&str>, user: Option<&str>, of: &Use) -> Right {
    let asked = join_all(of.verbs.iter().map(|verb| may(client, namespace, verb, of))).await;
    let refused = asked.iter().all(Option::is_some).then(|| {
        let verbs = of.verbs.iter().zip(&asked).filter(|(_, may)| **may == Some(false));
        verbs.map(|(verb, _)| *verb).collect::<Vec<_>>()
    });
    let grant = refused.as_ref().filter(|refused| !refused.is_empty()).map(|_| grant(of, namespace, user));
    Right { resource: of.name(), verbs: of.verbs.to_vec(), purpose: of.purpose, refused, grant }
}

/// `None`: there is no answer.
async fn may(client: &Client, namespace: Option<&str>, verb: &str, of: &Use) -> Option<bool> {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (resource, subresource) = of.resource.name.split_once('/').unwrap_or((of.resource.name, ""));
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: namespace.map(str::to_owned),
                verb: text(verb),
                group: text(of.resource.group),
                resource: text(resource),
                subresource: text(subresource),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let api = Api::<SelfSubjectAccessReview>::all(client.clone());
    let reviewed = api.create(&PostParams::default(), &review).await.ok()?;
    reviewed.status.map(|status| status.allowed)
}

/// The command that grants a right to the user in a namespace, or in all.
fn grant(of: &Use, namespace: Option<&str>, user: Option<&str>) -> String {
    let name = format!("radixscope-{}", of.resource.name.replace('/', "-"));
    let subject = match user.map(|user| (user, user.strip_prefix("system:serviceaccount:"))) {
        Some((_, Some(account))) => format!("--serviceaccount={account}"),
        Some((user, None)) => format!("--user={user}"),
        None => "--user=YOU".to_owned(),
    };
    let (kind, place) = match namespace {
        Some(namespace) => ("role", format!("-n {namespace} ")),
        None => ("clusterrole", String::new()),
    };
    let (verbs, resource) = (of.verbs.join(","), of.name());
    format!(
        "kubectl {place}create {kind} {name} --verb={verbs} --resource={resource} && \
         kubectl {place}create {kind}binding {name} --{kind}={name} {subject}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_granted_by_one_command() {
        let log = USES.iter().find(|of| of.resource == POD_LOGS).unwrap();
        assert_eq!(
            grant(log, Some("dynamo"), Some("system:serviceaccount:dynamo:radixscope")),
            "kubectl -n dynamo create role radixscope-pods-log --verb=get --resource=pods/log && \
             kubectl -n dynamo create rolebinding radixscope-pods-log --role=radixscope-pods-log \
             --serviceaccount=dynamo:radixscope"
        );
        let workers = USES.iter().find(|of| of.resource == WORKERS).unwrap();
        assert_eq!(
            grant(workers, None, Some("ada")),
            "kubectl create clusterrole radixscope-dynamoworkermetadatas --verb=list,watch \
             --resource=dynamoworkermetadatas.nvidia.com && kubectl create clusterrolebinding \
             radixscope-dynamoworkermetadatas --clusterrole=radixscope-dynamoworkermetadatas --user=ada"
        );
    }

    #[test]
    fn nothing_but_reading_and_connecting_is_asked_for_and_no_secret() {
        for of in USES {
            assert!(!of.resource.name.contains("secret"));
            let is_connection = of.resource == PORT_FORWARD;
            assert!(of.verbs.iter().all(|verb| {
                matches!(*verb, "get" | "list" | "watch") || (is_connection && *verb == "create")
            }));
        }
    }
}
