//! Request traces as a frontend writes them to files.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

/// Nothing listens there: only the traces are looked at.
const NO_NATS: &str = "nats://127.0.0.1:1";

/// Records that Dynamo 1.7.0.dev20261026 wrote, as if their requests had ended now.
fn recorded() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/1.7.0.dev20261026");
    let file = fs::File::open(folder.join("dynamo-request-trace.000000.jsonl.gz")).expect("the fixture");
    let mut text = String::new();
    MultiGzDecoder::new(file).read_to_string(&mut text).expect("whole");
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let now = since_1970.as_millis() as u64;
    let moved = |line: &str| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        let request_ms = line["event"]["event_time_unix_ms"]
            .as_u64()
            .zip(line["event"]["request"]["request_received_ms"].as_u64());
        let (ended, received) = request_ms.expect("times");
        line["event"]["event_time_unix_ms"] = now.into();
        line["event"]["request"]["request_received_ms"] = (now - (ended - received)).into();
        line.to_string()
    };
    text.lines().map(moved).collect()
}

async fn until(server: &Radixscope, state: &str, expected: &str, received: u64) {
    let look = |cluster: &Value| {
        let sources = cluster["sources"].as_array().expect("sources");
        let source = sources.iter().find(|of| of["kind"] == "request_traces").expect("a source");
        let says = source["detail"].as_str().is_some_and(|detail| detail.contains(expected));
        let is_there = source["state"] == state && says && source["received"] == received;
        wait::expect(is_there && source["rejected"] == serde_json::json!([]), || source.to_string())
    };
    server.until_cluster(&format!("{state}, {expected:?}, {received} records"), look).await;
}

#[tokio::test]
async fn requests_of_a_file_of_traces_are_decisions_with_what_was_really_cached() {
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("dynamo-request-trace");
    let path = prefix.to_str().expect("a plain path");
    let server = Radixscope::start(["serve", "--nats", NO_NATS, "--request-trace", path]).await;
    until(&server, "connecting", "No request traces at", 0).await;

    let lines = recorded();
    let (first, rest) = lines.split_at(5);
    let segment = format!("{path}.000000.jsonl");
    fs::write(&segment, first.join("\n") + "\n").expect("written");
    until(&server, "live", "Following 1 file", 5).await;
    fs::write(format!("{path}.000001.jsonl"), rest.join("\n") + "\n").expect("written");
    until(&server, "live", "Following", lines.len() as u64).await;

    let decisions = server.json("/api/v1/decisions?limit=100").await;
    let decisions = decisions["decisions"].as_array().expect("decisions");
    assert_eq!(decisions.len(), lines.len());
    for line in &lines {
        let request = &serde_json::from_str::<Value>(line).expect("JSON")["event"]["request"];
        let of = decisions.iter().find(|of| of["request_id"] == request["request_id"]).expect("a decision");
        assert_eq!(of["progress"]["cached_tokens"], request["cached_tokens"]);
        assert_eq!(of["isl_tokens"], request["input_tokens"]);
    }
}
