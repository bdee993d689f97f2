//! Puts the batches of one publisher in the order of their numbers: what is published now, and what it sends again because it was missed.
//! Sees when a publisher began anew. Knows no sockets.
//!
//! While missed batches are awaited, published ones are kept; a batch that is next is passed on at once. After a break the last batch that was
//! received is requested once more and compared: numbers alone do not show that another process counts on from where the former was.

use std::collections::VecDeque;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use radixscope_model::record::Replay;

/// Batches kept meanwhile, and bytes of them: some minutes of a busy engine. More are left to be requested again.
const MAX_KEPT: usize = 20_000;
const MAX_KEPT_BYTES: usize = 32 << 20;
/// Requests that bring nothing new until what is missing is given up. A ROUTER drops replies when its queue is full, which holds a
/// thousand, so that a whole ring takes several.
const MAX_REQUESTS: u32 = 3;
/// A number that jumps by more is nonsense.
const MAX_JUMP: u64 = 10_000_000;

/// A batch that is next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Batch {
    pub(super) run: u32,
    pub(super) sequence: u64,
    pub(super) is_replayed: bool,
    pub(super) body: Bytes,
}

/// What is to be requested: batches from this number on. Stale once another one is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    pub(super) from: u64,
    number: u64,
}

/// What became of a reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    /// It is next.
    Batch(Batch),
    /// It is known.
    Known,
    /// Another request takes the place of this one.
    Over,
}

/// See the module.
pub(super) struct Sequencer {
    has_replay: bool,
    run: u32,
    /// Number that comes next. `None`: any.
    next: Option<u64>,
    /// Number and hash of the last batch.
    last: Option<(u64, u64)>,
    waiting: Option<Waiting>,
    requests: u64,
}

struct Waiting {
    request: Request,
    /// Whether it was fetched by who sends it.
    is_taken: bool,
    /// Requests in a row that brought nothing new.
    vain: u32,
    /// Whether the last batch is requested once more, to compare it.
    compares: bool,
    has_reply: bool,
    /// The first batch that was sent again.
    first: Option<u64>,
    kept: VecDeque<(u64, Bytes)>,
    kept_bytes: usize,
}

impl Sequencer {
    pub(super) fn new(has_replay: bool) -> Self {
        Self { has_replay, run: 0, next: None, last: None, waiting: None, requests: 0 }
    }

    /// How many times the publisher began anew.
    pub(super) fn run(&self) -> u32 {
        self.run
    }

    /// Everything that is published is received from now on.
    pub(super) fn connected(&mut self) {
        if self.has_replay {
            self.waiting = None;
            self.request(self.last.map_or(0, |(last, _)| last));
        }
    }

    /// The connection is lost. What was kept is requested again.
    pub(super) fn disconnected(&mut self) {
        self.waiting = None;
    }

    /// A batch was published. `None`: it is kept until what is before it is there.
    ///
    /// # Errors
    /// By how much its number jumps, which is nonsense.
    pub(super) fn live(&mut self, sequence: u64, body: Bytes) -> Result<Option<Batch>, u64> {
        let before = self.waiting.as_ref().and_then(|waiting| waiting.kept.back()).map(|&(last, _)| last);
        let expected = before.map(|last| last.saturating_add(1)).or(self.next);
        if let Some(jump) =
            expected.and_then(|next| sequence.checked_sub(next)).filter(|&jump| jump > MAX_JUMP)
        {
            return Err(jump);
        }
        if self.waiting.is_some() {
            if before.is_some_and(|last| sequence <= last) {
                self.begin_anew(false);
            }
        } else {
            match self.next {
                Some(next) if sequence < next => {
                    self.begin_anew(false);
                    if sequence > 0 && self.has_replay {
                        self.request(0);
                    }
                }
                Some(next) if sequence > next && self.has_replay => self.request(next),
                _ => {}
            }
        }
        match &mut self.waiting {
            Some(waiting) => {
                waiting.keep(sequence, body);
                Ok(None)
            }
            None => Ok(Some(self.pass(sequence, body, false))),
        }
    }

    /// What is to be requested, once.
    pub(super) fn take_request(&mut self) -> Option<Request> {
        let waiting = self.waiting.as_mut().filter(|waiting| !waiting.is_taken)?;
        waiting.is_taken = true;
        Some(waiting.request)
    }

    /// A batch was sent again.
    pub(super) fn replied(&mut self, request: Request, sequence: u64, body: Bytes) -> Reply {
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.request == request) else {
            return Reply::Over;
        };
        let is_first = !std::mem::replace(&mut waiting.has_reply, true);
        if std::mem::take(&mut waiting.compares)
            && self.last.is_some_and(|(last, hash)| last == sequence && hash != xxh3_64(&body))
        {
            // Another process has counted as far.
            self.begin_anew(true);
            return Reply::Over;
        }
        let next = self.next;
        match next {
            Some(next) if sequence < next => Reply::Known,
            // Later in the replies a jump is one that was dropped on the way; at first it is where the ring begins.
            Some(next) if sequence > next && !is_first && self.request_again(next) => Reply::Over,
            _ => {
                if let Some(waiting) = &mut self.waiting {
                    waiting.first.get_or_insert(sequence);
                }
                Reply::Batch(self.pass(sequence, body, true))
            }
        }
    }

    /// All that it still has was sent again. What came of it; `None`: it is requested once more.
    pub(super) fn replies_ended(&mut self, request: Request) -> Option<Replay> {
        let waiting = self.waiting.as_mut().filter(|waiting| waiting.request == request)?;
        if waiting.compares {
            // It has not even what was received last: it began anew.
            self.begin_anew(true);
            return None;
        }
        Some(waiting.first.map_or(Replay::Nothing, Replay::From))
    }

    /// It does not answer: what is missing is lost, as far as it is not published.
    pub(super) fn gave_up(&mut self, request: Request) {
        if let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.request == request) {
            waiting.vain = MAX_REQUESTS;
        }
    }

    /// The next of what was kept, once nothing more is awaited. `None`: nothing is kept any more, or something is requested once more.
    pub(super) fn kept(&mut self, request: Request) -> Option<Batch> {
        loop {
            let waiting = self.waiting.as_mut().filter(|waiting| waiting.request == request)?;
            let Some((sequence, body)) = waiting.kept.pop_front() else {
                self.waiting = None;
                return None;
            };
            waiting.kept_bytes = waiting.kept_bytes.saturating_sub(body.len());
            match self.next {
                Some(next) if sequence < next => continue,
                Some(next) if sequence > next => {
                    waiting.kept_bytes += body.len();
                    waiting.kept.push_front((sequence, body));
                    if self.request_again(next) {
                        return None;
                    }
                    let waiting = self.waiting.as_mut()?;
                    let (sequence, body) = waiting.kept.pop_front()?;
                    waiting.kept_bytes = waiting.kept_bytes.saturating_sub(body.len());
                    return Some(self.pass(sequence, body, false));
                }
                _ => return Some(self.pass(sequence, body, false)),
            }
        }
    }

    /// Another process publishes. `is_kept_of_it`: so is what is kept.
    fn begin_anew(&mut self, is_kept_of_it: bool) {
        self.run += 1;
        (self.next, self.last) = (None, None);
        if let Some(waiting) = self.waiting.take() {
            self.request(0);
            if let Some(now) = self.waiting.as_mut().filter(|_| is_kept_of_it) {
                (now.kept, now.kept_bytes) = (waiting.kept, waiting.kept_bytes);
            }
        }
    }

    fn request(&mut self, from: u64) {
        self.requests += 1;
        let request = Request { from, number: self.requests };
        self.waiting = Some(Waiting {
            request,
            is_taken: false,
            vain: 0,
            compares: self.last.is_some_and(|(last, _)| last == from),
            has_reply: false,
            first: None,
            kept: VecDeque::new(),
            kept_bytes: 0,
        });
    }

    /// Requests what is missing once more, unless that was done too often.
    fn request_again(&mut self, from: u64) -> bool {
        self.requests += 1;
        let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.vain < MAX_REQUESTS) else {
            return false;
        };
        waiting.vain = if from > waiting.request.from { 0 } else { waiting.vain + 1 };
        waiting.request = Request { from, number: self.requests };
        (waiting.is_taken, waiting.compares, waiting.has_reply) = (false, false, false);
        true
    }

    fn pass(&mut self, sequence: u64, body: Bytes, is_replayed: bool) -> Batch {
        self.next = Some(sequence.saturating_add(1));
        self.last = Some((sequence, xxh3_64(&body)));
        Batch { run: self.run, sequence, is_replayed, body }
    }
}

impl Waiting {
    fn keep(&mut self, sequence: u64, body: Bytes) {
        if self.kept.len() < MAX_KEPT && self.kept_bytes + body.len() <= MAX_KEPT_BYTES {
            self.kept_bytes += body.len();
            self.kept.push_back((sequence, body));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(run: u32, sequence: u64) -> Bytes {
        format!("{run}.{sequence}").into()
    }

    /// A publisher with a ring of so many batches.
    struct Publisher {
        run: u32,
        next: u64,
        ring: usize,
        /// Replies that are sent for a request; the others are dropped.
        most: usize,
    }

    struct Stage {
        sequencer: Sequencer,
        publisher: Publisher,
        /// What was passed on: run, number, whether it was sent again.
        passed: Vec<(u32, u64, bool)>,
        replay: Option<Replay>,
    }

    impl Stage {
        fn new(has_replay: bool) -> Self {
            let publisher = Publisher { run: 0, next: 0, ring: usize::MAX, most: usize::MAX };
            Self { sequencer: Sequencer::new(has_replay), publisher, passed: Vec::new(), replay: None }
        }

        fn take(&mut self, batch: Batch) {
            assert_eq!(batch.body, body(self.publisher.run, batch.sequence), "it is of the present process");
            self.passed.push((batch.run, batch.sequence, batch.is_replayed));
        }

        /// Publishes; the connection loses it unless it `arrives`.
        fn publish(&mut self, arrives: bool) {
            let sequence = self.publisher.next;
            self.publisher.next += 1;
            if arrives
                && let Some(batch) =
                    self.sequencer.live(sequence, body(self.publisher.run, sequence)).unwrap()
            {
                self.take(batch);
            }
        }

        fn publish_many(&mut self, count: u64) {
            (0..count).for_each(|_| self.publish(true));
        }

        fn restart(&mut self) {
            (self.publisher.run, self.publisher.next) = (self.publisher.run + 1, 0);
        }

        /// Answers all requests.
        fn answer(&mut self) {
            while let Some(request) = self.sequencer.take_request() {
                let Publisher { run, next, ring, most } = self.publisher;
                let begin = next.saturating_sub(ring as u64).max(request.from);
                for sequence in (begin..next).take(most) {
                    match self.sequencer.replied(request, sequence, body(run, sequence)) {
                        Reply::Batch(batch) => self.take(batch),
                        Reply::Known => {}
                        Reply::Over => break,
                    }
                }
                if let Some(replay) = self.sequencer.replies_ended(request) {
                    self.replay = Some(replay);
                    while let Some(batch) = self.sequencer.kept(request) {
                        self.take(batch);
                    }
                }
            }
        }

        fn reconnect(&mut self) {
            self.sequencer.disconnected();
            self.sequencer.connected();
        }

        fn numbers(&self) -> Vec<u64> {
            self.passed.iter().map(|&(_, sequence, _)| sequence).collect()
        }
    }

    #[test]
    fn a_late_listener_gets_the_ring_and_then_what_was_published_meanwhile() {
        let mut stage = Stage::new(true);
        (0..7).for_each(|_| stage.publish(false));
        stage.publisher.ring = 5;
        stage.sequencer.connected();
        stage.publish_many(2);
        assert!(stage.passed.is_empty(), "nothing is passed before what came before it");
        stage.answer();
        assert_eq!(stage.numbers(), [4, 5, 6, 7, 8]);
        assert_eq!(stage.replay, Some(Replay::From(4)));
        stage.publish_many(1);
        assert_eq!(stage.passed.last(), Some(&(0, 9, false)));
    }

    #[test]
    fn without_a_ring_everything_is_passed_on_as_it_comes() {
        let mut stage = Stage::new(false);
        stage.publisher.next = 3;
        stage.sequencer.connected();
        stage.publish_many(2);
        stage.publish(false);
        stage.publish_many(1);
        assert_eq!((stage.numbers(), stage.sequencer.run()), (vec![3, 4, 6], 0));
        stage.restart();
        stage.publish_many(1);
        assert_eq!(stage.passed.last(), Some(&(1, 0, false)));
    }

    #[test]
    fn what_did_not_arrive_is_requested_and_nothing_overtakes_it() {
        let mut stage = Stage::new(true);
        stage.sequencer.connected();
        stage.answer();
        stage.publish_many(2);
        (0..3).for_each(|_| stage.publish(false));
        stage.publish_many(2);
        assert_eq!(stage.numbers(), [0, 1]);
        stage.answer();
        assert_eq!(stage.numbers(), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn replies_that_are_dropped_on_the_way_are_requested_again() {
        let mut stage = Stage::new(true);
        (0..95).for_each(|_| stage.publish(false));
        stage.publisher.most = 10;
        stage.sequencer.connected();
        stage.publish_many(1);
        stage.answer();
        assert_eq!(stage.numbers(), (0..96).collect::<Vec<_>>());
    }

    #[test]
    fn after_a_break_nothing_is_passed_twice() {
        let mut stage = Stage::new(true);
        stage.sequencer.connected();
        stage.answer();
        stage.publish_many(3);
        (0..2).for_each(|_| stage.publish(false));
        stage.reconnect();
        stage.publish_many(1);
        stage.answer();
        stage.reconnect();
        stage.answer();
        assert_eq!((stage.numbers(), stage.sequencer.run()), (vec![0, 1, 2, 3, 4, 5], 0));
        assert_eq!(stage.replay, Some(Replay::Nothing));
    }

    #[test]
    fn another_process_is_recognised_however_far_it_has_counted() {
        for published in [0, 2, 3, 4, 9] {
            let mut stage = Stage::new(true);
            stage.sequencer.connected();
            stage.answer();
            stage.publish_many(3);
            stage.sequencer.disconnected();
            stage.restart();
            (0..published).for_each(|_| stage.publish(false));
            stage.passed.clear();
            stage.sequencer.connected();
            stage.publish_many(2);
            stage.answer();
            let all = (0..published + 2).collect::<Vec<_>>();
            assert_eq!((stage.numbers(), stage.sequencer.run()), (all, 1), "{published}");
        }
    }

    #[test]
    fn a_process_that_begins_anew_while_connected_is_recognised() {
        let mut stage = Stage::new(true);
        stage.sequencer.connected();
        stage.answer();
        stage.publish_many(4);
        stage.restart();
        stage.publish(false);
        stage.publish_many(1);
        stage.answer();
        assert_eq!(stage.passed[4..], [(1, 0, true), (1, 1, true)]);
        // And while something is awaited.
        stage.publish(false);
        stage.publish_many(2);
        stage.restart();
        stage.publish_many(1);
        stage.answer();
        assert_eq!(stage.passed.last().unwrap().0, 2);
        assert_eq!(stage.passed.last().unwrap().1, 0);
    }

    #[test]
    fn what_is_never_answered_is_given_up() {
        let mut stage = Stage::new(true);
        stage.sequencer.connected();
        stage.publish(false);
        stage.publish_many(2);
        let request = stage.sequencer.take_request().unwrap();
        stage.sequencer.gave_up(request);
        while let Some(batch) = stage.sequencer.kept(request) {
            stage.take(batch);
        }
        stage.publish_many(1);
        assert_eq!(stage.numbers(), [1, 2, 3]);
        assert_eq!(stage.sequencer.take_request(), None);
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_rest_is_requested() {
        let mut stage = Stage::new(true);
        stage.sequencer.connected();
        stage.publish_many(MAX_KEPT as u64 + 5);
        assert_eq!(stage.sequencer.waiting.as_ref().unwrap().kept.len(), MAX_KEPT);
        stage.answer();
        stage.publish_many(1);
        stage.answer();
        assert_eq!(stage.passed.len(), MAX_KEPT + 6);
    }

    #[test]
    fn a_number_that_jumps_beyond_reason_is_refused() {
        let mut stage = Stage::new(true);
        stage.publish_many(2);
        assert_eq!(stage.sequencer.live(u64::MAX, Bytes::new()), Err(u64::MAX - 2));
        stage.publish_many(1);
        assert_eq!(stage.numbers(), [0, 1, 2]);
    }
}
