//! The bounded queue between the sources and the hub: by messages and by bytes, and what did not fit is counted.
//!
//! A source holds a [`SourceHandle`]. It knows no state and no decoding.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use radixscope_core::dynamo::subject;
use radixscope_core::id::{Millis, SourceIx};
use radixscope_core::record::{LinkState, MissedCause, Topic};

/// Bytes that a waiting message costs beside its payload: queue slot, subject, permit.
const OVERHEAD_BYTES: usize = 160;

/// Topics that losses are counted for.
const TOPICS: [Topic; 10] = [
    Topic::KvEvents,
    Topic::KvHitRate,
    Topic::KvMetrics,
    Topic::ActiveSequences,
    Topic::ModelCard,
    Topic::RequestTrace,
    Topic::Log,
    Topic::Metrics,
    Topic::Health,
    Topic::Other,
];

/// How much may wait.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Messages.
    pub messages: usize,
    /// Bytes, payload and bookkeeping.
    pub bytes: usize,
}

/// What a source tells the hub.
pub(super) enum Input {
    /// A message as received.
    Message(Received),
    /// The link changed.
    State { source: SourceIx, state: LinkState, detail: String },
    /// Loss that the source noticed.
    Missed { source: SourceIx, topic: Topic, cause: MissedCause, count: u64 },
}

/// A message in the queue.
pub(super) struct Received {
    pub(super) source: SourceIx,
    pub(super) at_ms: Millis,
    pub(super) subject: Box<str>,
    pub(super) payload: Bytes,
    /// When it was put into the queue.
    pub(super) queued: Instant,
    /// Its share of the bounds, given back when it was folded.
    _share: [Option<OwnedSemaphorePermit>; 3],
}

/// What the queue refused, by topic.
#[derive(Default)]
pub(super) struct Refused([AtomicU64; TOPICS.len()]);

impl Refused {
    fn add(&self, topic: Topic) {
        let at = TOPICS.iter().position(|&t| t == topic).unwrap_or(TOPICS.len() - 1);
        self.0[at].fetch_add(1, Ordering::Relaxed);
    }

    /// What was refused since the last call.
    pub(super) fn take(&self) -> impl Iterator<Item = (Topic, u64)> + '_ {
        TOPICS.iter().zip(&self.0).filter_map(|(&topic, count)| {
            let count = count.swap(0, Ordering::Relaxed);
            (count > 0).then_some((topic, count))
        })
    }
}

/// A source's end of the queue.
#[derive(Clone)]
pub struct SourceHandle {
    source: SourceIx,
    queue: mpsc::Sender<Input>,
    room: Arc<Semaphore>,
    patient: Arc<Patient>,
    limits: QueueLimits,
    refused: Arc<Refused>,
}

/// What messages that can wait may take of the queue: half of it, so that those that cannot still find room.
struct Patient {
    messages: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

/// The hub has ended; nothing that a source says matters any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the hub has ended")]
pub struct HubEnded;

/// The hub's end of the queue.
pub(super) struct Inbox {
    queue: mpsc::Receiver<Input>,
    sender: mpsc::Sender<Input>,
    room: Arc<Semaphore>,
    patient: Arc<Patient>,
    limits: QueueLimits,
}

impl Inbox {
    pub(super) fn new(limits: QueueLimits) -> Self {
        // A permit is for a u32 of bytes at most, see `share`.
        let bytes = limits.bytes.clamp(1, u32::MAX as usize);
        let limits = QueueLimits { messages: limits.messages.max(1), bytes };
        let (sender, queue) = mpsc::channel(limits.messages);
        let half = |whole: usize| Arc::new(Semaphore::new(whole.div_ceil(2)));
        let patient = Arc::new(Patient { messages: half(limits.messages), bytes: half(bytes) });
        Self { queue, sender, room: Arc::new(Semaphore::new(bytes)), patient, limits }
    }

    pub(super) fn handle(&self, source: SourceIx) -> (SourceHandle, Arc<Refused>) {
        let refused = Arc::new(Refused::default());
        let handle = SourceHandle {
            source,
            queue: self.sender.clone(),
            room: Arc::clone(&self.room),
            patient: Arc::clone(&self.patient),
            limits: self.limits,
            refused: Arc::clone(&refused),
        };
        (handle, refused)
    }

    /// Waits for input and takes up to `most`. Cancel-safe.
    pub(super) async fn receive(&mut self, into: &mut Vec<Input>, most: usize) -> usize {
        self.queue.recv_many(into, most).await
    }

    /// Messages waiting now.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Bytes waiting now.
    pub(super) fn len_bytes(&self) -> usize {
        self.limits.bytes.saturating_sub(self.room.available_permits())
    }

    /// The bounds.
    pub(super) fn limits(&self) -> QueueLimits {
        self.limits
    }
}

impl SourceHandle {
    /// Which source this is.
    pub fn source(&self) -> SourceIx {
        self.source
    }

    /// Hands over a live message without waiting. `false`: the queue is full, the message is dropped and counted.
    pub fn offer(&self, at_ms: Millis, subject: &str, payload: Bytes) -> bool {
        let share = Arc::clone(&self.room).try_acquire_many_owned(self.share(subject, &payload));
        let taken = share.is_ok_and(|share| {
            self.queue
                .try_send(Input::Message(self.received(at_ms, subject, payload, [Some(share), None, None])))
                .is_ok()
        });
        if !taken {
            self.refused.add(subject::parse(subject).map_or(Topic::Other, |s| s.topic));
        }
        taken
    }

    /// Hands over a message that can wait: history, or what we make ourselves.
    ///
    /// # Errors
    /// The hub has ended.
    pub async fn deliver(&self, at_ms: Millis, subject: &str, payload: Bytes) -> Result<(), HubEnded> {
        let bytes = self.share(subject, &payload);
        let half = u32::try_from(self.limits.bytes.div_ceil(2)).unwrap_or(u32::MAX);
        let patient = Arc::clone(&self.patient.messages).acquire_owned().await.map_err(|_| HubEnded)?;
        let patient_bytes = Arc::clone(&self.patient.bytes)
            .acquire_many_owned(bytes.min(half))
            .await
            .map_err(|_| HubEnded)?;
        let share = Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_| HubEnded)?;
        let share = [Some(share), Some(patient), Some(patient_bytes)];
        self.send(Input::Message(self.received(at_ms, subject, payload, share))).await
    }

    /// Says where the link stands, in words too.
    ///
    /// # Errors
    /// The hub has ended.
    pub async fn state(&self, state: LinkState, detail: impl Into<String>) -> Result<(), HubEnded> {
        self.send(Input::State { source: self.source, state, detail: detail.into() }).await
    }

    /// Reports a loss that the source noticed.
    ///
    /// # Errors
    /// The hub has ended.
    pub async fn missed(&self, topic: Topic, cause: MissedCause, count: u64) -> Result<(), HubEnded> {
        self.send(Input::Missed { source: self.source, topic, cause, count }).await
    }

    async fn send(&self, input: Input) -> Result<(), HubEnded> {
        self.queue.send(input).await.map_err(|_| HubEnded)
    }

    /// A message's share of the bound in bytes; one larger than the whole bound takes all of it.
    fn share(&self, subject: &str, payload: &Bytes) -> u32 {
        let bytes = payload.len() + subject.len() + OVERHEAD_BYTES;
        u32::try_from(bytes.min(self.limits.bytes)).unwrap_or(u32::MAX)
    }

    fn received(
        &self,
        at_ms: Millis,
        subject: &str,
        payload: Bytes,
        share: [Option<OwnedSemaphorePermit>; 3],
    ) -> Received {
        Received {
            source: self.source,
            at_ms,
            subject: subject.into(),
            payload,
            queued: Instant::now(),
            _share: share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBJECT: &str = "namespace.dynamo.kv-hit-rate";

    fn inbox(messages: usize, bytes: usize) -> (Inbox, SourceHandle, Arc<Refused>) {
        let inbox = Inbox::new(QueueLimits { messages, bytes });
        let (handle, refused) = inbox.handle(SourceIx(0));
        (inbox, handle, refused)
    }

    #[test]
    fn a_full_queue_refuses_and_counts_by_topic() {
        let (_inbox, handle, refused) = inbox(2, 1 << 20);
        let offers = [(); 5].map(|()| handle.offer(Millis(1), SUBJECT, Bytes::from_static(b"x")));
        assert_eq!(offers, [true, true, false, false, false]);
        assert_eq!(refused.take().collect::<Vec<_>>(), [(Topic::KvHitRate, 3)]);
        assert_eq!(refused.take().count(), 0);
    }

    #[tokio::test]
    async fn bytes_are_bounded_and_given_back() {
        let (mut inbox, handle, _refused) = inbox(100, 1_000);
        let large = Bytes::from(vec![0; 700]);
        assert!(handle.offer(Millis(1), SUBJECT, large.clone()));
        assert!(!handle.offer(Millis(1), SUBJECT, large.clone()));
        let mut taken = Vec::new();
        inbox.receive(&mut taken, 10).await;
        taken.clear();
        assert_eq!(inbox.len_bytes(), 0);
        assert!(handle.offer(Millis(1), SUBJECT, large));
    }

    #[tokio::test]
    async fn messages_that_can_wait_leave_room_for_those_that_cannot() {
        let (_inbox, handle, _refused) = inbox(4, 1 << 20);
        let payload = Bytes::from_static(b"x");
        handle.deliver(Millis(1), SUBJECT, payload.clone()).await.unwrap();
        handle.deliver(Millis(1), SUBJECT, payload.clone()).await.unwrap();
        let third = tokio::time::timeout(
            std::time::Duration::from_millis(20),
            handle.deliver(Millis(1), SUBJECT, payload.clone()),
        );
        assert!(third.await.is_err(), "it waits");
        assert!(handle.offer(Millis(1), SUBJECT, payload));
    }

    #[tokio::test]
    async fn a_message_larger_than_the_bound_still_passes_alone() {
        let (mut inbox, handle, _refused) = inbox(100, 1_000);
        handle.deliver(Millis(1), SUBJECT, Bytes::from(vec![0; 5_000])).await.unwrap();
        let mut taken = Vec::new();
        assert_eq!(inbox.receive(&mut taken, 10).await, 1);
    }
}
