//! Recorded metrics, given over HTTP as they stood at the recording's time, the first of them from before the clock runs. A process
//! that has said nothing new for a while was dead then, and is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use radixscope_captures::Recording;
use tokio::net::TcpListener;

use super::Clock;
use crate::wait;

/// Recorded seconds within which processes were asked for the first time.
const FIRST_WITHIN_S: f64 = 1.0;
/// Recorded seconds after which a process without a new text is dead: they were asked every six.
const DEAD_AFTER_S: f64 = 8.0;

/// Texts of a process with their times, ascending.
type Texts = Vec<(f64, String)>;

/// The processes of a recording, on one address.
pub(super) struct Scraped {
    at: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    texts: BTreeMap<String, Texts>,
    clock: OnceLock<Clock>,
    /// Processes whose text was given.
    given: Mutex<BTreeSet<String>>,
}

impl Scraped {
    /// Reads the recorded texts and serves them.
    pub(super) async fn load(capture: &str) -> Self {
        let mut texts: BTreeMap<String, Texts> = BTreeMap::new();
        for scrape in Recording::fixture(capture).scrapes() {
            texts.entry(scrape.process).or_default().push((scrape.at_s, scrape.text));
        }
        let shared = Arc::new(Shared { texts, clock: OnceLock::new(), given: Mutex::default() });
        let router = Router::new().route("/{process}/metrics", get(metrics)).with_state(Arc::clone(&shared));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { at, shared }
    }

    /// Lets the clock run.
    pub(super) fn start(&self, clock: Clock) {
        self.shared.clock.set(clock).expect("started once");
    }

    /// Names of the processes and where their metrics are.
    pub(super) fn urls(&self) -> impl Iterator<Item = (&str, String)> {
        self.shared.texts.keys().map(|name| (name.as_str(), format!("http://{}/{name}/metrics", self.at)))
    }

    /// Time of the first text, Unix seconds.
    pub(super) fn began_s(&self) -> f64 {
        self.shared.began_s()
    }

    /// Waits until the texts of all processes that were there at the beginning are known: what they count from there on would be
    /// missing otherwise.
    pub(super) async fn until_given(&self) {
        let end_s = self.began_s() + FIRST_WITHIN_S;
        let is_first = |texts: &Texts| texts.first().is_some_and(|(at_s, _)| *at_s <= end_s);
        let expected = self.shared.texts.iter().filter(|(_, texts)| is_first(texts));
        let expected: BTreeSet<String> = expected.map(|(name, _)| name.clone()).collect();
        wait::until("every process was scraped", async || {
            let given = self.shared.given.lock().expect("no handler panics").clone();
            wait::expect(given.is_superset(&expected), || format!("{given:?} of {expected:?}"))
        })
        .await;
    }
}

impl Shared {
    fn began_s(&self) -> f64 {
        let first = self.texts.values().filter_map(|texts| texts.first()).map(|(t, _)| *t);
        first.fold(f64::INFINITY, f64::min)
    }
}

async fn metrics(
    State(shared): State<Arc<Shared>>,
    Path(process): Path<String>,
) -> Result<String, StatusCode> {
    let beginning_s = shared.began_s() + FIRST_WITHIN_S;
    let now_s = shared.clock.get().map_or(beginning_s, |clock| clock.now_s().max(beginning_s));
    let texts = shared.texts.get(&process).ok_or(StatusCode::NOT_FOUND)?;
    let latest = texts.iter().rev().find(|(t, _)| *t <= now_s);
    let fresh = latest.filter(|(t, _)| now_s - t <= DEAD_AFTER_S);
    let text = fresh.map(|(_, text)| text.clone()).ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
    shared.given.lock().expect("no handler panics").insert(process);
    Ok(text)
}
