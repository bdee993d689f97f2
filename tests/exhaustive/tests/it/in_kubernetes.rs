//! `--kubernetes`: everything is found in a cluster, from outside of it, and pods are followed as they come, go and start again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use radixscope_captures::publisher::Publisher;
use radixscope_captures::{EngineRecording, Replayer};
use radixscope_exhaustive::kubernetes::{Kubernetes, NAMESPACE, USER};
use radixscope_tests::discovery::{Registered, event_channel, until_status, until_workers};
use radixscope_tests::etcd::Etcd;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

const WORKER: Registered = Registered {
    worker_id: 4_889_019_170_238_247,
    publisher_id: 3_916_204_183_855_218,
    zmq_port: 34_549,
    tcp_port: 41_413,
};
const FRONTEND: &str = "agg-frontend-0";
/// The source of the cluster's NATS.
const NATS: &str = "nats/kubernetes";
/// A line of a frontend that tells of routing.
const DECISION: &str = "2026-01-01T00:00:00.000000Z  INFO dynamo_llm::kv_router: KV Routing initialized";

fn register(api: &Kubernetes, worker: Registered) {
    let pod = format!("agg-worker-{}", worker.worker_id);
    for (key, value) in worker.entries() {
        api.put(&pod, &key, &value);
    }
    api.set_ready(&pod, true);
}

fn add_frontend(api: &Kubernetes, name: &str, ip: &str) {
    let ports = json!([{"name": "http", "containerPort": 8000}]);
    let nats = format!("nats://dynamo-platform-nats.{NAMESPACE}.svc.cluster.local:4222");
    api.add_pod(name, "frontend", ip, &ports, &json!([{"name": "NATS_SERVER", "value": nats}]));
}

fn here(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

async fn serve(api: &Kubernetes) -> Radixscope {
    let config = api.kubeconfig();
    Radixscope::start_with_variables(&["serve", "--kubernetes"], &[("KUBECONFIG", config.as_os_str())]).await
}

/// The source of this name in the state.
fn source<'v>(cluster: &'v Value, name: &str) -> &'v Value {
    let sources = cluster["sources"].as_array().expect("a list");
    sources
        .iter()
        .find(|source| source["name"].as_str().is_some_and(|of| of.starts_with(name)))
        .unwrap_or(&Value::Null)
}

async fn until(server: &Radixscope, name: &str, state: &str, detail: &str) {
    server
        .until_cluster(&format!("{name} is {state}: {detail}"), |cluster| {
            let source = source(cluster, name);
            let is_so = source["state"] == state
                && source["detail"].as_str().is_some_and(|text| text.contains(detail));
            wait::expect(is_so, || source.to_string())
        })
        .await;
}

/// A process with metrics; how often it was asked for them.
async fn metrics() -> (SocketAddr, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let text =
        "# TYPE dynamo_frontend_inflight_requests gauge\ndynamo_frontend_inflight_requests{model=\"m\"} 1\n";
    let router = Router::new().route(
        "/metrics",
        get(move || {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(text)
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    tokio::spawn(async move { axum::serve(listener, router).await });
    (at, asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_found_and_reached_from_outside() {
    let (api, nats) = (Kubernetes::start().await, Nats::start().await);
    let (frontend, asked) = metrics().await;
    api.add_graph("agg");
    api.add_store("nats", 4222, here(nats.port()));
    add_frontend(&api, FRONTEND, "10.0.0.11");
    api.route(FRONTEND, 8000, frontend);
    register(&api, WORKER);
    let server = serve(&api).await;
    until_workers(&server, &[(WORKER, None)]).await;
    until(&server, NATS, "live", "Connected").await;
    until(&server, "metrics/kubernetes", "live", "1 of 1 pods are scraped. agg-frontend-0: Scraping").await;
    until(&server, "log/kubernetes", "live", "1 of 1 logs").await;
    assert!(asked.load(Ordering::Relaxed) > 0);
    // Workers answer by a connection to whoever asks: nobody asks from outside, and it says so.
    assert_eq!(source(&server.cluster().await, "worker"), &Value::Null);
    assert!(server.process().output().contains("workers are not asked for their blocks"));
    // Another frontend, without a port that leads anywhere, and then neither.
    add_frontend(&api, "agg-frontend-1", "10.0.0.12");
    until(&server, "metrics/kubernetes", "partial", "1 of 2 pods are scraped. agg-frontend-1").await;
    api.remove_pod("agg-frontend-1");
    until(&server, "metrics/kubernetes", "live", "1 of 1 pods").await;
    // Questions about rights are kept by nobody.
    let is_write =
        |request: &String| !request.starts_with("GET ") && request != "POST selfsubjectaccessreviews";
    let writes: Vec<String> = api.requests().into_iter().filter(is_write).collect();
    assert!(writes.is_empty(), "{writes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_at_addresses_of_pods_are_connected_to_through_the_api_server() {
    let api = Kubernetes::start().await;
    let publisher = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let at = publisher.local_addr().expect("it is bound");
    let pod = "agg-worker-0";
    api.add_pod(pod, "worker", "10.0.0.21", &json!([]), &json!([]));
    api.route(pod, 5_557, at);
    // An address of no pod, and one of this machine, which a pod's tunnel must not lead to.
    for (n, endpoint) in
        ["tcp://10.0.0.21:5557", "tcp://10.0.0.99:5557", "tcp://127.0.0.1:5557"].iter().enumerate()
    {
        let (key, value) = event_channel("kv-events", 7_000 + n as u64, endpoint);
        api.put(pod, &key, &value);
    }
    api.set_ready(pod, true);
    let server = serve(&api).await;
    let (mut connected, _) =
        wait::within("the publisher is connected to", publisher.accept()).await.expect("a connection");
    let mut greeting = [0; 10];
    connected.read_exact(&mut greeting).await.expect("a greeting");
    assert_eq!((greeting[0], greeting[9]), (0xff, 0x7f), "ZMTP begins so");
    until(&server, "ZeroMQ publishers", "connecting", "no pod has the address 10.0.0.99").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_are_followed_through_restarts_and_broken_connections_and_no_line_is_read_twice() {
    let api = Kubernetes::start().await;
    add_frontend(&api, FRONTEND, "10.0.0.11");
    api.log(FRONTEND, DECISION);
    api.log(FRONTEND, "nothing of interest");
    let server = serve(&api).await;
    let read = |lines: usize, about: usize| format!("{lines} lines read, {about} of them about routing");
    until(&server, "log/kubernetes", "live", &read(2, 1)).await;
    api.log(FRONTEND, DECISION);
    until(&server, "log/kubernetes", "live", &read(3, 2)).await;
    // The connection breaks, and more is written meanwhile.
    api.cut();
    api.log(FRONTEND, DECISION);
    until(&server, "log/kubernetes", "live", &read(4, 3)).await;
    // The container writes its last line, and the next one its first, before either is read.
    api.forbid("get pods/log");
    api.cut();
    until(&server, "log/kubernetes", "refused", "may not get pods/log").await;
    api.log(FRONTEND, DECISION);
    api.restart(FRONTEND);
    api.log(FRONTEND, DECISION);
    api.permit("get pods/log");
    until(&server, "log/kubernetes", "live", &read(6, 5)).await;
}

fn run(api: &Kubernetes, args: &[&str]) -> (Option<i32>, String) {
    let mut run = Radixscope::command();
    for variable in ["ETCD_ENDPOINTS", "DYN_FILE_KV", "NATS_SERVER", "KUBERNETES_SERVICE_HOST"] {
        run.env_remove(variable);
    }
    let output = run.args(args).env("KUBECONFIG", api.kubeconfig()).output().expect("it runs");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.code(), text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_found_missing_and_refused_is_a_table() {
    let api = Kubernetes::start().await;
    api.add_graph("agg");
    add_frontend(&api, FRONTEND, "10.0.0.11");
    register(&api, WORKER);
    api.forbid("get pods/log");
    api.forbid("list services");
    let (_, text) = run(&api, &["sources", "--kubernetes"]);
    for expected in [
        &format!("namespace {NAMESPACE}, from outside, through port-forward"),
        "found    DynamoGraphDeployments   1: agg",
        "found    DynamoWorkerMetadata     1 process",
        "missing  InferencePools           not installed",
        "found    Frontends                1: agg-frontend-0",
        "found    NATS                     nats://dynamo-platform-nats.dynamo-system.svc.cluster.local:4222 (NATS_SERVER of agg-frontend-0)",
        &format!("Rights of {USER}"),
        "yes      list, watch pods",
        "no       get pods/log",
        &format!(
            "kubectl -n {NAMESPACE} create rolebinding radixscope-pods-log --role=radixscope-pods-log --user={USER}"
        ),
        "no list  list, watch services",
        &format!("radixscope serve --kubernetes --namespace {NAMESPACE}"),
    ] {
        assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
    }
    assert!(!text.contains("secret"), "{text}");
    let (code, text) = run(&api, &["sources", "--kubernetes", "--context", "other"]);
    assert!(code == Some(2) && text.contains("no context \"other\""), "{code:?}: {text}");
    let (code, text) = run(&api, &["check", "--kubernetes", "--for", "1s", "--output", "json"]);
    assert!(code != Some(2) && text.contains("Links to all configured sources"), "{code:?}: {text}");
}

/// SGLang's HTTP server, which says where it publishes.
async fn sglang() -> SocketAddr {
    let info = json!({"kv_events": {"publisher": "zmq", "endpoint_host": "*", "endpoint_port_base": 5560, "dp_size": 1}});
    let router = Router::new().route("/server_info", get(async move || axum::Json(info)));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    tokio::spawn(async move { axum::serve(listener, router).await });
    at
}

fn socket(endpoint: &str) -> SocketAddr {
    endpoint.strip_prefix("tcp://").and_then(|at| at.parse().ok()).expect("a socket")
}

/// Waits for engines by their names, and for cached blocks of the workers that are there, by pool.
async fn until_engines(server: &Radixscope, engines: &[&str], held: &[(&str, usize)]) {
    let what = format!("{engines:?} hold {held:?}");
    server
        .until_cluster(&what, |cluster| {
            let list = |name: &str| cluster[name].as_array().expect("a list").clone();
            let names: Vec<String> = list("engines").iter().map(|of| of["name"].to_string()).collect();
            let is_there = |of: &&Value| of["gone"].is_null();
            let mut blocks: Vec<(String, u64)> = list("workers")
                .iter()
                .filter(is_there)
                .filter_map(|of| Some((of["component"].as_str()?.to_owned(), of["blocks"].as_u64()?)))
                .collect();
            blocks.sort_unstable();
            let held = held.iter().map(|(pool, blocks)| ((*pool).to_owned(), *blocks as u64));
            let is_so = names == engines.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>()
                && blocks == held.collect::<Vec<_>>();
            wait::expect(is_so, || format!("{names:?}, {blocks:?}"))
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_without_dynamo_are_listened_to_as_long_as_their_pods_are_there() {
    let api = Kubernetes::start().await;
    let (vllm, sglang_) = (EngineRecording::of("vllm-0.32.0"), EngineRecording::of("sglang-0.5.23"));
    let ring = Replayer::bind(vllm.replay[0].len() == 4);
    vllm.live.iter().enumerate().for_each(|(at, frames)| ring.keep(at as u64, &frames[2]));
    let (of_vllm, of_sglang) = (Publisher::bind(1), Publisher::bind(1));
    let config =
        r#"{"enable_kv_cache_events":true,"endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5558"}"#;
    api.add_engine("vllm-0", "10.0.0.31", &json!(["vllm", "serve", "chat", "--kv-events-config", config]));
    api.route("vllm-0", 5_557, socket(&of_vllm.endpoint()));
    api.route("vllm-0", 5_558, socket(&ring.endpoint()));
    api.add_engine("web-0", "10.0.0.33", &json!(["vllm", "serve", "chat"]));
    let server = serve(&api).await;
    of_vllm.wait_for_subscribers("", 1);
    // What was published before anybody listened is requested again.
    vllm.live.iter().skip(5).for_each(|frames| of_vllm.publish(frames));
    until_engines(&server, &["tcp://10.0.0.31:5557 of vllm-0"], &[("chat", vllm.expected.held)]).await;
    until(
        &server,
        "engines/kubernetes",
        "live",
        "No KV events of web-0: its command has no --kv-events-config",
    )
    .await;
    // Another one comes.
    api.add_engine(
        "sglang-0",
        "10.0.0.32",
        &json!(["python3", "-m", "sglang.launch_server", "--model-path", "other"]),
    );
    api.route("sglang-0", 30_000, sglang().await);
    api.route("sglang-0", 5_560, socket(&of_sglang.endpoint()));
    of_sglang.wait_for_subscribers("", 1);
    sglang_.live.iter().for_each(|frames| of_sglang.publish(frames));
    let both = ["tcp://10.0.0.31:5557 of vllm-0", "tcp://10.0.0.32:5560 of sglang-0"];
    let held = [("chat", vllm.expected.held), ("other", sglang_.expected.held)];
    until_engines(&server, &both, &held).await;
    // The first one goes.
    api.remove_pod("vllm-0");
    until_engines(&server, &both[1..], &held[1..]).await;
    let cluster = server.cluster().await;
    let gone = cluster["workers"].as_array().expect("a list").iter().filter(|of| !of["gone"].is_null());
    assert_eq!(gone.map(|of| of["gone"]["why"].clone()).collect::<Vec<_>>(), ["discovery"], "{cluster}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_that_comes_later_is_connected_to_followed_and_let_go() {
    let (api, first, second) = (Kubernetes::start().await, Nats::start().await, Nats::start().await);
    let server = serve(&api).await;
    until(&server, NATS, "live", &format!("There is no NATS in namespace {NAMESPACE}")).await;
    api.add_store("nats", 4222, here(first.port()));
    until(&server, NATS, "live", "Connected").await;
    // Its pod starts again elsewhere: what is published there arrives.
    api.route("dynamo-platform-nats-0", 4222, here(second.port()));
    drop(first);
    let client = second.client().await;
    wait::until("an event of the second server is received", async || {
        client
            .publish("namespace.dynamo.component.backend.kv-events", "no event".into())
            .await
            .expect("sent");
        client.flush().await.expect("sent");
        let cluster = server.cluster().await;
        let received = source(&cluster, NATS)["received"].as_u64().unwrap_or(0);
        wait::expect(received > 0, || source(&cluster, NATS).to_string())
    })
    .await;
    // A frontend is told of another server, to which there is no way.
    let elsewhere = json!([{"name": "NATS_SERVER", "value": "nats://nats.elsewhere:4222"}]);
    api.add_pod(FRONTEND, "frontend", "10.0.0.11", &json!([]), &elsewhere);
    until(
        &server,
        NATS,
        "live",
        "nats://nats.elsewhere:4222 (NATS_SERVER of agg-frontend-0) is behind no service",
    )
    .await;
    api.remove_pod(FRONTEND);
    until(&server, NATS, "live", "Connected").await;
    api.remove_pod("dynamo-platform-nats-0");
    until(&server, NATS, "live", "There is no NATS in namespace").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_that_comes_later_has_the_discovery_until_it_is_gone() {
    let (api, etcd) = (Kubernetes::start().await, Etcd::start().await);
    for (key, value) in WORKER.entries() {
        etcd.put(&key, &value, None).await;
    }
    let server = serve(&api).await;
    until_status(&server, "live", "no Dynamo entries yet").await;
    let port = etcd.url().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    api.add_store("etcd", 2379, here(port));
    until_workers(&server, &[(WORKER, None)]).await;
    api.remove_pod("dynamo-platform-etcd-0");
    until_workers(&server, &[(WORKER, Some("discovery"))]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_of_an_inference_pool_are_listened_to_as_long_as_the_pool_is_there() {
    let (api, vllm) = (Kubernetes::start().await, EngineRecording::of("vllm-0.32.0"));
    let publisher = Publisher::bind(1);
    // Nothing but the pool says what it is. The kind of pools is installed with another one.
    api.add_engine("llama-0", "10.0.0.31", &json!(["/start.sh"]));
    api.route("llama-0", 5_557, socket(&publisher.endpoint()));
    api.add_pool("other", "web");
    let server = serve(&api).await;
    until(&server, "engines/kubernetes", "live", "No pod of an engine").await;
    api.add_pool("llama", "engine");
    publisher.wait_for_subscribers("", 1);
    vllm.live.iter().for_each(|frames| publisher.publish(frames));
    until_engines(&server, &["tcp://10.0.0.31:5557 of llama-0"], &[("engine", vllm.expected.held)]).await;
    api.remove_pool("llama");
    until_engines(&server, &[], &[]).await;
}
