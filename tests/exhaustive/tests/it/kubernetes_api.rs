//! Against a real API server of Kubernetes: `cargo xtask test kubernetes`. There is no kubelet, so logs and connections to pods are
//! tested with the stand-in only (`in_kubernetes`).

use std::process::Output;

use serde_json::{Value, json};

use radixscope_exhaustive::api_server::{ApiServer, NAMESPACE};
use radixscope_tests::discovery::{Registered, until_status, until_workers, workers};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

const WORKERS: &str = "/apis/nvidia.com/v1alpha1/namespaces/dynamo/dynamoworkermetadatas";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/dynamo/endpointslices";
const PODS: &str = "/api/v1/namespaces/dynamo/pods";
const SERVICES: &str = "/api/v1/namespaces/dynamo/services";
const POOLS: &str = "/apis/inference.networking.k8s.io/v1/namespaces/dynamo/inferencepools";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/dynamo/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/dynamo/rolebindings";
const WORKER: Registered = Registered {
    worker_id: 4_889_019_170_238_247,
    publisher_id: 3_916_204_183_855_218,
    zmq_port: 34_549,
    tcp_port: 41_413,
};

fn pod(worker: Registered) -> String {
    format!("agg-worker-{}", worker.worker_id)
}

/// Registers a worker whose pod is ready.
async fn register(api: &ApiServer, worker: Registered) {
    let mut data = json!({"endpoints": {}, "model_cards": {}, "event_channels": {}, "event_sources": {}});
    for (key, value) in worker.entries() {
        let (kind, path) =
            key.strip_prefix("v1/").and_then(|rest| rest.split_once('/')).expect("a key of Dynamo's");
        let map = match kind {
            "instances" => "endpoints",
            "mdc" => "model_cards",
            other => other,
        };
        data[map][path] = value;
    }
    let name = pod(worker);
    let resource = json!({"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoWorkerMetadata",
        "metadata": {"name": name}, "spec": {"data": data}});
    api.post(WORKERS, resource).await;
    let endpoint = json!({"addresses": ["10.0.0.7"], "conditions": {"ready": true},
        "targetRef": {"kind": "Pod", "name": name, "namespace": NAMESPACE}});
    let labels = json!({"nvidia.com/dynamo-discovery-enabled": "true"});
    api.post(SLICES, json!({"metadata": {"name": name, "labels": labels}, "addressType": "IPv4", "endpoints": [endpoint], "ports": []}))
        .await;
}

/// The role of the repository, for ada.
async fn grant(api: &ApiServer) -> Value {
    let role = json!({"metadata": {"name": "radixscope"}, "rules": rules()});
    api.post(ROLES, role.clone()).await;
    let binding = json!({"metadata": {"name": "radixscope"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "radixscope"},
        "subjects": [{"kind": "User", "name": "ada", "apiGroup": "rbac.authorization.k8s.io"}]});
    api.post(BINDINGS, binding).await;
    role
}

/// The rules of `deploy/kubernetes/roles/laptop.yaml`.
fn rules() -> Vec<Value> {
    let text = include_str!("../../../../deploy/kubernetes/roles/laptop.yaml");
    let list = |line: &str| -> Vec<String> {
        let inside = line.split_once('[').and_then(|(_, rest)| rest.split_once(']')).expect("a list").0;
        inside.split(", ").map(|item| item.trim_matches('"').to_owned()).collect()
    };
    let mut rules = Vec::new();
    let mut lines = text.lines().skip_while(|line| *line != "rules:");
    while let Some(line) = lines.next().filter(|line| *line != "---") {
        if line.trim_start().starts_with("- apiGroups:") {
            let (resources, verbs) = (lines.next().expect("resources"), lines.next().expect("verbs"));
            rules.push(json!({"apiGroups": list(line), "resources": list(resources), "verbs": list(verbs)}));
        }
    }
    rules
}

fn sources(api: &ApiServer) -> Value {
    let mut run = Radixscope::command();
    for variable in ["ETCD_ENDPOINTS", "DYN_FILE_KV", "NATS_SERVER", "KUBERNETES_SERVICE_HOST"] {
        run.env_remove(variable);
    }
    let run = run.args(["sources", "--kubernetes", "--json"]).env("KUBECONFIG", api.kubeconfig());
    let Output { stdout, stderr, .. } = run.output().expect("it runs");
    serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&stderr)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_right_that_is_taken_away_is_named_and_no_other() {
    let api = ApiServer::start().await;
    register(&api, WORKER).await;
    let role = grant(&api).await;
    let rules = role["rules"].as_array().expect("rules");
    assert_eq!(rules.len(), 8);
    let refused = |report: &Value| -> Vec<String> {
        let rights = report["kubernetes"]["rights"].as_array().expect("rights").iter();
        let refused = rights.flat_map(|right| {
            let verbs = right["refused"].as_array().expect("it is known");
            verbs.iter().map(|verb| {
                format!("{} {}", verb.as_str().expect("a verb"), right["resource"].as_str().expect("a name"))
            })
        });
        refused.collect()
    };
    let report = sources(&api);
    assert_eq!(refused(&report), [""; 0]);
    assert_eq!(report["kubernetes"]["user"], "ada");
    assert_eq!(report["pools"][0]["workers"], 1, "{report}");
    for (at, rule) in rules.iter().enumerate() {
        let verbs: Vec<&Value> = rule["verbs"].as_array().expect("verbs").iter().collect();
        for verb in &verbs {
            let mut less = role.clone();
            let others: Vec<&Value> = verbs.iter().copied().filter(|other| other != verb).collect();
            less["rules"][at]["verbs"] = json!(others);
            if others.is_empty() {
                less["rules"].as_array_mut().expect("rules").remove(at);
            }
            api.put(&format!("{ROLES}/radixscope"), less).await;
            let (group, resource) =
                (rule["apiGroups"][0].as_str(), rule["resources"][0].as_str().expect("a name"));
            let group =
                group.filter(|group| !group.is_empty()).map_or(String::new(), |group| format!(".{group}"));
            let expected = format!("{} {resource}{group}", verb.as_str().expect("a verb"));
            // Roles are known to the server a moment later.
            let report = wait::until(&format!("{expected} is refused"), async || {
                let report = sources(&api);
                let now = refused(&report);
                wait::expect(now == [expected.clone()], || format!("{now:?}")).map(|()| report)
            })
            .await;
            let rights = report["kubernetes"]["rights"].as_array().expect("rights");
            let right = rights.iter().find(|right| right["grant"].is_string()).expect("one is to be granted");
            let command = right["grant"].as_str().expect("a command");
            assert!(command.contains(&format!("--resource={resource}{group}")), "{command}");
            assert!(command.ends_with("--user=ada"), "{command}");
            // What may not be listed is refused in the table too.
            let rows = report["kubernetes"]["rows"].as_array().expect("rows");
            let is_refused = rows.iter().any(|row| row["outcome"] == "refused");
            let is_listed = *verb == "list" && resource != "services";
            assert_eq!(is_refused, is_listed, "{expected}: {rows:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_comes_back_lets_nobody_go() {
    let mut api = ApiServer::start().await;
    register(&api, WORKER).await;
    grant(&api).await;
    let config = api.kubeconfig();
    let server =
        Radixscope::start_with_variables(&["serve", "--kubernetes"], &[("KUBECONFIG", config.as_os_str())])
            .await;
    until_workers(&server, &[(WORKER, None)]).await;
    for n in 0..2 {
        api.stop();
        until_status(&server, "connecting", "Nothing listens at https://localhost").await;
        api.start_again().await;
        // What it kept of changes is gone: watches end with 410, and everything is listed anew.
        let next = Registered { worker_id: 100 + n, publisher_id: 200 + n, ..WORKER };
        register(&api, next).await;
        server
            .until_cluster("the next worker is there and none left", |cluster| {
                let now = workers(cluster);
                let is_so = now.len() as u64 == n + 2 && now.iter().all(|(_, gone, _)| gone.is_none());
                wait::expect(is_so, || format!("{now:?}"))
            })
            .await;
    }
    api.delete(&format!("{WORKERS}/{}", pod(WORKER))).await;
    server
        .until_cluster("one left", |cluster| {
            let now = workers(cluster);
            let left = now.iter().filter(|(_, gone, _)| gone.as_deref() == Some("discovery")).count();
            wait::expect(left == 1, || format!("{now:?}"))
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_of_a_service_account_is_renewed() {
    let api = ApiServer::start().await;
    register(&api, WORKER).await;
    grant(&api).await;
    let accounts = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts");
    let token_file = api.file("token");
    // A token ends with its account: the next one is of another account of that name.
    let renew = async || {
        api.post(&accounts, json!({"metadata": {"name": "radixscope"}})).await;
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let token = api.post(&format!("{accounts}/radixscope/token"), request).await;
        std::fs::write(&token_file, token["status"]["token"].as_str().expect("a token"))
            .expect("a writable folder");
    };
    renew().await;
    let binding = json!({"metadata": {"name": "of-account"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "radixscope"},
        "subjects": [{"kind": "ServiceAccount", "name": "radixscope", "namespace": NAMESPACE}]});
    api.post(BINDINGS, binding).await;
    let at = format!("kubernetes:{NAMESPACE}@{}", api.url());
    let (token, ca) = (token_file.to_str().expect("a path").to_owned(), api.ca());
    let ca = ca.to_str().expect("a path").to_owned();
    let args = [
        "serve",
        "--discovery",
        &at,
        "--discovery-token-file",
        &token,
        "--discovery-tls-ca",
        &ca,
        "--tree-dumps",
        "off",
    ];
    let server = Radixscope::start(args).await;
    until_workers(&server, &[(WORKER, None)]).await;
    api.delete(&format!("{accounts}/radixscope")).await;
    // Within half a minute a watch ends, and the next one shows the token.
    until_status(&server, "refused", "does not accept the token (401)").await;
    renew().await;
    until_status(&server, "live", ": 5 Dynamo entries").await;
    until_workers(&server, &[(WORKER, None)]).await;
}

/// A pod of this app that runs; what a kubelet would report of it is written by the test.
async fn add_pod(api: &ApiServer, name: &str, labels: Value, command: Value) {
    let container = json!({"name": "main", "image": "none", "command": command});
    api.post(
        PODS,
        json!({"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}),
    )
    .await;
}

/// Waits for the source of this name to say this.
async fn until(server: &Radixscope, name: &str, expected: &str) {
    server
        .until_cluster(&format!("{name} says {expected}"), |cluster| {
            let sources = cluster["sources"].as_array().expect("a list");
            let source = sources.iter().find(|source| source["name"] == name).expect("the source");
            let detail = source["detail"].as_str().unwrap_or_default();
            wait::expect(detail.contains(expected), || detail.to_owned())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_after_the_start_is_attached_and_what_goes_is_let_go() {
    let mut api = ApiServer::start().await;
    grant(&api).await;
    let config = api.kubeconfig();
    let server =
        Radixscope::start_with_variables(&["serve", "--kubernetes"], &[("KUBECONFIG", config.as_os_str())])
            .await;
    until(&server, "nats/kubernetes", "There is no NATS in namespace dynamo").await;
    until(&server, "engines/kubernetes", "No pod of an engine").await;
    // NATS: its pod first, which leads nowhere without its service.
    let labels = json!({"app.kubernetes.io/name": "nats"});
    add_pod(&api, "nats-0", labels.clone(), json!([])).await;
    let service =
        json!({"metadata": {"name": "nats"}, "spec": {"selector": labels, "ports": [{"port": 4222}]}});
    api.post(SERVICES, service.clone()).await;
    // There is no kubelet, so there is no way to it; it is known where it is.
    until(&server, "nats/kubernetes", "NATS at nats://nats.dynamo.svc:4222").await;
    // An engine that only a pool tells from other pods.
    add_pod(&api, "llama-0", json!({"app": "llama"}), json!(["/start.sh"])).await;
    let pool = json!({"apiVersion": "inference.networking.k8s.io/v1", "kind": "InferencePool",
        "metadata": {"name": "llama"}, "spec": {"selector": {"matchLabels": {"app": "llama"}}}});
    api.post(POOLS, pool.clone()).await;
    api.patch_status(
        &format!("{PODS}/llama-0"),
        json!({"phase": "Running", "podIP": "10.0.0.31", "podIPs": [{"ip": "10.0.0.31"}]}),
    )
    .await;
    until(&server, "engines/kubernetes", "llama-0").await;
    // The server is away meanwhile: nothing is let go, and what changed is known after it.
    api.stop();
    api.start_again().await;
    api.delete(&format!("{POOLS}/llama")).await;
    until(&server, "engines/kubernetes", "No pod of an engine").await;
    api.post(POOLS, pool).await;
    until(&server, "engines/kubernetes", "llama-0").await;
    api.delete(&format!("{SERVICES}/nats")).await;
    until(&server, "nats/kubernetes", "There is no NATS in namespace dynamo").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_are_listed_at_the_start_and_watched_from_then_on() {
    // More than one page of a list.
    const ENGINES: usize = 600;
    let api = ApiServer::start().await;
    grant(&api).await;
    let add = async |n: usize| {
        let labels = json!({"llm-d.ai/inference-serving": "true"});
        add_pod(&api, &format!("llama-{n}"), labels, json!(["/start.sh"])).await;
        has_address(&api, n, "10.1").await;
    };
    for n in 0..ENGINES {
        add(n).await;
    }
    let config = api.kubeconfig();
    let server =
        Radixscope::start_with_variables(&["serve", "--kubernetes"], &[("KUBECONFIG", config.as_os_str())])
            .await;
    until(&server, "engines/kubernetes", &format!("of {ENGINES} publishers in pods")).await;
    let at_start = api.requests("LIST", "pods").await;
    assert!(at_start > 0, "the server counts lists");
    // Fifty pods get another address as their nodes are replaced, fifty end.
    for n in 0..50 {
        has_address(&api, n, "10.2").await;
        api.delete(&format!("{PODS}/llama-{}?gracePeriodSeconds=0", 100 + n)).await;
    }
    until(&server, "engines/kubernetes", &format!("of {} publishers in pods", ENGINES - 50)).await;
    add(ENGINES).await;
    until(&server, "engines/kubernetes", &format!("of {} publishers in pods", ENGINES - 49)).await;
    assert_eq!(api.requests("LIST", "pods").await, at_start);
}

/// A pod runs at this address, as a kubelet would report it.
async fn has_address(api: &ApiServer, n: usize, network: &str) {
    let ip = format!("{network}.{}.{}", n / 250, 1 + n % 250);
    let status = json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]});
    api.patch_status(&format!("{PODS}/llama-{n}"), status).await;
}
