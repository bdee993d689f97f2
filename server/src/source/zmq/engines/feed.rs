//! One publisher of an engine: connects and reconnects, and asks it for what was missed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::sleep;

use radixscope_dynamo::engine::{REPLAY_END, open_live, open_replay, replay_request};
use radixscope_dynamo::zmtp::Frames;
use radixscope_dynamo::{DecodeError, Reason};
use radixscope_intake::{Break, EngineInput, EnginePublisher, Payload};
use radixscope_model::id::Millis;
use radixscope_model::record::{LinkState, Replay, Topic};

use super::super::LinkReport;
use super::super::links::PublisherLink;
use super::super::peer::{Peer, Role, Subscriber, Timeouts};
use super::super::publisher::Attempts;
use super::sequencer::{Batch, Reply, Request, Sequencer};
use crate::config::ZmqEndpoint;
use crate::hub::{HubEnded, SourceHandle};
use crate::source::SourceStatus;
use crate::source::gate::{Evidence, Gate};
use crate::time::now;

/// Pause before each request, so that a publisher that loses much is not asked all the time.
const REPLAY_PAUSE: Duration = Duration::from_millis(200);
/// Failed requests in a row until missed batches are given up, and the first wait between them.
const REPLAY_ATTEMPTS: u32 = 3;
const REPLAY_WAIT: Duration = Duration::from_millis(500);

/// Where the batches of a publisher go.
pub(super) struct Output {
    publisher: Arc<EnginePublisher>,
    to: SourceHandle,
    sequencer: Mutex<Sequencer>,
    /// There may be something to request.
    asks: Notify,
    /// The last break of the connection and the process that was connected, until the next batch.
    broke: Mutex<Option<(Break, u32)>>,
}

impl Output {
    pub(super) fn new(publisher: EnginePublisher, has_replay: bool, to: SourceHandle) -> Arc<Self> {
        let sequencer = Mutex::new(Sequencer::new(has_replay));
        let publisher = Arc::new(publisher);
        Arc::new(Self { publisher, to, sequencer, asks: Notify::new(), broke: Mutex::default() })
    }

    fn with<T>(&self, ask: impl FnOnce(&mut Sequencer) -> T) -> T {
        ask(&mut self.sequencer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn payload(&self, input: EngineInput) -> Payload {
        Payload::Engine { publisher: Arc::clone(&self.publisher), input }
    }

    /// A batch as it is handed over. The first one after a break reports it, unless another process publishes: what a process lost that
    /// is no more is nothing that is missing.
    fn batch(&self, batch: Batch) -> Payload {
        let Batch { run, sequence, is_replayed, body } = batch;
        let broke = self.broke.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((at, _)) = broke.filter(|&(_, of)| of == run) {
            self.to.report_publisher_gap(Topic::KvEvents, self.publisher.publisher_id(run), at);
        }
        self.payload(EngineInput::Batch { run, sequence, is_replayed, body })
    }

    /// Says where the connection stands.
    pub(super) fn link(&self, state: LinkState, detail: &str) {
        let input = EngineInput::Link { state, detail: detail.into() };
        self.to.offer(now(), self.payload(input), true);
    }

    /// Says that it is gone for good.
    pub(super) async fn ended(&self) -> Result<(), HubEnded> {
        let input = EngineInput::Link { state: LinkState::Ended, detail: Box::default() };
        self.to.deliver(now(), self.payload(input)).await
    }

    async fn replay(&self, replay: Replay) -> Result<(), HubEnded> {
        self.to.deliver(now(), self.payload(EngineInput::Replay(replay))).await
    }
}

/// One connection to a publisher.
pub(super) struct Session {
    output: Arc<Output>,
    is_effective: bool,
    /// When the connection before was last known to be alive.
    broke_ms: Option<Millis>,
}

impl Session {
    pub(super) fn new(output: &Arc<Output>, broke_ms: Option<Millis>) -> Self {
        Self { output: Arc::clone(output), is_effective: false, broke_ms }
    }

    /// The connection has ended. When it was last known to be alive, if it ever was effective.
    pub(super) fn end(self, alive_ms: Millis) -> Option<Millis> {
        if !self.is_effective {
            return self.broke_ms;
        }
        let run = self.output.with(|sequencer| {
            sequencer.disconnected();
            sequencer.run()
        });
        let publisher_id = Some(self.output.publisher.publisher_id(run));
        self.output.to.offer(now(), Payload::Unsubscribed { publisher_id }, true);
        Some(alive_ms)
    }

    /// A message that is none of an engine's.
    fn refuse(&self, error: DecodeError, frames: Frames<'_>) {
        let size_bytes = (0..frames.len()).filter_map(|at| frames.get(at)).map(<[u8]>::len).sum();
        let input = EngineInput::Unreadable { error: Box::new(error), size_bytes };
        self.output.to.offer(now(), self.output.payload(input), false);
    }
}

impl Subscriber for Session {
    fn effective(&mut self) -> bool {
        let until_ms = now();
        if !std::mem::replace(&mut self.is_effective, true) {
            let run = self.output.with(|sequencer| {
                sequencer.connected();
                sequencer.run()
            });
            if let Some(since_ms) = self.broke_ms.take() {
                let broke = Some((Break { since_ms, until_ms }, run));
                *self.output.broke.lock().unwrap_or_else(PoisonError::into_inner) = broke;
            }
            self.output.link(LinkState::Live, "");
            self.output.asks.notify_one();
        }
        let publisher_id = Some(self.output.publisher.publisher_id(self.output.with(|all| all.run())));
        self.output.to.offer(until_ms, Payload::Subscribed { publisher_id }, true)
    }

    fn message(&mut self, frames: Frames<'_>) {
        let message = match open_live(frames) {
            Ok(message) => message,
            Err(error) => return self.refuse(error, frames),
        };
        let body = Bytes::copy_from_slice(message.payload);
        match self.output.with(|sequencer| sequencer.live(message.sequence, body)) {
            Ok(Some(batch)) => {
                let payload = self.output.batch(batch);
                self.output.to.offer(now(), payload, false);
            }
            Ok(None) => self.output.asks.notify_one(),
            Err(jump) => {
                let text = format!("engine's sequence number {} jumped by {jump}", message.sequence);
                self.refuse(DecodeError::new(Reason::Malformed, text), frames);
            }
        }
    }
}

/// A publisher to connect to.
pub(super) struct Feed {
    pub(super) endpoint: ZmqEndpoint,
    pub(super) replay: Option<ZmqEndpoint>,
    pub(super) evidence: Evidence<'static>,
    pub(super) gate: Arc<Gate>,
    pub(super) timeouts: Timeouts,
}

impl Feed {
    /// Listens and reconnects.
    pub(super) async fn listen(self, output: Arc<Output>, report: LinkReport) {
        tokio::join!(self.connect(&output, report), self.recover(&output));
    }

    async fn connect(&self, output: &Arc<Output>, report: LinkReport) {
        let (mut attempts, mut broke_ms) = (Attempts::new(), None);
        loop {
            let failed = self.connect_once(output, &report, &mut broke_ms).await;
            output.link(failed.state, &failed.detail);
            attempts.failed(&report, failed).await;
        }
    }

    /// One connection until it ends. `broke_ms`: when the previous one was last known to be alive.
    async fn connect_once(
        &self,
        output: &Arc<Output>,
        report: &LinkReport,
        broke_ms: &mut Option<Millis>,
    ) -> SourceStatus {
        let way = (&*self.gate, self.evidence);
        let role = Role::Subscriber(&[String::new()]);
        let mut peer = match Peer::connect(&self.endpoint, way, role, self.timeouts).await {
            Ok(peer) => peer,
            Err(failed) => return failed,
        };
        report.set_status(PublisherLink::Connected).await;
        let mut session = Session::new(output, broke_ms.take());
        let failed = peer.listen(&mut session).await;
        *broke_ms = session.end(peer.alive_ms());
        failed
    }

    /// Requests what was missed, whenever something was.
    async fn recover(&self, output: &Output) {
        let Some(replay) = &self.replay else { return };
        // The hub ends only with the process.
        let _ = output.replay(Replay::Waiting).await;
        loop {
            output.asks.notified().await;
            while let Some(request) = output.with(Sequencer::take_request) {
                if self.request(replay, output, request).await.is_err() {
                    return;
                }
                sleep(REPLAY_PAUSE).await;
            }
        }
    }

    async fn request(&self, replay: &ZmqEndpoint, output: &Output, request: Request) -> Result<(), HubEnded> {
        let mut failed = 0;
        loop {
            match self.request_once(replay, output, request).await? {
                Ok(()) => break,
                Err(SourceStatus { detail, .. }) => {
                    failed += 1;
                    tracing::debug!(detail, endpoint = %replay, "an engine's replay failed");
                    if failed == REPLAY_ATTEMPTS {
                        output.with(|sequencer| sequencer.gave_up(request));
                        output.replay(Replay::Failed).await?;
                        break;
                    }
                    sleep(REPLAY_WAIT * failed).await;
                }
            }
        }
        while let Some(batch) = output.with(|sequencer| sequencer.kept(request)) {
            output.to.deliver_in_turn(now(), output.batch(batch)).await?;
        }
        Ok(())
    }

    /// Hands over all replies. `Ok`: there are no more, or another request takes the place of this one.
    async fn request_once(
        &self,
        replay: &ZmqEndpoint,
        output: &Output,
        request: Request,
    ) -> Result<Result<(), SourceStatus>, HubEnded> {
        let way = (&*self.gate, self.evidence);
        let mut peer = match Peer::connect(replay, way, Role::Dealer, self.timeouts).await {
            Ok(peer) => peer,
            Err(failed) => return Ok(Err(failed)),
        };
        let mut message = Some(replay_request(request.from));
        loop {
            let read = |frames: Frames<'_>| {
                open_replay(frames).map(|reply| (reply.sequence, Bytes::copy_from_slice(reply.payload)))
            };
            let reply = match peer.request(message.take().as_deref(), read).await {
                Ok(Ok(reply)) => reply,
                Ok(Err(error)) => return Ok(Err(SourceStatus::refused(error.detail))),
                Err(failed) => return Ok(Err(failed)),
            };
            let (sequence, body) = reply;
            if sequence == REPLAY_END {
                if let Some(came) = output.with(|sequencer| sequencer.replies_ended(request)) {
                    output.replay(came).await?;
                }
                return Ok(Ok(()));
            }
            match output.with(|sequencer| sequencer.replied(request, sequence, body)) {
                Reply::Batch(batch) => output.to.deliver_in_turn(now(), output.batch(batch)).await?,
                Reply::Known => {}
                Reply::Over => return Ok(Ok(())),
            }
        }
    }
}
