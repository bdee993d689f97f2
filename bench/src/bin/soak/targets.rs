//! Targets of scrapes, as a process of their own that can be killed: the recorded metrics of a frontend and its workers, one text
//! after another and then from the first again, which is what a restart looks like.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use radixscope_captures::Recording;
use radixscope_captures::port::free_port;
use radixscope_tests::process::Process;
use tokio::net::TcpListener;

const CAPTURE: &str = "1.6.1-healthy";
/// How long a text stands.
const EACH_STANDS: Duration = Duration::from_secs(4);

struct Texts {
    since: Instant,
    of: BTreeMap<String, Vec<String>>,
}

/// Serves them until it is killed.
pub(super) async fn serve(port: u16) {
    let mut of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for scrape in Recording::fixture(CAPTURE).scrapes() {
        of.entry(scrape.process).or_default().push(scrape.text);
    }
    let texts = Arc::new(Texts { since: Instant::now(), of });
    let router = Router::new().route("/{process}/metrics", get(metrics)).with_state(texts);
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    println!("listening");
    axum::serve(listener, router).await.expect("it serves until it is killed");
}

async fn metrics(State(texts): State<Arc<Texts>>, Path(process): Path<String>) -> Result<String, StatusCode> {
    let of = texts.of.get(&process).ok_or(StatusCode::NOT_FOUND)?;
    let stands = texts.since.elapsed().as_secs() / EACH_STANDS.as_secs();
    Ok(of[stands as usize % of.len()].clone())
}

/// Ids of the workers whose metrics these are.
pub(super) fn worker_ids() -> Vec<u64> {
    let of = |text: &str| {
        let (_, rest) = text.split_once("worker_id=\"")?;
        u64::from_str_radix(rest.split('"').next()?, 16).ok()
    };
    let scrapes = Recording::fixture(CAPTURE).scrapes().filter(|scrape| scrape.process.starts_with("worker"));
    let mut ids: Vec<u64> = scrapes.filter_map(|scrape| of(&scrape.text)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The process.
pub(super) struct Targets {
    port: u16,
    process: Option<Process>,
}

impl Targets {
    pub(super) async fn start() -> Self {
        let mut targets = Self { port: free_port(), process: None };
        targets.start_again().await;
        targets
    }

    /// What `--prometheus` takes, an option each.
    pub(super) fn options(&self) -> impl Iterator<Item = String> + use<> {
        let port = self.port;
        let processes = ["frontend", "worker1", "worker2", "worker3"];
        processes
            .into_iter()
            .map(move |process| format!("{process}=http://127.0.0.1:{port}/{process}/metrics"))
    }

    /// Ends it without a farewell.
    pub(super) fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it on the port it had.
    pub(super) async fn start_again(&mut self) {
        let program = std::env::current_exe().expect("a program has a path");
        let mut process =
            Process::start("targets", Command::new(program).args(["target", &self.port.to_string()]));
        process.line("that it listens", |line| (line == "listening").then_some(())).await;
        self.process = Some(process);
    }
}
