//! The hub: the one task that owns decoding and state, the only writer of both. Messages arrive over one bounded queue, become
//! records, and are folded and published. Readers send queries, which are answered between two batches of input; the state has
//! no lock. Knows neither NATS nor HTTP.

mod commands;
mod history;
mod inbox;
mod log;
#[cfg_attr(
    not(feature = "kubernetes"),
    allow(dead_code, reason = "only Kubernetes has sources of several parts")
)]
mod parts;
mod refused;
mod replay;
mod resume;
mod snapshot;
pub(crate) mod spacing;
mod state;
mod view;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use radixscope_insight::baseline::Baseline;
use radixscope_insight::check::Checks;
use radixscope_intake::{Break, Intake, TreeDumps};
use radixscope_model::id::Worker;
use radixscope_model::record::{Entry, Record, ReportedSettings, SourceKind};
use radixscope_recording::EncodeError;
use radixscope_state::sink::RecordSink;

pub use history::HistoryLimits;
pub(crate) use history::{SegmentFrames, SegmentId, StoredSegment};
#[cfg(test)]
pub(crate) use inbox::LoneInbox;
pub use inbox::{HubEnded, QueueLimits, SourceHandle};
pub use log::Published;
#[cfg(feature = "kubernetes")]
pub(crate) use parts::Parts;
pub use refused::{Refusals, RefusedCount};
pub(crate) use replay::Replayed;
pub(crate) use resume::{ResumeLimits, Resumed};
pub use state::{Joined, Resume};
pub use view::{SourceTraffic, Stats, View};

use crate::recording::Recorder;
use crate::shutdown::{Shutdown, over};
use crate::time::{now, random};
use commands::Commands;
use inbox::{Inbox, Input, Queued};
use state::HubState;
use view::{DepthCache, PictureCache};

/// How often viewers get a batch.
const BATCH_EVERY: Duration = Duration::from_millis(100);
/// How often aggregated counts become records.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// Maximum inputs processed before queries, ticks and other tasks.
const INPUTS_A_TURN: usize = 256;
/// How long input waits after a turn that took nearly all there was: what arrives meanwhile is one turn, instead of a wake-up of
/// this task for each message. Unnoticeable between two batches.
const INPUT_PAUSE: Duration = Duration::from_millis(1);
/// Capacity of the query channel.
const MAX_QUERIES: usize = 64;
/// Timeout of a query.
const RESPONSE_WITHIN: Duration = Duration::from_secs(10);

/// Configuration of the hub.
#[derive(Clone, Copy, Debug)]
pub struct HubConfig {
    /// Maximum nodes of the tree.
    pub max_nodes: u32,
    /// Limits of the queue from the sources.
    pub queue: QueueLimits,
    /// Maximum bytes of recent batches for viewers that reconnect.
    pub log_bytes: usize,
    /// Limits of the history.
    pub history: HistoryLimits,
    /// Which workers are queried for their blocks.
    pub tree_dumps: TreeDumps,
    /// How often blocks are compared with workers' responses, in milliseconds. `None`: never.
    pub verify_every_ms: Option<u64>,
}

/// A run of the server.
pub(crate) struct ServerRun {
    /// Its id.
    pub(crate) epoch: u64,
    /// `None`: no recording.
    pub(crate) recorder: Option<Recorder>,
    /// `None`: it starts with an empty state.
    pub(crate) resumed: Option<Resumed>,
    /// Requests that its sources refused to send.
    pub(crate) refusals: Arc<Refusals>,
    /// What routers run with, as a file has it.
    pub(crate) settings: Vec<ReportedSettings>,
}

type ReadQuery = Box<dyn FnOnce(&mut View<'_>) + Send>;

enum HubQuery {
    Read(ReadQuery),
    Join(Option<Resume>, oneshot::Sender<Result<Joined, EncodeError>>),
    RequestDump(Vec<Worker>, oneshot::Sender<Vec<bool>>),
    SetBaselines(Vec<Baseline>, oneshot::Sender<()>),
}

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Ended,
    /// It took too long.
    #[error("the server is busy; try again")]
    Busy,
    /// The state could not be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// A reader's handle to the hub.
#[derive(Clone)]
pub struct Hub {
    queries: mpsc::Sender<HubQuery>,
    viewers: Arc<ViewerCounts>,
    refusals: Arc<Refusals>,
}

/// Counts of viewers, updated by their tasks.
#[derive(Default, Debug)]
pub struct ViewerCounts {
    /// Connected now.
    pub now: AtomicUsize,
    /// Ever connected.
    pub total: AtomicU64,
    /// Times one fell behind and got a new snapshot.
    pub resyncs: AtomicU64,
    /// Records that were not sent to viewers that fell behind.
    pub skipped_records: AtomicU64,
}

/// The started hub.
pub struct Started {
    /// For readers.
    pub hub: Hub,
    /// One handle per source, in the given order, up to the maximum of sources.
    pub sources: Vec<SourceHandle>,
    /// Ends after `shutdown` turned true.
    pub task: JoinHandle<()>,
}

impl Hub {
    /// Starts the hub with these sources and checks.
    pub fn start(
        config: HubConfig,
        checks: Checks,
        sources: &[(String, SourceKind)],
        shutdown: Shutdown,
    ) -> Started {
        Self::start_with(
            config,
            checks,
            sources,
            ServerRun {
                epoch: random(),
                recorder: None,
                resumed: None,
                refusals: Arc::default(),
                settings: Vec::new(),
            },
            shutdown,
        )
    }

    /// The same for a run that may be recorded or resumed.
    pub(crate) fn start_with(
        config: HubConfig,
        checks: Checks,
        sources: &[(String, SourceKind)],
        ServerRun { epoch, recorder, resumed, refusals, settings }: ServerRun,
        shutdown: Shutdown,
    ) -> Started {
        let mut intake = Intake::default();
        intake.set_tree_dumps(config.tree_dumps);
        intake.set_verify_every(config.verify_every_ms);
        let away = resumed.as_ref().map(|resumed| Break { since_ms: resumed.at_ms, until_ms: now() });
        let state = match resumed {
            Some(resumed) => HubState::resumed(resumed, epoch),
            None => HubState::new(config.max_nodes, config.log_bytes, config.history, epoch),
        };
        let mut task = HubTask {
            intake,
            checks,
            state,
            inbox: Inbox::new(config.queue),
            handles: Vec::new(),
            commands: Commands::default(),
            stats: Stats::new(0),
            depth: DepthCache::default(),
            pictures: PictureCache::default(),
        };
        if let Some(away) = away {
            task.resume(away);
        }
        if let Some(recorder) = recorder {
            task.state.record(recorder);
        }
        let handles = sources.iter().filter_map(|(name, kind)| task.add_source(name, *kind)).collect();
        task.intake.end_other_sources(now(), &mut task.state);
        task.intake.policy_file(settings, now(), &mut task.state);
        task.stats = Stats::new(task.state.cluster.sources().len());
        let (queries, receiver) = mpsc::channel(MAX_QUERIES);
        let viewers = Arc::new(ViewerCounts::default());
        let task = tokio::spawn(task.run(receiver, shutdown));
        Started { hub: Hub { queries, viewers, refusals }, sources: handles, task }
    }

    /// Reads from the state. `read` runs in the hub's task: it must be quick and must not block.
    ///
    /// # Errors
    /// The hub has ended or is too busy.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut View<'_>) -> T + Send + 'static,
    ) -> Result<T, QueryError> {
        let (response, answered) = oneshot::channel();
        let query: ReadQuery = Box::new(move |view| {
            // Fails if the reader has gone.
            let _ = response.send(read(view));
        });
        self.query(HubQuery::Read(query), answered).await
    }

    /// Joins as a viewer.
    ///
    /// # Errors
    /// The hub has ended or is too busy, or the state cannot be encoded.
    pub async fn join(&self, resume: Option<Resume>) -> Result<Joined, QueryError> {
        let (response, answered) = oneshot::channel();
        Ok(self.query(HubQuery::Join(resume, response), answered).await??)
    }

    /// Queries workers for their blocks; returns for each whether its endpoint is known.
    ///
    /// # Errors
    /// The hub has ended or is too busy.
    pub async fn request_dumps(&self, workers: Vec<Worker>) -> Result<Vec<bool>, QueryError> {
        let (response, answered) = oneshot::channel();
        self.query(HubQuery::RequestDump(workers, response), answered).await
    }

    /// Gives the checks other baselines.
    ///
    /// # Errors
    /// The hub has ended or is too busy.
    pub(crate) async fn set_baselines(&self, baselines: Vec<Baseline>) -> Result<(), QueryError> {
        let (response, answered) = oneshot::channel();
        self.query(HubQuery::SetBaselines(baselines, response), answered).await
    }

    /// Requests that sources refused to send.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Counts of viewers.
    pub fn viewers(&self) -> &Arc<ViewerCounts> {
        &self.viewers
    }

    async fn query<T>(&self, query: HubQuery, answered: oneshot::Receiver<T>) -> Result<T, QueryError> {
        let response = async {
            self.queries.send(query).await.map_err(|_| QueryError::Ended)?;
            answered.await.map_err(|_| QueryError::Ended)
        };
        tokio::time::timeout(RESPONSE_WITHIN, response).await.map_err(|_| QueryError::Busy)?
    }
}

struct HubTask {
    intake: Intake,
    /// The checks run only here.
    checks: Checks,
    state: HubState,
    inbox: Inbox,
    handles: Vec<SourceHandle>,
    /// Channels for intake's commands.
    commands: Commands,
    stats: Stats,
    depth: DepthCache,
    pictures: PictureCache,
}

impl HubTask {
    fn add_source(&mut self, name: &str, kind: SourceKind) -> Option<SourceHandle> {
        let Self { intake, state, inbox, commands, .. } = self;
        let ix = intake.source(name, kind, now(), state)?;
        let handle = inbox.handle(ix, commands.of(ix, kind));
        self.handles.push(handle.clone());
        Some(handle)
    }

    /// Continues from a resumed state. Knowledge is uncertain from its last moment on.
    fn resume(&mut self, away: Break) {
        let Self { intake, checks, state, .. } = self;
        intake.resume(away, state);
        checks.resume(&state.cluster);
        state.publish(away.since_ms);
    }

    async fn run(mut self, mut queries: mpsc::Receiver<HubQuery>, mut shutdown: Shutdown) {
        let mut batch = tokio::time::interval(BATCH_EVERY);
        batch.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut flush = tokio::time::interval(FLUSH_EVERY);
        flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut inputs = Vec::with_capacity(INPUTS_A_TURN);
        let mut is_paused = false;
        let mut pause = pin!(tokio::time::sleep(INPUT_PAUSE));
        loop {
            tokio::select! {
                () = over(&mut shutdown) => break,
                _ = batch.tick() => self.state.tick(self.state.now()),
                _ = flush.tick() => self.flush(),
                Some(query) = queries.recv() => self.respond(query),
                () = &mut pause, if is_paused => is_paused = false,
                _ = self.inbox.receive(&mut inputs, INPUTS_A_TURN), if !is_paused => {
                    inputs.drain(..).for_each(|input| self.handle(input));
                    self.hand_over();
                    is_paused = self.inbox.len() < INPUTS_A_TURN;
                    if is_paused {
                        pause.as_mut().reset(tokio::time::Instant::now() + INPUT_PAUSE);
                    }
                    // A long queue is always ready; without yielding it would starve other tasks of this thread.
                    tokio::task::yield_now().await;
                }
            }
        }
        self.flush();
        self.state.tick(self.state.now());
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Received(queued) => self.received(&queued),
            Input::State { source, state, detail } => {
                let detail = detail.as_str().into();
                self.state
                    .append(&Entry { at_ms: now(), record: Record::SourceState { source, state, detail } });
            }
            Input::Missed { source, topic, cause, count } => self.intake.missed(source, topic, cause, count),
        }
    }

    fn received(&mut self, Queued { received, queued, missing, .. }: &Queued) {
        let Self { intake, state, stats, .. } = self;
        if let Some(missing) = missing {
            intake.missing(received.source, missing);
        }
        let before = state.cluster.seq();
        intake.handle(received, state);
        let records = state.cluster.seq().0 - before.0;
        if received.payload.is_of_the_source() {
            return;
        }
        stats.message(received.source, received.payload.size_bytes(), records, queued.elapsed());
    }

    fn flush(&mut self) {
        if self.state.is_replay() {
            // A replay does not advance.
            self.pictures.forget_unused();
            return;
        }
        let Self { intake, checks, state, inbox, handles, stats, pictures, .. } = self;
        // Losses are ordered behind queued messages, so only with an empty queue.
        if inbox.len() == 0 {
            for handle in handles.iter() {
                if let Some(missing) = handle.take_missing() {
                    intake.missing(handle.source(), &missing);
                }
            }
        }
        let at_ms = now();
        intake.flush(at_ms, state);
        checks.run(at_ms, state);
        // Publish before the second ends, so that the history of this second is complete.
        state.tick(at_ms);
        state.end_second(at_ms);
        stats.end_second();
        pictures.forget_unused();
        self.hand_over();
    }

    /// Sends intake's commands to the sources. Never waits.
    fn hand_over(&mut self) {
        let Self { intake, state, commands, .. } = self;
        for command in intake.commands() {
            if let Some(unanswered) = commands.send(command, now()) {
                intake.handle(&unanswered, state);
            }
        }
    }

    fn respond(&mut self, query: HubQuery) {
        match query {
            HubQuery::Join(resume, response) => {
                let _ = response.send(self.state.join(resume));
            }
            HubQuery::RequestDump(workers, response) => {
                let requested = workers.into_iter().map(|worker| self.intake.request_dump(worker)).collect();
                self.hand_over();
                let _ = response.send(requested);
            }
            HubQuery::SetBaselines(baselines, response) => {
                self.checks.set_baselines(baselines);
                let _ = response.send(());
            }
            HubQuery::Read(read) => {
                self.stats.queued_messages = self.inbox.len();
                self.stats.queued_bytes = self.inbox.len_bytes();
                self.stats.queue_limits = self.inbox.limits();
                self.stats.log_bytes = self.state.log.len_bytes();
                self.stats.batches = self.state.batches;
                let started = Instant::now();
                read(&mut View {
                    cluster: &self.state.cluster,
                    history: self.state.history.as_ref(),
                    recorder: self.state.recorder.as_ref(),
                    epoch: self.state.epoch(),
                    routing: self.intake.routing(),
                    stats: &self.stats,
                    at_ms: self.state.now(),
                    is_replay: self.state.is_replay(),
                    depth: &mut self.depth,
                    pictures: &mut self.pictures,
                });
                tracing::trace!(us = started.elapsed().as_micros() as u64, "read answered");
            }
        }
    }
}

impl ViewerCounts {
    /// Registers a viewer, unless there are already `most`.
    pub fn enter(self: &Arc<Self>, most: usize) -> Option<ViewerSeat> {
        self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < most).then_some(n + 1)).ok()?;
        self.total.fetch_add(1, Ordering::Relaxed);
        Some(ViewerSeat(Arc::clone(self)))
    }
}

/// A registered viewer, released when dropped.
#[derive(Debug)]
pub struct ViewerSeat(Arc<ViewerCounts>);

impl Drop for ViewerSeat {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}
