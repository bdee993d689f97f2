//! Attaching late to workers that answer queries for their blocks, over real sockets: as real ones do, and as none should.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use radixscope_tests::discovery::Registered;
use radixscope_tests::fake_worker::{Acknowledge, Call, Script, prologue};
use radixscope_tests::one_worker::{Deployment, PUBLISHER, WORKER, removed, response, stored, tree};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

/// Numbers of the events before anybody listened.
const LAST: u64 = 40;

/// Blocks 1 to 5, one below the other.
fn five() -> Value {
    tree(&[stored(0, None, 1..=5)], LAST)
}

/// The same and block 6, which is stored when somebody listens: what a worker answers that is asked after that.
fn six() -> Value {
    tree(&[stored(0, None, 1..=6)], LAST + 1)
}

/// What a call asks: from which event on, and which rank.
fn query_of(call: &Call) -> (Option<u64>, u64) {
    let query: Value = match call.is_msgpack() {
        true => rmp_serde::from_slice(&call.body).expect("MessagePack"),
        false => call.query(),
    };
    assert_eq!(query["worker_id"], WORKER);
    (query["start_event_id"].as_u64(), query["dp_rank"].as_u64().expect("a rank"))
}

/// Waits until the worker is completely known, with so many blocks and all of them attached.
async fn until_complete(server: &Radixscope, blocks: u64) -> Value {
    let cluster = server
        .until_cluster("the worker is complete", |cluster| {
            let worker = &cluster["workers"][0];
            let is_so = worker["knowledge"]["state"] == "complete"
                && worker["blocks"] == blocks
                && worker["unattached_blocks"] == 0;
            wait::expect(is_so, || format!("{worker} {}", cluster["sources"]))
        })
        .await;
    let worker = &cluster["workers"][0];
    // An overlap is no fault of anybody.
    assert_eq!(worker["unknown_removed_total"], 0, "{worker}");
    cluster
}

/// Waits until a worker is not completely known, and its last query went wrong so.
async fn until_failed(server: &Radixscope, expected: &str) -> Value {
    server
        .until_cluster(&format!("the query fails: {expected}"), |cluster| {
            let knowledge = &cluster["workers"][0]["knowledge"];
            let is_so = knowledge["state"] != "complete"
                && knowledge["message"].as_str().is_some_and(|message| message.contains(expected));
            wait::expect(is_so, || format!("{} {}", cluster["workers"], cluster["sources"]))
        })
        .await
}

async fn holds(server: &Radixscope, hash: u64) -> bool {
    let response = server.get(&format!("/api/v1/tree/block?hash={hash}")).await;
    response.status == 200 && response.json()["workers"].as_array().is_none_or(|workers| !workers.is_empty())
}

#[tokio::test]
async fn a_late_start_is_complete_after_the_first_event() {
    let mut deployment = Deployment::start(|call| response(call, &five())).await;
    let server = deployment.attach(&[]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    until_complete(&server, 6).await;
    let calls = deployment.worker.calls();
    assert_eq!(query_of(&calls[0]), (None, 0));
    assert!(calls[0].path.ends_with(&format!("worker_kv_query_source_{PUBLISHER:x}")), "{}", calls[0].path);
}

#[tokio::test]
async fn a_response_before_the_acknowledgement_counts() {
    let mut deployment =
        Deployment::start(|call| response(call, &five()).acknowledged(Acknowledge::Late)).await;
    let server = deployment.attach(&[]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    until_complete(&server, 6).await;
}

#[tokio::test]
async fn requests_over_nats_are_answered_over_tcp() {
    let mut deployment = Deployment::start(|call| response(call, &five())).await;
    let subject = format!("dynamo_backend.worker_kv_query_source_{PUBLISHER:x}-{WORKER:x}");
    let client = deployment.client.clone();
    deployment.worker.listen(client, &subject).await;
    let tcp_port = deployment.worker.port();
    let entries = Registered { worker_id: WORKER, publisher_id: PUBLISHER, zmq_port: 1, tcp_port }.entries();
    let over_nats =
        entries.into_iter().filter(|(key, _)| !key.contains("event_channels")).map(|(key, value)| {
            let tcp = format!(
                "127.0.0.1:{tcp_port}/{WORKER:x}/dynamo/backend/worker_kv_query_source_{PUBLISHER:x}"
            );
            let (tcp, nats) = (json!({"tcp": tcp}).to_string(), json!({"nats_tcp": subject}).to_string());
            (key, serde_json::from_str(&value.to_string().replace(&tcp, &nats)).expect("JSON"))
        });
    deployment.keep(over_nats.collect());
    let server = deployment.attach(&[]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    until_complete(&server, 6).await;
    assert!(deployment.worker.calls().iter().all(|call| call.path.is_empty()), "none came over TCP");
}

#[tokio::test]
async fn a_worker_that_cannot_call_back_is_named_with_what_to_open() {
    let mut deployment = Deployment::start(|_| Script::silence()).await;
    let server = deployment.attach(&[]).await;
    let since = Instant::now();
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    let cluster = until_failed(&server, "open port").await;
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    let source = cluster["sources"].as_array().expect("sources").iter().find(|s| s["name"] == "worker trees");
    assert_eq!(source.expect("it is there")["state"], "refused", "{source:?}");
    let ready = server.get("/readyz").await;
    assert!(ready.status == 503 && ready.text().contains("worker trees"), "{}", ready.text());
    // Somebody opens the port.
    deployment.worker.behave(|call| response(call, &six()));
    until_complete(&server, 6).await;
}

#[tokio::test]
async fn a_refusal_is_reported_and_tried_again() {
    let mut deployment =
        Deployment::start(|_| Script::refusal("Server overloaded: worker at capacity")).await;
    let server = deployment.attach(&[]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    until_failed(&server, "worker at capacity").await;
    deployment.worker.behave(|call| response(call, &six()));
    until_complete(&server, 6).await;
}

#[tokio::test]
async fn a_kept_dump_is_replayed_with_its_removals() {
    // Made when nothing was held, then every event since: their numbers are not those of the dump.
    let events = [
        stored(0, None, 1..=3),
        stored(5_580, Some(3), 4..=9),
        removed(5_581, &[8, 9]),
        stored(5_582, Some(7), [10]),
    ];
    let mut deployment = Deployment::start(move |call| response(call, &tree(&events, 5_582))).await;
    let server = deployment.attach(&[]).await;
    deployment.publish(&[stored(5_583, Some(10), [11])]).await;
    until_complete(&server, 9).await;
    assert!(holds(&server, 11).await && !holds(&server, 9).await);
}

#[tokio::test]
async fn events_that_came_while_the_response_was_awaited_are_applied_after_it() {
    // Made before any of them, they are newer than what it names; it comes later.
    let go = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&go);
    let mut deployment = Deployment::start(move |call| response(call, &five()).held(&held)).await;
    let server = deployment.attach(&[]).await;
    for event in [
        stored(LAST + 1, Some(5), [6]),
        stored(LAST + 2, Some(6), [7]),
        removed(LAST + 3, &[7, 6]),
        stored(LAST + 4, Some(2), [8, 9]),
    ] {
        deployment.publish(&[event]).await;
    }
    server
        .until_cluster("the events are in", |cluster| {
            wait::expect(cluster["workers"][0]["blocks"] == 2, || cluster["workers"].to_string())
        })
        .await;
    go.add_permits(1);
    until_complete(&server, 7).await;
}

#[tokio::test]
async fn a_response_that_is_ahead_of_the_events_makes_no_findings() {
    // It holds what is still in transit, including removals of unknown blocks.
    let held = [stored(0, None, [1, 2, 3]), stored(1, Some(3), [7])];
    let mut deployment = Deployment::start(move |call| response(call, &tree(&held, LAST + 2))).await;
    let server = deployment.attach(&[]).await;
    deployment.publish(&[stored(LAST + 1, Some(3), [6])]).await;
    until_complete(&server, 4).await;
    deployment.publish(&[removed(LAST + 2, &[6, 5])]).await;
    deployment.publish(&[stored(LAST + 3, Some(3), [7]), stored(LAST + 4, Some(7), [8])]).await;
    let cluster = until_complete(&server, 5).await;
    assert_eq!(cluster["workers"][0]["missed"], 0);
}

#[tokio::test]
async fn a_response_of_a_process_that_is_gone_is_left_alone() {
    let go = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&go);
    let mut deployment = Deployment::start(move |call| {
        if call.path.ends_with(&format!("{PUBLISHER:x}")) {
            return response(call, &tree(&[stored(0, None, 1..=50)], LAST)).held(&held);
        }
        response(call, &tree(&[stored(0, None, 101..=103)], 3))
    })
    .await;
    let server = deployment.attach(&[]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    wait::until("it is queried", async || {
        wait::expect(!deployment.worker.calls().is_empty(), || "no call".to_owned())
    })
    .await;
    // The same worker in another process, with numbers of its own.
    deployment.register(PUBLISHER + 1);
    deployment.sequence = 0;
    deployment.publish_as(PUBLISHER + 1, &[stored(1, None, [101])]).await;
    deployment.publish_as(PUBLISHER + 1, &[stored(2, Some(101), [102]), stored(3, Some(102), [103])]).await;
    go.add_permits(1);
    until_complete(&server, 3).await;
    assert!(holds(&server, 103).await && !holds(&server, 5).await);
}

#[tokio::test]
async fn lost_events_are_requested_by_number() {
    let mut deployment = Deployment::start(|call| match query_of(call).0 {
        None => response(call, &five()),
        Some(start) => {
            assert_eq!(start, LAST + 2);
            let events =
                [stored(LAST + 2, Some(6), [7]), stored(LAST + 3, Some(7), [8]), removed(LAST + 4, &[8])];
            response(call, &json!({"Events": {"events": events, "last_event_id": LAST + 4}}))
        }
    })
    .await;
    let server = deployment.attach(&[]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    until_complete(&server, 6).await;
    // Two messages are lost.
    deployment.sequence += 2;
    deployment.publish(&[removed(LAST + 4, &[8])]).await;
    let cluster = until_complete(&server, 7).await;
    let worker = &cluster["workers"][0];
    assert!(worker["recovered"].as_u64() > Some(0) || worker["missed"] == 0, "{worker}");
}

#[tokio::test]
async fn hostile_responses_change_nothing() {
    let foreign = json!({"worker_id": 9, "event": {"event_id": 0, "dp_rank": 0, "data": {"removed": {"block_hashes": [1]}}}});
    let spoiled = tree(&[stored(0, None, 1..=5), foreign], LAST);
    let claimed =
        [prologue(None), [[0; 8], (512_u64 << 20).to_be_bytes(), [0; 8]].concat(), vec![0x82]].concat();
    let huge = [prologue(None), [[0; 8], u64::MAX.to_be_bytes(), [0; 8]].concat()].concat();
    let mut deployment = Deployment::start(move |call| response(call, &spoiled)).await;
    let server = deployment.attach(&[]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    until_failed(&server, "holds an event of worker 9").await;
    deployment.worker.behave(move |_| Script::response(huge.clone()));
    until_failed(&server, "is too large").await;
    deployment.worker.behave(move |_| Script::response(claimed.clone()).closing());
    until_failed(&server, "ended early").await;
    assert!(server.process().rss_bytes() < 400 << 20, "{}", server.process().rss_bytes());
    // Blocks that are each other's parents, and one that is its own.
    let circles = tree(
        &[
            stored(0, Some(2), [1]),
            stored(1, Some(1), [2]),
            stored(2, Some(3), [3]),
            stored(3, None, [4, 4, 4]),
        ],
        LAST + 1,
    );
    deployment.worker.behave(move |call| response(call, &circles));
    server
        .until_cluster("it is taken as it is", |cluster| {
            let knowledge = &cluster["workers"][0]["knowledge"];
            wait::expect(knowledge["asking"] != "failed" && knowledge["asking"] != "dump", || {
                knowledge.to_string()
            })
        })
        .await;
    assert_eq!(server.get("/healthz").await.status, 200);
    deployment.publish(&[stored(LAST + 2, Some(6), [7])]).await;
    server
        .until_cluster("it goes on", |cluster| {
            wait::expect(cluster["workers"][0]["stored_total"] == 2, || cluster["workers"].to_string())
        })
        .await;
}

#[tokio::test]
async fn who_knows_no_rank_asks_again_with_the_right_one() {
    let mut deployment = Deployment::start(|call| match query_of(call).1 {
        0 => {
            let text = "WorkerKvQueryEngine::generate dp_rank mismatch: request.dp_rank=0 this.dp_rank=1";
            response(call, &json!({"Error": text}))
        }
        rank => {
            let mut event = stored(0, None, 1..=6);
            event["event"]["dp_rank"] = json!(rank);
            response(call, &tree(&[event], LAST + 1))
        }
    })
    .await;
    // A list of endpoints tells no rank.
    let tcp_port = deployment.worker.port();
    let entries = Registered { worker_id: WORKER, publisher_id: PUBLISHER, zmq_port: 1, tcp_port }.entries();
    deployment.keep(entries.into_iter().filter(|(key, _)| !key.contains("event_")).collect());
    let server = deployment.attach(&[]).await;
    let mut event = stored(LAST + 1, Some(5), [6]);
    event["event"]["dp_rank"] = json!(1);
    deployment.publish(&[event]).await;
    server
        .until_cluster("rank 1 is complete", |cluster| {
            let workers = cluster["workers"].as_array().expect("workers");
            let rank = workers.iter().find(|worker| worker["dp_rank"] == 1);
            let is_so =
                rank.is_some_and(|rank| rank["blocks"] == 6 && rank["knowledge"]["state"] == "complete");
            wait::expect(is_so, || cluster["workers"].to_string())
        })
        .await;
}

#[tokio::test]
async fn on_request_no_worker_is_queried_before() {
    let mut deployment = Deployment::start(|call| response(call, &six())).await;
    let server = deployment.attach(&["--tree-dumps", "on-request"]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    server
        .until_cluster("it says so", |cluster| {
            let knowledge = &cluster["workers"][0]["knowledge"];
            wait::expect(knowledge["asking"] == "on_request", || cluster["workers"].to_string())
        })
        .await;
    assert!(deployment.worker.calls().is_empty());
    let body = json!({"workers": [{"worker_id": WORKER.to_string()}, {"worker_id": "1"}]}).to_string();
    let foreign = server.post("/api/v1/tree-dumps", &body, &[("origin", "https://elsewhere.example")]).await;
    assert_eq!(foreign.status, 403);
    let asked = server.post("/api/v1/tree-dumps", &body, &[]).await;
    assert_eq!(asked.status, 202, "{}", asked.text());
    let asked: Vec<bool> = asked.json()["workers"]
        .as_array()
        .expect("workers")
        .iter()
        .filter_map(|w| w["asked"].as_bool())
        .collect();
    assert_eq!(asked, [true, false]);
    until_complete(&server, 6).await;
    assert_eq!(server.post("/api/v1/tree-dumps", "{}", &[]).await.status, 202);
    assert_eq!(server.post("/api/v1/tree-dumps", r#"{"worker":1}"#, &[]).await.status, 400);
}

#[tokio::test]
async fn with_tree_dumps_off_no_worker_is_queried() {
    let mut deployment = Deployment::start(|call| response(call, &five())).await;
    let server = deployment.attach(&["--tree-dumps", "off"]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    let cluster = server
        .until_cluster("the event is in", |cluster| {
            wait::expect(cluster["workers"][0]["blocks"] == 1, || cluster["workers"].to_string())
        })
        .await;
    assert!(cluster["sources"].as_array().expect("sources").iter().all(|s| s["name"] != "worker trees"));
    let asked = server.post("/api/v1/tree-dumps", "{}", &[]).await.json();
    assert_eq!(asked["workers"][0]["asked"], false);
    assert!(deployment.worker.calls().is_empty());
}
