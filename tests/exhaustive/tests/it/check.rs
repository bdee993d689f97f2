//! `radixscope check` on recordings and against a target, at their own pace: what it prints and how it ends, for pipelines that read
//! either.

use std::collections::BTreeSet;
use std::ffi::OsString;

use radixscope_tests::check::{check, text};
use radixscope_tests::recording::{Recording, rank};
use serde_json::Value;

/// Checks a recording from its beginning, said so many times as fast as it was.
async fn check_recording(name: &'static str, speed: f64, more: &[&str]) -> (Option<i32>, Value) {
    let mut recording = Recording::prepare(name, speed).await;
    let mut args = recording.flags();
    args.extend(["--output", "json"].iter().chain(more).map(OsString::from));
    let (_, speaking) = recording.start().await;
    let output = check(args).await;
    speaking.iter().for_each(tokio::task::JoinHandle::abort);
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", text(&output.stdout), text(&output.stderr)));
    (output.status.code(), json)
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_healthy_deployment_ends_with_0() {
    let (code, response) = check_recording("0.9.1-healthy", 6.0, &["--for", "12s"]).await;
    assert_eq!((code, &response["exit_code"]), (Some(0), &0.into()), "{response}");
    assert_eq!(response["no_data_reason"], Value::Null);
    let bad = |finding: &&Value| rank(finding["severity"].as_str().expect("text")) > 0;
    assert_eq!(response["findings"].as_array().expect("findings").iter().find(bad), None);
    assert!(response["checked"].as_array().is_some_and(|rules| !rules.is_empty()), "{response}");
}

#[tokio::test]
async fn a_mismatch_ends_with_2_as_soon_as_it_is_found_and_in_the_objects_of_the_api() {
    let (code, response) =
        check_recording("0.9.1-mismatch", 2.0, &["--for", "1h", "--until-found", "critical"]).await;
    assert_eq!((code, &response["exit_code"]), (Some(2), &2.into()), "{response}");
    let finding = &response["findings"][0];
    assert_eq!((&finding["code"], &finding["severity"]), (&"block_size_mismatch".into(), &"critical".into()));
    let names = "code severity title cause explanation evidence fix workers first_seen_ms last_seen_ms state panel selects_worker";
    assert_eq!(keys(finding), names.split(' ').collect());
    assert_eq!(keys(&finding["evidence"][0]), BTreeSet::from(["label", "unit", "value"]));
    assert_eq!(keys(&finding["fix"][0]), BTreeSet::from(["engine", "setting", "text", "value"]));
    assert_eq!(
        keys(&response["checked"][0]),
        BTreeSet::from(["code", "explained_by", "missing", "pending", "status", "subject"])
    );
    assert!(response["seq"].is_u64() && response["at_ms"].is_u64());
}

#[tokio::test]
async fn a_worker_that_left_ends_with_1() {
    let (code, response) =
        check_recording("0.9.1-worker-restart", 6.0, &["--for", "1h", "--until-found", "warning"]).await;
    assert_eq!((code, &response["findings"][0]["code"]), (Some(1), &"worker_gone".into()), "{response}");
}

/// Requests to a frontend, sixty more at each scrape, all of them between 1 s and 2.2 s to their first token.
async fn slow_frontend() -> String {
    let scrapes = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let response = move || {
        let requests = 60 * (1 + scrapes.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let name = "dynamo_frontend_time_to_first_token_seconds";
        let bucket = |le: &str, count: u64| format!("{name}_bucket{{model=\"m\",le=\"{le}\"}} {count}\n");
        let buckets = [bucket("1", 0), bucket("2.2", requests), bucket("+Inf", requests)].concat();
        let sum = format!("{name}_sum{{model=\"m\"}} {requests}\n{name}_count{{model=\"m\"}} {requests}\n");
        std::future::ready(format!("{buckets}{sum}"))
    };
    let router = axum::Router::new().route("/metrics", axum::routing::get(response));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("frontend=http://{at}/metrics")
}

/// What a check with this target says of it: how it ended, and what became of the rule.
async fn against_target(frontend: &str, target_ms: &str, more: &[&str]) -> (Option<i32>, String) {
    let sources = ["--prometheus", frontend, "--prometheus-interval", "0.5", "--output", "json"];
    let target = ["--slo-ttft-ms", target_ms];
    let flags = sources.iter().chain(&target).chain(more);
    let output = check(flags.map(OsString::from).collect()).await;
    let response: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rules = response["checked"].as_array().expect("rules");
    let rule = rules.iter().find(|rule| rule["code"] == "slo_breach").expect("the rule");
    (output.status.code(), rule["status"].as_str().expect("text").to_owned())
}

/// Whatever the default is: between the two targets nothing but the option differs.
#[tokio::test]
async fn the_operators_target_decides_what_is_found_and_how_it_ends() {
    let frontend = slow_frontend().await;
    let (within, above, far_above) = tokio::join!(
        against_target(&frontend, "3000", &["--for", "50s"]),
        against_target(&frontend, "900", &["--for", "5m", "--until-found", "warning"]),
        against_target(&frontend, "300", &["--for", "5m", "--until-found", "critical"]),
    );
    assert_eq!(within, (Some(0), "ok".to_owned()));
    assert_eq!(above, (Some(1), "warning".to_owned()));
    assert_eq!(far_above, (Some(2), "critical".to_owned()));
}
