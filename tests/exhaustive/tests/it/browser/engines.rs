//! Fleets without Dynamo on the page: engines that are listened to, and what their routers count.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::get;
use radixscope_captures::EngineRecording;
use radixscope_captures::publisher::Publisher;
use radixscope_tests::browser::with_page;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};

/// Metrics of AIBrix' gateway.
const GATEWAY: &str = include_str!("../../../../../core/dynamo/tests/fixtures/other_routers/aibrix.prom");
/// Nothing listens there: only metrics are read.
const NO_NATS: &str = "nats://127.0.0.1:1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_engine_is_a_row_with_what_came_of_it() {
    let (good, strange) = (Publisher::bind(1), Publisher::bind(1));
    let names = [format!("vllm={}", good.endpoint()), format!("sglang={}", strange.endpoint())];
    let args = ["serve", "--engine-events", &names[0], "--engine-events", &names[1]];
    let server = Radixscope::start(args).await;
    let recording = EngineRecording::of("vllm-0.28.0");
    good.wait_for_subscribers("", 1);
    recording.live.iter().for_each(|frames| good.publish(frames));
    strange.wait_for_subscribers("", 1);
    strange.publish(&[b"kv".as_slice(), &0_u64.to_be_bytes(), b"\xc1 is no MessagePack"]);
    let held = recording.expected.held as u64;
    let arrived = |cluster: &Value| {
        let engines = cluster["engines"].as_array().expect("engines");
        let is_so = engines.len() == 2
            && engines[1]["rejected"] == 1
            && cluster["workers"].as_array().is_some_and(|all| all.iter().any(|of| of["blocks"] == held));
        wait::expect(is_so, || format!("{} {}", cluster["engines"], cluster["workers"]))
    };
    server.until_cluster("everything arrived", arrived).await;
    with_page(async |page| {
        page.size(1600, 900).await;
        page.open(&server.url("/")).await;
        page.until_true("it is live", "document.querySelector('[data-testid=losses-button]') !== null").await;
        page.click("losses-button").await;
        page.until("a row for each engine", async |page| {
            let rows = page.texts("[data-testid=engines] tbody tr").await;
            let is_so = rows.len() == 2
                && rows[0].contains(&good.endpoint())
                && rows[0].contains("connected")
                && rows[0].contains("maps")
                && rows[1].contains(&strange.endpoint())
                && rows[1].contains("1: ");
            wait::expect(is_so, || format!("{rows:?}"))
        })
        .await;
        let heads = page.texts("[data-testid=engines] thead th").await;
        assert_eq!(heads.len(), 8, "{heads:?}");
    })
    .await;
}

#[tokio::test]
async fn what_a_gateway_counts_of_its_choices_is_in_decisions_and_in_the_api() {
    let text = Arc::new(Mutex::new(GATEWAY.to_owned()));
    let metrics =
        |State(text): State<Arc<Mutex<String>>>| async move { text.lock().expect("no panic").clone() };
    let app = axum::Router::new().route("/metrics", get(metrics)).with_state(Arc::clone(&text));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(axum::serve(listener, app).into_future());
    let scraped = format!("gateway=http://{address}/metrics");
    let often = ["--prometheus-interval", "0.2"];
    let args = ["serve", "--nats", NO_NATS, "--prometheus", &scraped].into_iter().chain(often);
    let server = Radixscope::start(args).await;
    let first = |cluster: &Value| {
        let is_so = cluster["other_routers"][0]["choices"].as_array().is_some_and(|all| all.len() == 3);
        wait::expect(is_so, || cluster["other_routers"].to_string())
    };
    server.until_cluster("its first scrape", first).await;
    // Three choices by prefix and one without.
    let later = GATEWAY.replace(
        "=\"prefix_match\",using_kv_sync=\"true\"} 79",
        "=\"prefix_match\",using_kv_sync=\"true\"} 82",
    );
    let later =
        later.replace("fallback\",using_kv_sync=\"true\"} 15", "fallback\",using_kv_sync=\"true\"} 16");
    *text.lock().expect("no panic") = later;
    let second = |cluster: &Value| {
        let router = &cluster["other_routers"][0];
        let sums: Vec<&Value> = (0..3).map(|at| &router["choices"][at]["session"]).collect();
        wait::expect(sums == [&json!(3), &json!(0), &json!(1)], || router.to_string())
    };
    let cluster = server.until_cluster("the choices since", second).await;
    let router = &cluster["other_routers"][0];
    assert_eq!((&router["role"], &router["name"]), (&json!("aibrix_gateway"), &json!("gateway")));
    assert_eq!((&router["publishers"], &router["follows_events"]), (&json!(2), &json!(true)));
    with_page(async |page| {
        page.size(1400, 900).await;
        page.open(&server.url("/?view=decisions")).await;
        page.until("its choices with their shares", async |page| {
            let lines = page.texts("[data-testid=other-router] dd").await;
            let chosen = "75 % by prefix · 0 % prefix skipped · 25 % no prefix, of 4 choices";
            let is_so = lines.first().is_some_and(|line| line == chosen)
                && lines.iter().any(|line| line == "follows the KV events of 2 engines");
            wait::expect(is_so, || format!("{lines:?}"))
        })
        .await;
        page.screenshot("other-router").await;
    })
    .await;
}
