//! Decisions of other routers, from their logs to the API, to tables and to the page, with links to their traces.

use std::path::PathBuf;

use radixscope_tests::browser::with_page;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

/// Nothing listens there: only the log is looked at.
const NO_NATS: &str = "nats://127.0.0.1:1";
const PICKER: &str =
    include_str!("../../../../core/dynamo/tests/fixtures/endpoint_picker/llm-d-router.jsonl");

const TEMPLATE: &str = "https://logs.example.org/q?id={request_id}&at={time_ms}";

struct Logged {
    server: Radixscope,
    /// Newest first.
    decisions: Vec<Value>,
    _folder: tempfile::TempDir,
}

impl Logged {
    async fn new(lines: &str, count: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log: PathBuf = folder.path().join("router.log");
        std::fs::write(&log, lines).expect("the log can be written");
        let log = log.to_str().expect("a plain path");
        let args = ["serve", "--nats", NO_NATS, "--logs", log, "--trace-url", TEMPLATE];
        let server = Radixscope::start(args).await;
        let look = |cluster: &Value| {
            let decided = cluster["decisions"]["count"].as_u64();
            wait::expect(decided == Some(count as u64), || cluster["sources"].to_string())
        };
        server.until_cluster("all choices of the log are decisions", look).await;
        let all = server.json("/api/v1/decisions").await;
        let decisions = all["decisions"].as_array().expect("decisions").clone();
        Self { server, decisions, _folder: folder }
    }
}

#[tokio::test]
async fn a_picker_s_log_shows_what_every_endpoint_scored() {
    let Logged { server, decisions, .. } = Logged::new(PICKER, 3).await;
    let first = decisions.last().expect("three");
    assert_eq!((&first["arithmetic"], &first["decided_by"]), (&"endpoint_picker".into(), &"scores".into()));
    let scores = &first["scores"];
    assert_eq!(scores["profile"], "default");
    let candidates = scores["candidates"].as_array().expect("candidates");
    assert_eq!(candidates.len(), 3);
    assert_eq!((&candidates[0]["score"], &candidates[0]["selected"]), (&3.8.into(), &true.into()));
    assert_eq!(candidates[0]["by_scorer"], serde_json::json!([1.0, 0.9, 0.0]));
    assert_eq!(candidates[1]["endpoint"], "llm-d/ms-llm-d-decode-7d9c8f-fghij-rank-0");
    assert_eq!(
        (&first["cost"], &first["margin_blocks"], &first["overlap_blocks"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let link = "https://logs.example.org/q?id=7c0f6f5e-91cd-4a0c-9f6d-000000000001&at=1795198014431";
    assert_eq!(first["trace_url"], link);
    // The worker is named, and its pool is that of the pods.
    let cluster = server.cluster().await;
    let named = cluster["workers"]
        .as_array()
        .expect("workers")
        .iter()
        .find(|of| of["worker_id"] == first["worker_id"]);
    let named = named.expect("the chosen worker");
    assert_eq!(named["endpoint"], "llm-d/ms-llm-d-decode-7d9c8f-abcde-rank-0");
    assert_eq!(named["pool"], "llm-d/endpoints");
    // What-if and counterfactual know another arithmetic.
    let body = r#"{"mode":"frozen","last":150,"settings":{"overlap_score_weight":1}}"#;
    let run: Value =
        serde_json::from_str(server.post("/api/v1/counterfactual", body, &[]).await.text()).expect("JSON");
    assert_eq!(
        (&run["decisions"]["judged"], &run["decisions"]["left_out"][0]["count"]),
        (&0.into(), &3.into()),
        "{run}"
    );
    let body = format!(r#"{{"decision":{}}}"#, first["id"]);
    let refused = server.post("/api/v1/score", &body, &[]).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("what-if knows the arithmetic of Dynamo's router alone"),
        "{}",
        refused.text()
    );
    let selected = server.json("/api/v1/decisions?decided_by=scores").await;
    assert_eq!(selected["decisions"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn the_details_of_a_picker_s_decision_list_scores_and_link_to_its_trace() {
    let Logged { server, decisions, .. } = Logged::new(PICKER, 3).await;
    let id = decisions.last().and_then(|of| of["id"].as_str()).expect("an id").to_owned();
    with_page(async |page| {
        page.size(1600, 900).await;
        page.open(&server.url(&format!("/?view=decisions&decision={id}"))).await;
        page.until_true(
            "its scores are shown",
            "document.querySelectorAll('[data-testid=scored]').length === 3",
        )
        .await;
        let rows = page.texts("[data-testid=scored]").await;
        assert!(rows[0].contains("chosen") && rows[0].contains("score 3.8"), "{rows:?}");
        assert!(
            rows[0].contains("kv-cache-utilization-scorer 0.9") && rows[0].contains("3 running"),
            "{rows:?}"
        );
        assert!(rows[1].contains("llm-d/ms-llm-d-decode-7d9c8f-fghij-rank-0"), "{rows:?}");
        assert_eq!(page.text("details-router").await.as_deref(), Some("endpoint picker (EPP)"));
        let why = page.text("why").await.unwrap_or_default();
        assert!(why.contains("its score of 3.8 is the highest of 3"), "{why}");
        let link = "[data-testid=trace-link]";
        let href = page.attribute(link, "href").await.unwrap_or_default();
        assert!(href.starts_with("https://logs.example.org/q?id=7c0f6f5e-"), "{href}");
        assert_eq!(page.attribute(link, "rel").await.as_deref(), Some("noopener noreferrer"));
        let ticket = page.eval("document.querySelector('[data-testid=ticket]').textContent").await;
        let ticket = ticket.as_str().unwrap_or_default();
        assert!(ticket.contains("| worker | score | queue-scorer |"), "{ticket}");
    })
    .await;
}
