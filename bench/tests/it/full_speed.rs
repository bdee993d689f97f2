//! Recordings of two models replayed as fast as NATS and a file take them, as a backlog after a stall is: every decision agrees with
//! the routers' own reports, whatever comes first, and all repetitions are equal.

use std::path::Path;

use radixscope_captures::Recording;
use radixscope_recount::compare::decisions::{Agreement, Given};
use radixscope_recount::recording::Recording as Recounted;
use radixscope_tests::capture::Capture;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{paths, replay, wait};
use serde_json::Value;

const RECORDINGS: [&str; 2] = ["0.9.1-two-models", "1.6.1-two-models"];
/// Repetitions of the second test.
const REPETITIONS: usize = 50;
/// What depends on when a decision was received, and in which order. A path ends at what is held when it is looked up.
const BY_ARRIVAL: [&str; 6] = ["id", "seq", "at_ms", "source", "other_part", "path"];

/// When the log is written.
#[derive(Clone, Copy)]
enum Log {
    Meanwhile,
    After,
}

fn write_log(name: &str, folder: &Path) {
    let recording = Recording::topology(name);
    for log in recording.logs().into_iter().filter(|log| log.starts_with("frontend")) {
        let text: String = recording.log(&log).map(|line| line + "\n").collect();
        // Whole lines at once.
        std::fs::write(folder.join(format!("{log}.log")), text).expect("the log can be written");
    }
}

/// The decisions with what is in their recording, by time and request; their sums last.
fn figures(response: &Value) -> Vec<String> {
    let mut decisions = response["decisions"].as_array().expect("decisions").clone();
    for decision in decisions.iter_mut().filter_map(Value::as_object_mut) {
        decision.retain(|name, _| !BY_ARRIVAL.contains(&name.as_str()));
        // In the order in which workers were seen first.
        if let Some(candidates) = decision.get_mut("candidates").and_then(Value::as_array_mut) {
            candidates.sort_by_key(Value::to_string);
        }
    }
    let mut figures: Vec<String> = decisions.iter().map(Value::to_string).collect();
    figures.sort();
    let mut totals = response["totals"].clone();
    if let Some(mean) = totals["mean_hit_rate"].as_f64() {
        // Shares are added in the order of arrival, on which the last digit of their sum depends.
        totals["mean_hit_rate"] = format!("{mean:.12}").into();
    }
    figures.push(totals.to_string());
    figures
}

/// Replays a recording once, until every decision agrees with the routers' reports. With `expected`, until it shows just that.
async fn replayed(name: &'static str, log: Log, expected: Option<&[String]>) -> Vec<String> {
    let counted = Recounted::read(&paths::fixture("topologies").join(name)).expect("a recording");
    let capture = Capture::topology(name);
    let nats = Nats::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let logs = Recording::topology(name).logs();
    let logs: Vec<String> = logs.into_iter().filter(|log| log.starts_with("frontend")).collect();
    let paths = logs.iter().map(|log| folder.path().join(format!("{log}.log")));
    let flags: Vec<String> =
        paths.flat_map(|path| ["--logs".to_owned(), path.to_string_lossy().into_owned()]).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Radixscope::serve_with(&nats.url(), &flags).await;
    server.until_source_is("live").await;
    let client = nats.client().await;
    let (first, rest) = capture.messages.split_at(capture.messages.len() / 2);
    replay::publish(&client, first).await;
    if matches!(log, Log::Meanwhile) {
        write_log(name, folder.path());
    }
    replay::publish(&client, rest).await;
    if matches!(log, Log::After) {
        write_log(name, folder.path());
    }
    wait::until(&format!("the decisions of {name} agree"), async || {
        let response = server.json("/api/v1/decisions?limit=10000").await;
        let agreement = Agreement::of(&counted, &response, Given::default());
        if !agreement.is_whole() {
            return Err(format!("{:?}", agreement.differences));
        }
        let figures = figures(&response);
        let expected = expected.unwrap_or(&figures);
        let new: Vec<&String> = figures.iter().filter(|of| !expected.contains(of)).collect();
        let missing: Vec<&String> = expected.iter().filter(|of| !figures.contains(of)).collect();
        wait::expect(new.is_empty() && missing.is_empty(), || format!("{new:#?} instead of {missing:#?}"))?;
        Ok(figures)
    })
    .await
}

async fn repeated(repetitions: usize) {
    let orders = [Log::Meanwhile, Log::After];
    for name in RECORDINGS {
        let mut expected: Option<Vec<String>> = None;
        for (n, log) in orders.into_iter().cycle().take(repetitions).enumerate() {
            let figures = replayed(name, log, expected.as_deref()).await;
            println!("{name}, {n}: {}", figures.last().map_or("", String::as_str));
            expected.get_or_insert(figures);
        }
    }
}

#[tokio::test]
async fn two_models_at_full_speed_show_what_their_routers_reported() {
    repeated(1).await;
}

#[tokio::test]
async fn two_models_at_full_speed_are_equal_in_every_repetition() {
    repeated(REPETITIONS).await;
}
