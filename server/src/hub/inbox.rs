//! The queue from the sources to the hub: bounded in messages and bytes; dropped messages are counted. A source has a
//! [`SourceHandle`]. Losses are attached to its next message, so that the hub processes them in order, before the jump in the
//! publisher's sequence. Knows no state and no decoding.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use radixscope_intake::{Break, Command, Missing, Payload, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::{LinkState, MissedCause, Topic};

use super::parts::Parts;

/// Overhead of a queued message in bytes: queue slot, permits, its part of the client's buffer.
const OVERHEAD_BYTES: usize = 240;

/// Limits of the queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Messages.
    pub messages: usize,
    /// Bytes, payload and bookkeeping.
    pub bytes: usize,
}

/// Input from a source.
pub(super) enum Input {
    /// A received message.
    Received(Queued),
    /// The link changed.
    State { source: SourceIx, state: LinkState, detail: String },
    /// A loss that the source detected.
    Missed { source: SourceIx, topic: Topic, cause: MissedCause, count: u64 },
}

/// A queued message.
pub(super) struct Queued {
    pub(super) received: Received,
    /// When it was queued.
    pub(super) queued: Instant,
    /// Losses between this source's previous message and this one.
    pub(super) missing: Option<Box<Missing>>,
    /// Its permits, released after folding.
    _share: [Option<OwnedSemaphorePermit>; 3],
}

/// Losses before a source's next message.
#[derive(Default)]
struct Pending {
    /// Avoids the lock in the usual case without losses.
    is_some: AtomicBool,
    missing: Mutex<Missing>,
}

impl Pending {
    fn add(&self, add: impl FnOnce(&mut Missing)) {
        add(&mut self.missing.lock().unwrap_or_else(PoisonError::into_inner));
        self.is_some.store(true, Ordering::Release);
    }

    fn take(&self) -> Option<Box<Missing>> {
        if !self.is_some.swap(false, Ordering::AcqRel) {
            return None;
        }
        let missing = std::mem::take(&mut *self.missing.lock().unwrap_or_else(PoisonError::into_inner));
        (!missing.is_empty()).then(|| Box::new(missing))
    }
}

/// A source's handle to the queue.
#[derive(Clone)]
pub struct SourceHandle {
    source: SourceIx,
    queue: mpsc::Sender<Input>,
    room: Arc<Semaphore>,
    deliver: Arc<DeliverLimits>,
    limits: QueueLimits,
    pending: Arc<Pending>,
    /// Taken by the source.
    commands: Arc<Mutex<Option<mpsc::Receiver<Command>>>>,
    /// Of a source of several: where it reports its state, and its name there.
    part: Option<(Arc<Parts>, Arc<str>)>,
}

/// Permits of delivered messages, which wait for room: half of the queue, so that offered messages, which do not wait, still
/// find room.
struct DeliverLimits {
    messages: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

/// The hub has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the hub has ended")]
pub struct HubEnded;

/// The hub's end of the queue.
pub(super) struct Inbox {
    queue: mpsc::Receiver<Input>,
    sender: mpsc::Sender<Input>,
    room: Arc<Semaphore>,
    deliver: Arc<DeliverLimits>,
    limits: QueueLimits,
}

impl Inbox {
    pub(super) fn new(limits: QueueLimits) -> Self {
        // Permits are counted in `u32`, see `share`.
        let bytes = limits.bytes.clamp(1, u32::MAX as usize);
        let limits = QueueLimits { messages: limits.messages.max(1), bytes };
        let (sender, queue) = mpsc::channel(limits.messages);
        let half = |whole: usize| Arc::new(Semaphore::new(whole.div_ceil(2)));
        let deliver = Arc::new(DeliverLimits { messages: half(limits.messages), bytes: half(bytes) });
        Self { queue, sender, room: Arc::new(Semaphore::new(bytes)), deliver, limits }
    }

    pub(super) fn handle(&self, source: SourceIx, commands: Option<mpsc::Receiver<Command>>) -> SourceHandle {
        SourceHandle {
            source,
            queue: self.sender.clone(),
            room: Arc::clone(&self.room),
            deliver: Arc::clone(&self.deliver),
            limits: self.limits,
            pending: Arc::default(),
            commands: Arc::new(Mutex::new(commands)),
            part: None,
        }
    }

    /// Waits for input and takes up to `most`. Cancel-safe.
    pub(super) async fn receive(&mut self, into: &mut Vec<Input>, most: usize) -> usize {
        self.queue.recv_many(into, most).await
    }

    /// Queued messages.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Queued bytes.
    pub(super) fn len_bytes(&self) -> usize {
        self.limits.bytes.saturating_sub(self.room.available_permits())
    }

    /// The limits.
    pub(super) fn limits(&self) -> QueueLimits {
        self.limits
    }
}

impl SourceHandle {
    /// Index of the source.
    pub fn source(&self) -> SourceIx {
        self.source
    }

    /// The handle of a part of this source.
    pub(super) fn of_part(&self, parts: Arc<Parts>, name: Arc<str>) -> Self {
        Self { part: Some((parts, name)), ..self.clone() }
    }

    /// Takes the receiver of commands. `None`: this kind of source has no commands, or it was already taken.
    pub fn take_commands(&self) -> Option<mpsc::Receiver<Command>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Offers a live message without waiting. `false`: the queue is full and the message is dropped, and counted unless
    /// `may_be_read_again`.
    pub fn offer(&self, at_ms: Millis, payload: Payload, may_be_read_again: bool) -> bool {
        let share = Arc::clone(&self.room).try_acquire_many_owned(self.share(&payload));
        if let Ok(share) = share
            && let Ok(slot) = self.queue.try_reserve()
        {
            let mut queued = self.queued(at_ms, payload, [Some(share), None, None]);
            queued.missing = self.pending.take();
            slot.send(Input::Received(queued));
            return true;
        }
        if !may_be_read_again {
            self.pending.add(|missing| missing.refuse(&payload));
        }
        false
    }

    /// Reports messages lost before this source. Does not wait.
    pub fn lost(&self, topic: Topic, cause: MissedCause, count: u64) {
        self.pending.add(|missing| missing.count(topic, cause, count));
    }

    /// The connection was lost and is back. Does not wait.
    pub fn report_gap(&self, at: Break) {
        self.pending.add(|missing| missing.broke(at));
    }

    /// The connection to one publisher of a topic was lost and is back. Does not wait.
    pub fn report_publisher_gap(&self, topic: Topic, publisher_id: u64, at: Break) {
        self.pending.add(|missing| missing.broke_of(topic, publisher_id, at));
    }

    /// The connection was lost, and the loss for this topic will stay unknown. Does not wait.
    pub fn report_permanent_gap(&self, topic: Topic, at: Break) {
        self.pending.add(|missing| missing.broke_for_good(topic, at));
    }

    /// Takes the losses after this source's last message.
    pub(super) fn take_missing(&self) -> Option<Box<Missing>> {
        self.pending.take()
    }

    /// Delivers a message, waiting for room: history, scrapes, simulated messages.
    ///
    /// # Errors
    /// The hub has ended.
    pub async fn deliver(&self, at_ms: Millis, payload: Payload) -> Result<(), HubEnded> {
        let share = self.wait_for_room(&payload).await?;
        self.send(Input::Received(self.queued(at_ms, payload, share))).await
    }

    /// The same for a message of a publisher that offers others: what was lost before it comes with it.
    ///
    /// # Errors
    /// The hub has ended.
    pub async fn deliver_in_turn(&self, at_ms: Millis, payload: Payload) -> Result<(), HubEnded> {
        let share = self.wait_for_room(&payload).await?;
        let mut queued = self.queued(at_ms, payload, share);
        queued.missing = self.pending.take();
        self.send(Input::Received(queued)).await
    }

    async fn wait_for_room(&self, payload: &Payload) -> Result<[Option<OwnedSemaphorePermit>; 3], HubEnded> {
        let bytes = self.share(payload);
        let half = u32::try_from(self.limits.bytes.div_ceil(2)).unwrap_or(u32::MAX);
        let deliver = Arc::clone(&self.deliver.messages).acquire_owned().await.map_err(|_| HubEnded)?;
        let patient_bytes = Arc::clone(&self.deliver.bytes)
            .acquire_many_owned(bytes.min(half))
            .await
            .map_err(|_| HubEnded)?;
        let share = Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_| HubEnded)?;
        Ok([Some(share), Some(deliver), Some(patient_bytes)])
    }

    /// Reports the link state with a description.
    ///
    /// # Errors
    /// The hub has ended.
    pub async fn state(&self, state: LinkState, detail: impl Into<String>) -> Result<(), HubEnded> {
        if let Some((parts, name)) = &self.part {
            parts.set(name, state, detail.into());
            return Ok(());
        }
        self.send(Input::State { source: self.source, state, detail: detail.into() }).await
    }

    /// Reports a loss that the source detected.
    ///
    /// # Errors
    /// The hub has ended.
    pub async fn missed(&self, topic: Topic, cause: MissedCause, count: u64) -> Result<(), HubEnded> {
        self.send(Input::Missed { source: self.source, topic, cause, count }).await
    }

    async fn send(&self, input: Input) -> Result<(), HubEnded> {
        self.queue.send(input).await.map_err(|_| HubEnded)
    }

    /// A message's permits in bytes; one larger than the limit takes all of it. Tree dumps are bounded where they are read, and
    /// would block live messages here.
    fn share(&self, payload: &Payload) -> u32 {
        let bytes = match payload {
            Payload::TreeResponse { .. } => OVERHEAD_BYTES,
            _ => payload.size_bytes() + OVERHEAD_BYTES,
        };
        u32::try_from(bytes.min(self.limits.bytes)).unwrap_or(u32::MAX)
    }

    fn queued(&self, at_ms: Millis, payload: Payload, share: [Option<OwnedSemaphorePermit>; 3]) -> Queued {
        let received = Received { source: self.source, at_ms, payload };
        Queued { received, queued: Instant::now(), missing: None, _share: share }
    }
}

/// The queue of a source that runs without a hub, for tests.
#[cfg(test)]
pub(crate) struct LoneInbox {
    inbox: Inbox,
    commands: mpsc::Sender<Command>,
}

#[cfg(test)]
impl LoneInbox {
    /// Commands that may wait.
    const COMMANDS: usize = 1_000;
    /// How long anything may take.
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

    /// A source's end, and this.
    pub(crate) fn new(limits: QueueLimits) -> (SourceHandle, Self) {
        let (commands, receiver) = mpsc::channel(Self::COMMANDS);
        let inbox = Inbox::new(limits);
        (inbox.handle(SourceIx(0), Some(receiver)), Self { inbox, commands })
    }

    pub(crate) async fn command(&self, command: Command) {
        self.commands.send(command).await.unwrap();
    }

    /// Waits for the next payload, and what is missing before it; passes over states.
    pub(crate) async fn payload(&mut self) -> (Payload, Option<Box<Missing>>) {
        loop {
            if let Input::Received(queued) = self.input().await {
                return (queued.received.payload, queued.missing);
            }
        }
    }

    /// Waits until the source says something of itself; passes over payloads.
    pub(crate) async fn state(&mut self) -> (LinkState, String) {
        loop {
            if let Input::State { state, detail, .. } = self.input().await {
                return (state, detail);
            }
        }
    }

    /// All that waits now: payloads, and what the source says of itself.
    pub(crate) async fn all(&mut self) -> (Vec<Payload>, Vec<(LinkState, String)>) {
        let (mut payloads, mut states) = (Vec::new(), Vec::new());
        for _ in 0..self.inbox.len() {
            match self.input().await {
                Input::Received(queued) => payloads.push(queued.received.payload),
                Input::State { state, detail, .. } => states.push((state, detail)),
                Input::Missed { .. } => {}
            }
        }
        (payloads, states)
    }

    async fn input(&mut self) -> Input {
        let mut inputs = Vec::new();
        let waited = tokio::time::timeout(Self::PATIENCE, self.inbox.receive(&mut inputs, 1));
        waited.await.expect("something is handed over");
        inputs.pop().expect("the source is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_intake::NatsSubjects;

    fn payload(message: Vec<u8>) -> Payload {
        let subject = "namespace.dynamo.kv-hit-rate";
        NatsSubjects::default().publication(subject, None, message.into()).expect("no copy")
    }

    fn inbox(messages: usize, bytes: usize) -> (Inbox, SourceHandle) {
        let inbox = Inbox::new(QueueLimits { messages, bytes });
        let handle = inbox.handle(SourceIx(0), None);
        (inbox, handle)
    }

    #[tokio::test]
    async fn what_a_full_queue_refuses_travels_with_the_next_message() {
        let (mut inbox, handle) = inbox(2, 1 << 20);
        let offer = || handle.offer(Millis(1), payload(b"{}".to_vec()), false);
        assert_eq!([(); 5].map(|()| offer()), [true, true, false, false, false]);
        let mut taken = Vec::new();
        inbox.receive(&mut taken, 10).await;
        assert!(offer());
        inbox.receive(&mut taken, 10).await;
        let missing: Vec<_> = taken
            .iter()
            .map(|input| match input {
                Input::Received(queued) => queued.missing.is_some(),
                _ => false,
            })
            .collect();
        assert_eq!(missing, [false, false, true]);
        assert!(handle.take_missing().is_none());
    }

    #[test]
    fn what_can_be_read_again_is_not_lost() {
        let (_inbox, handle) = inbox(1, 1 << 20);
        let offer = || handle.offer(Millis(1), payload(b"{}".to_vec()), true);
        assert!(offer() && !offer());
        assert!(handle.take_missing().is_none());
    }

    #[tokio::test]
    async fn bytes_are_bounded_and_given_back() {
        let (mut inbox, handle) = inbox(100, 1_000);
        let large = payload(vec![0; 700]);
        assert!(handle.offer(Millis(1), large.clone(), false));
        assert!(!handle.offer(Millis(1), large.clone(), false));
        let mut taken = Vec::new();
        inbox.receive(&mut taken, 10).await;
        taken.clear();
        assert_eq!(inbox.len_bytes(), 0);
        assert!(handle.offer(Millis(1), large, false));
    }

    #[tokio::test]
    async fn messages_that_can_wait_leave_room_for_those_that_cannot() {
        let (_inbox, handle) = inbox(4, 1 << 20);
        let payload = payload(b"x".to_vec());
        handle.deliver(Millis(1), payload.clone()).await.unwrap();
        handle.deliver(Millis(1), payload.clone()).await.unwrap();
        let third = tokio::time::timeout(
            std::time::Duration::from_millis(20),
            handle.deliver(Millis(1), payload.clone()),
        );
        assert!(third.await.is_err(), "it waits");
        assert!(handle.offer(Millis(1), payload, false));
    }

    #[tokio::test]
    async fn a_message_larger_than_the_bound_still_passes_alone() {
        let (mut inbox, handle) = inbox(100, 1_000);
        handle.deliver(Millis(1), payload(vec![0; 5_000])).await.unwrap();
        let mut taken = Vec::new();
        assert_eq!(inbox.receive(&mut taken, 10).await, 1);
    }
}
