//! One stream of KV events as we follow it: held back while its history is read, then live, each message once.
//!
//! Pure: says what to do with a message and does nothing itself.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use radixscope_dynamo::subject::Subject;
use radixscope_intake::Payload;
use radixscope_model::id::Millis;

use super::dedupe::{Content, Multiset};
use super::history::Place;

/// How long after the end of history a message that was read there may still arrive live.
const LATE_FOR: Duration = Duration::from_secs(10);
/// Live messages held back while history is read. Beyond it the oldest are dropped, and history is read once more.
pub(super) const MAX_HELD_MESSAGES: usize = 100_000;
const MAX_HELD_BYTES: usize = 64 * 1024 * 1024;

/// A live message of a stream.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) at_ms: Millis,
    pub(super) subject: Arc<Subject>,
    pub(super) message: Bytes,
}

impl Live {
    /// As it is handed over.
    pub(super) fn into_payload(self) -> Payload {
        Payload::Nats { subject: self.subject, message: self.message }
    }
}

/// A stream.
#[derive(Default)]
pub(super) struct Line {
    /// Where we are in it. `None`: it was never read.
    place: Option<Place>,
    phase: Phase,
    /// Readings that failed since the last that did not.
    pub(super) tries: u32,
}

#[derive(Default)]
enum Phase {
    /// Every live message is passed on.
    #[default]
    Direct,
    /// History is read; live messages wait.
    Reading { held: VecDeque<Live>, bytes: usize, dropped: u64 },
    /// Live, but some of what history told may arrive late.
    Settling { may_come_again: Multiset, since: Instant },
}

/// What history's end leaves to do.
#[derive(Debug)]
pub(super) enum Next {
    /// These live messages are not in what was read: pass them on, in order.
    Pass(Vec<Live>),
    /// More came meanwhile than could be held back: read on, from where reading ended.
    ReadOn,
}

/// What to do with a live message.
#[derive(Debug)]
pub(super) enum Then {
    /// Pass it on.
    Pass(Live),
    /// It is held back, or was read already.
    Nothing,
}

impl Line {
    /// History is about to be read, from this place on.
    pub(super) fn start_reading(&mut self) -> Option<Place> {
        self.phase = Phase::Reading { held: VecDeque::new(), bytes: 0, dropped: 0 };
        self.place.clone()
    }

    /// A reading came this far and failed.
    pub(super) fn reached(&mut self, place: Place) {
        self.place = Some(place);
    }

    /// Whether a message that is not passed on can be read from the stream later.
    pub(super) fn can_be_read_again(&self) -> bool {
        self.place.is_some()
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.phase, Phase::Reading { .. })
    }

    /// A live message came.
    pub(super) fn live(&mut self, live: Live, now: Instant) -> Then {
        match &mut self.phase {
            Phase::Direct => Then::Pass(live),
            Phase::Reading { held, bytes, dropped } => {
                *bytes += live.message.len();
                held.push_back(live);
                while held.len() > MAX_HELD_MESSAGES || *bytes > MAX_HELD_BYTES {
                    let Some(oldest) = held.pop_front() else { break };
                    *bytes -= oldest.message.len();
                    *dropped += 1;
                }
                Then::Nothing
            }
            Phase::Settling { may_come_again, since } => {
                let is_known = may_come_again.take(Content::of(&live.message));
                if may_come_again.is_empty() || now.duration_since(*since) > LATE_FOR {
                    self.phase = Phase::Direct;
                }
                if is_known { Then::Nothing } else { Then::Pass(live) }
            }
        }
    }

    /// A message was handed over: it need not be read again.
    pub(super) fn passed(&mut self, message: &[u8]) {
        if let Some(place) = &mut self.place {
            place.reached += 1;
            place.latest.push(Content::of(message));
        }
    }

    /// History ended. What was held back is live now, each once. Some of what was dropped meanwhile may have come after
    /// the end that was read.
    pub(super) fn caught_up(&mut self, place: Place, mut may_come_again: Multiset, now: Instant) -> Next {
        self.place = Some(place);
        let (held, dropped) = self.release();
        if dropped > 0 {
            return Next::ReadOn;
        }
        let new = held.into_iter().filter(|live| !may_come_again.take(Content::of(&live.message))).collect();
        self.phase = Phase::Settling { may_come_again, since: now };
        Next::Pass(new)
    }

    /// History cannot be read: what was held back is all there is, and so many were dropped.
    pub(super) fn without_history(&mut self) -> (Vec<Live>, u64) {
        self.place = None;
        let (held, dropped) = self.release();
        (held.into(), dropped)
    }

    /// The connection was lost while history was read, up to `place`. What was held back is in the stream.
    pub(super) fn interrupted(&mut self, place: Place) {
        self.place = Some(place);
        self.release();
    }

    fn release(&mut self) -> (VecDeque<Live>, u64) {
        match std::mem::take(&mut self.phase) {
            Phase::Reading { held, dropped, .. } => (held, dropped),
            Phase::Direct | Phase::Settling { .. } => (VecDeque::new(), 0),
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

    fn passed(next: Next) -> Vec<Live> {
        let Next::Pass(live) = next else { panic!("reads on") };
        live
    }

    fn texts(messages: &[Live]) -> Vec<&str> {
        messages.iter().map(|m| std::str::from_utf8(&m.message).unwrap()).collect()
    }

    fn is_passed(then: Then) -> bool {
        matches!(then, Then::Pass(_))
    }

    fn read(texts: &[&str]) -> Multiset {
        let mut read = Multiset::default();
        texts.iter().for_each(|text| read.add(Content::of(text.as_bytes())));
        read
    }

    #[test]
    fn what_history_told_is_not_told_again() {
        let mut line = Line::default();
        let now = Instant::now();
        line.start_reading();
        for text in ["a", "b", "c"] {
            assert!(!is_passed(line.live(live(text), now)));
        }
        let new = passed(line.caught_up(Place::default(), read(&["z", "a", "b"]), now));
        assert_eq!(texts(&new), ["c"]);
    }

    #[test]
    fn a_message_that_arrives_after_history_told_it_is_dropped_once() {
        let mut line = Line::default();
        let now = Instant::now();
        line.start_reading();
        line.caught_up(Place::default(), read(&["late", "late"]), now);
        assert!(is_passed(line.live(live("new"), now)));
        assert!(!is_passed(line.live(live("late"), now)));
        assert!(!is_passed(line.live(live("late"), now)));
        assert!(is_passed(line.live(live("late"), now)), "the worker said it a third time");
    }

    #[test]
    fn old_expectations_are_given_up() {
        let mut line = Line::default();
        let now = Instant::now();
        line.start_reading();
        line.caught_up(Place::default(), read(&["never"]), now);
        assert!(is_passed(line.live(live("x"), now + LATE_FOR * 2)));
        assert!(is_passed(line.live(live("never"), now + LATE_FOR * 2)));
    }

    #[test]
    fn what_is_held_back_is_bounded() {
        let mut line = Line::default();
        let now = Instant::now();
        line.start_reading();
        line.live(live("first"), now);
        (0..MAX_HELD_MESSAGES).for_each(|_| drop(line.live(live("x"), now)));
        let (held, dropped) = line.without_history();
        assert_eq!((held.len(), texts(&held[..1]), dropped), (MAX_HELD_MESSAGES, vec!["x"], 1));
    }

    #[test]
    fn what_could_not_be_held_back_is_read() {
        let mut line = Line::default();
        let now = Instant::now();
        line.start_reading();
        (0..=MAX_HELD_MESSAGES).for_each(|_| drop(line.live(live("x"), now)));
        let place = Place { reached: 7, ..Place::default() };
        assert!(matches!(line.caught_up(place, Multiset::default(), now), Next::ReadOn));
        assert_eq!(line.start_reading().unwrap().reached, 7);
        assert!(passed(line.caught_up(Place::default(), Multiset::default(), now)).is_empty());
    }

    #[test]
    fn the_place_moves_with_what_is_passed() {
        let mut line = Line::default();
        let now = Instant::now();
        line.start_reading();
        line.caught_up(Place { reached: 10, ..Place::default() }, Multiset::default(), now);
        line.passed(b"a");
        assert_eq!(line.start_reading().unwrap().reached, 11);
    }
}
