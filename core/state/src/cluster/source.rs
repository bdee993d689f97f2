//! What is known of a source: its link, its traffic, what was lost and what was not understood.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{HISTORY_S, RATE_BUCKET_MS, WorkerState};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{LinkState, MissedCause, RejectReason, SourceKind, Topic};

/// Most stretches of a connection that are kept: one that comes and goes more often within that hour is shown as
/// not connected where the oldest ones are missing.
const MAX_STRETCHES: usize = 32;

/// Most losses of a kind that are kept apart; older ones count as one.
const MAX_LOSSES: usize = 64;

/// A source.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SourceState {
    /// Where it listens, as the operator named it.
    pub name: String,
    /// What kind of source.
    pub kind: SourceKind,
    /// Where the link stands.
    pub state: LinkState,
    /// The same in words: what happened, what is tried, what to do.
    pub detail: String,
    /// Since when it is in that state.
    pub since_ms: Millis,
    /// When it was connected first; `None`: never yet.
    first_connected_ms: Option<Millis>,
    /// When it was connected within the last [`HISTORY_S`] seconds: from, and until; no end: it is.
    connected: VecDeque<(Millis, Option<Millis>)>,
    /// Messages received since the server started; up to a second old.
    pub received: u64,
    /// When that number last changed; `None` before the first message.
    pub last_ms: Option<Millis>,
    /// Arrival minus publication of the slowest recent message, by two clocks; `None` where messages do not say.
    pub lag_ms: Option<i64>,
    /// What was lost, by topic and cause.
    pub missed: Vec<MissedCount>,
    /// Breaks of the connection, by topic; also when their cost is counted, because publishers that came or left meanwhile are
    /// not in that count.
    gaps: Vec<UnknownGaps>,
    /// What was not understood, by topic and reason.
    pub rejected: Vec<RejectedCount>,
}

/// Messages known to be lost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MissedCount {
    /// About what.
    pub topic: Topic,
    /// How we know.
    pub cause: MissedCause,
    /// How many.
    pub count: u64,
    /// Of those, how many were got back by asking workers.
    pub recovered: u64,
    /// When we last learned of some.
    pub last_ms: Millis,
    /// The latest that were not got back, oldest first.
    losses: VecDeque<Loss>,
}

/// Messages that were lost at one time, and were not got back.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Loss {
    /// The worker. `None`: unknown, or several.
    worker: Option<WorkerIx>,
    at_ms: Millis,
    count: u64,
}

impl MissedCount {
    /// How many are lost for good.
    pub fn lost(&self) -> u64 {
        self.count.saturating_sub(self.recovered)
    }

    /// How many were lost at this time or later and were not got back.
    pub fn lost_since(&self, from: Millis) -> u64 {
        let lost = self.losses.iter().filter(|loss| loss.at_ms >= from).map(|loss| loss.count).sum::<u64>();
        lost.min(self.lost())
    }

    fn lose(&mut self, worker: Option<WorkerIx>, count: u64, at_ms: Millis) {
        self.losses.push_back(Loss { worker, at_ms, count });
        if self.losses.len() > MAX_LOSSES
            && let (Some(oldest), Some(next)) = (self.losses.pop_front(), self.losses.front_mut())
        {
            next.worker = None;
            next.count = next.count.saturating_add(oldest.count);
        }
    }

    /// The latest of a worker are got back, then the latest of which nothing tells whose they were.
    fn recover(&mut self, worker: WorkerIx, count: u64) {
        self.recovered = self.recovered.saturating_add(count).min(self.count);
        let mut left = count;
        for of in [Some(worker), None] {
            for loss in self.losses.iter_mut().rev().filter(|loss| loss.worker == of) {
                let repaired = left.min(loss.count);
                loss.count -= repaired;
                left -= repaired;
            }
        }
        self.losses.retain(|loss| loss.count > 0);
    }
}

/// Breaks of a connection for which the number of lost messages of a topic is unknown or incomplete.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct UnknownGaps {
    /// What the messages would have been about.
    pub topic: Topic,
    /// How many breaks, not messages, are of unknown size. 0: what they cost the publishers known before them is counted, and
    /// what publishers that came or left meanwhile lost is not.
    #[serde(rename = "gaps")]
    pub count: u64,
    /// When the first began.
    pub since_ms: Millis,
    /// When the latest ended.
    pub until_ms: Millis,
}

/// Input that was not understood.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RejectedCount {
    /// What it was meant to be.
    pub topic: Topic,
    /// Why it was not understood.
    pub reason: RejectReason,
    /// How many messages or parts of messages.
    pub count: u64,
    /// When the last one came.
    pub last_ms: Millis,
    /// The last one in words.
    pub sample: String,
}

impl SourceState {
    pub(super) fn new(name: String, kind: SourceKind, at: Millis) -> Self {
        Self {
            name,
            kind,
            state: LinkState::Connecting,
            detail: String::new(),
            since_ms: at,
            first_connected_ms: None,
            connected: VecDeque::new(),
            received: 0,
            last_ms: None,
            lag_ms: None,
            missed: Vec::new(),
            gaps: Vec::new(),
            rejected: Vec::new(),
        }
    }

    pub(super) fn link(&mut self, state: LinkState, detail: String, at: Millis) {
        if self.state != state {
            self.since_ms = at;
        }
        self.state = state;
        self.detail = detail;
        if state != LinkState::Live {
            self.lag_ms = None;
        }
        let was_connected = self.connected.back().is_some_and(|(_, until)| until.is_none());
        match (was_connected, self.is_connected()) {
            (false, true) => {
                self.connected.push_back((at, None));
                self.first_connected_ms = self.first_connected_ms.or(Some(at));
            }
            (true, false) => {
                self.connected.iter_mut().next_back().into_iter().for_each(|last| last.1 = Some(at))
            }
            _ => {}
        }
        let is_old = |until: Millis| at.since(until) > HISTORY_S * RATE_BUCKET_MS;
        while self.connected.len() > MAX_STRETCHES
            || self.connected.front().is_some_and(|(_, until)| until.is_some_and(is_old))
        {
            self.connected.pop_front();
        }
    }

    /// Whether it is connected now: its data is current, or is being read.
    pub const fn is_connected(&self) -> bool {
        matches!(self.state, LinkState::Live | LinkState::CatchingUp)
    }

    /// When it was connected first; `None`: never yet.
    pub(super) const fn first_connected(&self) -> Option<Millis> {
        self.first_connected_ms
    }

    /// Whether it was connected for the whole of the Unix second `second`.
    pub(super) fn was_connected_in(&self, second: u64) -> bool {
        let (begin, end) = (Millis(second * RATE_BUCKET_MS), Millis((second + 1) * RATE_BUCKET_MS));
        self.connected.iter().any(|&(from, until)| from <= begin && until.is_none_or(|until| until >= end))
    }

    pub(super) fn miss(
        &mut self,
        worker: Option<WorkerIx>,
        (topic, cause): (Topic, MissedCause),
        count: u64,
        at: Millis,
    ) {
        let is_same = |m: &MissedCount| m.topic == topic && m.cause == cause;
        let known = match self.missed.iter().position(is_same) {
            Some(known) => known,
            None => {
                let losses = VecDeque::new();
                self.missed.push(MissedCount { topic, cause, count: 0, recovered: 0, last_ms: at, losses });
                self.missed.len() - 1
            }
        };
        let known = &mut self.missed[known];
        known.count = known.count.saturating_add(count);
        known.last_ms = at;
        known.lose(worker, count, at);
    }

    pub(super) fn recover(&mut self, worker: WorkerIx, topic: Topic, cause: MissedCause, count: u64) {
        if let Some(known) = self.missed.iter_mut().find(|m| m.topic == topic && m.cause == cause) {
            known.recover(worker, count);
        }
    }

    /// A worker is forgotten: what was lost of it was lost of a worker that is not known.
    pub(super) fn forget_worker(&mut self, worker: WorkerIx) {
        let losses = self.missed.iter_mut().flat_map(|missed| &mut missed.losses);
        losses.for_each(|loss| loss.worker = loss.worker.filter(|of| *of != worker));
    }

    pub(super) fn note_gaps(&mut self, gaps: UnknownGaps) {
        let has_span = gaps.until_ms > Millis(0);
        match self.gaps.iter_mut().find(|known| known.topic == gaps.topic) {
            Some(known) if has_span => *known = gaps,
            // Recordings have no time with 0 breaks.
            Some(known) => known.count = gaps.count,
            None if has_span || gaps.count > 0 => self.gaps.push(gaps),
            None => {}
        }
    }

    /// Breaks of the connection that cost an unknown number of messages, by topic.
    pub fn unknown_gaps(&self) -> impl Iterator<Item = &UnknownGaps> {
        self.gaps.iter().filter(|gaps| gaps.count > 0)
    }

    /// Breaks of the connection, by topic, those included whose cost is counted as far as it can be.
    pub fn all_gaps(&self) -> &[UnknownGaps] {
        &self.gaps
    }

    pub(super) fn reject(
        &mut self,
        topic: Topic,
        reason: RejectReason,
        count: u64,
        sample: &str,
        at: Millis,
    ) {
        match self.rejected.iter_mut().find(|r| r.topic == topic && r.reason == reason) {
            Some(known) => {
                known.count = known.count.saturating_add(count);
                known.last_ms = at;
                known.sample.clear();
                known.sample.push_str(sample);
            }
            None => self.rejected.push(RejectedCount {
                topic,
                reason,
                count,
                last_ms: at,
                sample: sample.to_owned(),
            }),
        }
    }

    /// Messages known to be lost, over all causes, each once.
    pub fn missed_total(&self) -> u64 {
        self.missed.iter().filter(|m| !m.cause.counts_again()).map(|m| m.count).sum()
    }

    /// Of those, the ones that were got back by asking workers.
    pub fn recovered_total(&self) -> u64 {
        self.missed.iter().filter(|m| !m.cause.counts_again()).map(|m| m.recovered).sum()
    }

    /// Whether more may be lost than [`Self::missed_total`] counts.
    pub fn is_missed_at_least(&self) -> bool {
        !self.gaps.is_empty() || self.missed.iter().any(|m| m.cause.is_lower_bound())
    }

    /// Topics of which something is lost, or may be; some more than once.
    pub fn topics_with_losses(&self) -> impl Iterator<Item = Topic> {
        self.missed.iter().map(|missed| missed.topic).chain(self.gaps.iter().map(|gaps| gaps.topic))
    }

    /// Whether more messages of a topic may be lost than are counted.
    pub fn is_topic_at_least(&self, topic: Topic) -> bool {
        self.gaps.iter().any(|gaps| gaps.topic == topic)
            || self.missed.iter().any(|m| m.topic == topic && m.cause.is_lower_bound())
    }

    /// Whether a count of losses is a lower bound. A break of the connection makes those counts incomplete that come from
    /// publishers' numbers; what was dropped here was counted here.
    pub fn is_at_least(&self, missed: &MissedCount) -> bool {
        let is_by_numbers = matches!(
            missed.cause,
            MissedCause::EnvelopeGap | MissedCause::EventIdGap | MissedCause::EventsInLost
        );
        missed.cause.is_lower_bound() || (is_by_numbers && self.is_topic_at_least(missed.topic))
    }

    /// Whether KV events of a worker may be lost that are not in its count.
    pub(super) fn may_have_missed(&self, worker: &WorkerState) -> bool {
        // Publishers count from 0 or 1.
        let began_before = worker.lines.iter().any(|line| line.first_event_id > 1);
        let is_in_life = |from: Millis, until: Millis| {
            let is_before_its_end = worker.departure.is_none_or(|departure| departure.at_ms >= from);
            is_before_its_end && (worker.first_ms <= until || began_before)
        };
        let is_its_gap =
            |gaps: &UnknownGaps| gaps.topic == Topic::KvEvents && is_in_life(gaps.since_ms, gaps.until_ms);
        let is_of_unknown = |loss: &Loss| loss.worker.is_none() && is_in_life(loss.at_ms, loss.at_ms);
        let is_unassigned = |missed: &MissedCount| {
            let is_told_by_ids = matches!(missed.cause, MissedCause::EventsInLost | MissedCause::EventIdGap);
            missed.topic == Topic::KvEvents && !is_told_by_ids && missed.losses.iter().any(is_of_unknown)
        };
        self.gaps.iter().any(is_its_gap) || self.missed.iter().any(is_unassigned)
    }

    /// Breaks of the connection that cost an unknown number of messages. One break may concern several topics.
    pub fn gaps_total(&self) -> u64 {
        self.gaps.iter().map(|gaps| gaps.count).max().unwrap_or(0)
    }

    /// Messages lost in our own queue.
    pub fn dropped_total(&self) -> u64 {
        let ours = |m: &&MissedCount| matches!(m.cause, MissedCause::QueueFull | MissedCause::SlowConsumer);
        self.missed.iter().filter(ours).map(|m| m.count).sum()
    }

    /// Inputs not understood, over all reasons.
    pub fn rejected_total(&self) -> u64 {
        self.rejected.iter().map(|r| r.count).sum()
    }
}
