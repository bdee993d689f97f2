//! `radixscope deploy --kubernetes`: prints the manifests with which Radixscope runs in a cluster. Applies nothing, and asks the
//! cluster for nothing but the namespace of the context.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::anyhow;

use super::Failure;
use crate::config::Deploy;
use crate::source::kubernetes::Reach;
use crate::source::kubernetes::rights::{USES, Use};

/// Where Radixscope runs, if everything is shown.
const OWN_NAMESPACE: &str = "radixscope";

/// Prints them.
pub(super) async fn run(options: Deploy) -> Result<(), Failure> {
    let Deploy { kubernetes, namespace, image, .. } = options;
    if !kubernetes.kubernetes {
        return Err(Failure::Usage(anyhow!("--kubernetes: there is no other place to deploy to")));
    }
    let reads = match (namespace, kubernetes.all_namespaces) {
        (_, true) => None,
        (Some(namespace), false) => Some(namespace),
        (None, false) => {
            let found = Reach::as_kubectl(kubernetes.context).await;
            Some(found.map_err(|error| Failure::Usage(error.into()))?.1)
        }
    };
    let text = manifests(reads.as_deref(), &image);
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|error| Failure::Failed(anyhow!(error).context("writing the manifests")))
}

/// `reads`: the namespace that is shown; `None`: all.
fn manifests(reads: Option<&str>, image: &str) -> String {
    let runs_in = reads.unwrap_or(OWN_NAMESPACE);
    let (kind, scope, all) = match reads {
        Some(namespace) => ("Role", format!("\n  namespace: {namespace}"), ""),
        None => ("ClusterRole", String::new(), ", --all-namespaces"),
    };
    let own = match reads {
        Some(_) => String::new(),
        None => format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {OWN_NAMESPACE}\n---\n"),
    };
    let rules = rules(USES.iter().filter(|of| !of.is_outside));
    format!(
        "{own}apiVersion: v1
kind: ServiceAccount
metadata:
  name: radixscope
  namespace: {runs_in}
automountServiceAccountToken: false
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}
metadata:
  name: radixscope{scope}
{rules}---
apiVersion: rbac.authorization.k8s.io/v1
kind: {kind}Binding
metadata:
  name: radixscope{scope}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {kind}
  name: radixscope
subjects:
  - kind: ServiceAccount
    name: radixscope
    namespace: {runs_in}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: radixscope
  namespace: {runs_in}
  labels: {{ app.kubernetes.io/name: radixscope }}
spec:
  replicas: 1
  selector:
    matchLabels: {{ app.kubernetes.io/name: radixscope }}
  template:
    metadata:
      labels: {{ app.kubernetes.io/name: radixscope }}
    spec:
      serviceAccountName: radixscope
      automountServiceAccountToken: true
      enableServiceLinks: false # else the service's own RADIXSCOPE_… variables would look like options
      terminationGracePeriodSeconds: 5
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile: {{ type: RuntimeDefault }}
      containers:
        - name: radixscope
          image: {image}
          args: [serve, --kubernetes{all}]
          env:
            - {{ name: RADIXSCOPE_LISTEN, value: \"0.0.0.0:8321\" }}
            - {{ name: RADIXSCOPE_ALLOW_HOST, value: \"radixscope,*.svc,*.svc.cluster.local\" }}
            - {{ name: RADIXSCOPE_LOG_FORMAT, value: json }}
          ports:
            - {{ name: http, containerPort: 8321 }}
          startupProbe: {{ httpGet: {{ path: /healthz, port: http }}, periodSeconds: 1, failureThreshold: 60 }}
          livenessProbe: {{ httpGet: {{ path: /healthz, port: http }}, timeoutSeconds: 5 }}
          readinessProbe: {{ httpGet: {{ path: \"/readyz?once\", port: http }}, timeoutSeconds: 5 }}
          resources:
            requests: {{ cpu: 100m, memory: 128Mi }}
            limits: {{ memory: 1Gi }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {{ drop: [ALL] }}
---
# Whoever reaches the service may read: kubectl -n {runs_in} port-forward service/radixscope 8321
apiVersion: v1
kind: Service
metadata:
  name: radixscope
  namespace: {runs_in}
  labels: {{ app.kubernetes.io/name: radixscope }}
spec:
  selector: {{ app.kubernetes.io/name: radixscope }}
  ports:
    - {{ name: http, port: 8321, targetPort: http }}
"
    )
}

/// The rules of a role, each with its reason.
fn rules<'u>(uses: impl Iterator<Item = &'u Use>) -> String {
    let mut rules = "rules:\n".to_owned();
    for Use { resource, verbs, purpose, .. } in uses {
        let group = if resource.group.is_empty() { "\"\"" } else { resource.group };
        let (name, verbs) = (resource.name, verbs.join(", "));
        // Writing to a text cannot fail.
        let _ = write!(
            rules,
            "  # {purpose}\n  - apiGroups: [{group}]\n    resources: [{name}]\n    verbs: [{verbs}]\n"
        );
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roles_of_the_repository_are_what_is_used() {
        let inside = include_str!("../../../deploy/kubernetes/roles/inside.yaml");
        let laptop = include_str!("../../../deploy/kubernetes/roles/laptop.yaml");
        let rules_of = |text: &'static str| {
            let from = text.find("rules:").unwrap();
            let end = text.find("---").unwrap();
            &text[from..end]
        };
        assert_eq!(rules_of(inside), rules(USES.iter().filter(|of| !of.is_outside)));
        assert_eq!(rules_of(laptop), rules(USES.iter()));
    }

    #[test]
    fn what_is_printed_is_yaml_in_one_namespace_or_in_all() {
        for (reads, role) in [(Some("dynamo"), "Role"), (None, "ClusterRole")] {
            let text = manifests(reads, "registry/radixscope:1");
            let kinds: Vec<String> = text
                .split("---\n")
                .map(|document| {
                    let of: serde_json::Value = serde_saphyr::from_str(document).unwrap();
                    of["kind"].as_str().unwrap().to_owned()
                })
                .collect();
            let binding = format!("{role}Binding");
            let mut expected = vec!["ServiceAccount", role, &*binding, "Deployment", "Service"];
            if reads.is_none() {
                expected.insert(0, "Namespace");
            }
            assert_eq!(kinds, expected);
            assert!(!text.contains("secrets") && !text.contains("portforward"), "{text}");
        }
    }
}
