//! A real disk that fills up: what is shown goes on, the fault is shown and found, and once there is room it is recorded again.

use std::path::PathBuf;

use radixscope_recording::{Recording, Series};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

/// Room of the disk: less than the least of `--record-max-size`, so that the disk is full first.
const DISK: &str = "1m";

/// The recording among the findings.
fn found(findings: &Value) -> Option<&Value> {
    let mut findings = findings["findings"].as_array().expect("findings").iter();
    findings.find(|finding| finding["code"] == "source_down" && finding["phase"] != "cleared")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_the_recording_alone_and_room_brings_it_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path of ours");
    let server = Radixscope::start_on_small_disk(
        (path, DISK),
        &["demo", "--warm-up", "20", "--speed", "20", "--record", path, "--record-max-size", "16MiB"],
        &[],
    )
    .await;
    let full = server
        .until_cluster("the disk is full", |cluster| {
            let error = cluster["recording"]["error"].as_str().unwrap_or_default();
            wait::expect(error.contains("No space left on device"), || cluster["recording"].to_string())
        })
        .await;
    assert!(full["recording"]["gaps"].as_u64() > Some(0), "{}", full["recording"]);
    wait::until("it is a finding", async || {
        let findings = server.json("/api/v1/findings").await;
        wait::expect(found(&findings).is_some(), || findings["findings"].to_string())
    })
    .await;
    let viewer = server.viewer().await;
    viewer.agrees_with(&server).await;
    let shown = server.cluster().await;
    assert!(shown["seq"].as_u64() > full["seq"].as_u64(), "what is shown goes on");

    // The server's own disk.
    let disk = PathBuf::from(format!("/proc/{}/root{path}", server.process().id()));
    let recordings = || {
        let entries =
            std::fs::read_dir(&disk).expect("the disk").map(|entry| entry.expect("an entry").path());
        entries.filter(|path| path.extension().is_some_and(|of| of == "mcap")).collect::<Vec<_>>()
    };
    let before = recordings();
    let open = |path: &PathBuf| Recording::open(std::fs::File::open(path).expect("the file"));
    let whole: Vec<_> = before.iter().map(|path| open(path).expect("what was written can be read")).collect();
    Series::of(whole).expect("of one recording").play(&mut |_| {}).expect("with a state");
    before.iter().for_each(|path| std::fs::remove_file(path).expect("it can be deleted"));
    server
        .until_cluster("it is recorded again", |cluster| {
            let recording = &cluster["recording"];
            let is_so = recording["error"].is_null() && recording["bytes"].as_u64() > Some(0);
            wait::expect(is_so, || recording.to_string())
        })
        .await;
    wait::until("what is written now can be read", async || {
        let newest = recordings().into_iter().max().ok_or("nothing yet")?;
        let read = open(&newest).and_then(|opened| Series::of(vec![opened])?.play(&mut |_| {}));
        read.map(drop).map_err(|error| error.to_string())
    })
    .await;
}
