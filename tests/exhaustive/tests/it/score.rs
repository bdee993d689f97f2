//! What-if over HTTP, against a real server: recorded decisions come out as they were taken, and no body, however odd,
//! gets anything but a response or an error in words.

use hyper::Method;
use radixscope_tests::http::{Http, HttpResponse};
use radixscope_tests::radixscope::Radixscope;
use serde_json::{Value, json};

/// A demo in which hardly any time passes, so that two responses are about the same state.
async fn demo() -> Radixscope {
    // Whose router writes the cost of every candidate.
    let args = ["demo", "--topology", "aggregated-0.9", "--warm-up", "60", "--speed", "0.000001"];
    let server = Radixscope::start(args).await;
    server.until_source_is("live").await;
    server
}

async fn post(server: &Radixscope, body: impl Into<Vec<u8>>) -> HttpResponse {
    let url = server.url("/api/v1/score");
    Http::default().send(Method::POST, &url, &[], body.into()).await.expect("the server answers")
}

async fn score(server: &Radixscope, question: Value) -> Value {
    let response = post(server, question.to_string()).await;
    assert_eq!(response.status, 200, "{question}: {}", response.text());
    response.json()
}

async fn refused(server: &Radixscope, body: impl Into<Vec<u8>>) -> (u16, String) {
    let response = post(server, body).await;
    let error = response.json()["error"]["message"].as_str().expect("an error in words").to_owned();
    (response.status, error)
}

/// Decisions of which all candidates are known.
async fn decisions(server: &Radixscope) -> Vec<Value> {
    let all = server.json("/api/v1/decisions?limit=200").await;
    let all = all["decisions"].as_array().expect("decisions").iter();
    let known: Vec<Value> =
        all.filter(|d| d["completeness"] != "chosen only" && d["formula"] == "A").cloned().collect();
    assert!(known.len() > 20, "{}", known.len());
    known
}

fn cost_of(response: &Value, worker: &Value) -> f64 {
    let candidates = response["candidates"].as_array().expect("candidates").iter();
    let cost =
        candidates.filter(|c| c["worker_id"] == *worker).map(|c| c["cost"].as_f64().expect("a cost")).next();
    cost.unwrap_or_else(|| panic!("worker {worker} is no candidate in {response}"))
}

#[tokio::test]
async fn the_prompt_of_a_decision_can_be_had_and_asked_again() {
    let server = demo().await;
    let decision = &decisions(&server).await[0];
    let id = decision["id"].as_str().expect("a string");
    let prompt = server.json(&format!("/api/v1/prompt?decision={id}")).await;
    let chain = prompt["chain_hashes"].as_array().expect("hashes");
    let (isl, size) = (
        decision["isl_tokens"].as_u64().expect("known"),
        prompt["block_size_tokens"].as_u64().expect("known"),
    );
    assert_eq!(chain.len() as u64, isl / size);
    let by_hashes = score(&server, json!({"chain_hashes": chain, "isl_tokens": isl})).await;
    let by_decision = score(&server, json!({"decision": id, "as": "live"})).await;
    for candidate in by_hashes["candidates"].as_array().expect("candidates") {
        assert_eq!(
            cost_of(&by_decision, &candidate["worker_id"]),
            candidate["cost"].as_f64().expect("a cost")
        );
    }
    assert_eq!(by_decision["versus"]["decision"], id);
    let missing = server.get("/api/v1/prompt?decision=18446744073709551615").await;
    assert_eq!(missing.status, 404);
    assert!(missing.text().contains("is not retained"), "{}", missing.text());
    assert_eq!(server.get("/api/v1/prompt").await.status, 400);
}

#[tokio::test]
async fn options_and_changes_to_the_cluster_change_the_response() {
    let server = demo().await;
    let example = score(&server, json!({"example": true, "options": {"version": "0.9.1"}})).await;
    let costs: Vec<f64> = example["candidates"]
        .as_array()
        .expect("three")
        .iter()
        .map(|c| c["cost"].as_f64().expect("a cost"))
        .collect();
    assert_eq!(costs, [30.0, 90.0, 99.0]);
    assert_eq!((&example["margin_blocks"], &example["tied"]), (&json!(60.0), &json!(false)));
    assert_eq!(example["candidates"][0]["terms"]["sum"], "30 = 1.0 × 25 prefill + 5 decode");

    let tokens: Vec<u32> = (0..5_000).collect();
    let asked = score(&server, json!({"token_ids": tokens, "options": {"formula": "E"}})).await;
    assert_eq!(asked["isl_tokens"], 5_000);
    assert_eq!(asked["options"]["prefill_load_scale"], 1.0);
    assert!(asked["options"].get("overlap_score_weight").is_none(), "formula E knows no such weight");
    let best = &asked["candidates"][0];
    let id = json!({"worker_id": best["worker_id"], "dp_rank": best["dp_rank"]});
    let workers = json!({"without": [id], "added": 1});
    let without =
        score(&server, json!({"token_ids": tokens, "options": {"formula": "E"}, "workers": workers})).await;
    let names = |response: &Value| -> Vec<String> {
        let all = response["candidates"].as_array().expect("candidates").iter();
        all.map(|c| c["name"].as_str().expect("a name").to_owned()).collect()
    };
    let (before, after) = (names(&asked), names(&without));
    assert_eq!(after.len(), before.len());
    assert!(after.contains(&"added 1".to_owned()) && !after.contains(&before[0]), "{after:?}");
    let busy = json!([{"worker_id": best["worker_id"], "decode_blocks": {"add": 7}}]);
    let busier =
        score(&server, json!({"token_ids": tokens, "options": {"formula": "E"}, "workers": {"busy": busy}}))
            .await;
    let cost = best["cost"].as_f64().expect("a cost");
    assert_eq!(cost_of(&busier, &best["worker_id"]), cost + 7.0);
    assert!(!asked["notes"].as_array().expect("notes").is_empty());
}

#[tokio::test]
async fn an_invalid_body_is_refused_with_its_field() {
    let server = demo().await;
    for (body, says) in [
        ("", "is not valid"),
        ("[]", "is not valid"),
        ("{}", "no prompt; expected"),
        (r#"{"token_idz":[1]}"#, "token_idz"),
        (r#"{"token_ids":[1],"block_hashes":["1"]}"#, "give token_ids or block_hashes, not both"),
        (r#"{"token_ids":[1,"2"]}"#, "token_ids: invalid type: string"),
        (r#"{"token_ids":[4294967296]}"#, "token_ids: invalid value"),
        (r#"{"token_ids":[-1]}"#, "token_ids: "),
        (r#"{"block_hashes":[9007199254740993]}"#, "block_hashes: 9007199254740993 is above 2^53"),
        (
            r#"{"block_hashes":["18446744073709551616"]}"#,
            "expected a number of at most 64 bits as a decimal string",
        ),
        (r#"{"block_hashes":[1.5]}"#, "block_hashes: invalid type: floating point"),
        (r#"{"decision":"x"}"#, "decision: "),
        (r#"{"isl_tokens":100,"block_size_tokens":0}"#, "block_size_tokens: 0 tokens per block"),
        (r#"{"isl_tokens":"18446744073709551615"}"#, "at most 1,048,576"),
        (r#"{"block_hashes":["1"],"block_size_tokens":7}"#, "needs its token ids"),
        (r#"{"isl_tokens":100,"options":{"weight":1}}"#, "unknown field `weight`"),
        (r#"{"isl_tokens":100,"options":{"version":"3.0"}}"#, "options.version=\"3.0\""),
        (r#"{"isl_tokens":100,"options":{"formula":"F"}}"#, "expected one of `A`, `B`, `C`, `D`, `E`"),
        (r#"{"isl_tokens":100,"options":{"router_temperature":-1}}"#, "router_temperature is -1"),
        (r#"{"isl_tokens":100,"options":{"router_temperature":1e999}}"#, "options"),
        (r#"{"isl_tokens":100,"workers":{"added":65}}"#, "at most 64"),
        (r#"{"isl_tokens":100,"as":"live"}"#, "as: "),
        (
            r#"{"isl_tokens":100,"workers":{"busy":[{"worker_id":"1","decode_blocks":{"set":1,"add":1}}]}}"#,
            "set or add",
        ),
    ] {
        let (status, message) = refused(&server, body).await;
        assert_eq!(status, 400, "{body}: {message}");
        assert!(message.contains(says), "{body}: {message}");
    }
    for body in [
        r#"{"decision":"18446744073709551615"}"#,
        r#"{"isl_tokens":100,"workers":{"without":[{"worker_id":"1"}]}}"#,
        r#"{"after":{"worker_id":"1","block_hash":"2"}}"#,
    ] {
        assert_eq!(refused(&server, body).await.0, 404, "{body}");
    }
    let deep = format!("{}{}", r#"{"token_ids":"#, "[".repeat(100_000));
    assert_eq!(refused(&server, deep).await.0, 400);
    let large = refused(&server, vec![b' '; (8 << 20) + 1]).await;
    assert!(large.0 == 413 && large.1.contains("at most"), "{large:?}");
    assert_eq!(server.get("/api/v1/score").await.status, 405);
}

#[tokio::test]
async fn numbers_that_every_reader_keeps_may_be_numbers() {
    let server = demo().await;
    let response = score(&server, json!({"block_hashes": [9007199254740992_u64, "1", 2]})).await;
    assert_eq!(response["isl_blocks"], 3);
    assert!(
        response["notes"].to_string().contains("length is taken as its 3 full blocks"),
        "{}",
        response["notes"]
    );
}
