//! The simulated cluster: the same for the same seed, with capacities known, and the same received over NATS.

use std::time::{Duration, Instant};

use radixscope_model::id::Seq;
use radixscope_tests::figures::{by_id, number, sum};
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

/// What a warm-up came to: it does not depend on the time of day.
fn outcome(cluster: &Value, decisions: &Value) -> Value {
    let workers: Vec<Value> = by_id(cluster["workers"].as_array().unwrap())
        .into_iter()
        .map(|w| {
            let fields = ["worker_id", "blocks", "capacity_blocks", "stored_total", "removed_total"];
            fields.iter().map(|&field| w[field].clone()).collect()
        })
        .collect();
    serde_json::json!({
        "workers": workers, "tree": cluster["tree"], "decisions": decisions["totals"],
    })
}

/// Warms up with hardly any time after it: a millionth of a simulated second a second.
async fn warmed_up(seed: &str) -> Value {
    let server = Radixscope::start(["demo", "--seed", seed, "--warm-up", "60", "--speed", "0.000001"]).await;
    server.until_source_is("live").await;
    let cluster = until_stable(&server).await;
    outcome(&cluster, &server.json("/api/v1/decisions?limit=1").await)
}

/// The response when nothing changes any more; the depth in it may be a second older than the rest.
async fn until_stable(server: &Radixscope) -> Value {
    let mut same_since = (Value::Null, Instant::now());
    wait::until("nothing changes any more", async || {
        let now = server.cluster().await;
        if now["digest"] != same_since.0["digest"] {
            same_since = (now.clone(), Instant::now());
        }
        let is_stable = same_since.1.elapsed() > Duration::from_secs(1);
        wait::expect(is_stable, || "still changing".to_owned()).map(|()| now)
    })
    .await
}

#[tokio::test]
async fn the_same_seed_gives_the_same_cluster_and_another_seed_another() {
    let (one, same, other) = tokio::join!(warmed_up("7"), warmed_up("7"), warmed_up("8"));
    assert_eq!(one, same);
    assert_ne!(one, other);
}

#[tokio::test]
async fn it_adds_up_while_it_runs() {
    let server = Radixscope::start(["demo", "--warm-up", "30"]).await;
    server.until_source_is("live").await;
    let viewer = server.viewer().await;
    let cluster = server.cluster().await;
    let workers = cluster["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 3);
    for worker in workers {
        assert_eq!(worker["capacity_blocks"], 10_738, "capacity is known from the model card");
        let blocks = number(worker, "blocks");
        assert_eq!(blocks, number(worker, "stored_total") - number(worker, "removed_total"));
        assert!(blocks <= 10_738, "{blocks}");
        assert_eq!((number(worker, "missed"), number(worker, "unknown_removed_total")), (0, 0));
    }
    assert_eq!(number(&cluster["tree"], "resident"), sum(workers, "blocks"));
    let source = &cluster["sources"][0];
    assert_eq!((&source["kind"], &source["dropped"]), (&"simulator".into(), &0.into()));
    let seq = Seq(number(&cluster, "seq"));
    viewer
        .until("the viewer's digests agree while it runs", |seen| {
            let state = seen.state.as_ref().ok_or("no state yet")?;
            wait::expect(state.seq() > seq && seen.checks >= 2, || format!("{} checks", seen.checks))
        })
        .await;
}

#[tokio::test]
async fn what_it_publishes_over_nats_is_received_by_another_server() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let mut publisher = Radixscope::command();
    publisher.args(["demo", "--nats", &nats.url(), "--warm-up", "30", "--speed", "0.000001"]);
    let publisher = radixscope_tests::process::Process::start("radixscope demo --nats", &mut publisher);
    // The same simulation, served from inside.
    let inside = Radixscope::start(["demo", "--warm-up", "30", "--speed", "0.000001"]).await;
    inside.until_source_is("live").await;
    let inside = until_stable(&inside).await;
    let received_count = server
        .until_cluster("as much is received over NATS as was simulated", |cluster| {
            let total = |c: &Value| sum(c["workers"].as_array().unwrap(), "stored_total");
            let (have, want) = (total(cluster), total(&inside));
            wait::expect(have >= want, || format!("{have} of {want} blocks"))
        })
        .await;
    let blocks = |c: &Value| -> Vec<u64> {
        by_id(c["workers"].as_array().unwrap()).iter().map(|w| number(w, "blocks")).collect()
    };
    assert_eq!(blocks(&received_count), blocks(&inside), "{}", publisher.output());
    for total in ["nodes", "shared", "resident"] {
        assert_eq!(received_count["tree"][total], inside["tree"][total], "{total}");
    }
    assert_eq!(received_count["sources"][0]["missed"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn what_is_recorded_outlives_a_kill_and_is_replayed_checked_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut server =
        Radixscope::start(["demo", "--warm-up", "60", "--speed", "0.000001", "--record", path]).await;
    let cluster = until_stable(&server).await;
    let bytes = |cluster: &Value| cluster["recording"]["bytes"].as_u64().unwrap();
    // A row a second is written with everything before it: the second time after now, all that is final is on the disk.
    let mut last = bytes(&cluster);
    for _ in 0..2 {
        let grown = server.until_cluster("more is written", |now| {
            wait::expect(bytes(now) > last, || format!("{}", now["recording"]))
        });
        last = bytes(&grown.await);
    }
    server.kill();
    let replay = Radixscope::start(["replay", path]).await;
    let replayed = replay.cluster().await;
    assert_eq!(replayed["digest"], cluster["digest"]);
    assert_eq!(replayed["decisions"], cluster["decisions"]);
    let index = replay.json("/history").await;
    assert_eq!(index["replay"], true);
    assert_eq!(index["at_ms"], replayed["at_ms"]);
    let checked = Radixscope::run(&["check", path, "--output", "json"]);
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(checked["exit_code"], 0, "{checked}");
    let exported = Radixscope::run(&["export", path, "--decisions", "json"]);
    let exported: Value = serde_json::from_slice(&exported.stdout).unwrap();
    assert_eq!(
        exported.as_array().map(Vec::len),
        replayed["decisions"]["count"].as_u64().map(|n| n as usize)
    );
}

/// What is steered is the simulator alone: where something else is shown there is nothing to post to.
#[tokio::test]
async fn the_routes_of_the_stage_exist_with_demo_alone() {
    let stage = "/api/v1/stage";
    let demo = Radixscope::steered_demo(&["--warm-up", "5"]).await;
    assert_eq!(demo.get(stage).await.status, 200);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let path = path.to_str().unwrap();
    std::fs::write(path, demo.get("/api/v1/recording").await.body).unwrap();
    let nats = Nats::start().await;
    let others = [
        ("serve", Radixscope::serve(&nats.url()).await),
        ("replay", Radixscope::start(["replay", path]).await),
        ("open", Radixscope::start(["open", path]).await),
        ("fleet", Radixscope::start(["fleet", "--member", "gone=127.0.0.1:9"]).await),
        ("demo --no-stage", Radixscope::start(["demo", "--warm-up", "5", "--no-stage"]).await),
    ];
    for (command, server) in &others {
        let posted =
            server.post(stage, r#"{"concurrency":7}"#, &[("content-type", "application/json")]).await;
        for response in [server.get(stage).await, posted] {
            assert_eq!(response.status, 404, "{command}: {}", response.text());
            assert_eq!(response.json()["error"]["code"], "not_found", "{command}");
        }
        assert!(!server.get("/").await.text().contains("radixscope-stage"), "{command}");
    }
}
