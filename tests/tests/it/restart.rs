//! A server that records and is killed: the next one goes on from what was written, says what it does not know, and comes to
//! know what a server knows that was never killed.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;

use radixscope_model::id::Worker;
use radixscope_recording::{Recording, Series};
use radixscope_state::cluster::Cluster;
use radixscope_tests::fake_worker::Script;
use radixscope_tests::one_worker::{Deployment, PUBLISHER, WORKER, removed, response, stored, tree};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::viewer::Viewer;
use radixscope_tests::wait;

/// A worker that ran already, a server that records it, and one that does not.
async fn stage() -> (Deployment, Radixscope, Radixscope, TempDir) {
    let mut deployment = Deployment::start(|call| response(call, &tree(&[stored(0, None, 1..=5)], 40))).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path of ours").to_owned();
    let server = deployment.attach(&["--record", &path]).await;
    let other = deployment.attach(&[]).await;
    deployment.publish(&[stored(41, Some(5), [6])]).await;
    for server in [&server, &other] {
        until_known(server, "complete", 6).await;
    }
    (deployment, server, other, folder)
}

async fn until_known(server: &Radixscope, state: &str, blocks: u64) -> Value {
    let what = format!("{state} with {blocks} blocks");
    let cluster = server
        .until_cluster(&what, |cluster| {
            let worker = &cluster["workers"][0];
            let is_so = worker["knowledge"]["state"] == state && worker["blocks"] == blocks;
            wait::expect(is_so, || worker.to_string())
        })
        .await;
    cluster["workers"][0].clone()
}

/// Block hashes that a state has of the worker, in order.
fn held(cluster: &Cluster) -> Vec<u64> {
    let ix = cluster.worker_ix(Worker::new(WORKER, 0)).expect("it is known");
    let blocks = cluster.tree_of(ix).held_by(ix.slot()).into_iter();
    let mut held: Vec<u64> = blocks.map(|(_, block, _)| block.block_hash.0).collect();
    held.sort_unstable();
    held
}

async fn seen(viewer: &Viewer, server: &Radixscope) -> Vec<u64> {
    viewer.agrees_with(server).await;
    viewer.with(|seen| held(seen.state.as_ref().expect("a state")))
}

/// Waits until so many blocks of the worker are in the files.
async fn until_written(folder: &Path, blocks: usize) {
    wait::until("it is written", async || {
        let paths =
            std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
        let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "mcap"));
        let open = |path| {
            Recording::open(std::fs::File::open(path).map_err(|error| error.to_string())?)
                .map_err(|error| error.to_string())
        };
        let files: Result<Vec<_>, String> = files.map(open).collect();
        let mut series = Series::of(files?).map_err(|error| error.to_string())?;
        let folded = series.play(&mut |_| {}).map_err(|error| error.to_string())?;
        let written =
            folded.cluster.worker_ix(Worker::new(WORKER, 0)).map_or(0, |_| held(&folded.cluster).len());
        wait::expect(written == blocks, || format!("{written} of {blocks}"))
    })
    .await;
}

fn gaps(cluster: &Value) -> u64 {
    let sources = cluster["sources"].as_array().expect("sources").iter();
    sources
        .flat_map(|source| source["gaps"].as_array().expect("gaps"))
        .filter_map(|gap| gap["gaps"].as_u64())
        .sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_the_tree_is_there_at_once_and_doubted_until_the_worker_answers() {
    let (mut deployment, mut server, other, folder) = stage().await;
    let viewer = server.viewer().await;
    viewer.agrees_with(&server).await;
    until_written(folder.path(), 6).await;
    let before_ms = server.cluster().await["at_ms"].as_u64().expect("a time");
    let epoch = server.json("/history").await["epoch"].clone();
    let place = viewer.cut();
    server.kill();

    // What happens meanwhile the server cannot know: one block goes, another comes.
    deployment.publish(&[removed(42, &[6]), stored(43, Some(5), [7])]).await;
    let asked = Arc::new(Semaphore::new(0));
    let held_back = Arc::clone(&asked);
    deployment.worker.behave(move |call| {
        let events = [stored(0, None, 1..=5), stored(0, Some(5), [7])];
        response(call, &tree(&events, 43)).held(&held_back)
    });
    server.start_again().await;

    let cluster = server.cluster().await;
    let worker = &cluster["workers"][0];
    assert_eq!(
        (&worker["blocks"], &worker["knowledge"]["state"]),
        (&json!(6), &json!("partial")),
        "{worker}"
    );
    assert_eq!(worker["knowledge"]["why"], "connection_broke", "{worker}");
    let viewer = server.viewer_after(place).await;
    assert_eq!(seen(&viewer, &server).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(viewer.with(|seen| seen.snapshots), 1, "more may have been shown than was written");
    server.until_ready().await;
    server
        .until_cluster("what was missed is a gap of unknown size", |cluster| {
            wait::expect(gaps(cluster) > 0, || cluster["sources"].to_string())
        })
        .await;
    assert_eq!(server.json("/readyz").await["complete"], false);

    // The next event shows that its events come, so it is asked.
    deployment.publish(&[stored(44, Some(7), [8])]).await;
    until_known(&server, "partial", 7).await;
    asked.add_permits(10);
    let worker = until_known(&server, "complete", 7).await;
    assert_eq!(worker["knowledge"]["why"], "dump", "{worker}");
    let never_killed = other.viewer().await;
    let truth = seen(&never_killed, &other).await;
    assert_eq!(truth, [1, 2, 3, 4, 5, 7, 8]);
    assert_eq!(seen(&viewer, &server).await, truth);

    let history = server.json("/history").await;
    assert_ne!(history["epoch"], epoch, "numbers of records may mean something else");
    assert!(history["kept"]["from_ms"].as_u64().is_some_and(|from| from < before_ms), "{}", history["kept"]);
    assert_eq!(server.get(&format!("/history/segment?at_ms={before_ms}")).await.status, 200);
    let marks: Vec<&Value> = history["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .flat_map(|row| row["workers"].as_array().expect("marks"))
        .filter(|mark| mark["what"] == "restarted")
        .collect();
    assert_eq!(marks, [&json!({"what": "restarted", "worker": null, "process": "Radixscope"})]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_orderly_end_viewers_go_on_where_they_were() {
    let (mut deployment, mut server, _other, _folder) = stage().await;
    let viewer = server.viewer().await;
    viewer.agrees_with(&server).await;
    let epoch = server.json("/history").await["epoch"].clone();
    server.process().terminate();
    wait::until("the viewer is notified", async || {
        viewer.with(|seen| wait::expect(seen.ended.is_some(), || "connected".to_owned()))
    })
    .await;
    let place = viewer.cut();
    server.process_mut().ended().await;
    let asked = Arc::new(Semaphore::new(0));
    let held_back = Arc::clone(&asked);
    deployment.worker.behave(move |call| {
        let events = [stored(0, None, 1..=5), stored(0, Some(5), [6])];
        response(call, &tree(&events, 41)).held(&held_back)
    });
    server.start_again().await;

    let viewer = server.viewer_after(place).await;
    assert_eq!(seen(&viewer, &server).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(viewer.with(|seen| seen.snapshots), 0, "it has all that came before");
    assert_eq!(server.json("/history").await["epoch"], epoch);
    until_known(&server, "partial", 6).await;
    asked.add_permits(10);
    deployment.publish(&[stored(42, Some(6), [7])]).await;
    until_known(&server, "complete", 7).await;
    assert_eq!(seen(&viewer, &server).await, [1, 2, 3, 4, 5, 6, 7]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_worker_that_began_anew_meanwhile_nothing_is_kept() {
    let (mut deployment, mut server, _other, folder) = stage().await;
    until_written(folder.path(), 6).await;
    server.kill();
    deployment.worker.behave(|_| Script::silence());
    deployment.register(PUBLISHER + 1);
    server.start_again().await;
    server.until_ready().await;
    until_known(&server, "partial", 6).await;
    deployment.publish_as(PUBLISHER + 1, &[stored(0, None, [101, 102])]).await;
    let worker = until_known(&server, "complete", 2).await;
    assert_eq!(worker["knowledge"]["why"], "from_first_event", "{worker}");
    let viewer = server.viewer().await;
    assert_eq!(seen(&viewer, &server).await, [101, 102]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_of_other_sources_is_not_gone_on_from() {
    let (_deployment, mut server, _other, folder) = stage().await;
    until_written(folder.path(), 6).await;
    server.kill();
    let path = folder.path().to_str().expect("a path of ours");
    let elsewhere = Deployment::start(|_| Script::silence()).await;
    let server = elsewhere.attach(&["--record", path]).await;
    let cluster = server.cluster().await;
    assert_eq!(gaps(&cluster), 0, "{}", cluster["sources"]);
    let workers = cluster["workers"].as_array().expect("workers");
    assert!(workers.iter().all(|worker| worker["blocks"].is_null()), "{workers:?}");
    let reported = server.process().output();
    assert!(reported.contains("the recording is of other sources of KV events"), "{reported}");
}
