//! A real nats-server and a frontend's log together: every decision is counted once, with the data of both.

use radixscope_captures::Recording;
use radixscope_tests::capture::Capture;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{replay, wait};
use serde_json::Value;

fn log_of(capture: &str) -> String {
    Recording::fixture(capture).log("frontend").map(|line| line + "\n").collect()
}

fn sources(decision: &Value) -> Vec<&str> {
    decision["sources"].as_array().expect("sources").iter().filter_map(Value::as_str).collect()
}

/// Serves a capture whose log is in a file, `first` what is said first.
async fn played(name: &'static str, log_first: bool) -> (Nats, Radixscope, Value) {
    let nats = Nats::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("frontend.log");
    std::fs::write(&path, "").expect("an empty log");
    let server = Radixscope::serve_with(&nats.url(), &["--logs", path.to_str().expect("a plain path")]).await;
    server.until_ready().await;
    let capture = Capture::load(name);
    let log = log_of(name);
    let selected = log.matches("Selected worker").count() as u64;
    let until_reported_by = async |by: usize| {
        let look = async || {
            let all = server.json("/api/v1/decisions?limit=10000").await;
            let rows = all["decisions"].as_array().expect("decisions");
            let count = rows.iter().filter(|row| sources(row).len() == by).count() as u64;
            wait::expect(count == selected, || format!("{count} of {selected}"))
        };
        wait::until(&format!("every decision is reported by {by}"), look).await;
    };
    if log_first {
        std::fs::write(&path, &log).expect("written");
        until_reported_by(1).await;
    }
    replay::publish(&nats.client().await, &capture.messages).await;
    if !log_first {
        until_reported_by(1).await;
        std::fs::write(&path, &log).expect("written");
    }
    until_reported_by(2).await;
    let all = server.json("/api/v1/decisions?limit=10000").await;
    (nats, server, all)
}

#[tokio::test]
async fn messages_and_log_of_0_9_1_are_joined_whichever_comes_first() {
    for log_first in [false, true] {
        let (_nats, _server, all) = played("0.9.1-healthy", log_first).await;
        let rows = all["decisions"].as_array().expect("decisions");
        assert_eq!((rows.len(), &all["totals"]["count"]), (278, &278.into()), "nothing twice");
        for row in rows {
            assert_eq!(
                (&row["completeness"], &row["formula"]),
                (&"all candidates".into(), &"A".into()),
                "{row}"
            );
            let candidates = row["candidates"].as_array().expect("candidates");
            assert_eq!(candidates.len(), 3, "{row}");
            let costs = candidates.iter().filter_map(|c| c["cost"].as_f64());
            let least = costs.fold(f64::INFINITY, f64::min);
            let chosen = candidates.iter().find(|c| c["selected"] == true).expect("one is chosen");
            assert_eq!(chosen["cost"], least, "{row}");
            assert_eq!(
                (&chosen["worker_id"], &chosen["overlap_blocks"]),
                (&row["worker_id"], &row["overlap_blocks"])
            );
        }
    }
}
