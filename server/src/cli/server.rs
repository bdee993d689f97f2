//! What `serve`, `demo`, `record` and `check` share: the hub with its sources, a listener, and graceful shutdown.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use radixscope_insight::check::Checks;
use radixscope_intake::TreeDumps;
use radixscope_model::record::{ReportedSettings, SourceKind};
use radixscope_recording::Meta;

use super::Failure;
use super::checks::{checks, follow_baselines};
use crate::baselines::BaselineFiles;
use crate::config::{Access, Http, InvalidOption, Limits, Serving, SloTargets};
use crate::fleet::Fleet;
use crate::http::{self, AccessRules, ServeOptions, Tls, TlsFiles};
use crate::hub::{
    HistoryLimits, Hub, HubConfig, QueueLimits, Refusals, ResumeLimits, Resumed, ServerRun, SourceHandle,
    Started,
};
use crate::recording::{
    self, RecordOptions, RecordTo, Recorder, RecordingStatus, RecordingThreads, RecordingWatch,
};
use crate::shutdown::{Shutdown, over};
use crate::stage::Controls;
use crate::time::{now, random};

/// How long connections and sources may take to end by themselves.
const GRACE: Duration = Duration::from_millis(700);
/// How long writing the end of a recording may take.
const WRITE_WITHIN: Duration = Duration::from_secs(10);
/// How long the last files of a recording may take to a store: with the rest less than the 30 s that Kubernetes gives.
const STORE_WITHIN: Duration = Duration::from_secs(15);
/// Notice for a server without access control.
const OPEN_TO_ALL: &str = "No access control: this server listens on a non-loopback address without --access-token or \
                           --trusted-proxy.";
/// Notice for a weak token.
const GUESSABLE: &str = "The access token is weak: it has fewer than 16 characters, or few different ones. Create one with openssl rand \
                         -hex 32 and set it with --access-token-file.";
const MIB: usize = 1024 * 1024;

/// A source that is not running yet.
pub(super) struct Feed {
    named: (String, SourceKind),
    run: Box<dyn FnOnce(Hub, SourceHandle, Shutdown) -> BoxFuture<'static, ()> + Send>,
}

impl Feed {
    /// `run` gets the source's handle to the hub's queue.
    pub(super) fn new<S>(
        name: String,
        kind: SourceKind,
        run: impl FnOnce(SourceHandle, Shutdown) -> S + Send + 'static,
    ) -> Self
    where
        S: Future<Output = ()> + Send + 'static,
    {
        Self { named: (name, kind), run: Box::new(|_, to, stopped| Box::pin(run(to, stopped))) }
    }

    /// One that writes what the hub has. `run` also gets the hub.
    pub(super) fn of_output<S>(
        name: String,
        kind: SourceKind,
        run: impl FnOnce(Hub, SourceHandle, Shutdown) -> S + Send + 'static,
    ) -> Self
    where
        S: Future<Output = ()> + Send + 'static,
    {
        Self { named: (name, kind), run: Box::new(|hub, to, stopped| Box::pin(run(hub, to, stopped))) }
    }

    /// What kind of source it is.
    pub(super) fn kind(&self) -> SourceKind {
        self.named.1
    }
}

/// The sources of a server.
pub(super) struct Feeds {
    /// Each of them.
    pub(super) feeds: Vec<Feed>,
    /// Which workers are queried for their blocks.
    pub(super) tree_dumps: TreeDumps,
    /// How often blocks are compared with workers' responses; zero: never.
    pub(super) verify_every: Duration,
    /// Requests that they refused to send.
    pub(super) refusals: Arc<Refusals>,
    /// What routers run with, as a file has it.
    pub(super) settings: Vec<ReportedSettings>,
    /// How readers steer them; `None`: they cannot.
    pub(super) stage: Option<Arc<Controls>>,
}

impl Feeds {
    /// Sources without worker queries.
    pub(super) fn only(feeds: Vec<Feed>) -> Self {
        Self {
            feeds,
            tree_dumps: TreeDumps::Off,
            verify_every: Duration::ZERO,
            refusals: Arc::default(),
            settings: Vec::new(),
            stage: None,
        }
    }
}

/// The running hub and sources.
pub(super) struct Listening {
    /// For readers.
    pub(super) hub: Hub,
    /// The status of the recording, if there is one.
    pub(super) recording: Option<RecordingWatch>,
    sources: Vec<JoinHandle<()>>,
    task: JoinHandle<()>,
    writing: Option<RecordingThreads>,
}

/// Starts the hub and its sources, which run until `stopped`, and the recording if there is one.
pub(super) fn listen(
    limits: &Limits,
    checks: Checks,
    Feeds { mut feeds, tree_dumps, verify_every, refusals, settings, stage: _ }: Feeds,
    record: Option<RecordOptions>,
    stopped: &Shutdown,
) -> Result<Listening, Failure> {
    let config = config(limits, tree_dumps, verify_every);
    // Read before the recorder starts, which may delete old files.
    let resumed = record.as_ref().and_then(|record| resumed(&record.to, &feeds, config));
    let epoch = resumed.as_ref().and_then(|resumed| resumed.epoch).unwrap_or_else(random);
    let (recorder, recording, writing) = match record {
        Some(record) => {
            let named = feeds.iter().map(|feed| feed.named.clone()).collect();
            let (recorder, writing) = recorder(record, epoch, named)?;
            let recording = recorder.watch().clone();
            feeds.push(recording_feed(recording.clone()));
            (Some(recorder), Some(recording), Some(writing))
        }
        None => (None, None, None),
    };
    let named: Vec<_> = feeds.iter().map(|feed| feed.named.clone()).collect();
    let Started { hub, sources, task } = Hub::start_with(
        config,
        checks,
        &named,
        ServerRun { epoch, recorder, resumed, refusals, settings },
        stopped.clone(),
    );
    if sources.len() < feeds.len() {
        return Err(Failure::Usage(anyhow!("{} sources; the maximum is {}", feeds.len(), sources.len())));
    }
    let start = |(feed, to): (Feed, SourceHandle)| tokio::spawn((feed.run)(hub.clone(), to, stopped.clone()));
    let sources = feeds.into_iter().zip(sources).map(start).collect();
    Ok(Listening { hub, recording, sources, task, writing })
}

fn config(limits: &Limits, tree_dumps: TreeDumps, verify_every: Duration) -> HubConfig {
    let verify_every_ms = u64::try_from(verify_every.as_millis()).ok().filter(|&every| every > 0);
    HubConfig {
        max_nodes: limits.max_nodes,
        queue: QueueLimits {
            messages: limits.queue_messages as usize,
            bytes: limits.queue_mib as usize * MIB,
        },
        log_bytes: limits.log_mib as usize * MIB,
        history: HistoryLimits { max_age: limits.history, max_bytes: limits.history_mib as usize * MIB },
        tree_dumps,
        verify_every_ms,
    }
}

/// The state of an earlier run, from the recordings in the folder. A simulated cluster starts from scratch.
fn resumed(to: &RecordTo, feeds: &[Feed], config: HubConfig) -> Option<Resumed> {
    let path = to.folder()?;
    if !path.exists() || feeds.iter().any(|feed| feed.kind() == SourceKind::Simulator) {
        return None;
    }
    let named: Vec<_> = feeds.iter().map(|feed| feed.named.clone()).collect();
    let HubConfig { max_nodes, log_bytes, history, .. } = config;
    Resumed::read(path, &named, ResumeLimits { max_nodes, log_bytes, history })
}

/// Starts the recorder.
fn recorder(
    RecordOptions { to, redact }: RecordOptions,
    epoch: u64,
    sources: Vec<(String, SourceKind)>,
) -> Result<(Recorder, RecordingThreads), Failure> {
    let path = to.name();
    let meta = Meta { redacted: redact, ..recording::meta(epoch, random(), now(), &sources) };
    Recorder::start(to, meta)
        .map_err(|error| Failure::Usage(error.context(format!("cannot record to {path}"))))
}

/// Shows the recording's status among the sources.
fn recording_feed(watch: RecordingWatch) -> Feed {
    let name = format!("recording to {}", watch.status().path);
    Feed::new(name, SourceKind::Recording, move |to, stopped| recording::report_status(watch, to, stopped))
}

impl Listening {
    /// Ends the sources and waits for the hub, which the caller has signalled to stop.
    pub(super) async fn end(self) {
        self.sources.iter().for_each(JoinHandle::abort);
        let _ = tokio::time::timeout(GRACE, self.task).await;
        let Some(RecordingThreads { writing, uploading }) = self.writing else { return };
        if !ends_within(writing, WRITE_WITHIN).await {
            tracing::warn!(
                "the recording could not be finished in time; the part already written can be read"
            );
        }
        let Some(uploading) = uploading else { return };
        ends_within(uploading, STORE_WITHIN).await;
        let status = self.recording.map(|watch| watch.status());
        if let Some(RecordingStatus { stored: Some(stored), error, on_disk, .. }) = status
            && stored.waiting_files > 0
        {
            let (files, buffer) = (stored.waiting_files, on_disk.display());
            tracing::warn!(
                files,
                %buffer,
                why = error.as_deref().unwrap_or("there was no time"),
                "not everything recorded is stored; the next start with this buffer stores it"
            );
        }
    }
}

/// Whether a thread ends within a time.
async fn ends_within(thread: std::thread::JoinHandle<()>, within: Duration) -> bool {
    let ended = tokio::task::spawn_blocking(move || drop(thread.join()));
    tokio::time::timeout(within, ended).await.is_ok()
}

/// Serves the deployment until stopped.
pub(super) async fn run(
    http: Http,
    limits: &Limits,
    slo: &SloTargets,
    feeds: Feeds,
    record: Option<RecordOptions>,
    stopped: Shutdown,
) -> Result<(), Failure> {
    let checks = checks(slo)?;
    let door = Door::open(&http.serving).await?;
    let stage = feeds.stage.clone();
    let listening = listen(limits, checks, feeds, record, &stopped)?;
    let hub = listening.hub.clone();
    let baselines = Arc::new(BaselineFiles::new(slo.baseline.clone()));
    if !slo.baseline.is_empty() {
        tokio::spawn(follow_baselines(baselines.clone(), hub.clone(), stopped.clone()));
    }
    let serve = move |at: Entrance, stopped| http::serve(at.listener, at.tls, hub, at.options, stopped);
    let shown = Shown { baselines, stage };
    door.serve(http, shown, serve, listening.end(), stopped).await
}

/// Serves a hub without sources until stopped, with these baselines.
pub(super) async fn show(
    http: Http,
    hub: Hub,
    baselines: BaselineFiles,
    stopped: Shutdown,
) -> Result<(), Failure> {
    let door = Door::open(&http.serving).await?;
    let serve = move |at: Entrance, stopped| http::serve(at.listener, at.tls, hub, at.options, stopped);
    let shown = Shown { baselines: Arc::new(baselines), stage: None };
    door.serve(http, shown, serve, std::future::ready(()), stopped).await
}

/// Serves many clusters until stopped. `members` are asked meanwhile.
pub(super) async fn show_fleet(serving: Serving, members: Fleet, stopped: Shutdown) -> Result<(), Failure> {
    let door = Door::open(&serving).await?;
    // One page a reader, which opens no socket.
    let http = Http { serving, trace_url: None, max_viewers: 0 };
    let board = members.board();
    let asking = members.start(&stopped);
    let serve =
        move |at: Entrance, stopped| http::serve_fleet(at.listener, at.tls, board, at.options, stopped);
    door.serve(http, Shown::default(), serve, asking, stopped).await
}

/// What is served from.
struct Entrance {
    listener: TcpListener,
    tls: Option<Tls>,
    options: ServeOptions,
}

/// What readers get beside the state.
#[derive(Default)]
struct Shown {
    baselines: Arc<BaselineFiles>,
    stage: Option<Arc<Controls>>,
}

/// A bound listener with its access rules.
struct Door {
    access: AccessRules,
    tls: Option<Tls>,
    listener: TcpListener,
}

impl Door {
    async fn open(serving: &Serving) -> Result<Self, Failure> {
        let access = AccessRules::of(&serving.access).map_err(|error| Failure::Usage(error.into()))?;
        let tls = tls(&serving.access).map_err(|error| Failure::Usage(error.into()))?;
        Ok(Self { access, tls, listener: bind(serving).await? })
    }

    /// Serves until stopped, then waits for `end`.
    async fn serve<S>(
        self,
        http: Http,
        Shown { baselines, stage }: Shown,
        serve: impl FnOnce(Entrance, Shutdown) -> S,
        end: impl Future<Output = ()>,
        mut stopped: Shutdown,
    ) -> Result<(), Failure>
    where
        S: Future<Output = ()> + Send + 'static,
    {
        let Http { serving, trace_url, max_viewers } = http;
        let Self { access, tls, listener } = self;
        let guessable = access.is_guessable().then_some(GUESSABLE);
        let notice = serving.is_open_to_all().then_some(OPEN_TO_ALL).or(guessable);
        if let Some(notice) = notice {
            tracing::warn!("{notice}");
        }
        let options = ServeOptions {
            max_connections: serving.most_connections(max_viewers),
            listen: listener.local_addr().unwrap_or(serving.listen),
            base_path: serving.base_path,
            frame_ancestors: serving.frame_ancestors,
            allow_origin: serving.allow_origin,
            allow_host: serving.allow_host,
            access,
            notice,
            trace_url,
            max_viewers,
            baselines,
            stage,
        };
        let serving = tokio::spawn(serve(Entrance { listener, tls, options }, stopped.clone()));
        over(&mut stopped).await;
        let (_, served) = tokio::join!(end, tokio::time::timeout(GRACE, serving));
        match served {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(Failure::Failed(anyhow!(error).context("serving"))),
            Err(_) => tracing::info!("some connections did not end in time and were closed"),
        }
        Ok(())
    }
}

fn tls(access: &Access) -> Result<Option<Tls>, InvalidOption> {
    let files = access.tls_cert.clone().zip(access.tls_key.clone());
    files.map(|(cert, key)| Tls::open(TlsFiles { cert, key })).transpose()
}

async fn bind(serving: &Serving) -> Result<TcpListener, Failure> {
    let address = serving.listen;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let what_to_do = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "another process listens there; stop it or choose another address with --listen"
            }
            std::io::ErrorKind::PermissionDenied => {
                "ports below 1024 need privileges; choose another with --listen"
            }
            std::io::ErrorKind::AddrNotAvailable => {
                "this machine has no such address; choose another with --listen"
            }
            _ => "choose another with --listen",
        };
        Failure::Failed(anyhow!("cannot listen on {address}: {error} ({what_to_do})"))
    })?;
    let bound = listener.local_addr().unwrap_or(address);
    let scheme = if serving.access.tls_cert.is_some() { "https" } else { "http" };
    tracing::info!("listening on {scheme}://{bound}{}", serving.base_path);
    Ok(listener)
}
