//! Discovery in Kubernetes: who is there, who leaves, what breaks without anybody leaving, and what is said when it may not be
//! read.

use std::time::Duration;

use serde_json::json;

use radixscope_exhaustive::kubernetes::{Kubernetes, NAMESPACE};
use radixscope_tests::discovery::{Registered, until_status, until_workers, workers};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

const FIRST: Registered = Registered {
    worker_id: 4_889_019_170_238_247,
    publisher_id: 3_916_204_183_855_218,
    zmq_port: 34_549,
    tcp_port: 41_413,
};
const SECOND: Registered =
    Registered { worker_id: FIRST.worker_id + 15, publisher_id: 6_332_565_725_965_451, ..FIRST };

fn pod(worker: Registered) -> String {
    format!("agg-worker-{}", worker.worker_id)
}

fn register(api: &Kubernetes, worker: Registered) {
    for (key, value) in worker.entries() {
        api.put(&pod(worker), &key, &value);
    }
}

fn start_pod(api: &Kubernetes, worker: Registered) {
    register(api, worker);
    api.set_ready(&pod(worker), true);
}

async fn serve(api: &Kubernetes) -> Radixscope {
    Radixscope::start(["serve", "--discovery", &api.url(), "--tree-dumps", "off"]).await
}

const GONE: Option<&str> = Some("discovery");

#[tokio::test]
async fn workers_come_and_go_with_their_pods_and_resources() {
    let api = Kubernetes::start().await;
    let server = serve(&api).await;
    until_status(&server, "live", "no Dynamo entries yet").await;
    // It registers before its pod is ready.
    register(&api, FIRST);
    until_status(&server, "live", "its pod is not ready").await;
    assert_eq!(server.cluster().await["workers"], json!([]));
    api.set_ready(&pod(FIRST), true);
    until_workers(&server, &[(FIRST, None)]).await;
    start_pod(&api, SECOND);
    until_workers(&server, &[(FIRST, None), (SECOND, None)]).await;
    until_status(&server, "live", "Kubernetes namespace dynamo-system: 10 Dynamo entries.").await;
    api.set_ready(&pod(FIRST), false);
    until_workers(&server, &[(FIRST, GONE), (SECOND, None)]).await;
    api.set_ready(&pod(FIRST), true);
    api.delete(&pod(SECOND));
    until_workers(&server, &[(FIRST, None), (SECOND, GONE)]).await;
    // One that ends takes its endpoint back before its pod is not ready.
    api.remove(&pod(FIRST), &FIRST.endpoint_key());
    until_workers(&server, &[(FIRST, GONE), (SECOND, GONE)]).await;
    assert!(api.requests().iter().all(|request| request.starts_with("GET ")), "{:?}", api.requests());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_watches_and_expired_versions_let_nobody_go() {
    let api = Kubernetes::start().await;
    start_pod(&api, FIRST);
    let server = serve(&api).await;
    until_workers(&server, &[(FIRST, None)]).await;
    let stays = async {
        loop {
            let now = workers(&server.cluster().await);
            assert!(now.iter().all(|(_, gone, _)| gone.is_none()), "{now:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let happens = async {
        for n in 0..3 {
            // What changes between watches is found in the next list.
            api.expire();
            api.cut();
            start_pod(&api, Registered { worker_id: 100 + n, publisher_id: 200 + n, ..FIRST });
            server
                .until_cluster("the next worker is there", |cluster| {
                    let count = workers(cluster).len() as u64;
                    wait::expect(count == n + 2, || format!("{count} workers"))
                })
                .await;
        }
        // Without a break: the API says that the version is too old.
        api.expire();
        start_pod(&api, SECOND);
        server
            .until_cluster("the last worker is there", |cluster| {
                wait::expect(workers(cluster).len() == 5, || cluster.to_string())
            })
            .await;
    };
    tokio::select! {
        () = stays => {}
        () = happens => {}
    }
    until_status(&server, "live", ": 25 Dynamo entries").await;
}

#[tokio::test]
async fn what_may_not_be_read_is_reported() {
    let api = Kubernetes::start().await;
    start_pod(&api, FIRST);
    let forbidden = |resource: &str| {
        let message =
            format!("{resource} is forbidden: User \"system:serviceaccount:dynamo-system:default\" cannot");
        json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": message}).to_string()
    };
    api.refuse("dynamoworkermetadatas?&limit", 403, &forbidden("dynamoworkermetadatas.nvidia.com"));
    let server = serve(&api).await;
    let text = "may not list dynamoworkermetadatas of nvidia.com in the namespace dynamo-system (403)";
    let cluster = until_status(&server, "refused", text).await;
    let detail = cluster["sources"][0]["detail"].as_str().expect("words");
    assert!(detail.contains("component kubernetes-discovery") && detail.contains("cannot"), "{detail}");
    // The next attempt may do: no restart is needed.
    api.allow();
    until_workers(&server, &[(FIRST, None)]).await;
    api.refuse("endpointslices?&watch", 403, &forbidden("endpointslices.discovery.k8s.io"));
    until_status(&server, "refused", "may not watch endpointslices of discovery.k8s.io").await;
    until_workers(&server, &[(FIRST, None)]).await;
    api.refuse("dynamoworkermetadatas", 404, "404 page not found\n");
    until_status(&server, "refused", "no resource dynamoworkermetadatas of nvidia.com/v1alpha1 (404)").await;
    until_status(&server, "refused", "DYN_DISCOVERY_BACKEND").await;
    api.refuse("/apis/", 503, "not now");
    until_status(&server, "connecting", "answers 503").await;
    api.refuse("/apis/", 200, "<html>a portal</html>");
    until_status(&server, "refused", "is not of Kubernetes' API").await;
    api.allow();
    until_status(&server, "live", ": 5 Dynamo entries").await;
    until_workers(&server, &[(FIRST, None)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_read_again_and_never_shown() {
    let api = Kubernetes::start_with_token("HUNTER2-first").await;
    start_pod(&api, FIRST);
    let token = api.file("token");
    std::fs::write(&token, "HUNTER2-first\n").expect("a writable folder");
    let (token_file, ca) = (token.to_str().expect("a path"), api.file("ca.pem"));
    let args = |more: &[&'static str]| {
        let mut args = vec![
            "serve".to_owned(),
            "--discovery".to_owned(),
            api.tls_url(),
            "--log".to_owned(),
            "trace".to_owned(),
        ];
        args.extend(["--discovery-token-file".to_owned(), token_file.to_owned()]);
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        args
    };
    let stranger = Radixscope::start(args(&[])).await;
    until_status(&stranger, "refused", "--discovery-tls-ca").await;
    let mut trusting = args(&["--discovery-tls-ca"]);
    trusting.push(ca.to_str().expect("a path").to_owned());
    let server = Radixscope::start(trusting).await;
    until_workers(&server, &[(FIRST, None)]).await;
    // The token expires before the file is renewed.
    api.set_token("HUNTER2-second");
    api.cut();
    until_status(&server, "refused", "does not accept the token (401)").await;
    std::fs::write(&token, "HUNTER2-second").expect("a writable folder");
    start_pod(&api, SECOND);
    until_workers(&server, &[(FIRST, None), (SECOND, None)]).await;
    // It is gone when the next one is needed.
    std::fs::remove_file(&token).expect("the file");
    api.set_token("HUNTER2-third");
    api.cut();
    until_status(&server, "refused", "automountServiceAccountToken").await;
    for path in ["/api/v1/cluster", "/metrics", "/readyz"] {
        let response = server.get(path).await;
        assert!(!response.text().contains("HUNTER2"), "{path}: {}", response.text());
    }
    assert!(!server.process().output().contains("HUNTER2"), "{}", server.process().output());
}

#[tokio::test]
async fn more_pods_than_a_page_are_all_read() {
    let api = Kubernetes::start().await;
    let worker = |n: u64| Registered { worker_id: 1_000 + n, publisher_id: 5_000 + n, ..FIRST };
    for n in 0..250 {
        register(&api, worker(n));
    }
    api.set_all_ready();
    let server = serve(&api).await;
    let expected: Vec<_> = (0..250).map(|n| (worker(n), None)).collect();
    until_workers(&server, &expected).await;
    let pages = api.requests().iter().filter(|request| request.contains("metadatas?&limit")).count();
    assert_eq!(pages, 3);
}

#[tokio::test]
async fn hostile_resources_are_counted_and_reported() {
    let api = Kubernetes::start().await;
    start_pod(&api, FIRST);
    let server = serve(&api).await;
    until_workers(&server, &[(FIRST, None)]).await;
    let deep = format!("{}{}", "[".repeat(9_999), "]".repeat(9_999));
    // The API server takes objects of 1.5 MiB.
    let large = format!(r#"{{"data":{{"endpoints":{{"dynamo/b/c/1":"{}"}}}}}}"#, "x".repeat(1_400_000));
    for (name, spec) in [
        ("kinds", r#"{"data":{"endpoints":[7]}}"#),
        ("null", r#"{"data":null}"#),
        ("deep", &deep),
        ("large", &large),
    ] {
        api.put_spec(name, spec);
        api.set_ready(name, true);
    }
    // Its own resource becomes unreadable for a moment: it stays.
    api.put_spec(&pod(FIRST), "7");
    until_status(&server, "live", "Invalid objects: 4").await;
    until_status(&server, "live", "1 key skipped: v1/instances/dynamo/b/c/1 (1.4 MB").await;
    server
        .until_cluster("they are counted", |cluster| {
            let rejected = cluster["sources"][0]["rejected"].as_array().expect("a list");
            let count: u64 = rejected.iter().filter_map(|of| of["count"].as_u64()).sum();
            wait::expect(count >= 5, || cluster["sources"].to_string())
        })
        .await;
    start_pod(&api, SECOND);
    until_workers(&server, &[(FIRST, None), (SECOND, None)]).await;
    // Neither a change nor a list is JSON.
    api.put_spec("half", r#"{"data":"#);
    until_status(&server, "refused", "is not of Kubernetes' API").await;
    api.delete("half");
    until_status(&server, "live", ": 10 Dynamo entries").await;
}

fn run(command: &str, args: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut run = Radixscope::command();
    for variable in ["ETCD_ENDPOINTS", "DYN_FILE_KV", "NATS_SERVER", "KUBERNETES_SERVICE_HOST"] {
        run.env_remove(variable);
    }
    let output = run.arg(command).args(args).envs(variables.iter().copied()).output().expect("it runs");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_prints_the_command_and_says_what_is_missing() {
    let api = Kubernetes::start().await;
    let (_, text) = run("sources", &["--discovery", &api.url()], &[]);
    assert!(text.contains("no Dynamo entries yet"), "{text}");
    for worker in [FIRST, SECOND] {
        start_pod(&api, worker);
    }
    let (_, text) = run("sources", &["--discovery", &api.url()], &[]);
    for expected in [
        "dynamo/backend: 2 workers, model models/tiny-llama, blocks of 16 tokens, 1,600 blocks each",
        "discovery/kubernetes:dynamo-system: Kubernetes namespace dynamo-system: 10 Dynamo entries",
        "Event plane    ZeroMQ, a socket for each publisher",
        &format!("radixscope serve --discovery {}", api.url()),
    ] {
        assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
    }
    let (code, text) = run("check", &["--discovery", &api.url(), "--output", "json", "--for", "1s"], &[]);
    let is_connected = r#""Links to all configured sources",
      "status": "ok""#;
    assert!(code != Some(2) && text.contains(is_connected), "{code:?}: {text}");
    // No pod, and one without a service account.
    let (code, text) = run("sources", &["--discovery", "kubernetes"], &[]);
    assert!(code == Some(2) && text.contains("kubectl proxy"), "{code:?}: {text}");
    let (_, text) = run("sources", &[], &[("DYN_DISCOVERY_BACKEND", "kubernetes")]);
    assert!(text.contains("kubectl proxy"), "{text}");
    let at = format!("kubernetes:{NAMESPACE}");
    let (code, text) = run("sources", &["--discovery", &at], &[("KUBERNETES_SERVICE_HOST", "127.0.0.1")]);
    assert!(code == Some(2) && text.contains("automountServiceAccountToken"), "{code:?}: {text}");
}
