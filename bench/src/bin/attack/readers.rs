//! What slow readers and guessers cost others: how long a fast reader of a recording waits among eight slow ones, how many
//! guesses of the access token get a response, and what a client with the right token sees of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::raw::{self, SlowReader};
use radixscope_tests::wait;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{MIB, ms, row};

/// Slow readers at a time; each that is ended comes back.
const SLOW_READERS: usize = 8;
/// A refused client comes back after this.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Guessers at a time.
const GUESSERS: usize = 32;
const TOKEN: &str = "k7PnnL2t-a.token.for.tests";

/// Each attack for so long.
pub(crate) async fn rows(each: Duration) -> Vec<Value> {
    let mut rows = Vec::new();
    for path in ["/api/v1/report", "/api/v1/recording"] {
        rows.extend(readers(path, each).await);
    }
    rows.extend(guesses(each).await);
    rows
}

async fn readers(path: &'static str, each: Duration) -> Vec<Value> {
    let server = Radixscope::start(["demo", "--warm-up", "600"]).await;
    server.until_source_is("live").await;
    let alone = fast_reader(&server, path).await;
    let before = server.process().rss_bytes();
    let mut slow = JoinSet::new();
    for _ in 0..SLOW_READERS {
        slow.spawn(slow_reader(server.port(), path));
    }
    let until = Instant::now() + each;
    let (mut longest, mut most) = (Duration::ZERO, before);
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(500)).await;
        longest = longest.max(fast_reader(&server, path).await);
        most = most.max(server.process().rss_bytes());
    }
    let grown = most.saturating_sub(before) as f64 / MIB;
    vec![
        row(&format!("a fast reader of {path}, alone"), ms(alone), "ms", None),
        row(
            &format!("longest time of a fast reader of {path} among 8 slow ones"),
            ms(longest),
            "ms",
            Some(("≤ 5,000 ms", 5_000.0)),
        ),
        row(
            &format!("memory of 8 slow readers of {path} and a fast one"),
            grown,
            "MiB",
            Some(("≤ 256 MiB", 256.0)),
        ),
    ]
}

/// Time until everything is read, from the first request on.
async fn fast_reader(server: &Radixscope, path: &str) -> Duration {
    let since = Instant::now();
    wait::until("a fast reader is served", async || {
        let response = server.try_get(path).await?;
        wait::expect(response.status == 200, || response.text().to_owned())
    })
    .await;
    since.elapsed()
}

async fn slow_reader(port: u16, path: &str) {
    loop {
        let one = SlowReader::get(port, path).await;
        while one.is_served() {
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

async fn guesses(each: Duration) -> Vec<Value> {
    let server = Radixscope::start(["demo", "--warm-up", "0", "--access-token", TOKEN]).await;
    let answered = Arc::new(AtomicU64::new(0));
    let mut guessers = JoinSet::new();
    for _ in 0..GUESSERS {
        guessers.spawn(raw::guess(server.port(), Arc::clone(&answered)));
    }
    let (since, bearer) = (Instant::now(), format!("Bearer {TOKEN}"));
    let mut took = Vec::new();
    while since.elapsed() < each {
        let sent = Instant::now();
        let response = server.get_with("/api/v1/cluster", &[("authorization", &bearer)]).await;
        assert_eq!(response.status, 200, "{}", response.text());
        took.push(sent.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let each_second = answered.load(Ordering::Relaxed) as f64 / since.elapsed().as_secs_f64();
    took.sort_unstable();
    let p99 = took[(took.len() * 99).div_ceil(100).max(1) - 1];
    vec![
        row(
            "guesses of the access token that get a response, 32 clients",
            each_second,
            "/s",
            Some(("≤ 20 /s", 20.0)),
        ),
        row("p99 of a request with the right token meanwhile", ms(p99), "ms", Some(("≤ 100 ms", 100.0))),
    ]
}
