//! One connection to NATS, from its first subscription to its loss.
//!
//! It runs on a thread that does nothing else, and takes what the client has before it does anything else: nothing here
//! waits for the hub, and neither decoding nor history is done on this thread. So the client, which reads at most
//! [`TURN_BYTES`] before this gets its turn, never has more waiting than its channels hold, and all that is ever dropped
//! is dropped at the hub's queue, one counted message at a time.
//!
//! Subscribes first, then has the history of every stream of KV events read beside the live messages. A live message
//! of a stream that finds no room is not lost: the stream is read again from there, until nothing is missing.

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

use super::connect::Signals;
use super::denied::{DeniedSubjects, missing_right};
use super::history::{End, Outcome, Progress, Reader};
use super::jetstream::{self, JetStreamError};
use super::line::{Line, Live, Next, Then};
use super::status::{self, History, MAX_COMPLAINTS};
use super::{Kept, Words};
use crate::config::Nats;
use crate::hub::SourceHandle;
use crate::shutdown::{Shutdown, over};
use crate::source::gate::{Crossing, Gate};
use crate::source::link::next_of;
use crate::time::now;

/// What the client reads in one turn at most: the runtime lets a task read 128 times, each at most a buffer of 64 KiB.
pub(super) const TURN_BYTES: usize = 128 * 64 * 1024;
/// How often progress, losses and complaints are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Streams followed. A deployment has one a component; more than this is not Dynamo.
const MAX_LINES: usize = 1_024;
/// How often a stream whose history cannot be read is tried again, and how long to wait in between.
const MAX_TRIES: u32 = 5;
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How long the server may take to show that subscriptions took effect. A user who may not publish is shown nothing.
const EFFECTIVE_WITHIN: Duration = Duration::from_secs(2);

/// What was done elsewhere.
enum Done {
    /// The subscriptions took effect.
    Subscribed,
    /// JetStream named its streams.
    Streams(Result<Vec<String>, JetStreamError>),
    /// A stream was read.
    Read(Outcome),
}

pub(super) struct Session<'s> {
    client: Client,
    signals: Signals,
    options: &'s Nats,
    gate: &'s Gate,
    to: &'s SourceHandle,
    kept: &'s mut Kept,
    words: &'s Words,
    shutdown: Shutdown,
    /// Where history is read: not on this thread.
    elsewhere: Handle,
    jobs: JoinSet<Done>,
    progress: Arc<Progress>,
    history: History,
    /// Streams whose history cannot be read, and why.
    unread: Vec<String>,
    complaints: Vec<String>,
    denied: DeniedSubjects,
    subjects: Vec<String>,
    /// The subscriptions took effect and nobody was told yet.
    is_to_say_subscribed: bool,
    /// The break that this connection ended. `None`: it is the first.
    after: Option<Break>,
    /// Messages taken from the client, and how many it dropped so far.
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
        kept: &'s mut Kept,
        words: &'s Words,
        (shutdown, elsewhere): (Shutdown, Handle),
    ) -> Self {
        Self {
            client,
            signals,
            options,
            gate,
            to,
            kept,
            words,
            shutdown,
            elsewhere,
            jobs: JoinSet::new(),
            progress: Arc::new(Progress::default()),
            history: History::Asked,
            unread: Vec::new(),
            complaints: Vec::new(),
            denied: DeniedSubjects::default(),
            subjects: Vec::new(),
            is_to_say_subscribed: false,
            after: None,
            taken: 0,
            dropped: 0,
            in_bytes: 0,
            over: watch::Sender::new(false),
        }
    }

    /// Follows the connection to its end and says why it ended.
    pub(super) async fn run(mut self) -> String {
        let live = match self.subscribe().await {
            Ok(live) => live,
            Err(error) => return format!("a subscription failed: {error}"),
        };
        self.after = self.kept.alive_ms.map(|since_ms| Break { since_ms, until_ms: now() });
        if let Some(at) = self.after {
            self.to.broke(at);
        }
        self.note_server();
        self.kept.alive_ms = Some(now());
        self.await_effect();
        self.start_history();
        // The runtime would let other tasks have their turn in the middle; but none is as urgent as this.
        let why = tokio::task::unconstrained(self.follow(live)).await;
        self.over.send_replace(true);
        while let Some(done) = self.jobs.join_next().await {
            if let Ok(Done::Read(outcome)) = done
                && let Some(line) = self.kept.lines.get_mut(&outcome.stream)
            {
                line.interrupted(outcome.place);
            }
        }
        why
    }

    /// A server that was started again, or another one: what its publishers had no receipt for may be in no stream, and
    /// nothing tells.
    fn note_server(&mut self) {
        let id = self.client.server_info().server_id;
        let is_other = std::mem::replace(&mut self.kept.server_id, id) != self.kept.server_id;
        if let Some(at) = self.after
            && is_other
            && self.kept.lines.values().any(Line::can_be_read_again)
        {
            self.to.broke_for_good(Topic::KvEvents, at);
        }
    }

    async fn subscribe(&mut self) -> Result<Vec<Subscriber>, String> {
        self.subjects = match &self.options.namespace {
            // The command line accepts only namespaces that can be subscribed to.
            Some(namespace) => subject::subscriptions_of(namespace).unwrap_or_default(),
            None => subject::SUBSCRIPTIONS.iter().map(|&subject| subject.to_owned()).collect(),
        };
        self.subjects.extend(self.kept.subjects.named().map(str::to_owned));
        let mut live = Vec::with_capacity(self.subjects.len());
        for subject in &self.subjects {
            live.push(self.client.subscribe(subject.clone()).await.map_err(|error| error.to_string())?);
        }
        Ok(live)
    }

    /// Discovery names a subject that is not subscribed to.
    async fn subscribe_also(&mut self, named: NamedSubject, live: &mut Vec<Subscriber>) {
        let text = named.text.clone();
        if self.gate.subscription(&text).is_err() || !self.kept.subjects.name(named) {
            return;
        }
        // One that fails is tried again with the next connection, which is what it needs.
        if let Ok(subscriber) = self.client.subscribe(text.clone()).await {
            self.subjects.push(text);
            live.push(subscriber);
        }
    }

    /// Asks nobody anything: the server answers that after all that was sent before, so the subscriptions took effect.
    fn await_effect(&mut self) {
        let (client, mut lost) = (self.client.clone(), self.over.subscribe());
        let asked = async move {
            let nobody = client.request(client.new_inbox(), Bytes::new());
            tokio::select! {
                () = over(&mut lost) => {}
                _ = tokio::time::timeout(EFFECTIVE_WITHIN, nobody) => {}
            }
            Done::Subscribed
        };
        self.jobs.spawn_on(asked, &self.elsewhere);
    }

    /// Says it once there is room.
    fn say_subscribed(&mut self) {
        if self.is_to_say_subscribed {
            self.is_to_say_subscribed =
                !self.to.offer(now(), Payload::Subscribed { publisher_id: None }, true);
        }
    }

    /// Has the streams read on that were followed before, and asks which there are. The server answers after the
    /// subscriptions took effect: nothing falls in between.
    fn start_history(&mut self) {
        if self.options.history_messages == 0 {
            self.without_history("--history-messages 0: no history is read".to_owned());
            return;
        }
        let known: Vec<String> = self.kept.lines.keys().cloned().collect();
        known.iter().for_each(|stream| self.read_history(stream, Duration::ZERO));
        let (client, mut lost) = (self.client.clone(), self.over.subscribe());
        let ask = async move {
            tokio::select! {
                () = over(&mut lost) => Done::Streams(Err(JetStreamError::Silent)),
                names = jetstream::stream_names(&client) => Done::Streams(names),
            }
        };
        self.jobs.spawn_on(ask, &self.elsewhere);
    }

    fn streams(&mut self, names: Result<Vec<String>, JetStreamError>) {
        let names = match names {
            Ok(names) => names,
            Err(JetStreamError::Off) => {
                return self.without_history("JetStream is off there, so no history is known".to_owned());
            }
            Err(error) => return self.without_history(format!("history cannot be read: {error}")),
        };
        self.history = History::Readable;
        for name in names.into_iter().filter(|name| subject::is_kv_event_stream(name)) {
            let is_new = !self.kept.lines.get(&name).is_some_and(|line| line.is_reading());
            if is_new && self.is_wanted(&subject::kv_event_stream_subject(&name)) {
                self.read_history(&name, Duration::ZERO);
            }
        }
    }

    /// Streams cannot be read: what they kept of the last break is lost for good.
    fn without_history(&mut self, why: String) {
        self.history = History::Not(why);
        if self.kept.has_stream_messages
            && let Some(at) = self.after
        {
            self.to.broke_for_good(Topic::KvEvents, at);
        }
    }

    fn is_wanted(&self, subject: &str) -> bool {
        let wanted = |parsed: Subject| self.options.namespace.as_deref().is_none_or(|ns| parsed.is_in(ns));
        subject::parse(subject).is_some_and(wanted)
    }

    fn read_history(&mut self, stream: &str, wait: Duration) {
        let is_new = !self.kept.lines.contains_key(stream);
        if is_new && (self.kept.lines.len() >= MAX_LINES || !self.gate.is_stream(stream)) {
            return;
        }
        let place = self.kept.lines.entry(stream.to_owned()).or_default().start_reading();
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
        self.jobs.spawn_on(async move { Done::Read(reader.run(place).await) }, &self.elsewhere);
    }

    async fn follow(&mut self, mut live: Vec<Subscriber>) -> String {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut lost = self.signals.lost.clone();
        let mut shutdown = self.shutdown.clone();
        loop {
            tokio::select! {
                biased;
                () = over(&mut shutdown) => return "the process ends".to_owned(),
                message = first_of(&mut live) => match message {
                    Some(message) => self.drain(message, &mut live),
                    None => return "the client ended".to_owned(),
                },
                // Behind what was still received.
                () = over(&mut lost) => return "the server closed it or does not answer".to_owned(),
                Some(done) = self.jobs.join_next() => {
                    match done {
                        Ok(Done::Subscribed) => {
                            self.is_to_say_subscribed = true;
                            self.say_subscribed();
                        }
                        Ok(Done::Streams(names)) => self.streams(names),
                        Ok(Done::Read(outcome)) => self.read(outcome),
                        Err(error) => return format!("reading history failed: {error}"),
                    }
                    // At once: "live" is what others wait for.
                    self.words.say(self.status());
                }
                command = next_of(&mut self.kept.commands) => {
                    if let Command::Subscribe(named) = command {
                        self.subscribe_also(named, &mut live).await;
                    }
                }
                _ = look.tick() => {
                    self.ask_again(&mut live).await;
                    if !self.look() {
                        return "the server closed it or does not answer".to_owned();
                    }
                }
            }
        }
    }

    /// Takes all messages there are, one of each subscription in turn: they arrived mixed. Nothing new arrives meanwhile,
    /// on this thread.
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
                // One that has ended is noticed at the next wait.
                Some(None) | None => false,
            });
        }
    }

    /// A live message came.
    fn live(&mut self, message: Message) {
        let Message { subject: text, reply, payload, .. } = message;
        // `*.kv-events` receives other people's subjects of two words as well.
        let Some(Payload::Nats { subject, message }) =
            self.kept.subjects.publication(&text, reply.as_deref(), payload)
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
        self.kept.has_stream_messages = true;
        if !self.kept.lines.contains_key(&stream) && !matches!(self.history, History::Not(_)) {
            // A stream that did not exist when we came: what it holds so far is read like any other.
            self.read_history(&stream, Duration::ZERO);
        }
        let live = Live { at_ms, subject, message };
        let Some(line) = self.kept.lines.get_mut(&stream) else {
            self.to.offer(at_ms, live.into_payload(), false);
            return;
        };
        if let Then::Pass(live) = line.live(live, Instant::now()) {
            self.pass(&stream, live);
        }
    }

    /// Passes on a live message of a stream. `false`: there was no room.
    fn pass(&mut self, stream: &str, live: Live) -> bool {
        let Some(line) = self.kept.lines.get_mut(stream) else { return true };
        let again = line.can_be_read_again();
        let message = live.message.clone();
        let is_passed = self.to.offer(live.at_ms, live.into_payload(), again);
        if is_passed {
            line.passed(&message);
        } else if again {
            self.read_history(stream, Duration::ZERO);
        }
        is_passed
    }

    /// A stream's history was read.
    fn read(&mut self, outcome: Outcome) {
        let Outcome { stream, place, may_come_again, end } = outcome;
        let Some(line) = self.kept.lines.get_mut(&stream) else { return };
        match end {
            End::CaughtUp => match line.caught_up(place, may_come_again, Instant::now()) {
                Next::Pass(new) => {
                    line.tries = 0;
                    // Without room the rest is read once more.
                    let _ = new.into_iter().all(|live| self.pass(&stream, live));
                }
                Next::ReadOn => self.read_history(&stream, Duration::ZERO),
            },
            End::Interrupted => line.interrupted(place),
            // The subject has no stream: what is published there is said once, like all else.
            End::Failed(JetStreamError::NoStream) => self.give_up(&stream),
            End::Failed(error) if line.tries < MAX_TRIES && !matches!(error, JetStreamError::Off) => {
                tracing::warn!(stream, %error, "history cannot be read; trying again");
                line.tries += 1;
                line.reached(place);
                self.read_history(&stream, TRY_AGAIN_AFTER);
            }
            End::Failed(error) => {
                tracing::warn!(stream, %error, "history cannot be read to its end");
                if self.unread.len() < MAX_COMPLAINTS {
                    self.unread.push(format!("history of {stream} could not be read to its end: {error}"));
                }
                self.give_up(&stream);
            }
        }
    }

    /// A stream cannot be read: what was held back is all there is.
    fn give_up(&mut self, stream: &str) {
        let Some(line) = self.kept.lines.get_mut(stream) else { return };
        let was_followed = line.can_be_read_again();
        let (held, dropped) = line.without_history();
        if dropped > 0 {
            self.to.lost(Topic::KvEvents, MissedCause::QueueFull, dropped);
        }
        if was_followed {
            // It was read before, so from there to here something may be missing.
            let since_ms = self.after.map_or_else(now, |at| at.since_ms);
            self.to.broke_for_good(Topic::KvEvents, Break { since_ms, until_ms: now() });
        }
        for live in held {
            self.pass(stream, live);
        }
    }

    /// Asks again for subjects that were denied.
    async fn ask_again(&mut self, live: &mut [Subscriber]) {
        for at in self.denied.due(Instant::now()) {
            if let Ok(subscriber) = self.client.subscribe(self.subjects[at].clone()).await {
                live[at] = subscriber;
            }
        }
        for (at, since_ms) in self.denied.allowed(Instant::now()) {
            self.to.broke_for_good(topic_of(&self.subjects[at]), Break { since_ms, until_ms: now() });
        }
    }

    /// Says what changed: progress, losses, complaints. `false`: the connection is lost.
    fn look(&mut self) -> bool {
        self.count_dropped();
        self.say_subscribed();
        let in_bytes = self.client.statistics().in_bytes.load(Ordering::Relaxed);
        if std::mem::replace(&mut self.in_bytes, in_bytes) != in_bytes {
            self.kept.alive_ms = Some(now());
        }
        for complaint in self.signals.take_errors() {
            tracing::warn!(complaint, "the NATS server complains");
            let is_denial = self.denied.note(&complaint, &self.subjects, now());
            // Each subject is denied again and again; the right is one.
            let complaint = missing_right(&complaint).unwrap_or(complaint);
            if !is_denial && self.complaints.len() < MAX_COMPLAINTS && !self.complaints.contains(&complaint) {
                self.complaints.push(complaint);
            }
        }
        self.words.say(self.status());
        self.client.connection_state() == State::Connected
    }

    /// Compares what the client read with what was taken from it, right after all was taken. Answers to our own
    /// questions are among what it read: one for each question at most.
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
        // Which subscriptions they were for is told for some of them only.
        let told = self.signals.take_dropped();
        let most = told.iter().enumerate().max_by_key(|&(_, count)| count).map(|(at, _)| at);
        let topic =
            most.and_then(|at| self.subjects.get(at)).map_or(Topic::Other, |subject| topic_of(subject));
        self.to.lost(topic, MissedCause::SlowConsumer, new);
    }

    fn status(&self) -> (LinkState, String) {
        let is_reading =
            matches!(self.history, History::Asked) || self.kept.lines.values().any(|line| line.is_reading());
        let mut words = if is_reading {
            status::reading(&self.progress)
        } else {
            status::live(&self.progress, &self.history, self.kept.lines.is_empty())
        };
        for more in &self.unread {
            words.push_str(&format!(" The {more}."));
        }
        for complaint in &self.complaints {
            words.push_str(&format!(" The server responds: {complaint}."));
        }
        for what in [Crossing::NatsSubscription, Crossing::StreamRequest] {
            if let Some(refused) = self.gate.refusals().sentence(what.as_str()) {
                words.push_str(&format!(" Subjects and streams: {refused}"));
            }
        }
        if self.denied.is_empty() {
            return (if is_reading { LinkState::CatchingUp } else { LinkState::Live }, words);
        }
        words.push_str(&format!(" {}", self.denied.to_text(self.options.namespace.as_deref())));
        let is_all = self.denied.len() == self.subjects.len();
        (if is_all { LinkState::Refused } else { LinkState::Partial }, words)
    }
}

/// Waits for a message. `None`: a subscription ended, there will be no more.
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
        _ if pattern == subject::REQUEST_TRACE => Topic::RequestTrace,
        _ => Topic::Other,
    }
}
