//! One connection to NATS, from the first subscription until it is lost. It runs on a dedicated thread and drains the client
//! before anything else: nothing here waits for the hub, and decoding and reading history happen on other threads. The client
//! reads at most [`TURN_BYTES`] before this task runs, so its channels never overflow. Messages are only dropped at the hub's
//! queue, where each is counted. Subscribes first, then reads the history of every JetStream stream of KV events concurrently.
//! If the queue is full, a live message of a stream is not lost: the stream is read again from there until nothing is missing.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::{Client, Message, Subscriber};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use radixscope_dynamo::subject::{self, Subject, Transport};
use radixscope_intake::command::NamedSubject;
use radixscope_intake::{Break, Command, Payload};
use radixscope_model::record::{LinkState, MissedCause, Topic};

use super::SessionState;
use super::connect::Signals;
use super::denied::{DeniedSubjects, missing_right};
use super::follower::{HistoryEnd, Live, LiveAction, StreamFollower};
use super::history::{End, HistoryOutcome, Progress, Reader};
use super::jetstream::{self, JetStreamError};
use super::status::{self, History, MAX_COMPLAINTS};
use crate::config::Nats;
use crate::hub::SourceHandle;
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
use crate::source::gate::{Crossing, Gate};
use crate::source::link::{StatusSender, next_command};
use crate::time::now;

/// Maximum bytes that the client reads in one turn: the runtime's budget is 128 reads, each at most a buffer of 64 KiB.
pub(super) const TURN_BYTES: usize = 128 * 64 * 1024;
/// How often progress, losses and server errors are checked.
const STATUS_EVERY: Duration = Duration::from_millis(500);
/// Maximum followed streams. A deployment has one per component.
const MAX_STREAMS_FOLLOWED: usize = 1_024;
/// How often a failed read of a stream's history is retried, and the delay between retries.
const MAX_FAILED_READS: u32 = 5;
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How long to wait for confirmation that subscriptions are active. There is none if the user may not publish.
const EFFECTIVE_WITHIN: Duration = Duration::from_secs(2);

/// Result of a background job.
enum Done {
    /// The subscriptions are active.
    Subscribed,
    /// The list of streams.
    Streams(Result<Vec<String>, JetStreamError>),
    /// A stream was read.
    Read(HistoryOutcome),
}

pub(super) struct Session<'s> {
    client: Client,
    signals: Signals,
    options: &'s Nats,
    gate: &'s Gate,
    to: &'s SourceHandle,
    state: &'s mut SessionState,
    status_sender: &'s StatusSender,
    shutdown: Shutdown,
    /// Runtime for background jobs such as reading history.
    background: Handle,
    jobs: JoinSet<Done>,
    progress: Arc<Progress>,
    history: History,
    /// Why the history of some streams cannot be read.
    unread: Vec<String>,
    complaints: Vec<String>,
    denied: DeniedSubjects,
    subjects: Vec<String>,
    /// The subscriptions are active, but the hub has not been notified yet.
    pending_subscribed: bool,
    /// The break before this connection. `None`: it is the first.
    after: Option<Break>,
    /// Messages taken from the client, and messages that it dropped.
    taken: u64,
    dropped: u64,
    in_bytes: u64,
    over: watch::Sender<bool>,
}

impl<'s> Session<'s> {
    pub(super) fn new(
        (client, signals): (Client, Signals),
        (options, gate): (&'s Nats, &'s Gate),
        to: &'s SourceHandle,
        state: &'s mut SessionState,
        status_sender: &'s StatusSender,
        (shutdown, background): (Shutdown, Handle),
    ) -> Self {
        Self {
            client,
            signals,
            options,
            gate,
            to,
            state,
            status_sender,
            shutdown,
            background,
            jobs: JoinSet::new(),
            progress: Arc::new(Progress::default()),
            history: History::Requested,
            unread: Vec::new(),
            complaints: Vec::new(),
            denied: DeniedSubjects::default(),
            subjects: Vec::new(),
            pending_subscribed: false,
            after: None,
            taken: 0,
            dropped: 0,
            in_bytes: 0,
            over: watch::Sender::new(false),
        }
    }

    /// Runs until the connection ends; returns the reason.
    pub(super) async fn run(mut self) -> String {
        let live = match self.subscribe().await {
            Ok(live) => live,
            Err(error) => return format!("a subscription failed: {error}"),
        };
        self.after = self.state.alive_ms.map(|since_ms| Break { since_ms, until_ms: now() });
        if let Some(at) = self.after {
            self.to.report_gap(at);
        }
        self.check_server_id();
        self.state.alive_ms = Some(now());
        self.confirm_subscriptions();
        self.start_history();
        // Without the runtime's cooperative budget: draining the client has priority over other tasks.
        let why = tokio::task::unconstrained(self.follow(live)).await;
        self.over.send_replace(true);
        while let Some(done) = self.jobs.join_next().await {
            if let Ok(Done::Read(outcome)) = done
                && let Some(follower) = self.state.streams.get_mut(&outcome.stream)
            {
                follower.interrupted(outcome.position);
            }
        }
        why
    }

    /// Detects a restarted or different server: unacknowledged messages may be missing from its streams, without a trace.
    fn check_server_id(&mut self) {
        let id = self.client.server_info().server_id;
        let is_other = std::mem::replace(&mut self.state.server_id, id) != self.state.server_id;
        if let Some(at) = self.after
            && is_other
            && self.state.streams.values().any(StreamFollower::can_be_read_again)
        {
            self.to.report_permanent_gap(Topic::KvEvents, at);
        }
    }

    async fn subscribe(&mut self) -> Result<Vec<Subscriber>, String> {
        self.subjects = match &self.options.namespace {
            // The option accepts only namespaces that can be subscribed to.
            Some(namespace) => subject::subscriptions_of(namespace).unwrap_or_default(),
            None => subject::SUBSCRIPTIONS.iter().map(|&subject| subject.to_owned()).collect(),
        };
        self.subjects.extend(self.state.subjects.named().map(str::to_owned));
        let mut live = Vec::with_capacity(self.subjects.len());
        for subject in &self.subjects {
            live.push(self.client.subscribe(subject.clone()).await.map_err(|error| error.to_string())?);
        }
        Ok(live)
    }

    /// Subscribes to a subject that discovery names.
    async fn subscribe_also(&mut self, named: NamedSubject, live: &mut Vec<Subscriber>) {
        let text = named.text.clone();
        if self.gate.subscription(&text).is_err() || !self.state.subjects.name(named) {
            return;
        }
        // A failed subscription means a lost connection; the next one subscribes again.
        if let Ok(subscriber) = self.client.subscribe(text.clone()).await {
            self.subjects.push(text);
            live.push(subscriber);
        }
    }

    /// Sends a request without responders: the server replies after it has processed the subscriptions before it.
    fn confirm_subscriptions(&mut self) {
        let (client, mut lost) = (self.client.clone(), self.over.subscribe());
        let retried_at = async move {
            let probe = client.request(client.new_inbox(), Bytes::new());
            tokio::select! {
                () = over(&mut lost) => {}
                _ = tokio::time::timeout(EFFECTIVE_WITHIN, probe) => {}
            }
            Done::Subscribed
        };
        self.jobs.spawn_on(retried_at, &self.background);
    }

    /// Notifies the hub once there is room in the queue.
    fn report_subscribed(&mut self) {
        if self.pending_subscribed {
            self.pending_subscribed = !self.to.offer(now(), Payload::Subscribed { publisher_id: None }, true);
        }
    }

    /// Continues to read the streams that were followed before, and requests the list of streams. The server responds after the
    /// subscriptions are active, so nothing is missed in between.
    fn start_history(&mut self) {
        if self.options.history_messages == 0 {
            self.without_history("--history-messages 0: no history is read".to_owned());
            return;
        }
        let known: Vec<String> = self.state.streams.keys().cloned().collect();
        known.iter().for_each(|stream| self.read_history(stream, Duration::ZERO));
        let (client, mut lost) = (self.client.clone(), self.over.subscribe());
        let ask = async move {
            tokio::select! {
                () = over(&mut lost) => Done::Streams(Err(JetStreamError::TimedOut)),
                names = jetstream::stream_names(&client) => Done::Streams(names),
            }
        };
        self.jobs.spawn_on(ask, &self.background);
    }

    fn streams(&mut self, names: Result<Vec<String>, JetStreamError>) {
        let names = match names {
            Ok(names) => names,
            Err(JetStreamError::Off) => {
                return self.without_history("JetStream is disabled, so there is no history".to_owned());
            }
            Err(error) => return self.without_history(format!("history cannot be read: {error}")),
        };
        self.history = History::Readable;
        for name in names.into_iter().filter(|name| subject::is_kv_event_stream(name)) {
            let is_new = !self.state.streams.get(&name).is_some_and(|follower| follower.is_reading());
            if is_new && self.is_wanted(&subject::kv_event_stream_subject(&name)) {
                self.read_history(&name, Duration::ZERO);
            }
        }
    }

    /// Streams cannot be read: messages of the last break are lost.
    fn without_history(&mut self, why: String) {
        self.history = History::Unavailable(why);
        if self.state.has_stream_messages
            && let Some(at) = self.after
        {
            self.to.report_permanent_gap(Topic::KvEvents, at);
        }
    }

    fn is_wanted(&self, subject: &str) -> bool {
        let wanted = |parsed: Subject| self.options.namespace.as_deref().is_none_or(|ns| parsed.is_in(ns));
        subject::parse(subject).is_some_and(wanted)
    }

    fn read_history(&mut self, stream: &str, wait: Duration) {
        let is_new = !self.state.streams.contains_key(stream);
        if is_new && (self.state.streams.len() >= MAX_STREAMS_FOLLOWED || !self.gate.is_stream(stream)) {
            return;
        }
        let position = self.state.streams.entry(stream.to_owned()).or_default().start_reading();
        let reader = Reader {
            client: self.client.clone(),
            stream: stream.to_owned(),
            to: self.to.clone(),
            progress: Arc::clone(&self.progress),
            limit: self.options.history_messages,
            lost: self.over.subscribe(),
            wait,
            after: self.after,
        };
        self.jobs.spawn_on(async move { Done::Read(reader.run(position).await) }, &self.background);
    }

    async fn follow(&mut self, mut live: Vec<Subscriber>) -> String {
        let mut look = tokio::time::interval(STATUS_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut lost = self.signals.lost.clone();
        let mut shutdown = self.shutdown.clone();
        loop {
            tokio::select! {
                biased;
                () = over(&mut shutdown) => return "shutting down".to_owned(),
                message = first_of(&mut live) => match message {
                    Some(message) => self.drain(message, &mut live),
                    None => return "the client ended".to_owned(),
                },
                // After the messages that were still received.
                () = over(&mut lost) => return "closed by the server, or no response to pings".to_owned(),
                Some(done) = self.jobs.join_next() => {
                    match done {
                        Ok(Done::Subscribed) => {
                            self.pending_subscribed = true;
                            self.report_subscribed();
                        }
                        Ok(Done::Streams(names)) => self.streams(names),
                        Ok(Done::Read(outcome)) => self.read(outcome),
                        Err(error) => return format!("reading history failed: {error}"),
                    }
                    // Reported at once, because others wait for "live".
                    self.status_sender.set(self.status());
                }
                command = next_command(&mut self.state.commands) => {
                    if let Command::Subscribe(named) = command {
                        self.subscribe_also(named, &mut live).await;
                    }
                }
                _ = look.tick() => {
                    self.retry_denied(&mut live).await;
                    if !self.look() {
                        return "closed by the server, or no response to pings".to_owned();
                    }
                }
            }
        }
    }

    /// Takes all available messages, one per subscription in turn, to keep their order roughly. The client runs on the same
    /// thread, so nothing new arrives meanwhile.
    fn drain(&mut self, first: Message, live: &mut [Subscriber]) {
        self.taken += 1;
        self.live(first);
        let mut waiting: Vec<usize> = (0..live.len()).collect();
        while !waiting.is_empty() {
            waiting.retain(|&at| match live[at].next().now_or_never() {
                Some(Some(message)) => {
                    self.taken += 1;
                    self.live(message);
                    true
                }
                // An ended subscription is noticed at the next wait.
                Some(None) | None => false,
            });
        }
    }

    /// Handles a live message.
    fn live(&mut self, message: Message) {
        let Message { subject: text, reply, payload, .. } = message;
        // `*.kv-events` also matches subjects that are not Dynamo's.
        let Some(Payload::Nats { subject, message }) =
            self.state.subjects.publication(&text, reply.as_deref(), payload)
        else {
            return;
        };
        if self.options.namespace.as_deref().is_some_and(|namespace| !subject.is_in(namespace)) {
            return;
        }
        let at_ms = now();
        if subject.transport == Transport::Core {
            self.to.offer(at_ms, Payload::Nats { subject, message }, false);
            return;
        }
        let Some((stream, _)) = text.split_once('.') else { return };
        let stream = stream.to_owned();
        self.state.has_stream_messages = true;
        if !self.state.streams.contains_key(&stream) && !matches!(self.history, History::Unavailable(_)) {
            // A new stream: its messages so far are read as history.
            self.read_history(&stream, Duration::ZERO);
        }
        let live = Live { at_ms, subject, message };
        let Some(follower) = self.state.streams.get_mut(&stream) else {
            self.to.offer(at_ms, live.into_payload(), false);
            return;
        };
        if let LiveAction::Pass(live) = follower.live(live, Instant::now()) {
            self.forward(&stream, live);
        }
    }

    /// Forwards a live message of a stream. `false`: the queue was full.
    fn forward(&mut self, stream: &str, live: Live) -> bool {
        let Some(follower) = self.state.streams.get_mut(stream) else { return true };
        let again = follower.can_be_read_again();
        let message = live.message.clone();
        let is_forwarded = self.to.offer(live.at_ms, live.into_payload(), again);
        if is_forwarded {
            follower.forwarded(&message);
        } else if again {
            self.read_history(stream, Duration::ZERO);
        }
        is_forwarded
    }

    /// A stream's history was read.
    fn read(&mut self, outcome: HistoryOutcome) {
        let HistoryOutcome { stream, position, may_arrive_live, end } = outcome;
        let Some(follower) = self.state.streams.get_mut(&stream) else { return };
        match end {
            End::CaughtUp => match follower.caught_up(position, may_arrive_live, Instant::now()) {
                HistoryEnd::Pass(new) => {
                    follower.failed_reads = 0;
                    // If the queue is full, the rest is read again.
                    let _ = new.into_iter().all(|live| self.forward(&stream, live));
                }
                HistoryEnd::ReadOn => self.read_history(&stream, Duration::ZERO),
            },
            End::Interrupted => follower.interrupted(position),
            // The subject has no stream: its messages only arrive live.
            End::Failed(JetStreamError::NoStream) => self.abandon_history(&stream),
            End::Failed(error)
                if follower.failed_reads < MAX_FAILED_READS && !matches!(error, JetStreamError::Off) =>
            {
                tracing::warn!(stream, %error, "reading history failed; retrying");
                follower.failed_reads += 1;
                follower.reached(position);
                self.read_history(&stream, RETRY_AFTER);
            }
            End::Failed(error) => {
                tracing::warn!(stream, %error, "reading history failed");
                if self.unread.len() < MAX_COMPLAINTS {
                    self.unread.push(format!("history of {stream} could not be read completely: {error}"));
                }
                self.abandon_history(&stream);
            }
        }
    }

    /// A stream's history cannot be read: forwards the buffered messages.
    fn abandon_history(&mut self, stream: &str) {
        let Some(follower) = self.state.streams.get_mut(stream) else { return };
        let was_followed = follower.can_be_read_again();
        let (buffered, dropped) = follower.without_history();
        if dropped > 0 {
            self.to.lost(Topic::KvEvents, MissedCause::QueueFull, dropped);
        }
        if was_followed {
            // It was read before, so messages since then may be missing.
            let since_ms = self.after.map_or_else(now, |at| at.since_ms);
            self.to.report_permanent_gap(Topic::KvEvents, Break { since_ms, until_ms: now() });
        }
        for live in buffered {
            self.forward(stream, live);
        }
    }

    /// Retries denied subjects.
    async fn retry_denied(&mut self, live: &mut [Subscriber]) {
        for at in self.denied.due(Instant::now()) {
            if let Ok(subscriber) = self.client.subscribe(self.subjects[at].clone()).await {
                live[at] = subscriber;
            }
        }
        for (at, since_ms) in self.denied.allowed(Instant::now()) {
            self.to.report_permanent_gap(topic_of(&self.subjects[at]), Break { since_ms, until_ms: now() });
        }
    }

    /// Reports progress, losses and server errors. `false`: the connection is lost.
    fn look(&mut self) -> bool {
        self.count_dropped();
        self.report_subscribed();
        let in_bytes = self.client.statistics().in_bytes.load(Ordering::Relaxed);
        if std::mem::replace(&mut self.in_bytes, in_bytes) != in_bytes {
            self.state.alive_ms = Some(now());
        }
        for complaint in self.signals.take_errors() {
            tracing::warn!(complaint, "error from the NATS server");
            let is_denial = self.denied.note(&complaint, &self.subjects, now());
            // Each subject is denied repeatedly, but the missing permission is the same.
            let complaint = missing_right(&complaint).unwrap_or(complaint);
            if !is_denial && self.complaints.len() < MAX_COMPLAINTS && !self.complaints.contains(&complaint) {
                self.complaints.push(complaint);
            }
        }
        self.status_sender.set(self.status());
        self.client.connection_state() == State::Connected
    }

    /// Compares the messages that the client read with those taken from it, right after it was drained. Replies to requests are
    /// among them, at most one per request.
    fn count_dropped(&mut self) {
        let statistics = self.client.statistics();
        let read = statistics.in_messages.load(Ordering::Relaxed);
        let answers = statistics.out_messages.load(Ordering::Relaxed);
        let dropped = read.saturating_sub(self.taken).saturating_sub(answers);
        let new = dropped.saturating_sub(self.dropped);
        if new == 0 {
            return;
        }
        self.dropped = dropped;
        // The client reports the subscription only for some of them.
        let dropped_by_subscription = self.signals.take_dropped();
        let most =
            dropped_by_subscription.iter().enumerate().max_by_key(|&(_, count)| count).map(|(at, _)| at);
        let topic =
            most.and_then(|at| self.subjects.get(at)).map_or(Topic::Other, |subject| topic_of(subject));
        self.to.lost(topic, MissedCause::SlowConsumer, new);
    }

    fn status(&self) -> SourceStatus {
        let is_reading = matches!(self.history, History::Requested)
            || self.state.streams.values().any(|follower| follower.is_reading());
        let mut detail = if is_reading {
            status::reading(&self.progress)
        } else {
            status::live(&self.progress, &self.history, self.state.streams.is_empty())
        };
        for more in &self.unread {
            detail.push_str(&format!(" The {more}."));
        }
        for complaint in &self.complaints {
            detail.push_str(&format!(" Error from the server: {complaint}."));
        }
        for what in [Crossing::NatsSubscription, Crossing::StreamRequest] {
            if let Some(refused) = self.gate.refusals().sentence(what.as_str()) {
                detail.push_str(&format!(" Subjects and streams: {refused}"));
            }
        }
        if self.denied.is_empty() {
            let state = if is_reading { LinkState::CatchingUp } else { LinkState::Live };
            return SourceStatus { state, detail };
        }
        detail.push_str(&format!(" {}", self.denied.to_text(self.options.namespace.as_deref())));
        let is_all = self.denied.len() == self.subjects.len();
        SourceStatus { state: if is_all { LinkState::Refused } else { LinkState::Partial }, detail }
    }
}

/// Waits for a message. `None`: a subscription ended.
async fn first_of(live: &mut [Subscriber]) -> Option<Message> {
    poll_fn(|cx| {
        let mut polled = live.iter_mut().map(|subscriber| subscriber.poll_next_unpin(cx));
        polled.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}

fn topic_of(pattern: &str) -> Topic {
    match pattern.rsplit('.').next() {
        Some("kv-events") => Topic::KvEvents,
        Some("kv-hit-rate") => Topic::KvHitRate,
        Some("kv_metrics") => Topic::KvMetrics,
        Some("active_sequences_events") => Topic::ActiveSequences,
        Some("session_affinity_events") => Topic::SessionAffinity,
        _ if pattern == subject::REQUEST_TRACE => Topic::RequestTrace,
        _ => Topic::Other,
    }
}
