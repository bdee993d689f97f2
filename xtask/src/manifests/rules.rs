//! What must hold of every rendered deployment beside its schema: names that lead to each other, a container that may nothing,
//! and options that the program knows. Sees objects, renders nothing.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Rendered;

/// Every rule that is broken, in words.
///
/// # Errors
/// When the program's options cannot be read.
pub(super) fn broken(objects: &[Rendered], root: &Path) -> Result<Vec<String>> {
    let variables = variables(&root.join("server/src"))?;
    let mut faults = Vec::new();
    let names: BTreeSet<&str> = objects.iter().map(|object| object.from.as_str()).collect();
    for from in names {
        let all: Vec<&Value> = objects.iter().filter(|o| o.from == from).map(|o| &o.object).collect();
        let mut found = Vec::new();
        match all.iter().find(|object| object["kind"] == "Deployment") {
            Some(deployment) => {
                let pod = &deployment["spec"]["template"];
                pod_is_confined(&pod["spec"], &mut found);
                only_discovery_has_a_token(&all, &pod["spec"], &mut found);
                names_lead_somewhere(&all, deployment, &mut found);
                options_are_known(&all, &pod["spec"], &variables, &mut found);
            }
            None => found.push("no deployment".to_owned()),
        }
        faults.extend(found.into_iter().map(|fault| format!("{from}: {fault}")));
    }
    let own = |from: &str, kind: &str| {
        let found = objects.iter().find(|o| o.from == from && o.object["kind"] == kind);
        found.map(|found| &found.object)
    };
    if let (Some(overlay), Some(chart)) = (own("plain", "Deployment"), own("helm-none", "Deployment")) {
        faults.extend(differences(overlay, chart));
    }
    let rules = ["plain", "helm-token"].map(|from| own(from, "PrometheusRule").map(|rule| &rule["spec"]));
    if rules[0].is_none() || rules[0] != rules[1] {
        faults.push("the rules of the overlay plain are not those of the chart".to_owned());
    }
    let dashboard =
        fs::read_to_string(root.join("deploy/grafana/radixscope.json")).context("the dashboard")?;
    let dashboard: Value = serde_json::from_str(&dashboard).context("the dashboard")?;
    let is_dashboard = |map: &Value| {
        let text = map["data"]["radixscope.json"].as_str().unwrap_or_default();
        serde_json::from_str(text).is_ok_and(|shown: Value| shown == dashboard)
    };
    let maps = objects.iter().filter(|o| o.from == "helm-token" && o.object["kind"] == "ConfigMap");
    if !maps.map(|o| &o.object).any(is_dashboard) {
        faults.push("helm-token: no ConfigMap holds the dashboard of deploy/grafana".to_owned());
    }
    Ok(faults)
}

/// Nothing that a pod of ours may do goes beyond reading the network.
fn pod_is_confined(pod: &Value, faults: &mut Vec<String>) {
    let mut expect = |what: &str, got: &Value, wanted: Value| {
        if *got != wanted {
            faults.push(format!("{what} is {got}, not {wanted}"));
        }
    };
    expect("enableServiceLinks", &pod["enableServiceLinks"], json!(false));
    expect("runAsNonRoot", &pod["securityContext"]["runAsNonRoot"], json!(true));
    expect("seccompProfile", &pod["securityContext"]["seccompProfile"]["type"], json!("RuntimeDefault"));
    for container in list(&pod["containers"]) {
        let name = container["name"].as_str().unwrap_or_default();
        let security = &container["securityContext"];
        let mut expect = |what: &str, got: &Value, wanted| expect(&format!("{name}: {what}"), got, wanted);
        expect("allowPrivilegeEscalation", &security["allowPrivilegeEscalation"], json!(false));
        expect("readOnlyRootFilesystem", &security["readOnlyRootFilesystem"], json!(true));
        expect("capabilities.drop", &security["capabilities"]["drop"], json!(["ALL"]));
        for (kind, unit) in [("requests", "cpu"), ("requests", "memory"), ("limits", "memory")] {
            expect(
                &format!("resources.{kind}.{unit} is given"),
                &json!(container["resources"][kind][unit].is_string()),
                json!(true),
            );
        }
        for probe in ["livenessProbe", "readinessProbe"] {
            expect(&format!("{probe} is given"), &json!(container[probe].is_object()), json!(true));
        }
    }
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        expect(host, &pod[host], Value::Null);
    }
}

/// The pod has a token of the API exactly where it reads discovery there, and that token may read discovery and nothing else.
fn only_discovery_has_a_token(all: &[&Value], pod: &Value, faults: &mut Vec<String>) {
    let of_kind =
        |kind: &str| all.iter().filter(|object| object["kind"] == kind).copied().collect::<Vec<_>>();
    let is_read = of_kind("ConfigMap").iter().any(|map| {
        let discovery = map["data"]["RADIXSCOPE_DISCOVERY"].as_str();
        discovery.is_some_and(|at| at.split([':', '@']).next() == Some("kubernetes"))
    });
    let mut expect = |what: &str, got: &Value, wanted: Value| {
        if *got != wanted {
            faults.push(format!("{what} is {got}, not {wanted}"));
        }
    };
    expect("automountServiceAccountToken", &pod["automountServiceAccountToken"], json!(is_read));
    let (accounts, roles, bindings) = (of_kind("ServiceAccount"), of_kind("Role"), of_kind("RoleBinding"));
    let counts = json!([accounts.len(), roles.len(), bindings.len()]);
    let one = usize::from(is_read);
    expect("the number of service accounts, roles and bindings", &counts, json!([one, one, one]));
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        expect(kind, &json!(of_kind(kind).len()), json!(0));
    }
    let ([account], [role], [binding]) = (&*accounts, &*roles, &*bindings) else {
        return expect("serviceAccountName", &pod["serviceAccountName"], Value::Null);
    };
    let account = &account["metadata"]["name"];
    expect("serviceAccountName", &pod["serviceAccountName"], account.clone());
    expect("the binding's subject", &binding["subjects"][0]["name"], account.clone());
    expect(
        "the binding's subject has a namespace",
        &json!(binding["subjects"][0]["namespace"].is_string()),
        json!(true),
    );
    expect("the number of the binding's subjects", &json!(list(&binding["subjects"]).count()), json!(1));
    let name = &role["metadata"]["name"];
    expect(
        "the binding's role",
        &binding["roleRef"],
        json!({"apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role", "name": name}),
    );
    let read = ["get", "list", "watch"];
    expect(
        "the role",
        &role["rules"],
        json!([
            {"apiGroups": ["nvidia.com"], "resources": ["dynamoworkermetadatas"], "verbs": read},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
        ]),
    );
}

/// Selectors select the pods or the service, named ports are ports of the pods, and what a pod is given exists.
fn names_lead_somewhere(all: &[&Value], deployment: &Value, faults: &mut Vec<String>) {
    let template = &deployment["spec"]["template"];
    let ports: BTreeSet<&str> = list(&template["spec"]["containers"])
        .flat_map(|container| list(&container["ports"]))
        .filter_map(|port| port["name"].as_str())
        .collect();
    let service = all.iter().find(|object| object["kind"] == "Service").map(|service| &service["metadata"]);
    for object in all {
        let spec = &object["spec"];
        let (selected, selector) = match object["kind"].as_str().unwrap_or_default() {
            "Service" => (Some(&template["metadata"]), &spec["selector"]),
            "Deployment" | "PodDisruptionBudget" => {
                (Some(&template["metadata"]), &spec["selector"]["matchLabels"])
            }
            "NetworkPolicy" => (Some(&template["metadata"]), &spec["podSelector"]["matchLabels"]),
            "ServiceMonitor" => (service, &spec["selector"]["matchLabels"]),
            _ => continue,
        };
        let pairs = selector.as_object().filter(|pairs| !pairs.is_empty());
        let is_of = |metadata: &Value| {
            pairs.is_some_and(|pairs| pairs.iter().all(|(name, value)| metadata["labels"][name] == *value))
        };
        if !selected.is_some_and(is_of) {
            faults.push(format!("{} selects nothing of ours: {selector}", object["kind"]));
        }
    }
    for object in all {
        let spec = &object["spec"];
        let ingress = list(&spec["ingress"]).flat_map(|rule| list(&rule["ports"])).map(|port| &port["port"]);
        let service = list(&spec["ports"]).map(|port| &port["targetPort"]);
        let scraped = list(&spec["endpoints"]).map(|endpoint| &endpoint["targetPort"]);
        let probes = list(&template["spec"]["containers"]).flat_map(|container| {
            ["startupProbe", "livenessProbe", "readinessProbe"]
                .map(|probe| &container[probe]["httpGet"]["port"])
        });
        for port in ingress.chain(service).chain(scraped).chain(probes).filter_map(Value::as_str) {
            if !ports.contains(port) {
                faults.push(format!("{} names the port {port}, which no container has", object["kind"]));
            }
        }
    }
    let maps: Vec<&Value> =
        all.iter().filter(|o| o["kind"] == "ConfigMap").map(|o| &o["metadata"]["name"]).collect();
    for container in list(&template["spec"]["containers"]) {
        for map in list(&container["envFrom"]).map(|from| &from["configMapRef"]["name"]) {
            if !maps.contains(&map) {
                faults.push(format!("there is no ConfigMap {map}"));
            }
        }
    }
}

/// Every variable that Radixscope is given is one that it reads.
fn options_are_known(all: &[&Value], pod: &Value, variables: &BTreeSet<String>, faults: &mut Vec<String>) {
    let ours = || list(&pod["containers"]).filter(|container| container["name"] == "radixscope");
    let direct = ours().flat_map(|container| list(&container["env"])).filter_map(|env| env["name"].as_str());
    let given: Vec<&Value> = ours()
        .flat_map(|container| list(&container["envFrom"]))
        .map(|from| &from["configMapRef"]["name"])
        .collect();
    let maps = all
        .iter()
        .filter(|object| object["kind"] == "ConfigMap" && given.contains(&&object["metadata"]["name"]));
    let mapped =
        maps.filter_map(|map| map["data"].as_object()).flat_map(|data| data.keys().map(String::as_str));
    for variable in direct.chain(mapped).filter(|name| !variables.contains(*name)) {
        faults.push(format!("Radixscope has no option {variable}"));
    }
}

/// Where the container of the overlay and the chart's differ in what must be the same.
fn differences(overlay: &Value, chart: &Value) -> Vec<String> {
    let container = |of: &Value| {
        let containers = &of["spec"]["template"]["spec"]["containers"];
        list(containers).find(|container| container["name"] == "radixscope").cloned().unwrap_or_default()
    };
    let (ours, theirs) = (container(overlay), container(chart));
    let same =
        ["args", "ports", "startupProbe", "livenessProbe", "readinessProbe", "resources", "securityContext"];
    let pod = ["securityContext", "terminationGracePeriodSeconds"];
    let (ours_pod, theirs_pod) = (&overlay["spec"]["template"]["spec"], &chart["spec"]["template"]["spec"]);
    let containers = same.iter().filter(|field| ours[**field] != theirs[**field]);
    let pods = pod.iter().filter(|field| ours_pod[**field] != theirs_pod[**field]);
    containers
        .chain(pods)
        .map(|field| format!("{field} differs between the overlay plain and the chart"))
        .collect()
}

/// The variables that the program reads, by its source.
fn variables(folder: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(variables(&path)?);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let text = fs::read_to_string(&path)?;
            let named = text.split("env = \"").skip(1).filter_map(|rest| rest.split_once('"'));
            found.extend(named.map(|(name, _)| name.to_owned()));
        }
    }
    Ok(found)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Value {
        let confined = json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]}});
        let probe = json!({"httpGet": {"path": "/healthz", "port": "http"}});
        json!({"kind": "Deployment", "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {
                "automountServiceAccountToken": false, "enableServiceLinks": false,
                "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{"name": "radixscope", "ports": [{"name": "http"}], "securityContext": confined,
                    "livenessProbe": probe, "readinessProbe": probe,
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}}]}}}})
    }

    fn faults(object: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        pod_is_confined(&object["spec"]["template"]["spec"], &mut faults);
        only_discovery_has_a_token(&[object], &object["spec"]["template"]["spec"], &mut faults);
        names_lead_somewhere(&[object], object, &mut faults);
        faults
    }

    #[test]
    fn a_service_monitor_selects_the_service_and_a_port_of_the_pods() {
        let service = json!({"kind": "Service", "metadata": {"labels": {"app": "a"}},
            "spec": {"selector": {"app": "a"}}});
        let monitor = |app: &str, port: &str| {
            json!({"kind": "ServiceMonitor", "spec": {"selector": {"matchLabels": {"app": app}},
                "endpoints": [{"targetPort": port}]}})
        };
        let faults = |objects: &[&Value]| {
            let mut faults = Vec::new();
            names_lead_somewhere(objects, &deployment(), &mut faults);
            faults
        };
        assert_eq!(faults(&[&service, &monitor("a", "http")]), Vec::<String>::new());
        for objects in [
            vec![&service, &monitor("b", "http")],
            vec![&service, &monitor("a", "metrics")],
            vec![&monitor("a", "http")],
        ] {
            assert_eq!(faults(&objects).len(), 1, "{objects:?}");
        }
    }

    #[test]
    fn a_token_is_mounted_only_to_read_discovery() {
        let named = |kind: &str| json!({"kind": kind, "metadata": {"name": "r"}});
        let rule = |group: &str, resource: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": ["get", "list", "watch"]});
        let mut role = named("Role");
        role["rules"] =
            json!([rule("nvidia.com", "dynamoworkermetadatas"), rule("discovery.k8s.io", "endpointslices")]);
        let mut binding = named("RoleBinding");
        binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"});
        binding["subjects"] = json!([{"kind": "ServiceAccount", "name": "r", "namespace": "n"}]);
        let map = json!({"kind": "ConfigMap", "data": {"RADIXSCOPE_DISCOVERY": "kubernetes:ns"}});
        let pod = json!({"automountServiceAccountToken": true, "serviceAccountName": "r"});
        let all = vec![map, named("ServiceAccount"), role, binding];
        let faults = |all: &[Value], pod: &Value| {
            let mut faults = Vec::new();
            only_discovery_has_a_token(&all.iter().collect::<Vec<_>>(), pod, &mut faults);
            faults
        };
        assert_eq!(faults(&all, &pod), Vec::<String>::new());
        for (object, pointer, value) in [
            (0, "/data/RADIXSCOPE_DISCOVERY", json!("etcd://e:2379")),
            (1, "/metadata/name", json!("other")),
            (2, "/rules/0/verbs/2", json!("delete")),
            (2, "/rules/1/resources/0", json!("secrets")),
            (2, "/kind", json!("ClusterRole")),
            (3, "/subjects/0/name", json!("default")),
            (3, "/subjects/0/namespace", Value::Null),
            (3, "/roleRef/name", json!("admin")),
        ] {
            let mut all = all.clone();
            *all[object].pointer_mut(pointer).expect("a place in the example") = value;
            assert!(!faults(&all, &pod).is_empty(), "{object}{pointer}");
        }
        for pod in [json!({"automountServiceAccountToken": false, "serviceAccountName": "r"}), json!({})] {
            assert!(!faults(&all, &pod).is_empty(), "{pod}");
        }
    }

    #[test]
    fn each_rule_can_be_broken() {
        assert_eq!(faults(&deployment()), Vec::<String>::new());
        let pod = "/spec/template/spec";
        for (pointer, value) in [
            (format!("{pod}/securityContext/runAsNonRoot"), json!(false)),
            (format!("{pod}/automountServiceAccountToken"), Value::Null),
            (format!("{pod}/containers/0/securityContext/capabilities/drop"), json!([])),
            (format!("{pod}/containers/0/resources/limits/memory"), Value::Null),
            (format!("{pod}/containers/0/readinessProbe"), Value::Null),
            (format!("{pod}/containers/0/livenessProbe/httpGet/port"), json!("other")),
            ("/spec/selector/matchLabels/app".to_owned(), json!("b")),
        ] {
            let mut object = deployment();
            *object.pointer_mut(&pointer).expect("a place in the example") = value;
            assert_eq!(faults(&object).len(), 1, "{pointer}: {:?}", faults(&object));
        }
    }
}
