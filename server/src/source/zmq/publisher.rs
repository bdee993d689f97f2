//! One publisher with its own socket: connects and reconnects, and reports breaks.

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

use super::links::PublisherLink;
use super::peer::{Peer, Role, Subscriber, Timeouts};
use super::{LinkReport, wait_after};
use crate::config::ZmqEndpoint;
use crate::hub::SourceHandle;
use crate::source::SourceStatus;
use crate::source::gate::{Evidence, Gate};
use crate::time::now;

/// After a connection of at least this length the backoff starts over.
const STABLE_AFTER: Duration = Duration::from_secs(5);

/// Consecutive failed attempts.
pub(super) struct Attempts {
    failed: u32,
    began: Instant,
}

impl Attempts {
    pub(super) fn new() -> Self {
        Self { failed: 0, began: Instant::now() }
    }

    /// The connection ended: reports it and waits before the next attempt.
    pub(super) async fn failed(&mut self, report: &LinkReport, SourceStatus { state, detail }: SourceStatus) {
        tracing::debug!(detail, "ZeroMQ connection failed");
        report.set_status(PublisherLink::Broken { detail, is_refused: state == LinkState::Refused }).await;
        self.failed = if self.began.elapsed() >= STABLE_AFTER { 0 } else { self.failed.saturating_add(1) };
        sleep(wait_after(self.failed)).await;
        self.began = Instant::now();
    }
}

/// A publisher in discovery.
pub(super) struct Publisher {
    pub(super) endpoint: ZmqEndpoint,
    pub(super) publisher_id: u64,
    pub(super) subject: Arc<Subject>,
    pub(super) to: SourceHandle,
    pub(super) gate: Arc<Gate>,
    pub(super) timeouts: Timeouts,
}

impl Publisher {
    /// Listens and reconnects.
    pub(super) async fn listen(self, report: LinkReport) {
        let (mut attempts, mut broke_ms) = (Attempts::new(), None);
        loop {
            let failed = self.once(&report, &mut broke_ms).await;
            attempts.failed(&report, failed).await;
        }
    }

    /// One connection until it ends. `broke_ms`: when the previous one was last known to be alive.
    async fn once(&self, report: &LinkReport, broke_ms: &mut Option<Millis>) -> SourceStatus {
        let topic = [self.subject.topic.as_str().to_owned()];
        let way = (&*self.gate, Evidence::Discovery);
        let mut peer = match Peer::connect(&self.endpoint, way, Role::Subscriber(&topic), self.timeouts).await
        {
            Ok(peer) => peer,
            Err(failed) => return failed,
        };
        report.set_status(PublisherLink::Connected).await;
        let mut session = Session { publisher: self, broke_ms: *broke_ms, is_effective: false };
        let failed = peer.listen(&mut session).await;
        if session.is_effective {
            let publisher_id = Some(self.publisher_id);
            self.to.offer(now(), Payload::Unsubscribed { publisher_id }, true);
        }
        // A connection that never became effective does not end the break.
        *broke_ms = if session.is_effective { Some(peer.alive_ms()) } else { session.broke_ms };
        failed
    }
}

/// One connection.
struct Session<'p> {
    publisher: &'p Publisher,
    /// When the previous connection was last known to be alive.
    broke_ms: Option<Millis>,
    is_effective: bool,
}

impl Subscriber for Session<'_> {
    fn effective(&mut self) -> bool {
        let Publisher { publisher_id, subject, to, .. } = self.publisher;
        let until_ms = now();
        self.is_effective = true;
        if let Some(since_ms) = self.broke_ms.take() {
            to.report_publisher_gap(subject.topic, *publisher_id, Break { since_ms, until_ms });
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
            // The port was reused by another process.
            Ok(message) => {
                let text = format!(
                    "publisher {:x} instead of {publisher_id:x}, which discovery names",
                    message.publisher_id
                );
                unreadable(subject.topic, DecodeError::new(Reason::UnknownKind, text), frames)
            }
            Err(error) => unreadable(subject.topic, error, frames),
        };
        to.offer(now(), payload, false);
    }
}

/// A message that could not be decoded.
pub(super) fn unreadable(topic: Topic, error: DecodeError, frames: Frames<'_>) -> Payload {
    let size_bytes = (0..frames.len()).filter_map(|at| frames.get(at)).map(<[u8]>::len).sum();
    Payload::Unreadable { topic, error: Box::new(error), size_bytes }
}
