//! Addresses as strangers ask for them: every route of the server with any path and query, on a small simulated state.
//! Whatever is asked, the server answers, and never that it failed.
#![no_main]

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Uri};
use libfuzzer_sys::{Corpus, fuzz_target};
use radixscope_insight::check::Checks;
use radixscope_model::record::{LinkState, SourceKind};
use radixscope_server::http::{AccessRules, ServeOptions, routes};
use radixscope_server::hub::{HistoryLimits, Hub, HubConfig, QueueLimits, Started};
use radixscope_server::source::demo;
use radixscope_server::stage::{Controls, simulator, stage};
use radixscope_sim::Config;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tower::ServiceExt as _;

/// What is asked: the server in this process, and the runtime that it runs on.
struct Server {
    runtime: Runtime,
    routes: Router,
    /// Retained, because the server stops when the sender is dropped.
    _shutdown: watch::Sender<bool>,
}

static SERVER: LazyLock<Mutex<Server>> = LazyLock::new(|| Mutex::new(Server::start()));

fuzz_target!(|address: &str| -> Corpus {
    // What a client can send at all.
    let Ok(uri) = address.parse::<Uri>() else { return Corpus::Reject };
    if !address.starts_with('/') {
        return Corpus::Reject;
    }
    SERVER.lock().unwrap_or_else(PoisonError::into_inner).ask(uri);
    Corpus::Keep
});

impl Server {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (shutdown, stopped) = watch::channel(false);
        let routes = runtime.block_on(async {
            let config = HubConfig {
                max_nodes: 2_000,
                queue: QueueLimits { messages: 1_000, bytes: 1 << 20 },
                log_bytes: 1 << 20,
                history: HistoryLimits { max_age: Duration::from_secs(60), max_bytes: 1 << 20 },
                tree_dumps: radixscope_intake::TreeDumps::Off,
                verify_every_ms: None,
            };
            let Started { hub, mut sources, .. } = Hub::start(
                config,
                Checks::default(),
                &[("demo".into(), SourceKind::Simulator)],
                stopped.clone(),
            );
            // Simulated time hardly passes after the start, so that an input does the same each time.
            let pace = demo::Pace { warm_up_ms: 4_000, speed: 1e-9 };
            let cluster = Config { workers: 2, concurrency: 6, ..Config::default() };
            let source = sources.pop().expect("the source that was asked for");
            let (controls, driver) = stage(simulator::report(&cluster));
            tokio::spawn(demo::run(cluster, pace, driver, source, stopped.clone()));
            until_live(&hub).await;
            routes(hub, options(controls), stopped)
        });
        Self { runtime, routes, _shutdown: shutdown }
    }

    fn ask(&self, uri: Uri) {
        let shown = uri.to_string();
        let request = Request::get(uri).header("host", "localhost").body(Body::empty()).expect("a request");
        let response =
            self.runtime.block_on(self.routes.clone().oneshot(request)).expect("always a response");
        assert!(!response.status().is_server_error(), "{} for {shown}", response.status());
    }
}

fn options(controls: Arc<Controls>) -> ServeOptions {
    ServeOptions {
        base_path: "/".parse().expect("a base path"),
        frame_ancestors: "'self'".parse().expect("a source"),
        allow_origin: Vec::new(),
        allow_host: Vec::new(),
        listen: "127.0.0.1:8321".parse().expect("an address"),
        access: AccessRules::default(),
        notice: None,
        trace_url: None,
        max_viewers: 1,
        baselines: std::sync::Arc::default(),
        stage: Some(controls),
        max_connections: 2,
    }
}

async fn until_live(hub: &Hub) {
    loop {
        let state = hub.read(|view| view.cluster.sources().first().map(|source| source.state)).await;
        match state.expect("the hub runs") {
            Some(LinkState::Live) => return,
            _ => tokio::task::yield_now().await,
        }
    }
}
