//! What aiperf measured of requests at the client, joined with the decisions that the frontend's log has of them: in the API and on the page.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use radixscope_tests::browser::with_page;
use radixscope_tests::paths;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

/// Nothing listens there: only the log and the results are looked at.
const NO_NATS: &str = "nats://127.0.0.1:1";

fn fixture(name: &str) -> PathBuf {
    paths::fixture("aiperf/0.13.0").join(name)
}

/// A server that reads the frontend's log and follows a folder with results.
async fn serve(folder: &Path) -> Radixscope {
    let log = format!("frontend={}", fixture("frontend.log").display());
    let results = folder.to_str().expect("a plain path");
    Radixscope::start(["serve", "--nats", NO_NATS, "--logs", &log, "--client-results", results]).await
}

async fn until_joined(server: &Radixscope, joined: u64) {
    wait::until(&format!("{joined} results are joined"), async || {
        let latency = server.json("/api/v1/latency").await;
        wait::expect(latency["client_results"]["joined"] == joined, || latency["client_results"].to_string())
    })
    .await;
}

#[tokio::test]
async fn results_of_a_growing_file_are_joined_with_decisions() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path()).await;
    let recorded = fs::read_to_string(fixture("profile_export.jsonl")).expect("the fixture");
    let lines: Vec<&str> = recorded.lines().collect();
    // Not a result: aiperf writes such files beside them.
    fs::write(folder.path().join("profile_export_raw.jsonl"), "{}\n").expect("written");
    let path = folder.path().join("profile_export.jsonl");
    fs::write(&path, format!("{}\n", lines[0])).expect("written");
    until_joined(&server, 1).await;
    let mut file = OpenOptions::new().append(true).open(&path).expect("there");
    file.write_all(format!("{}\n", lines[1..].join("\n")).as_bytes()).expect("written");
    until_joined(&server, 3).await;

    let decisions = server.json("/api/v1/decisions?limit=10").await;
    let decisions = decisions["decisions"].as_array().expect("decisions");
    assert_eq!(decisions.len(), 3);
    let measured = |line: &str, name: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["metrics"][name]["value"].as_f64().expect("a number")
    };
    let mut expected: Vec<f64> =
        lines[..3].iter().map(|line| measured(line, "time_to_first_token")).collect();
    let mut shown: Vec<f64> =
        decisions.iter().map(|of| of["client"]["ttft_ms"].as_f64().expect("measured")).collect();
    expected.sort_by(f64::total_cmp);
    shown.sort_by(f64::total_cmp);
    for (shown, expected) in shown.iter().zip(&expected) {
        assert!((shown - expected).abs() < 0.001, "{shown} {expected}");
    }
    assert!(
        decisions.iter().all(|of| of["client"]["outcome"] == "success" && of["client"]["status"].is_null())
    );
}

#[tokio::test]
async fn the_page_shows_what_clients_measured_beside_the_frontend() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(fixture("profile_export.jsonl"), folder.path().join("profile_export.jsonl")).expect("copied");
    let server = serve(folder.path()).await;
    until_joined(&server, 3).await;
    let decisions = server.json("/api/v1/decisions?limit=10").await;
    let mut slowest: Vec<&Value> = decisions["decisions"].as_array().expect("decisions").iter().collect();
    let ttft = |of: &Value| of["client"]["ttft_ms"].as_f64().expect("measured");
    slowest.sort_by(|a, b| ttft(b).total_cmp(&ttft(a)));
    with_page(async |page| {
        page.open(&server.url("/?view=decisions&sort=-client-ttft")).await;
        page.until("the slowest at the client comes first", async |page| {
            let shown = page.texts("[data-testid=ledger-row][data-decision] .l-client").await;
            let expected: Vec<String> = slowest.iter().map(|of| format!("{} ms", ttft(of).round())).collect();
            wait::expect(shown == expected, || format!("{shown:?} {expected:?}"))
        })
        .await;
        let id = slowest[0]["id"].as_str().expect("an id");
        page.open(&server.url(&format!("/?view=decisions&decision={id}"))).await;
        page.until("the difference is explained", async |page| {
            let text = page.text("client-result").await.unwrap_or_default();
            let is_there = text.contains("at the client") && text.contains("at the frontend");
            wait::expect(is_there, || text)
        })
        .await;
        page.open(&server.url("/?view=latency")).await;
        page.until("Latency has the client's figures", async |page| {
            let text = page.text("ttft-client").await.unwrap_or_default();
            let from = page.attribute("[data-testid=ttft-client]", "title").await.unwrap_or_default();
            let is_there = text.starts_with("at the client") && from.contains("3 of 3 results are joined");
            wait::expect(is_there, || format!("{text} {from}"))
        })
        .await;
        page.open(&server.url("/?view=decisions&ttft_slo=1&client=above_target")).await;
        page.until("all are above a millisecond at the client", async |page| {
            let rows = page.texts("[data-testid=ledger-row][data-decision]").await.len();
            let chosen = page.text("filter-client").await.unwrap_or_default();
            wait::expect(rows == 3 && chosen.contains("TTFT above target 3"), || format!("{rows} {chosen}"))
        })
        .await;
        let of = async |query: &str| {
            let response = server.json(&format!("/api/v1/decisions?client={query}")).await;
            response["decisions"].as_array().map(Vec::len)
        };
        assert_eq!((of("within_target").await, of("unknown").await), (Some(3), Some(0)));
    })
    .await;
}
