//! One publisher with a socket of its own: listened to for ever, each break and its end told.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use radixscope_dynamo::subject::Subject;
use radixscope_dynamo::zmq_message::{ZmqMessage, is_left_out};
use radixscope_dynamo::zmtp::Frames;
use radixscope_dynamo::{DecodeError, Reason};
use radixscope_intake::{Break, Payload};
use radixscope_model::id::Millis;
use radixscope_model::record::{LinkState, Topic};

use super::links::TargetComparison;
use super::peer::{Peer, Subscriber, Waits};
use super::{Report, wait_after};
use crate::config::ZmqEndpoint;
use crate::hub::SourceHandle;
use crate::source::Failed;
use crate::source::gate::{Evidence, Gate};
use crate::time::now;

/// A connection that held so long was a good one: the next attempt comes soon.
const HELD: Duration = Duration::from_secs(5);

/// How often in a row a connection failed.
pub(super) struct Attempts {
    failed: u32,
    began: Instant,
}

impl Attempts {
    pub(super) fn new() -> Self {
        Self { failed: 0, began: Instant::now() }
    }

    /// The connection ended: says so and waits for the next attempt.
    pub(super) async fn failed(&mut self, report: &Report, Failed { state, words }: Failed) {
        tracing::debug!(words, "not connected");
        report.stands(TargetComparison::Broken { words, is_refused: state == LinkState::Refused }).await;
        self.failed = if self.began.elapsed() >= HELD { 0 } else { self.failed.saturating_add(1) };
        sleep(wait_after(self.failed)).await;
        self.began = Instant::now();
    }
}

/// A publisher as discovery names it.
pub(super) struct Publisher {
    pub(super) endpoint: ZmqEndpoint,
    pub(super) publisher_id: u64,
    pub(super) subject: Arc<Subject>,
    pub(super) to: SourceHandle,
    pub(super) gate: Arc<Gate>,
    pub(super) waits: Waits,
}

impl Publisher {
    /// Listens for ever.
    pub(super) async fn listen(self, report: Report) {
        let (mut attempts, mut broke_ms) = (Attempts::new(), None);
        loop {
            let failed = self.once(&report, &mut broke_ms).await;
            attempts.failed(&report, failed).await;
        }
    }

    /// One connection to its end. `broke_ms` is the last sign of life of the one before it.
    async fn once(&self, report: &Report, broke_ms: &mut Option<Millis>) -> Failed {
        let topic = [self.subject.topic.as_str().to_owned()];
        let way = (&*self.gate, Evidence::Discovery);
        let mut peer = match Peer::connect(&self.endpoint, way, &topic, self.waits).await {
            Ok(peer) => peer,
            Err(failed) => return failed,
        };
        report.stands(TargetComparison::Connected).await;
        let mut session = Session { publisher: self, broke_ms: *broke_ms, is_effective: false };
        let failed = peer.listen(&mut session).await;
        if session.is_effective {
            let publisher_id = Some(self.publisher_id);
            self.to.offer(now(), Payload::Unsubscribed { publisher_id }, true);
        }
        // One that never was effective leaves the break as long as it was.
        *broke_ms = if session.is_effective { Some(peer.alive_ms()) } else { session.broke_ms };
        failed
    }
}

/// One connection.
struct Session<'p> {
    publisher: &'p Publisher,
    /// The last sign of life before it.
    broke_ms: Option<Millis>,
    is_effective: bool,
}

impl Subscriber for Session<'_> {
    fn effective(&mut self) -> bool {
        let Publisher { publisher_id, subject, to, .. } = self.publisher;
        let until_ms = now();
        self.is_effective = true;
        if let Some(since_ms) = self.broke_ms.take() {
            to.broke_of(subject.topic, *publisher_id, Break { since_ms, until_ms });
        }
        to.offer(until_ms, Payload::Subscribed { publisher_id: Some(*publisher_id) }, true)
    }

    fn message(&mut self, frames: Frames<'_>) {
        let Publisher { publisher_id, subject, to, .. } = self.publisher;
        if is_left_out(frames) {
            return;
        }
        let payload = match ZmqMessage::open(frames) {
            Ok(message) if message.publisher_id == *publisher_id => Payload::Nats {
                subject: Arc::clone(subject),
                message: Bytes::copy_from_slice(message.envelope),
            },
            // A port that another process got after this publisher ended.
            Ok(message) => {
                let text =
                    format!("publisher {:x} where {publisher_id:x} is announced", message.publisher_id);
                unreadable(subject.topic, DecodeError::new(Reason::UnknownKind, text), frames)
            }
            Err(error) => unreadable(subject.topic, error, frames),
        };
        to.offer(now(), payload, false);
    }
}

/// A message that could not be opened.
pub(super) fn unreadable(topic: Topic, error: DecodeError, frames: Frames<'_>) -> Payload {
    let size_bytes = (0..frames.len()).filter_map(|at| frames.get(at)).map(<[u8]>::len).sum();
    Payload::Unreadable { topic, error: Box::new(error), size_bytes }
}
