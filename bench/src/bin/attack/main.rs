//! Measures what it costs to run and what others can do to it: from start to answers, processor time while nothing happens,
//! memory of a viewer, and the time between two batches at a viewer while somebody holds connections open, posts the largest
//! bodies, or asks again and again for what is expensive. Everything goes to a server on this machine and ends by itself.
//!
//! `RADIXSCOPE_BIN` names another binary.

mod deputy;
mod discovery;
mod inputs;
mod readers;
mod rollouts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::{Parser as _, ValueEnum as _};
use futures_util::StreamExt;
use hyper::Method;
use radixscope_bench::report::ReportFile;
use radixscope_tests::http::Http;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{raw, wait};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::task::{JoinHandle, JoinSet};
use tokio_tungstenite::tungstenite::Message;

/// Starts of which the middle one counts.
const STARTS: usize = 5;
/// What is done once after a start is over by then.
const SETTLED: Duration = Duration::from_secs(15);
const IDLE_FOR: Duration = Duration::from_secs(30);
const VIEWERS: usize = 200;
/// Connections that are held open.
const HELD: usize = 300;
/// Requests at a time.
const AT_A_TIME: usize = 16;
/// Size of posts: the largest that is taken.
const BODY_BYTES: usize = 8 * 1024 * 1024 - 1024;
const MIB: f64 = 1024.0 * 1024.0;

#[tokio::main]
async fn main() {
    let Arguments { groups, seconds, rollouts, report } = Arguments::parse();
    let each = Duration::from_secs(seconds);
    let mut rows = Vec::new();
    for group in groups {
        rows.extend(match group {
            Group::Running => running().await,
            Group::Viewers => viewers().await,
            Group::Attacks => attacks(each).await,
            Group::Readers => readers::rows(each).await,
            Group::Discovery => discovery::rows(each).await,
            Group::Rollouts => rollouts::rows(&rollouts).await,
            Group::Deputy => deputy::rows(each).await,
            Group::Inputs => inputs::rows(each).await,
        });
    }
    report.write(&json!({"rows": rows}));
}

/// Rows that are measured together.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Group {
    Running,
    Viewers,
    Attacks,
    Readers,
    Discovery,
    Rollouts,
    Deputy,
    Inputs,
}

#[derive(clap::Parser)]
struct Arguments {
    /// Groups of rows; all when none is named
    #[arg(value_enum, default_values_t = Group::value_variants().to_vec(), hide_default_value = true)]
    groups: Vec<Group>,
    /// How long each attack lasts
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    #[command(flatten)]
    rollouts: rollouts::Options,
    #[command(flatten)]
    report: ReportFile,
}

fn row(what: &str, value: f64, unit: &str, budget: Option<(&str, f64)>) -> Value {
    println!("{what}: {value:.2} {unit}");
    let mut row = json!({"what": what, "value": value, "unit": unit});
    if let Some((text, most)) = budget {
        row["budget"] = text.into();
        row["within"] = (value <= most).into();
    }
    row
}

/// From start to the first answers, and what it costs while nothing happens.
async fn running() -> Vec<Value> {
    let nats = Nats::start().await;
    let mut took = Vec::new();
    let mut server = None;
    for _ in 0..STARTS {
        let since = Instant::now();
        let started = Radixscope::serve(&nats.url()).await;
        assert_eq!(started.get("/healthz").await.status, 200);
        let alive = since.elapsed();
        assert_eq!(started.get("/").await.status, 200);
        took.push((alive, since.elapsed()));
        server = Some(started);
    }
    took.sort_unstable();
    let (alive, page) = took[STARTS / 2];
    let server = server.expect("it was started");
    server.until_ready().await;
    tokio::time::sleep(SETTLED).await;
    let start = server.process().cpu_time();
    tokio::time::sleep(IDLE_FOR).await;
    let idle = (server.process().cpu_time() - start).as_secs_f64() / IDLE_FOR.as_secs_f64();
    vec![
        row("from start to /healthz", ms(alive), "ms", Some(("≤ 500 ms", 500.0))),
        row("from start to the page", ms(page), "ms", Some(("≤ 500 ms", 500.0))),
        row("processor time in the first 15 s", start.as_secs_f64(), "s", None),
        row("idle, connected to NATS", idle * 100.0, "% of a core", Some(("≤ 1 %", 1.0))),
        row("memory, idle", server.process().rss_bytes() as f64 / MIB, "MiB", None),
    ]
}

async fn viewers() -> Vec<Value> {
    let server = Radixscope::start(["demo", "--warm-up", "60"]).await;
    server.until_source_is("live").await;
    let stop = Arc::new(AtomicBool::new(false));
    let join = |count| {
        let (url, stop) = (server.socket_url(), Arc::clone(&stop));
        (0..count).map(move |_| tokio::spawn(watch(url.clone(), Arc::clone(&stop)))).collect::<Vec<_>>()
    };
    // The first few bring what is shared by all.
    let mut viewers = join(10);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = server.process().rss_bytes();
    viewers.extend(join(VIEWERS));
    tokio::time::sleep(Duration::from_secs(6)).await;
    let each = server.process().rss_bytes().saturating_sub(before) as f64 / VIEWERS as f64;
    stop.store(true, Ordering::Relaxed);
    for viewer in viewers {
        assert!(!viewer.await.expect("every viewer is served").is_empty(), "a viewer got nothing");
    }
    vec![row("memory of a viewer, one of 200", each / 1024.0, "KiB", None)]
}

/// What a viewer sees of each attack.
async fn attacks(each: Duration) -> Vec<Value> {
    let mut rows = Vec::new();
    for kind in Attack::ALL {
        let server = Arc::new(Radixscope::start(["demo", "--warm-up", "60"]).await);
        server.until_source_is("live").await;
        let stop = Arc::new(AtomicBool::new(false));
        let watching = tokio::spawn(watch(server.socket_url(), Arc::clone(&stop)));
        let attack = kind.begin(&server, &stop);
        let until = Instant::now() + each;
        let mut slowest = Duration::ZERO;
        while Instant::now() < until {
            let since = Instant::now();
            let response = wait::within("it answers", server.try_get("/healthz")).await;
            assert_eq!(response.expect("a response").status, 200);
            slowest = slowest.max(since.elapsed());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        stop.store(true, Ordering::Relaxed);
        let mut gaps = watching.await.expect("the viewer is served all the time");
        attack.await.expect("the attack ends");
        gaps.sort_unstable();
        let p99 = gaps[(gaps.len() * 99).div_ceil(100).max(1) - 1];
        let name = kind.name();
        rows.push(row(&format!("p99 gap between batches, {name}"), ms(p99), "ms", Some(("≤ 250 ms", 250.0))));
        rows.push(row(&format!("longest gap, {name}"), ms(gaps[gaps.len() - 1]), "ms", None));
        rows.push(row(&format!("slowest /healthz, {name}"), ms(slowest), "ms", None));
    }
    rows
}

#[derive(Clone, Copy)]
enum Attack {
    None,
    SlowHeaders,
    Silent,
    LargePosts,
    Counterfactuals,
    Images,
    Trees,
    Reports,
    Newcomers,
}

impl Attack {
    const ALL: [Self; 9] = [
        Self::None,
        Self::SlowHeaders,
        Self::Silent,
        Self::LargePosts,
        Self::Counterfactuals,
        Self::Images,
        Self::Trees,
        Self::Reports,
        Self::Newcomers,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "nothing else",
            Self::SlowHeaders => "300 connections that send a byte of their header a second",
            Self::Silent => "300 connections that send nothing",
            Self::LargePosts => "16 posts of 8 MB at a time",
            Self::Counterfactuals => "16 counterfactuals at a time",
            Self::Images => "16 of the largest pictures at a time, each of another size",
            Self::Trees => "16 of the largest pages of the tree at a time",
            Self::Reports => "16 pages with a recording inside at a time",
            Self::Newcomers => "16 viewers at a time that come and go",
        }
    }

    fn begin(self, server: &Arc<Radixscope>, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
        let (server, stop) = (Arc::clone(server), Arc::clone(stop));
        match self {
            Self::None => tokio::spawn(async {}),
            Self::SlowHeaders => tokio::spawn(hold(server, stop, true)),
            Self::Silent => tokio::spawn(hold(server, stop, false)),
            Self::LargePosts => {
                let ids: Vec<String> =
                    (0..BODY_BYTES / 7).map(|n| format!("{:06}", 100_000 + n % 28_000)).collect();
                let body = Arc::new(format!("{{\"token_ids\":[{}]}}", ids.join(",")).into_bytes());
                tokio::spawn(ask(server, stop, move |_| ("/api/v1/score".to_owned(), body.to_vec())))
            }
            Self::Counterfactuals => {
                let body = br#"{"mode":"resimulated","last":10000,"settings":{"overlap_score_weight":0.5}}"#;
                tokio::spawn(ask(server, stop, |_| ("/api/v1/counterfactual".to_owned(), body.to_vec())))
            }
            Self::Images => tokio::spawn(ask(server, stop, |n| {
                (format!("/panel/tree.svg?width={}&height=8192", 8_192 - n % 4_096), Vec::new())
            })),
            Self::Trees => {
                tokio::spawn(ask(server, stop, |_| ("/api/v1/tree?limit=10000".to_owned(), Vec::new())))
            }
            Self::Reports => tokio::spawn(ask(server, stop, |_| ("/api/v1/report".to_owned(), Vec::new()))),
            Self::Newcomers => tokio::spawn(come_and_go(server, stop)),
        }
    }
}

/// Holds connections open; those that the server ends are opened again.
async fn hold(server: Arc<Radixscope>, stop: Arc<AtomicBool>, sends: bool) {
    let mut held = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        while held.len() < HELD {
            let mut socket = raw::connect(server.port()).await;
            let start = format!("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX-More: ", server.port());
            if !sends || socket.write_all(start.as_bytes()).await.is_ok() {
                held.push(socket);
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut open = Vec::new();
        for mut socket in held {
            let is_open = if sends {
                socket.write_all(b"x").await.is_ok()
            } else {
                socket.try_read(&mut [0]).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
            };
            if is_open {
                open.push(socket);
            }
        }
        held = open;
    }
}

/// Asks for addresses, or posts bodies where there are any, [`AT_A_TIME`] at a time. `what`: the one of this number.
async fn ask(
    server: Arc<Radixscope>,
    stop: Arc<AtomicBool>,
    what: impl Fn(usize) -> (String, Vec<u8>) + Send + Sync + 'static,
) {
    let (what, number) = (Arc::new(what), Arc::new(AtomicUsize::new(0)));
    let mut all = JoinSet::new();
    for _ in 0..AT_A_TIME {
        let (server, stop, what) = (Arc::clone(&server), Arc::clone(&stop), Arc::clone(&what));
        let number = Arc::clone(&number);
        all.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let (path, body) = what(number.fetch_add(1, Ordering::Relaxed));
                let method = if body.is_empty() { Method::GET } else { Method::POST };
                // A refusal may come before the body is sent, which the client takes for a broken connection.
                let _ = Http::default().send(method, &server.url(&path), &[], body).await;
            }
        });
    }
    while all.join_next().await.is_some() {}
}

/// Viewers that leave with their first frame, which is the whole state.
async fn come_and_go(server: Arc<Radixscope>, stop: Arc<AtomicBool>) {
    let mut all = JoinSet::new();
    for _ in 0..AT_A_TIME {
        let (url, stop) = (server.socket_url(), Arc::clone(&stop));
        all.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                if let Ok((mut socket, _)) = tokio_tungstenite::connect_async(&url).await {
                    let _ = socket.next().await;
                }
            }
        });
    }
    while all.join_next().await.is_some() {}
}

/// Times between the frames that a viewer gets.
async fn watch(url: String, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("it takes viewers");
    let (mut gaps, mut last) = (Vec::new(), None::<Instant>);
    while !stop.load(Ordering::Relaxed) {
        let message =
            wait::within("a frame comes", socket.next()).await.expect("it goes on").expect("a frame");
        if let Message::Binary(_) = message {
            let now = Instant::now();
            gaps.extend(last.replace(now).map(|last| now - last));
        }
    }
    gaps
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
