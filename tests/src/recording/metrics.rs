//! Recorded metrics, given over HTTP as they stood at the recording's time. A process that has said nothing new for a
//! while was dead then, and is refused.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use radixscope_captures::Recording;
use tokio::net::TcpListener;

use super::Clock;

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
}

impl Scraped {
    /// Reads the recorded texts and serves them, once the clock runs.
    pub(super) async fn load(capture: &str) -> Self {
        let mut texts: BTreeMap<String, Texts> = BTreeMap::new();
        for scrape in Recording::fixture(capture).scrapes() {
            texts.entry(scrape.process).or_default().push((scrape.at_s, scrape.text));
        }
        let shared = Arc::new(Shared { texts, clock: OnceLock::new() });
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
        let first = self.shared.texts.values().filter_map(|texts| texts.first()).map(|(t, _)| *t);
        first.fold(f64::INFINITY, f64::min)
    }
}

async fn metrics(
    State(shared): State<Arc<Shared>>,
    Path(process): Path<String>,
) -> Result<String, StatusCode> {
    let now_s = shared.clock.get().ok_or(StatusCode::SERVICE_UNAVAILABLE)?.now_s();
    let texts = shared.texts.get(&process).ok_or(StatusCode::NOT_FOUND)?;
    let latest = texts.iter().rev().find(|(t, _)| *t <= now_s);
    let fresh = latest.filter(|(t, _)| now_s - t <= DEAD_AFTER_S);
    fresh.map(|(_, text)| text.clone()).ok_or(StatusCode::SERVICE_UNAVAILABLE)
}
