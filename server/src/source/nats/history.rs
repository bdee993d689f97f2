//! Reads a stream's messages by sequence number, from the last position to its end, and delivers them in order. Runs
//! concurrently with the live subscription. It always ends with a [`HistoryOutcome`], so that the next connection continues from
//! there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::Client;
use futures_util::{StreamExt, stream};

use radixscope_intake::{Break, NatsSubjects};
use radixscope_model::id::Millis;
use radixscope_model::record::{MissedCause, Topic};

use super::agreement::{Agreed, NEAR, Search};
use super::dedupe::{Content, Multiset, OVERLAP, RecentMessages};
use super::follower::MAX_BUFFERED_MESSAGES;
use super::jetstream::{self, JetStreamError, StoredMessage, StreamRange};
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::Shutdown;
use crate::time::now;

/// Maximum requests in flight: hides the round trip without flooding the server.
const IN_FLIGHT: usize = 128;
/// Within this distance of the end, the next pass is the last: newer messages also arrive live.
const NEARLY_THERE: u64 = 1_024;
/// How many of the last messages read may still arrive live: more than are buffered and in transit together.
const MAY_ARRIVE_LIVE: usize = 2 * MAX_BUFFERED_MESSAGES;
/// A message stored up to this many milliseconds before the broker reported the stream's range may still be in transit to the
/// subscription.
const ON_THE_WAY_MS: u64 = 5_000;
/// A message that arrived live is stored within this time, or never.
const STORED_WITHIN: Duration = Duration::from_secs(2);
const POLL_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The position reached in a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamPosition {
    /// Creation time of the stream; it distinguishes streams of the same name.
    pub(super) created: String,
    /// Every existing message up to here was delivered.
    pub(super) reached: u64,
    /// The most recently delivered messages.
    pub(super) recent: RecentMessages,
}

/// The result of reading history.
#[derive(Debug)]
pub(super) struct HistoryOutcome {
    pub(super) stream: String,
    pub(super) position: StreamPosition,
    /// Messages that were read and may still arrive live.
    pub(super) may_arrive_live: Multiset,
    pub(super) end: End,
}

#[derive(Debug)]
pub(super) enum End {
    /// The stream was read to its end.
    CaughtUp,
    /// The connection was lost, or the process is stopping.
    Interrupted,
    /// A JetStream request failed.
    Failed(JetStreamError),
}

/// Progress of all readers together.
#[derive(Default, Debug)]
pub(super) struct Progress {
    pub(super) read: AtomicU64,
    pub(super) of: AtomicU64,
    /// Messages skipped because of the limit.
    pub(super) left_out: AtomicU64,
}

pub(super) struct Reader {
    pub(super) client: Client,
    pub(super) stream: String,
    pub(super) to: SourceHandle,
    pub(super) progress: Arc<Progress>,
    pub(super) limit: u64,
    /// Turns true when the connection is lost.
    pub(super) lost: Shutdown,
    /// Initial delay, after a failed attempt.
    pub(super) wait: Duration,
    /// The break before this connection, if there was one.
    pub(super) after: Option<Break>,
}

/// Why reading stops early.
enum Stop {
    Interrupted,
    Failed(JetStreamError),
}

impl From<JetStreamError> for Stop {
    fn from(error: JetStreamError) -> Self {
        Self::Failed(error)
    }
}

impl From<HubEnded> for Stop {
    fn from(HubEnded: HubEnded) -> Self {
        Self::Interrupted
    }
}

impl Reader {
    /// Reads from `position`, or from the start of the stream.
    pub(super) async fn run(self, position: Option<StreamPosition>) -> HistoryOutcome {
        let mut reading = Reading {
            subjects: NatsSubjects::default(),
            position: position.unwrap_or_default(),
            known: Multiset::default(),
            may_arrive_live: RecentMessages::with_capacity(MAY_ARRIVE_LIVE),
            live_since: None,
        };
        let mut lost = self.lost.clone();
        let read = async {
            tokio::time::sleep(self.wait).await;
            self.read(&mut reading).await
        };
        // Also interrupts waiting for a response or the queue, because the next connection waits for this task. Delivered
        // messages are recorded at once, so none is read twice.
        let end = tokio::select! {
            () = crate::shutdown::over(&mut lost) => End::Interrupted,
            done = read => match done {
                Ok(()) => End::CaughtUp,
                Err(Stop::Interrupted) => End::Interrupted,
                Err(Stop::Failed(error)) => End::Failed(error),
            },
        };
        let Reading { position, may_arrive_live, .. } = reading;
        HistoryOutcome { stream: self.stream, position, may_arrive_live: may_arrive_live.multiset(), end }
    }

    async fn read(&self, reading: &mut Reading) -> Result<(), Stop> {
        let mut range = self.range_of(&reading.position).await?;
        let from = self.begin(reading, &range).await?;
        let mut next = from;
        loop {
            let is_last = range.last_seq.saturating_sub(next) < NEARLY_THERE;
            self.progress.of.fetch_add((range.last_seq + 1).saturating_sub(next), Ordering::Relaxed);
            self.forward(reading, next, range.last_seq).await?;
            next = next.max(range.last_seq + 1);
            if is_last {
                return Ok(());
            }
            range = jetstream::range(&self.client, &self.stream).await?;
            if range.first_seq > next {
                self.expired(range.first_seq - next);
                next = range.first_seq;
            }
        }
    }

    /// The stream's range. Waits briefly until it includes the last position.
    async fn range_of(&self, position: &StreamPosition) -> Result<StreamRange, Stop> {
        let started = Instant::now();
        loop {
            let range = jetstream::range(&self.client, &self.stream).await?;
            let is_behind = position.created == range.created && range.last_seq < position.reached;
            if !is_behind || started.elapsed() > STORED_WITHIN {
                return Ok(range);
            }
            tokio::time::sleep(POLL_AGAIN_AFTER).await;
        }
    }

    /// The first message to read, from the last position and the stream's range.
    async fn begin(&self, reading: &mut Reading, range: &StreamRange) -> Result<u64, Stop> {
        reading.live_since = range.at_ms.map(|at| Millis(at.0.saturating_sub(ON_THE_WAY_MS)));
        if reading.position.created == range.created {
            return self.go_on(reading, range).await;
        }
        let position = &mut reading.position;
        if !position.created.is_empty() {
            tracing::info!(stream = self.stream, "the stream was recreated; reading it from its start");
        }
        *position = StreamPosition { created: range.created.clone(), ..StreamPosition::default() };
        let buffered = (range.last_seq + 1).saturating_sub(range.first_seq);
        let left_out = buffered.saturating_sub(self.limit);
        self.progress.left_out.fetch_add(left_out, Ordering::Relaxed);
        position.reached = range.first_seq + left_out - 1;
        Ok(range.first_seq + left_out)
    }

    /// The first message to read of a stream that was read before: the last [`OVERLAP`] messages are read again.
    async fn go_on(&self, reading: &mut Reading, range: &StreamRange) -> Result<u64, Stop> {
        let Reading { position, known, .. } = reading;
        *known = position.recent.multiset();
        // Messages before this one are not remembered and must not be read again.
        let oldest = (position.reached + 1).saturating_sub(position.recent.len());
        let was_at = position.reached;
        position.reached = was_at.min(range.last_seq);
        match self.agreed(position, known).await? {
            Agreed::Upto(seq) if seq + NEAR < position.reached => position.reached = seq,
            Agreed::Upto(_) | Agreed::Unknown => {}
            Agreed::Nowhere => position.reached = oldest.saturating_sub(1).min(position.reached),
        }
        if position.reached < was_at {
            self.lost_its_latest();
        }
        let next = position.reached + 1;
        if range.first_seq > next {
            self.expired(range.first_seq - next);
        }
        Ok(next.saturating_sub(OVERLAP).max(oldest.min(next)).max(range.first_seq))
    }

    /// The last position at which the stream agrees with the delivered messages.
    async fn agreed(&self, position: &StreamPosition, known: &Multiset) -> Result<Agreed, JetStreamError> {
        let mut search = Search::new(position.reached, position.recent.len());
        loop {
            let seq = match search.next() {
                Ok(seq) => seq,
                Err(agreed) => return Ok(agreed),
            };
            let message = jetstream::message(&self.client, &self.stream, seq).await?;
            match message.map(|message| known.has(Content::of(&message.payload))) {
                Some(true) => return Ok(Agreed::Upto(seq)),
                other => search.is_not_there(other),
            }
        }
    }

    /// The server crashed before it had stored everything that it had delivered: the stream lacks messages, and later ones may
    /// be missing.
    fn lost_its_latest(&self) {
        tracing::warn!(stream = self.stream, "the stream lost its latest messages; KV events may be missing");
        let at = self.after.unwrap_or_else(|| Break { since_ms: now(), until_ms: now() });
        self.to.report_permanent_gap(Topic::KvEvents, at);
    }

    /// Reads messages `first` to `last`.
    async fn forward(&self, reading: &mut Reading, first: u64, last: u64) -> Result<(), Stop> {
        let get = |seq| async move { (seq, jetstream::message(&self.client, &self.stream, seq).await) };
        let mut messages = stream::iter(first..=last).map(get).buffered(IN_FLIGHT);
        while let Some((seq, message)) = messages.next().await {
            // A missing message expired or was deleted; messages that expired unread are counted from the range.
            if let Some(message) = message? {
                self.handle(reading, message).await?;
            }
            reading.position.reached = reading.position.reached.max(seq);
            self.progress.read.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn handle(&self, reading: &mut Reading, message: StoredMessage) -> Result<(), Stop> {
        let StoredMessage { subject, at_ms, payload } = message;
        let content = Content::of(&payload);
        if reading.live_since.is_none_or(|since| at_ms >= since) {
            reading.may_arrive_live.push(content);
        }
        if reading.known.remove(content) {
            return Ok(());
        }
        if let Some(payload) = reading.subjects.publication(&subject, None, payload) {
            self.to.deliver(at_ms, payload).await?;
        }
        reading.position.recent.push(content);
        Ok(())
    }

    fn expired(&self, count: u64) {
        self.to.lost(Topic::KvEvents, MissedCause::HistoryExpired, count);
    }
}

struct Reading {
    subjects: NatsSubjects,
    position: StreamPosition,
    /// Messages delivered before the connection was lost, which are read again.
    known: Multiset,
    may_arrive_live: RecentMessages,
    /// Messages stored after this time of the broker's clock may also arrive live. `None`: unknown.
    live_since: Option<Millis>,
}
