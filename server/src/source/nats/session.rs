//! One connection to NATS, from its first subscription to its loss.
//!
//! Subscribes first, then reads the history of every stream of KV events beside the live messages. What is lost or
//! not allowed is said.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use radixscope_core::dynamo::subject::{self, Subject, Transport};
use radixscope_core::record::{LinkState, MissedCause, Topic};
use radixscope_core::words::count;

use super::connect::Signals;
use super::history::{End, Outcome, Progress, Reader};
use super::jetstream::{self, JetStreamError};
use super::line::{Line, Live, Then};
use crate::config::Nats;
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::{Shutdown, over};
use crate::time::now;

/// Messages taken at once.
const CHUNK: usize = 256;
/// How often progress, losses and complaints are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Streams followed. A deployment has one a component; more than this is not Dynamo.
const MAX_LINES: usize = 1_024;
/// Complaints of the server that are shown.
const MAX_COMPLAINTS: usize = 4;

/// Streams by name, kept from one connection to the next.
pub(super) type Lines = HashMap<String, Line>;

/// Whether history can be read.
enum History {
    Readable,
    /// Why not, as the end of a sentence.
    Not(String),
}

pub(super) struct Session<'s> {
    client: Client,
    signals: Signals,
    options: &'s Nats,
    to: &'s SourceHandle,
    lines: &'s mut Lines,
    shutdown: Shutdown,
    readers: JoinSet<Outcome>,
    progress: Arc<Progress>,
    history: History,
    /// Streams whose history cannot be read, and why.
    unread: Vec<String>,
    complaints: Vec<String>,
    subjects: Vec<String>,
    shown: Option<(LinkState, String)>,
    over: watch::Sender<bool>,
}

impl<'s> Session<'s> {
    pub(super) fn new(
        client: Client,
        signals: Signals,
        options: &'s Nats,
        to: &'s SourceHandle,
        lines: &'s mut Lines,
        shutdown: Shutdown,
    ) -> Self {
        Self {
            client,
            signals,
            options,
            to,
            lines,
            shutdown,
            readers: JoinSet::new(),
            progress: Arc::new(Progress::default()),
            history: History::Readable,
            unread: Vec::new(),
            complaints: Vec::new(),
            subjects: Vec::new(),
            shown: None,
            over: watch::Sender::new(false),
        }
    }

    /// Follows the connection to its end and says why it ended.
    pub(super) async fn run(mut self) -> Result<String, HubEnded> {
        let live = match self.subscribe().await {
            Ok(live) => live,
            Err(error) => return Ok(format!("a subscription failed: {error}")),
        };
        // The answer to the first question comes after the subscriptions took effect: from here on nothing is missed.
        self.find_streams().await;
        self.look().await?;
        let why = self.follow(live).await;
        self.over.send_replace(true);
        while let Some(outcome) = self.readers.join_next().await {
            if let Ok(outcome) = outcome
                && let Some(line) = self.lines.get_mut(&outcome.stream)
            {
                line.interrupted(outcome.place);
            }
        }
        why
    }

    async fn subscribe(&mut self) -> Result<SelectAll<Subscriber>, String> {
        self.subjects = match &self.options.namespace {
            // The command line accepts only namespaces that can be subscribed to.
            Some(namespace) => subject::subscriptions_of(namespace).unwrap_or_default(),
            None => subject::SUBSCRIPTIONS.iter().map(|&subject| subject.to_owned()).collect(),
        };
        let mut live = Vec::with_capacity(self.subjects.len());
        for subject in &self.subjects {
            live.push(self.client.subscribe(subject.clone()).await.map_err(|error| error.to_string())?);
        }
        Ok(select_all(live))
    }

    async fn find_streams(&mut self) {
        let names = match jetstream::stream_names(&self.client).await {
            Ok(names) => names,
            Err(error) => {
                self.history = History::Not(match error {
                    JetStreamError::Off => {
                        "JetStream is off there, so nothing said earlier is known".to_owned()
                    }
                    error => format!("history cannot be read: {error}"),
                });
                return;
            }
        };
        if self.options.history_messages == 0 {
            self.history = History::Not("--history-messages 0: nothing said earlier is read".to_owned());
            return;
        }
        for name in names.into_iter().filter(|name| subject::is_kv_event_stream(name)) {
            if self.is_wanted(&subject::kv_event_stream_subject(&name)) {
                self.read_history(&name);
            }
        }
    }

    fn is_wanted(&self, subject: &str) -> bool {
        let wanted =
            |parsed: Subject<'_>| self.options.namespace.as_deref().is_none_or(|ns| parsed.is_in(ns));
        subject::parse(subject).is_some_and(wanted)
    }

    fn read_history(&mut self, stream: &str) {
        if self.lines.len() >= MAX_LINES && !self.lines.contains_key(stream) {
            return;
        }
        let place = self.lines.entry(stream.to_owned()).or_default().start_reading();
        let reader = Reader {
            client: self.client.clone(),
            stream: stream.to_owned(),
            to: self.to.clone(),
            progress: Arc::clone(&self.progress),
            limit: self.options.history_messages,
            lost: self.over.subscribe(),
        };
        self.readers.spawn(reader.run(place));
    }

    async fn follow(&mut self, live: SelectAll<Subscriber>) -> Result<String, HubEnded> {
        let mut live = live.ready_chunks(CHUNK);
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut lost = self.signals.lost.clone();
        let mut shutdown = self.shutdown.clone();
        loop {
            tokio::select! {
                () = over(&mut shutdown) => return Ok("the process ends".to_owned()),
                () = over(&mut lost) => return Ok("the server closed it or does not answer".to_owned()),
                messages = live.next() => match messages {
                    Some(messages) => messages.into_iter().for_each(|message| self.live(message)),
                    None => return Ok("the client ended".to_owned()),
                },
                Some(outcome) = self.readers.join_next() => match outcome {
                    Ok(outcome) => {
                        self.read(outcome).await?;
                        self.look().await?;
                    }
                    Err(error) => return Ok(format!("reading history failed: {error}")),
                },
                _ = look.tick() => self.look().await?,
            }
        }
    }

    /// A live message came.
    fn live(&mut self, message: Message) {
        if subject::is_delivery_copy(message.reply.as_deref()) {
            return;
        }
        let Message { subject, payload, .. } = message;
        let parsed = subject::parse(&subject);
        if let (Some(namespace), Some(parsed)) = (&self.options.namespace, parsed)
            && !parsed.is_in(namespace)
        {
            return;
        }
        // `*.kv-events` hears other people's subjects of two words as well.
        let Some(parsed) = parsed else { return };
        let at_ms = now();
        if parsed.transport == Transport::Core {
            self.to.offer(at_ms, &subject, payload);
            return;
        }
        let Some((stream, _)) = subject.split_once('.') else { return };
        let stream = stream.to_owned();
        if !self.lines.contains_key(&stream) && matches!(self.history, History::Readable) {
            // A stream that did not exist when we came: what it holds so far is read like any other.
            self.read_history(&stream);
        }
        let live = Live { at_ms, subject, payload };
        match self.lines.get_mut(&stream) {
            Some(line) => {
                if let Then::Pass(live) = line.live(live, Instant::now())
                    && self.to.offer(live.at_ms, &live.subject, live.payload.clone())
                {
                    line.passed(&live.payload);
                }
            }
            None => {
                self.to.offer(live.at_ms, &live.subject, live.payload);
            }
        }
    }

    /// A stream's history was read.
    async fn read(&mut self, outcome: Outcome) -> Result<(), HubEnded> {
        let Outcome { stream, place, may_come_again, end } = outcome;
        let Some(line) = self.lines.get_mut(&stream) else { return Ok(()) };
        let new = match end {
            End::CaughtUp => line.caught_up(place, may_come_again, Instant::now()),
            End::Interrupted => {
                line.interrupted(place);
                Vec::new()
            }
            // The subject has no stream: what is published there is said once, like all else.
            End::Failed(JetStreamError::NoStream) => line.without_history(),
            End::Failed(error) => {
                tracing::warn!(stream, %error, "history cannot be read to its end");
                if self.unread.len() < MAX_COMPLAINTS {
                    self.unread.push(format!("history of {stream} could not be read to its end: {error}"));
                }
                line.without_history()
            }
        };
        for live in new {
            self.to.deliver(live.at_ms, &live.subject, live.payload.clone()).await?;
            if let Some(line) = self.lines.get_mut(&stream) {
                line.passed(&live.payload);
            }
        }
        Ok(())
    }

    /// Says what changed: progress, losses, complaints.
    async fn look(&mut self) -> Result<(), HubEnded> {
        for (at, count) in self.signals.take_dropped().into_iter().enumerate().filter(|&(_, count)| count > 0)
        {
            let topic = self.subjects.get(at).map_or(Topic::Other, |subject| topic_of(subject));
            self.to.missed(topic, MissedCause::SlowConsumer, count).await?;
        }
        for complaint in self.signals.take_errors() {
            tracing::warn!(complaint, "the NATS server complains");
            if self.complaints.len() < MAX_COMPLAINTS && !self.complaints.contains(&complaint) {
                self.complaints.push(complaint);
            }
        }
        let status = self.status();
        if self.shown.as_ref() != Some(&status) {
            self.to.state(status.0, status.1.clone()).await?;
            self.shown = Some(status);
        }
        Ok(())
    }

    fn status(&self) -> (LinkState, String) {
        let read = count(self.progress.read.load(Ordering::Relaxed));
        let of = count(self.progress.of.load(Ordering::Relaxed));
        if self.lines.values().any(Line::is_reading) {
            return (LinkState::CatchingUp, format!("Connected; reading history: {read} of {of} messages."));
        }
        let mut words = match &self.history {
            History::Not(why) => format!("Connected; {why}."),
            History::Readable if self.lines.is_empty() => {
                "Connected; no stream of KV events there (Dynamo 0.8 and 0.9 have one), so nothing said earlier is \
                 known."
                    .to_owned()
            }
            History::Readable => format!("Connected; {read} messages of history read."),
        };
        let left_out = self.progress.left_out.load(Ordering::Relaxed);
        if left_out > 0 {
            let left_out = count(left_out);
            words.push_str(&format!(" {left_out} older ones were left out (--history-messages)."));
        }
        for more in &self.unread {
            words.push_str(&format!(" The {more}."));
        }
        for complaint in &self.complaints {
            words.push_str(&format!(" The server says: {complaint}."));
        }
        let is_denied = |subject: &String| self.complaints.iter().any(|said| said.contains(subject.as_str()));
        let state = if self.subjects.iter().all(is_denied) { LinkState::Refused } else { LinkState::Live };
        (state, words)
    }
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
