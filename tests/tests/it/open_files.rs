//! What was collected of a run is opened: the page's API has its decisions, and a report is written at once.

use std::fs;
use std::path::{Path, PathBuf};

use radixscope_tests::radixscope::Radixscope;
use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// A folder as it is collected: a frontend's log, what its client measured, and the request traces of another day.
fn bundle() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, of) in [
        ("logs/frontend.log", "aiperf/0.13.0/frontend.log"),
        ("benchmark/profile_export.jsonl", "aiperf/0.13.0/profile_export.jsonl"),
        (
            "request-traces/dynamo-request-trace.000000.jsonl.gz",
            "traces/1.7.0.dev20261026/dynamo-request-trace.000000.jsonl.gz",
        ),
    ] {
        let path = folder.path().join("run").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::copy(fixture(of), path).expect("copied");
    }
    folder
}

async fn decisions(server: &Radixscope) -> Vec<Value> {
    let decisions = server.json("/api/v1/decisions?limit=100").await;
    decisions["decisions"].as_array().expect("decisions").clone()
}

#[tokio::test]
async fn a_folder_is_served_with_its_decisions_and_what_clients_measured() {
    let folder = bundle();
    let run = folder.path().join("run");
    let run = run.to_str().expect("a plain path");
    let server = Radixscope::start(["open", run]).await;
    assert_eq!(server.json("/history").await["replay"], true);
    let shown = decisions(&server).await;
    assert_eq!(shown.len(), 3);
    assert!(shown.iter().all(|of| of["client"]["outcome"] == "success"), "{shown:?}");
    let latency = server.json("/api/v1/latency").await;
    assert_eq!(latency["client_results"]["joined"], 3);
    let cluster = server.cluster().await;
    let sources = cluster["sources"].as_array().expect("sources");
    assert!(sources.iter().all(|source| source["state"] == "ended"), "{sources:?}");
    let viewer = server.viewer().await;
    viewer.agrees_with(&server).await;

    // The run of the day before.
    let server = Radixscope::start(["open", run, "--run", "1"]).await;
    let shown = decisions(&server).await;
    assert_eq!(shown.len(), 22);
    assert!(shown.iter().all(|of| of["progress"]["cached_tokens"].is_number()), "{shown:?}");
}

#[test]
fn a_report_and_a_recording_are_written_at_once_and_nothing_is_overwritten() {
    let folder = bundle();
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_owned();
    let (run, html, saved) = (path("run"), path("report.html"), path("saved.mcap"));
    let done = Radixscope::run(&["open", &run, "--html", &html, "--save", &saved]);
    let (printed, said) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}");
    for part in
        ["run/logs/frontend.log: log, 9 records read", "2 runs", "Client results: 3 joined", "Absent:"]
    {
        assert!(printed.contains(part), "{part:?} in:\n{printed}");
    }
    let report = fs::read_to_string(&html).expect("the report");
    assert!(report.starts_with("<!DOCTYPE html>") && report.len() > 100_000, "{}", report.len());
    let exported = Radixscope::run(&["export", &saved, "--decisions", "json"]);
    let exported: Value = serde_json::from_slice(&exported.stdout).expect("JSON");
    assert_eq!(exported.as_array().map(Vec::len), Some(3));

    let again = Radixscope::run(&["open", &run, "--html", &html]);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("the file exists"));
}
