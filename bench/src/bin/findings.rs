//! Says every recorded deployment again at its own pace, through a real NATS server, real scrapes and growing logs, to a
//! real `radixscope serve`, and prints what it found, when, and what was expected.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser as _;
use futures_util::{StreamExt as _, stream};
use radixscope_tests::recording::expected::{self, Expected};
use radixscope_tests::recording::{Recording, Replayed};

#[derive(clap::Parser)]
struct Options {
    /// Recorded seconds a second
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// Recordings at the same time
    #[arg(long, default_value_t = 4)]
    at_once: usize,
    /// Names of recordings; all when none is named
    recordings: Vec<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Options { speed, at_once, recordings: named } = Options::parse();
    let is_meant = |expected: &&Expected| named.is_empty() || named.iter().any(|n| n == expected.capture);
    let replays = expected::ALL.iter().filter(is_meant).map(async |expected| {
        let replayed = Recording::prepare(expected.capture, speed).await.replay().await;
        let is_right = expected.check(&replayed);
        (row(expected, &replayed, &is_right), is_right.is_ok())
    });
    println!("| Recording | Found, recorded seconds after traffic began | Expected | |\n|---|---|---|---|");
    let mut all_right = true;
    let mut replays = stream::iter(replays).buffered(at_once);
    while let Some((row, is_right)) = replays.next().await {
        println!("{row}");
        all_right &= is_right;
    }
    if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn row(expected: &Expected, replayed: &Replayed, is_right: &Result<(), String>) -> String {
    let began_s = replayed.event_s("traffic_start");
    let found = replayed
        .seen
        .iter()
        .map(|(code, seen)| format!("{code} ({}) at {:.1} s", seen.severity, seen.at_s - began_s));
    let found: Vec<String> = found.collect();
    let must = expected.must.iter().map(|must| {
        let after_s = replayed.event_s(must.after) - began_s;
        format!("{} from {after_s:.1} to {:.1} s", must.code, after_s + must.within_s)
    });
    let must: Vec<String> = must.collect();
    let or_none = |list: Vec<String>, none: &str| match list.is_empty() {
        true => none.to_owned(),
        false => list.join("; "),
    };
    let verdict = is_right.as_ref().err().map_or("as expected", |why| why.as_str());
    format!(
        "| {} | {} | {} | {verdict} |",
        expected.capture,
        or_none(found, "nothing"),
        or_none(must, "no warning, nothing critical"),
    )
}
