//! ZeroMQ brokers, which carry the messages of all publishers. Several brokers may carry the same messages; duplicates are
//! dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use radixscope_dynamo::subject::{self, Subject, Transport};
use radixscope_dynamo::zmq_message::{ZmqMessage, is_left_out};
use radixscope_dynamo::zmtp::Frames;
use radixscope_intake::{Break, Payload};
use radixscope_model::id::Millis;
use radixscope_model::record::Topic;

use super::links::PublisherLink;
use super::peer::{Peer, Role, Subscriber, Timeouts};
use super::publisher::{Attempts, unreadable};
use super::received::Received;
use super::{LinkReport, ZmqSource};
use crate::config::ZmqEndpoint;
use crate::hub::SourceHandle;
use crate::source::SourceStatus;
use crate::source::gate::{Evidence, Gate};
use crate::time::now;

/// Maximum cached subjects; a deployment has a handful.
const MAX_SUBJECTS: usize = 1_024;

/// State shared by all brokers.
pub(super) struct Brokers {
    to: SourceHandle,
    /// Only messages of this Dynamo namespace.
    namespace: Option<String>,
    is_one: bool,
    gate: Arc<Gate>,
    timeouts: Timeouts,
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    subjects: HashMap<Box<[u8]>, Option<Arc<Subject>>>,
    received: Received,
    /// Brokers with an active subscription.
    effective: usize,
    /// When the last of them was last known to be alive, if none is left.
    broke_ms: Option<Millis>,
}

impl Brokers {
    pub(super) fn new(source: &ZmqSource, to: SourceHandle) -> Arc<Self> {
        let ZmqSource { brokers, namespace, gate, timeouts } = source;
        let (namespace, is_one) = (namespace.clone(), brokers.len() == 1);
        let gate = Arc::clone(gate);
        Arc::new(Self { to, namespace, is_one, gate, timeouts: *timeouts, shared: Mutex::default() })
    }

    /// Listens to a broker and reconnects.
    pub(super) async fn listen(
        self: Arc<Self>,
        endpoint: ZmqEndpoint,
        evidence: Evidence<'static>,
        report: LinkReport,
    ) {
        let prefix = match &self.namespace {
            Some(namespace) => [format!("namespace.{namespace}.")],
            None => ["namespace.".to_owned()],
        };
        let mut attempts = Attempts::new();
        loop {
            let failed = self.once((&endpoint, evidence), &prefix, &report).await;
            attempts.failed(&report, failed).await;
        }
    }

    /// One connection until it ends.
    async fn once(
        &self,
        (endpoint, evidence): (&ZmqEndpoint, Evidence<'_>),
        prefix: &[String],
        report: &LinkReport,
    ) -> SourceStatus {
        let way = (&*self.gate, evidence);
        let mut peer = match Peer::connect(endpoint, way, Role::Subscriber(prefix), self.timeouts).await {
            Ok(peer) => peer,
            Err(failed) => return failed,
        };
        report.set_status(PublisherLink::Connected).await;
        let mut session = Session { brokers: self, is_effective: false, alive_ms: None };
        let failed = peer.listen(&mut session).await;
        session.alive_ms = Some(peer.alive_ms());
        failed
    }

    fn with<T>(&self, ask: impl FnOnce(&mut Shared) -> T) -> T {
        ask(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn disconnected(&self, alive_ms: Millis) {
        self.with(|shared| {
            shared.effective = shared.effective.saturating_sub(1);
            if shared.effective == 0 {
                shared.broke_ms = Some(alive_ms);
                self.to.offer(now(), Payload::Unsubscribed { publisher_id: None }, true);
            }
        });
    }
}

impl Shared {
    /// `None`: not a subject that is decoded.
    fn subject(&mut self, topic: &[u8]) -> Option<Arc<Subject>> {
        if let Some(known) = self.subjects.get(topic) {
            return known.clone();
        }
        let parsed = std::str::from_utf8(topic).ok().and_then(subject::parse);
        let subject = parsed.map(|subject| Arc::new(Subject { transport: Transport::Zmq, ..subject }));
        if self.subjects.len() < MAX_SUBJECTS {
            self.subjects.insert(topic.into(), subject.clone());
        }
        subject
    }
}

/// One connection.
struct Session<'b> {
    brokers: &'b Brokers,
    is_effective: bool,
    /// When it was last known to be alive, once it has ended.
    alive_ms: Option<Millis>,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if self.is_effective {
            self.brokers.disconnected(self.alive_ms.unwrap_or_else(now));
        }
    }
}

impl Subscriber for Session<'_> {
    fn effective(&mut self) -> bool {
        let Brokers { to, .. } = self.brokers;
        let until_ms = now();
        if !std::mem::replace(&mut self.is_effective, true) {
            let broke_ms = self.brokers.with(|shared| {
                shared.effective += 1;
                shared.broke_ms.take()
            });
            if let Some(since_ms) = broke_ms {
                to.report_gap(Break { since_ms, until_ms });
            }
        }
        to.offer(until_ms, Payload::Subscribed { publisher_id: None }, true)
    }

    fn message(&mut self, frames: Frames<'_>) {
        let Brokers { to, is_one, .. } = self.brokers;
        if is_left_out(frames) {
            return;
        }
        let payload = match ZmqMessage::open(frames) {
            Err(error) => unreadable(Topic::Other, error, frames),
            Ok(message) => {
                let ZmqMessage { topic, publisher_id, sequence, envelope } = message;
                let (subject, is_new) = self.brokers.with(|shared| {
                    let subject = shared.subject(topic);
                    let topic = subject.as_ref().map_or(Topic::Other, |subject| subject.topic);
                    (subject, *is_one || shared.received.is_new((topic, publisher_id), sequence))
                });
                if !is_new {
                    return;
                }
                let message = Bytes::copy_from_slice(envelope);
                match subject {
                    Some(subject) => Payload::Nats { subject, message },
                    None => Payload::OtherNats { subject: String::from_utf8_lossy(topic).into(), message },
                }
            }
        };
        to.offer(now(), payload, false);
    }
}
