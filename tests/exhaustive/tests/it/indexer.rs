//! A standalone KV indexer is read and its index compared with the tree of the same engines. The indexer here answers what a genuine
//! one answered; engines publish over real sockets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use radixscope_captures::EngineRecording;
use radixscope_captures::publisher::Publisher;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};

const WORKERS: &str = include_str!("../../../../core/dynamo/tests/fixtures/indexer/workers.json");
const DUMP: &str = include_str!("../../../../core/dynamo/tests/fixtures/indexer/dump.json");

/// What it answers now: the list of workers and the dump.
type Answers = Arc<Mutex<(String, String)>>;

/// An indexer that listens to `engines`, and what it answers.
async fn indexer(engines: &[&Publisher]) -> (SocketAddr, Answers) {
    let mut workers = WORKERS.to_owned();
    for (engine, genuine) in engines.iter().zip(["tcp://127.0.0.1:8091", "tcp://127.0.0.1:8092"]) {
        workers = workers.replace(genuine, &engine.endpoint());
    }
    let answers = Answers::new(Mutex::new((workers, DUMP.to_owned())));
    let of = |State(answers): State<Answers>| async move { answers.lock().expect("no panic").0.clone() };
    let dump = |State(answers): State<Answers>| async move { answers.lock().expect("no panic").1.clone() };
    let app = axum::Router::new().route("/workers", get(of)).route("/dump", get(dump));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(axum::serve(listener, app.with_state(Arc::clone(&answers))).into_future());
    (address, answers)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_selection_service_is_compared_too_and_shows_what_it_has_reserved() {
    const OF: [&str; 3] = [
        include_str!("../../../../core/dynamo/tests/fixtures/selection_service/workers.json"),
        include_str!("../../../../core/dynamo/tests/fixtures/selection_service/dump.json"),
        include_str!("../../../../core/dynamo/tests/fixtures/selection_service/loads.json"),
    ];
    let engine = Publisher::bind(1);
    let workers = OF[0].replace("tcp://127.0.0.1:8091", &engine.endpoint());
    let app = axum::Router::new()
        .route("/workers", get(async || workers))
        .route("/dump", get(async || OF[1]))
        .route("/loads", get(async || OF[2]));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(axum::serve(listener, app).into_future());
    let server = serve(address, &[&engine]).await;
    publish(&engine, usize::MAX);
    let read = |cluster: &Value| {
        let (busy, idle) = (of(cluster, "1"), of(cluster, "2"));
        let is_so = busy["load"] == json!({"prefill_tokens": 240, "decode_blocks": 14, "requests": 3})
            && busy["compared"]["same_blocks"] == busy["blocks"]
            && idle["load"] == json!({"prefill_tokens": 0, "decode_blocks": 0, "requests": 0})
            && idle["compared"].is_null();
        wait::expect(is_so, || cluster["indexers"].to_string())
    };
    server.until_cluster("its index and its loads", read).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_that_an_indexer_lists_are_listened_to_when_nothing_else_names_any() {
    let engines = [&Publisher::bind(1), &Publisher::bind(1)];
    let (address, answers) = indexer(&engines).await;
    let server = serve(address, &[]).await;
    engines.iter().for_each(|engine| publish(engine, usize::MAX));
    let held = EngineRecording::of("vllm-0.28.0").expected.held as u64;
    let blocks = |cluster: &Value| -> Vec<(String, Value)> {
        let workers = cluster["workers"].as_array().cloned().unwrap_or_default();
        let shown = |of: &Value| (of["pool"].to_string(), of["blocks"].clone());
        workers.iter().filter(|of| of["gone"].is_null()).map(shown).collect()
    };
    let both = |cluster: &Value| {
        let now = blocks(cluster);
        let are_so = now.len() == 2 && now.iter().all(|(_, of)| *of == held);
        let compared = of(cluster, "1")["compared"]["same_blocks"] == 69;
        wait::expect(are_so && compared, || format!("{now:?} {}", cluster["indexers"]))
    };
    server.until_cluster("both engines, compared with its index", both).await;
    let left = |cluster: &Value| {
        let now = blocks(cluster);
        wait::expect(now.is_empty(), || format!("{now:?}"))
    };
    *answers.lock().expect("no panic") = ("[]".to_owned(), "{}".to_owned());
    server.until_cluster("engines that have left", left).await;
}

fn publish(engine: &Publisher, batches: usize) {
    engine.wait_for_subscribers("", 1);
    for frames in EngineRecording::of("vllm-0.28.0").live.iter().take(batches) {
        engine.publish(frames);
    }
}

async fn serve(address: SocketAddr, engines: &[&Publisher]) -> Radixscope {
    let named =
        engines.iter().flat_map(|of| ["--engine-events".to_owned(), format!("vllm={}", of.endpoint())]);
    let indexer = ["serve".to_owned(), "--indexer".to_owned(), address.to_string()];
    let often = ["--indexer-interval".to_owned(), "0.2".to_owned()];
    Radixscope::start(indexer.into_iter().chain(often).chain(named)).await
}

fn of(cluster: &Value, instance_id: &str) -> Value {
    let workers = cluster["indexers"][0]["workers"].as_array().cloned().unwrap_or_default();
    workers.into_iter().find(|worker| worker["instance_id"] == instance_id).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_lacks_blocks_is_a_finding_with_their_number() {
    let (whole, half) = (Publisher::bind(1), Publisher::bind(1));
    let engines = [&whole, &half];
    let (address, answers) = indexer(&engines).await;
    let server = serve(address, &engines).await;
    publish(&whole, usize::MAX);
    publish(&half, 28);
    let held = EngineRecording::of("vllm-0.28.0").expected.held as u64;
    let expected = json!({"same_blocks": 69, "index_only_blocks": 0, "index_only_twice_blocks": 0,
        "tree_only_blocks": held - 69, "tree_only_twice_blocks": held - 69});
    let compared = |cluster: &Value| {
        let is_so = of(cluster, "1")["compared"] == expected && of(cluster, "2")["blocks"] == 70;
        wait::expect(is_so, || cluster["indexers"].to_string())
    };
    server.until_cluster("the same difference in two readings", compared).await;
    let found = |findings: &Value| {
        let all = findings["findings"].as_array().expect("findings").iter();
        let finding = all.into_iter().find(|finding| finding["code"] == "indexer_differs");
        wait::expect(finding.is_some_and(|of| of.to_string().contains("Stale parent hash")), || {
            findings.to_string()
        })
    };
    wait::until("the finding", async || found(&server.json("/api/v1/findings").await)).await;
    // It lost its workers.
    *answers.lock().expect("no panic") = ("[]".to_owned(), "{}".to_owned());
    let is_empty = |cluster: &Value| {
        let workers = &cluster["indexers"][0]["workers"];
        wait::expect(*workers == json!([]), || workers.to_string())
    };
    server.until_cluster("an indexer that lists nobody", is_empty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_indexer_that_answers_nonsense_or_nothing_is_named_and_costs_nothing() {
    let engine = Publisher::bind(1);
    let (address, answers) = indexer(&[&engine]).await;
    *answers.lock().expect("no panic") = (WORKERS.to_owned(), r#"{"m:g":{"events":"none"}}"#.to_owned());
    let server = serve(address, &[&engine]).await;
    publish(&engine, 5);
    let says = |state: &'static str, text: &'static str| {
        move |cluster: &Value| {
            let sources = cluster["sources"].as_array().expect("sources").iter();
            let source = sources.into_iter().find(|source| source["kind"] == "indexer");
            let is_so = source.is_some_and(|source| {
                source["state"] == state
                    && source["detail"].as_str().is_some_and(|detail| detail.contains(text))
            });
            wait::expect(is_so, || cluster["sources"].to_string())
        }
    };
    server.until_cluster("a dump that is none", says("refused", "does not answer as a KV indexer")).await;
    let cluster = server.json("/api/v1/cluster").await;
    assert_eq!(cluster["indexers"], json!([]));
    assert!(cluster["workers"][0]["blocks"].as_u64().is_some_and(|blocks| blocks > 0), "the tree goes on");

    let gone = {
        let app = axum::Router::new().fallback(|| async { StatusCode::NOT_FOUND });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        tokio::spawn(axum::serve(listener, app).into_future());
        address
    };
    let server = serve(gone, &[&engine]).await;
    server.until_cluster("a 404", says("refused", "`python -m dynamo.indexer` has it")).await;
}
