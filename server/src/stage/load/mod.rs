//! Load for a real endpoint: users who hold conversations with it, so that the page has something to show. A show, not a benchmark.
//!
//! ```text
//! LoadSettings ──► users, each: conversation → gate → request → answer, timed ──► client's results, as those of a load generator
//!                                                 └─ counts, bounds ──► how the source is doing
//! ```
//! Every request is bounded in number, time and size ([`LoadOptions`], `exchange`), and goes to the one address that the operator named.
//! Must not know of decisions or the state: results are joined where those of other clients are.

mod announce;
mod conversation;
mod counts;
mod events;
mod exchange;
mod gate;
pub(crate) mod steered;
mod words;

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use url::Url;

use radixscope_dynamo::client_result::ClientRecord;
use radixscope_intake::Payload;
use radixscope_model::number_format::plural;
use radixscope_model::record::{ClientMeasured, LinkState, Outcome};

use crate::config::InvalidOption;
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::source::http_client::HttpClient;
use crate::source::{LastStatus, SourceStatus};
use crate::time::now;
pub(crate) use announce::announcement;
use conversation::{Conversation, Script, tokens_per_word};
use counts::Counts;
pub use exchange::read;
use exchange::{Endpoint, Exchange, Failure, Reason, Response};
use gate::{Gate, Verdict, Waits};

/// Most users at a time.
pub const MAX_CONCURRENCY: u32 = 200;
/// How long requests in flight may take once nothing more is sent because the process ends.
pub(crate) const DRAIN_WITHIN: Duration = Duration::from_secs(10);
/// How often counts are updated in the state.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// What can be steered while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadSettings {
    /// Users, each with one request in flight; more than [`MAX_CONCURRENCY`] are as many.
    pub concurrency: u32,
    /// Nothing new is sent; what is in flight ends.
    pub is_paused: bool,
}

impl LoadSettings {
    fn users(self) -> u32 {
        self.concurrency.min(MAX_CONCURRENCY)
    }

    /// Whether the user of this number sends.
    fn lets(self, user: u32) -> bool {
        !self.is_paused && user < self.users()
    }
}

/// What does not change while it runs.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Base address of the endpoint; ends in a slash.
    pub target: Url,
    /// The model's name there.
    pub model: String,
    /// The same seed gives the same conversations.
    pub seed: u64,
    /// Most tokens of an answer.
    pub output_tokens: u32,
    /// Rest of a user between turns.
    pub think_time: Duration,
    /// Most requests that are sent, failed ones included.
    pub max_requests: u64,
    /// Nothing is sent after so long.
    pub run_for: Duration,
}

impl LoadOptions {
    /// Where requests are sent.
    pub(crate) fn endpoint(&self) -> Url {
        self.below("v1/chat/completions")
    }

    /// An address below the target, which may end in the version.
    pub(crate) fn below(&self, path: &str) -> Url {
        let mut url = self.target.clone();
        let base = url.path().strip_suffix("v1/").unwrap_or(url.path());
        let path = format!("{base}{path}");
        url.set_path(&path);
        url
    }

    /// Its name as a source.
    pub(crate) fn source_name(&self) -> String {
        format!("stage/{}", self.target.as_str().trim_end_matches('/'))
    }
}

/// Load that is not running yet.
pub struct Load(Arc<Shared>);

/// What all users share.
struct Shared {
    options: LoadOptions,
    endpoint: Endpoint,
    /// Begins the ids of requests, so that those of other runs are others.
    run: String,
    settings: watch::Receiver<LoadSettings>,
    waits: Waits,
    gate: Gate,
    counts: Mutex<Counts>,
    /// Conversations that were begun.
    conversations: AtomicU64,
    /// What the first answer showed; until then the trial is sent. It stays 1 if no answer reports tokens.
    tokens_per_word: OnceLock<f64>,
}

impl Load {
    /// What changes these settings, `first` at first, is the sender; the stage's controls hold it.
    ///
    /// # Errors
    /// No request can be sent from here: TLS, random numbers.
    pub fn new(
        options: LoadOptions,
        first: LoadSettings,
    ) -> Result<(Self, watch::Sender<LoadSettings>), InvalidOption> {
        Self::with_waits(options, first, Waits::USUAL)
    }

    fn with_waits(
        options: LoadOptions,
        first: LoadSettings,
        waits: Waits,
    ) -> Result<(Self, watch::Sender<LoadSettings>), InvalidOption> {
        let (sender, settings) = watch::channel(first);
        let run = crate::random::id().map_err(|error| InvalidOption::new("ids of requests", error))?;
        let endpoint = Endpoint::new(
            HttpClient::new()?,
            options.endpoint(),
            options.model.clone(),
            options.output_tokens,
        );
        let shared = Shared {
            options,
            endpoint,
            run: run.chars().take(12).collect(),
            settings,
            waits,
            gate: Gate::new(waits),
            counts: Mutex::default(),
            conversations: AtomicU64::new(0),
            tokens_per_word: OnceLock::new(),
        };
        Ok((Self(Arc::new(shared)), sender))
    }

    /// Sends until everything is sent, the time is over or `stopped`; then waits for what is in flight. On a thread of its own: what is
    /// measured must not wait for the rest of this process.
    pub async fn run(self, to: SourceHandle, stopped: Shutdown) {
        let (ended, has_ended) = oneshot::channel();
        let thread = thread::Builder::new().name("stage-load".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            // The hub ends only with the process.
            let ran = runtime.map(|runtime| runtime.block_on(Driver::new(self.0, to).run(stopped)));
            if let Err(error) = ran {
                tracing::error!(%error, "load could not be started");
            }
            let _ = ended.send(());
        });
        match thread {
            Ok(_) => drop(has_ended.await),
            Err(error) => tracing::error!(%error, "the thread of load could not be started"),
        }
    }
}

/// Why nothing more is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    AllSent,
    TimeOver,
    Stopped,
}

/// Begins users, and reports.
struct Driver {
    shared: Arc<Shared>,
    to: SourceHandle,
    users: JoinSet<Result<(), HubEnded>>,
    begun: u32,
    stop: watch::Sender<bool>,
    status: LastStatus,
    reported_at: Instant,
}

impl Driver {
    fn new(shared: Arc<Shared>, to: SourceHandle) -> Self {
        let (stop, _) = watch::channel(false);
        let (users, status) = (JoinSet::new(), LastStatus::default());
        Self { shared, to, users, begun: 0, stop, status, reported_at: Instant::now() }
    }

    async fn run(mut self, mut stopped: Shutdown) -> Result<(), HubEnded> {
        let mut settings = self.shared.settings.clone();
        let deadline = Instant::now() + self.shared.options.run_for;
        let mut look = tokio::time::interval(self.shared.waits.look_every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = loop {
            self.begin_users(settings.borrow().users());
            tokio::select! {
                () = over(&mut stopped) => break End::Stopped,
                () = tokio::time::sleep_until(deadline) => break End::TimeOver,
                // Without its sender the settings stay as they are.
                Ok(()) = settings.changed() => self.report(Some(deadline), None, true).await?,
                // Those who may send end when everything is sent; all with the hub.
                Some(ended) = self.users.join_next() => ended.unwrap_or(Ok(()))?,
                _ = look.tick() => self.report(Some(deadline), None, false).await?,
            }
            if self.shared.counts().sent >= self.shared.options.max_requests {
                break End::AllSent;
            }
        };
        self.stop.send_replace(true);
        self.report(None, Some(end), true).await?;
        // Each request is bounded by itself, and shorter once the process ends.
        let limit = async {
            over(&mut stopped).await;
            tokio::time::sleep(DRAIN_WITHIN).await;
        };
        tokio::select! {
            () = async { while self.users.join_next().await.is_some() {} } => {}
            () = limit => {}
        }
        self.users.shutdown().await;
        self.shared.counts().break_off();
        self.report(None, Some(end), true).await
    }

    /// Users up to this number; those beyond it stay and do not send.
    fn begin_users(&mut self, users: u32) {
        while self.begun < users {
            let user = User { number: self.begun, shared: self.shared.clone(), to: self.to.clone() };
            self.users.spawn(user.run(self.stop.subscribe()));
            self.begun += 1;
        }
    }

    /// Reports how it is doing: at once if `is_news` or the state changed, else with new counts now and then.
    async fn report(
        &mut self,
        deadline: Option<Instant>,
        end: Option<End>,
        is_news: bool,
    ) -> Result<(), HubEnded> {
        let status = self.shared.status(deadline, end);
        let is_due = is_news || self.reported_at.elapsed() >= REPORT_EVERY;
        if self.status.state() != Some(status.state) || is_due {
            self.reported_at = Instant::now();
            self.status.report(&self.to, &self.shared.options.source_name(), status).await?;
        }
        Ok(())
    }
}

impl Shared {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self, deadline: Option<Instant>, end: Option<End>) -> SourceStatus {
        let settings = *self.settings.borrow();
        let counts = self.counts();
        let so_far = counts.to_text(self.options.max_requests);
        let in_flight = counts.under_way();
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs());
        let left =
            left.map(|left| format!(" Ends in {} at the latest.", in_minutes(left))).unwrap_or_default();
        let (state, what) = match end {
            Some(end) => {
                let why = match end {
                    End::AllSent => "All requests are sent",
                    End::TimeOver => "The time is over",
                    End::Stopped => "Stopped",
                };
                match in_flight {
                    0 => (LinkState::Ended, why.to_owned()),
                    _ => (LinkState::Live, format!("{why}: waiting for those in flight")),
                }
            }
            None if settings.is_paused => (LinkState::Live, "Paused: nothing is sent".to_owned()),
            None if self.gate.is_open() => {
                let users = plural(settings.users().into(), "user", "users");
                (LinkState::Live, format!("{users} in conversation with {}", self.options.model))
            }
            None => match &counts.latest {
                None => (LinkState::Connecting, "A first, short request is under way".to_owned()),
                Some(failure) => {
                    let is_refused = failure.reason.is_of_the_request();
                    let state = if is_refused { LinkState::Refused } else { LinkState::Connecting };
                    let longest_s = self.waits.longest.as_secs();
                    let what = format!(
                        "No answers: {failure}. One request at a time is tried, after about {longest_s} s at most"
                    );
                    (state, what)
                }
            },
        };
        SourceStatus { state, detail: format!("{what}. {so_far}.{left}") }
    }

    fn script(&self) -> Option<Script> {
        let tokens_per_word = *self.tokens_per_word.get()?;
        Some(Script { seed: self.options.seed, tokens_per_word })
    }

    /// The next conversation; the trial until something is learned of it.
    fn next_conversation(&self) -> Conversation {
        match self.script() {
            Some(script) => script.conversation(self.conversations.fetch_add(1, Ordering::Relaxed)),
            None => Conversation::trial(self.options.seed),
        }
    }

    /// Waits until this user may send. `None`: everything is sent.
    async fn turn(
        &self,
        user: u32,
        settings: &mut watch::Receiver<LoadSettings>,
        rest: Duration,
    ) -> Option<(gate::Pass<'_>, u64)> {
        tokio::time::sleep(rest).await;
        loop {
            // Without its sender the settings stay as they are: a user who may not send then never does.
            settings.wait_for(|settings| settings.lets(user)).await.ok()?;
            let pass = self.gate.pass().await;
            if settings.borrow().lets(user) {
                let number = self.counts().begin(self.options.max_requests)?;
                return Some((pass, number));
            }
        }
    }
}

/// One user.
struct User {
    number: u32,
    shared: Arc<Shared>,
    to: SourceHandle,
}

impl User {
    async fn run(self, mut stop: Shutdown) -> Result<(), HubEnded> {
        let Self { number, shared, to } = self;
        let mut settings = shared.settings.clone();
        let mut kept: Option<Conversation> = None;
        let mut rest = Duration::ZERO;
        let mut failed_in_a_row = 0;
        loop {
            let turn = tokio::select! {
                biased;
                () = over(&mut stop) => return Ok(()),
                turn = shared.turn(number, &mut settings, rest) => turn,
            };
            let Some((pass, request)) = turn else { return Ok(()) };
            let conversation = kept.take().unwrap_or_else(|| shared.next_conversation());
            let id = format!("radixscope-{}-{request}", shared.run);
            let exchange = shared.endpoint.send(&id, conversation.messages()).await;
            let measured = measured(&exchange);
            shared.counts().end(&exchange.outcome);
            if let Ok(Response { usage, .. }) = &exchange.outcome {
                // The first that is answered is the trial.
                shared
                    .tokens_per_word
                    .get_or_init(|| usage.map_or(1.0, |usage| tokens_per_word(usage.prompt_tokens)));
            }
            pass.report(verdict(&exchange.outcome));
            let record = ClientRecord { x_request_id: Some(Cow::Owned(id)), measured };
            to.deliver(now(), Payload::ClientMeasured(Box::new(record))).await?;
            match exchange.outcome {
                Ok(Response { text, .. }) => {
                    kept = conversation.answered(text);
                    failed_in_a_row = 0;
                    rest = shared.options.think_time;
                }
                Err(failure) => {
                    kept = (!failure.reason.is_of_the_request()).then_some(conversation);
                    // While the gate is closed, it makes users wait.
                    let wait = shared.waits.after(failed_in_a_row);
                    rest = if shared.gate.is_open() { wait } else { Duration::ZERO };
                    failed_in_a_row += 1;
                }
            }
        }
    }
}

fn verdict(outcome: &Result<Response, Failure>) -> Verdict {
    match outcome.as_ref().map_err(|failure| failure.reason) {
        Ok(_) => Verdict::Answered,
        Err(Reason::Unreachable | Reason::TimedOut | Reason::Cut) => Verdict::Unreachable,
        Err(Reason::InStream | Reason::Invalid | Reason::Status(_)) => Verdict::Refused,
    }
}

/// As load generators report it: the time between tokens is a mean over all but the first.
fn measured(exchange: &Exchange) -> ClientMeasured {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let response = exchange.outcome.as_ref().ok();
    let output_tokens = response.and_then(|response| response.usage).map(|usage| usage.completion_tokens);
    let gaps = output_tokens.and_then(|tokens| tokens.checked_sub(1)).filter(|&gaps| gaps > 0);
    let itl = gaps.zip(exchange.first.zip(exchange.last)).map(|(gaps, (first, last))| (last - first) / gaps);
    let status = match &exchange.outcome {
        Err(Failure { reason: Reason::Status(status), .. }) => Some(*status),
        _ => None,
    };
    ClientMeasured {
        sent_ms: exchange.sent_ms,
        ended_ms: exchange.ended_ms,
        ttft_us: exchange.first.map(us),
        itl_us: itl.map(us),
        // Of a request that failed nobody knows when it would have ended.
        duration_us: response.and(exchange.last).map(us),
        outcome: if response.is_some() { Outcome::Success } else { Outcome::Failed },
        status,
        output_tokens,
    }
}

fn in_minutes(seconds: u64) -> String {
    match seconds {
        0..90 => format!("{seconds} s"),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests;
