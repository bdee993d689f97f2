//! Follows one JetStream stream of KV events: buffers live messages while its history is read, then forwards them, each message
//! once. Pure: decides what to do with a message, without I/O.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use radixscope_dynamo::subject::Subject;
use radixscope_intake::Payload;
use radixscope_model::id::Millis;

use super::dedupe::{Content, Multiset};
use super::history::StreamPosition;

/// How long after the end of history a message that was read may still arrive live.
const LATE_FOR: Duration = Duration::from_secs(10);
/// Maximum live messages buffered while history is read. Beyond it the oldest are dropped, and history is read again.
pub(super) const MAX_BUFFERED_MESSAGES: usize = 100_000;
const MAX_BUFFERED_BYTES: usize = 64 * 1024 * 1024;

/// A live message of a stream.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) at_ms: Millis,
    pub(super) subject: Arc<Subject>,
    pub(super) message: Bytes,
}

impl Live {
    /// As it is delivered to the hub.
    pub(super) fn into_payload(self) -> Payload {
        Payload::Nats { subject: self.subject, message: self.message }
    }
}

/// A followed stream.
#[derive(Default)]
pub(super) struct StreamFollower {
    /// The position reached. `None`: it was never read.
    position: Option<StreamPosition>,
    phase: Phase,
    /// Consecutive failed reads.
    pub(super) failed_reads: u32,
}

#[derive(Default)]
enum Phase {
    /// Live messages are forwarded.
    #[default]
    Direct,
    /// History is being read; live messages are buffered.
    Reading { buffered: VecDeque<Live>, bytes: usize, dropped: u64 },
    /// Live, but messages that were already read may still arrive.
    Deduplicating { may_arrive_live: Multiset, since: Instant },
}

/// What to do at the end of history.
#[derive(Debug)]
pub(super) enum HistoryEnd {
    /// Forward these live messages, in order: they were not in the history.
    Pass(Vec<Live>),
    /// The buffer overflowed: read on from where reading ended.
    ReadOn,
}

/// What to do with a live message.
#[derive(Debug)]
pub(super) enum LiveAction {
    /// Forward it.
    Pass(Live),
    /// It is buffered, or was already read.
    Nothing,
}

impl StreamFollower {
    /// History is about to be read from the returned position.
    pub(super) fn start_reading(&mut self) -> Option<StreamPosition> {
        self.phase = Phase::Reading { buffered: VecDeque::new(), bytes: 0, dropped: 0 };
        self.position.clone()
    }

    /// Reading reached this position and failed.
    pub(super) fn reached(&mut self, position: StreamPosition) {
        self.position = Some(position);
    }

    /// Whether a message that is not forwarded can be read from the stream later.
    pub(super) fn can_be_read_again(&self) -> bool {
        self.position.is_some()
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.phase, Phase::Reading { .. })
    }

    /// Handles a live message.
    pub(super) fn live(&mut self, live: Live, now: Instant) -> LiveAction {
        match &mut self.phase {
            Phase::Direct => LiveAction::Pass(live),
            Phase::Reading { buffered, bytes, dropped } => {
                *bytes += live.message.len();
                buffered.push_back(live);
                while buffered.len() > MAX_BUFFERED_MESSAGES || *bytes > MAX_BUFFERED_BYTES {
                    let Some(oldest) = buffered.pop_front() else { break };
                    *bytes -= oldest.message.len();
                    *dropped += 1;
                }
                LiveAction::Nothing
            }
            Phase::Deduplicating { may_arrive_live, since } => {
                let is_known = may_arrive_live.remove(Content::of(&live.message));
                if may_arrive_live.is_empty() || now.duration_since(*since) > LATE_FOR {
                    self.phase = Phase::Direct;
                }
                if is_known { LiveAction::Nothing } else { LiveAction::Pass(live) }
            }
        }
    }

    /// A message was delivered and need not be read again.
    pub(super) fn forwarded(&mut self, message: &[u8]) {
        if let Some(position) = &mut self.position {
            position.reached += 1;
            position.recent.push(Content::of(message));
        }
    }

    /// The end of history was reached. Buffered messages are forwarded, each once. Messages dropped from the buffer may be
    /// behind the end that was read.
    pub(super) fn caught_up(
        &mut self,
        position: StreamPosition,
        mut may_arrive_live: Multiset,
        now: Instant,
    ) -> HistoryEnd {
        self.position = Some(position);
        let (buffered, dropped) = self.release();
        if dropped > 0 {
            return HistoryEnd::ReadOn;
        }
        let new =
            buffered.into_iter().filter(|live| !may_arrive_live.remove(Content::of(&live.message))).collect();
        self.phase = Phase::Deduplicating { may_arrive_live, since: now };
        HistoryEnd::Pass(new)
    }

    /// History cannot be read: returns the buffered messages and the number of dropped ones.
    pub(super) fn without_history(&mut self) -> (Vec<Live>, u64) {
        self.position = None;
        let (buffered, dropped) = self.release();
        (buffered.into(), dropped)
    }

    /// The connection was lost while history was read, up to `position`. Buffered messages are in the stream.
    pub(super) fn interrupted(&mut self, position: StreamPosition) {
        self.position = Some(position);
        self.release();
    }

    fn release(&mut self) -> (VecDeque<Live>, u64) {
        match std::mem::take(&mut self.phase) {
            Phase::Reading { buffered, dropped, .. } => (buffered, dropped),
            Phase::Direct | Phase::Deduplicating { .. } => (VecDeque::new(), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_dynamo::subject;

    fn live(text: &'static str) -> Live {
        let subject = subject::parse("namespace-a-component-b-kv-events.kv-events").expect("Dynamo's");
        let message = Bytes::from_static(text.as_bytes());
        Live { at_ms: Millis(1), subject: Arc::new(subject), message }
    }

    fn forwarded(next: HistoryEnd) -> Vec<Live> {
        let HistoryEnd::Pass(live) = next else { panic!("reads on") };
        live
    }

    fn texts(messages: &[Live]) -> Vec<&str> {
        messages.iter().map(|m| std::str::from_utf8(&m.message).unwrap()).collect()
    }

    fn is_forwarded(then: LiveAction) -> bool {
        matches!(then, LiveAction::Pass(_))
    }

    fn read(texts: &[&str]) -> Multiset {
        let mut read = Multiset::default();
        texts.iter().for_each(|text| read.add(Content::of(text.as_bytes())));
        read
    }

    #[test]
    fn messages_in_history_are_not_forwarded_again() {
        let mut follower = StreamFollower::default();
        let now = Instant::now();
        follower.start_reading();
        for text in ["a", "b", "c"] {
            assert!(!is_forwarded(follower.live(live(text), now)));
        }
        let new = forwarded(follower.caught_up(StreamPosition::default(), read(&["z", "a", "b"]), now));
        assert_eq!(texts(&new), ["c"]);
    }

    #[test]
    fn a_live_message_that_history_contained_is_dropped_once() {
        let mut follower = StreamFollower::default();
        let now = Instant::now();
        follower.start_reading();
        follower.caught_up(StreamPosition::default(), read(&["late", "late"]), now);
        assert!(is_forwarded(follower.live(live("new"), now)));
        assert!(!is_forwarded(follower.live(live("late"), now)));
        assert!(!is_forwarded(follower.live(live("late"), now)));
        assert!(is_forwarded(follower.live(live("late"), now)), "a third occurrence is new");
    }

    #[test]
    fn old_expectations_are_given_up() {
        let mut follower = StreamFollower::default();
        let now = Instant::now();
        follower.start_reading();
        follower.caught_up(StreamPosition::default(), read(&["never"]), now);
        assert!(is_forwarded(follower.live(live("x"), now + LATE_FOR * 2)));
        assert!(is_forwarded(follower.live(live("never"), now + LATE_FOR * 2)));
    }

    #[test]
    fn the_buffer_is_bounded() {
        let mut follower = StreamFollower::default();
        let now = Instant::now();
        follower.start_reading();
        follower.live(live("first"), now);
        (0..MAX_BUFFERED_MESSAGES).for_each(|_| drop(follower.live(live("x"), now)));
        let (buffered, dropped) = follower.without_history();
        assert_eq!((buffered.len(), texts(&buffered[..1]), dropped), (MAX_BUFFERED_MESSAGES, vec!["x"], 1));
    }

    #[test]
    fn what_did_not_fit_into_the_buffer_is_read() {
        let mut follower = StreamFollower::default();
        let now = Instant::now();
        follower.start_reading();
        (0..=MAX_BUFFERED_MESSAGES).for_each(|_| drop(follower.live(live("x"), now)));
        let position = StreamPosition { reached: 7, ..StreamPosition::default() };
        assert!(matches!(follower.caught_up(position, Multiset::default(), now), HistoryEnd::ReadOn));
        assert_eq!(follower.start_reading().unwrap().reached, 7);
        assert!(
            forwarded(follower.caught_up(StreamPosition::default(), Multiset::default(), now)).is_empty()
        );
    }

    #[test]
    fn the_position_moves_with_forwarded_messages() {
        let mut follower = StreamFollower::default();
        let now = Instant::now();
        follower.start_reading();
        follower.caught_up(
            StreamPosition { reached: 10, ..StreamPosition::default() },
            Multiset::default(),
            now,
        );
        follower.forwarded(b"a");
        assert_eq!(follower.start_reading().unwrap().reached, 11);
    }
}
