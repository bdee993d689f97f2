//! Reads a stream's messages by number, from where we were to its end, and hands them over in order.
//!
//! Runs beside the live subscription. It ends with an [`Outcome`] whatever happens, so that the next connection goes
//! on from where this one was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_nats::Client;
use futures_util::{StreamExt, stream};

use radixscope_intake::{Break, NatsSubjects};
use radixscope_model::id::Millis;
use radixscope_model::record::{MissedCause, Topic};

use super::agree::{Agreed, NEAR, Search};
use super::dedupe::{Content, Latest, Multiset, OVERLAP};
use super::jetstream::{self, JetStreamError, Reach, Stored};
use super::line::MAX_HELD_MESSAGES;
use crate::hub::{HubEnded, SourceHandle};
use crate::shutdown::Shutdown;
use crate::time::now;

/// Requests under way at once: hides the round trip without flooding the server.
const IN_FLIGHT: usize = 128;
/// As near to the end as this, one more pass is the last: what came since arrives live too.
const NEARLY_THERE: u64 = 1_024;
/// Of what was read, so many of the last may arrive live afterwards: more than is held back and on the way together.
const MAY_COME_AGAIN: usize = 2 * MAX_HELD_MESSAGES;
/// A message stored this long before the broker told the stream's reach may still have been on its way to our
/// subscription, in milliseconds.
const ON_THE_WAY_MS: u64 = 5_000;
/// A message that arrived live is in the stream within this time, or never: the server stores it beside sending it on.
const STORED_WITHIN: Duration = Duration::from_secs(2);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Where a stream was left.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// Which stream of that name.
    pub(super) created: String,
    /// Everything up to here was handed over, as far as it was there.
    pub(super) reached: u64,
    /// What was handed over last.
    pub(super) latest: Latest,
}

/// How a reading ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) stream: String,
    pub(super) place: Place,
    /// What was read and may yet arrive live.
    pub(super) may_come_again: Multiset,
    pub(super) end: End,
}

#[derive(Debug)]
pub(super) enum End {
    /// Up to the stream's end.
    CaughtUp,
    /// The connection ended or we were told to stop.
    Interrupted,
    /// JetStream did not play along.
    Failed(JetStreamError),
}

/// How far all readings together are.
#[derive(Default, Debug)]
pub(super) struct Progress {
    pub(super) read: AtomicU64,
    pub(super) of: AtomicU64,
    /// Messages left out because of the limit.
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
    /// How long to wait first: after an attempt that failed.
    pub(super) wait: Duration,
    /// The break that the connection ended, if it ended one.
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
    /// Reads from `place`, or from the beginning.
    pub(super) async fn run(self, place: Option<Place>) -> Outcome {
        let mut reading = Reading {
            subjects: NatsSubjects::default(),
            place: place.unwrap_or_default(),
            known: Multiset::default(),
            may_come_again: Latest::keeping(MAY_COME_AGAIN),
            live_since: None,
        };
        let mut lost = self.lost.clone();
        let read = async {
            tokio::time::sleep(self.wait).await;
            self.read(&mut reading).await
        };
        // Also while an answer or room in the queue is waited for: the next connection waits for this to end. What was
        // handed over is noted at once, so nothing is read twice.
        let end = tokio::select! {
            () = crate::shutdown::over(&mut lost) => End::Interrupted,
            done = read => match done {
                Ok(()) => End::CaughtUp,
                Err(Stop::Interrupted) => End::Interrupted,
                Err(Stop::Failed(error)) => End::Failed(error),
            },
        };
        let Reading { place, may_come_again, .. } = reading;
        Outcome { stream: self.stream, place, may_come_again: may_come_again.multiset(), end }
    }

    async fn read(&self, reading: &mut Reading) -> Result<(), Stop> {
        let mut reach = self.reach_of(&reading.place).await?;
        let from = self.begin(reading, &reach).await?;
        let mut next = from;
        loop {
            let is_last = reach.last_seq.saturating_sub(next) < NEARLY_THERE;
            self.progress.of.fetch_add((reach.last_seq + 1).saturating_sub(next), Ordering::Relaxed);
            self.pass(reading, next, reach.last_seq).await?;
            next = next.max(reach.last_seq + 1);
            if is_last {
                return Ok(());
            }
            reach = jetstream::reach(&self.client, &self.stream).await?;
            if reach.first_seq > next {
                self.expired(reach.first_seq - next);
                next = reach.first_seq;
            }
        }
    }

    /// How far the stream reaches: at least to where we are in it, unless that does not come about.
    async fn reach_of(&self, place: &Place) -> Result<Reach, Stop> {
        let started = Instant::now();
        loop {
            let reach = jetstream::reach(&self.client, &self.stream).await?;
            let is_behind = place.created == reach.created && reach.last_seq < place.reached;
            if !is_behind || started.elapsed() > STORED_WITHIN {
                return Ok(reach);
            }
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    }

    /// The first message to read, by where we were and what is left.
    async fn begin(&self, reading: &mut Reading, reach: &Reach) -> Result<u64, Stop> {
        reading.live_since = reach.at_ms.map(|at| Millis(at.0.saturating_sub(ON_THE_WAY_MS)));
        if reading.place.created == reach.created {
            return self.go_on(reading, reach).await;
        }
        let place = &mut reading.place;
        if !place.created.is_empty() {
            tracing::info!(
                stream = self.stream,
                "the stream was created again; reading it from its beginning"
            );
        }
        *place = Place { created: reach.created.clone(), ..Place::default() };
        let held = (reach.last_seq + 1).saturating_sub(reach.first_seq);
        let left_out = held.saturating_sub(self.limit);
        self.progress.left_out.fetch_add(left_out, Ordering::Relaxed);
        place.reached = reach.first_seq + left_out - 1;
        Ok(reach.first_seq + left_out)
    }

    /// The first message to read of a stream that was read before: some of the last are read once more.
    async fn go_on(&self, reading: &mut Reading, reach: &Reach) -> Result<u64, Stop> {
        let Reading { place, known, .. } = reading;
        *known = place.latest.multiset();
        // What was handed over before this number is not remembered, so it must not be read again.
        let oldest = (place.reached + 1).saturating_sub(place.latest.len());
        let was_at = place.reached;
        place.reached = was_at.min(reach.last_seq);
        match self.agreed(place, known).await? {
            Agreed::Upto(seq) if seq + NEAR < place.reached => place.reached = seq,
            Agreed::Upto(_) | Agreed::Unknown => {}
            Agreed::Nowhere => place.reached = oldest.saturating_sub(1).min(place.reached),
        }
        if place.reached < was_at {
            self.lost_its_latest();
        }
        let next = place.reached + 1;
        if reach.first_seq > next {
            self.expired(reach.first_seq - next);
        }
        Ok(next.saturating_sub(OVERLAP).max(oldest.min(next)).max(reach.first_seq))
    }

    /// Where the stream agrees with what was handed over of it.
    async fn agreed(&self, place: &Place, known: &Multiset) -> Result<Agreed, JetStreamError> {
        let mut search = Search::new(place.reached, place.latest.len());
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

    /// The server died before it had written all that it had sent on: we have more than the stream, and nobody knows what
    /// was published after that.
    fn lost_its_latest(&self) {
        tracing::warn!(stream = self.stream, "the stream lost its latest messages");
        let at = self.after.unwrap_or_else(|| Break { since_ms: now(), until_ms: now() });
        self.to.broke_for_good(Topic::KvEvents, at);
    }

    /// Reads messages `first` to `last`.
    async fn pass(&self, reading: &mut Reading, first: u64, last: u64) -> Result<(), Stop> {
        let get = |seq| async move { (seq, jetstream::message(&self.client, &self.stream, seq).await) };
        let mut messages = stream::iter(first..=last).map(get).buffered(IN_FLIGHT);
        while let Some((seq, message)) = messages.next().await {
            // A hole is a message that expired or was deleted; what expired unread is counted by the reach.
            if let Some(message) = message? {
                self.take(reading, message).await?;
            }
            reading.place.reached = reading.place.reached.max(seq);
            self.progress.read.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn take(&self, reading: &mut Reading, message: Stored) -> Result<(), Stop> {
        let Stored { subject, at_ms, payload } = message;
        let content = Content::of(&payload);
        if reading.live_since.is_none_or(|since| at_ms >= since) {
            reading.may_come_again.push(content);
        }
        if reading.known.take(content) {
            return Ok(());
        }
        if let Some(payload) = reading.subjects.publication(&subject, None, payload) {
            self.to.deliver(at_ms, payload).await?;
        }
        reading.place.latest.push(content);
        Ok(())
    }

    fn expired(&self, count: u64) {
        self.to.lost(Topic::KvEvents, MissedCause::HistoryExpired, count);
    }
}

struct Reading {
    subjects: NatsSubjects,
    place: Place,
    /// What was handed over before the connection was lost and is read once more.
    known: Multiset,
    may_come_again: Latest,
    /// From this time of the broker on, what is stored may also arrive live. `None`: the broker did not tell.
    live_since: Option<Millis>,
}
