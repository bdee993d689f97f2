//! What a source knows to be missing before its next message: what it had no room for, and breaks of its connection.
//!
//! A message without room is not opened, but its number is kept where it has one: so the publisher's count goes on
//! without a jump, and what was dropped here is counted here and not once more as a gap. Knows no state.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;

use radixscope_dynamo::envelope;
use radixscope_dynamo::subject::Transport;
use radixscope_model::id::Millis;
use radixscope_model::record::{MissedCause, Topic};

use crate::payload::{EngineInput, Payload};

/// Runs of numbers kept until the next message; beyond it a dropped message is left to show as a jump of its
/// publisher's numbers, which counts it too unless it was the publisher's first, so that the count is a lower bound. A run is as long as the queue stays full: thousands of publishers fit.
const MAX_RUNS: usize = 16_384;
/// Breaks kept until the next message; older ones become one with the next.
const MAX_BREAKS: usize = 16;

/// A time without connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Break {
    /// The last sign of life before it.
    pub since_ms: Millis,
    /// When the source listened again.
    pub until_ms: Millis,
}

/// A publisher's numbers of messages that were dropped unopened, `from` up to but not including `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SequenceRange {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// See the module.
#[derive(Default, Debug)]
pub struct Missing {
    pub(super) breaks: Vec<Break>,
    /// Breaks of the connections to single publishers: a publisher of ZeroMQ has a connection of its own.
    pub(super) of_publishers: IndexMap<(Topic, u64), Break, hashbrown::DefaultHashBuilder>,
    /// Topics whose breaks nothing can make exact.
    pub(super) unknown: Vec<(Topic, Break)>,
    pub(super) counts: BTreeMap<(Topic, MissedCause), u64>,
    pub(super) runs: IndexMap<(Topic, u64), Vec<SequenceRange>, hashbrown::DefaultHashBuilder>,
    run_count: usize,
    /// Topics of dropped messages whose numbers found no room.
    pub(super) uncounted: BTreeSet<Topic>,
}

impl Missing {
    /// There was no room for a message.
    pub fn refuse(&mut self, payload: &Payload) {
        let topic = payload.topic();
        if let Payload::Engine { publisher, input: EngineInput::Batch { run, sequence, .. } } = payload {
            return self.refuse_number(topic, publisher.publisher_id(*run), *sequence);
        }
        let envelope = match payload {
            Payload::Nats { subject, message }
                if subject.transport != Transport::JetStream && topic != Topic::RequestTrace =>
            {
                envelope::open(message).ok().and_then(|body| body.envelope().copied())
            }
            _ => None,
        };
        match envelope {
            Some(envelope) => self.refuse_number(topic, envelope.publisher_id, envelope.sequence),
            None => self.count(topic, MissedCause::QueueFull, 1),
        }
    }

    fn refuse_number(&mut self, topic: Topic, publisher_id: u64, sequence: u64) {
        let runs = self.runs.entry((topic, publisher_id)).or_default();
        match runs.last_mut() {
            Some(last) if last.to == sequence => last.to = sequence.saturating_add(1),
            _ if self.run_count < MAX_RUNS => {
                runs.push(SequenceRange { from: sequence, to: sequence.saturating_add(1) });
                self.run_count += 1;
            }
            _ => {
                self.uncounted.insert(topic);
            }
        }
    }

    /// The source lost so many messages of a topic.
    pub fn count(&mut self, topic: Topic, cause: MissedCause, count: u64) {
        let sum = self.counts.entry((topic, cause)).or_default();
        *sum = sum.saturating_add(count);
    }

    /// The connection broke and is there again.
    pub fn broke(&mut self, at: Break) {
        let is_full = self.breaks.len() == MAX_BREAKS;
        match self.breaks.last_mut() {
            Some(last) if is_full => last.until_ms = at.until_ms,
            _ => self.breaks.push(at),
        }
    }

    /// The connection to one publisher of a topic broke and is there again.
    pub fn broke_of(&mut self, topic: Topic, publisher_id: u64, at: Break) {
        let is_full = self.of_publishers.len() >= MAX_RUNS;
        match self.of_publishers.get_mut(&(topic, publisher_id)) {
            Some(last) => last.until_ms = at.until_ms,
            None if !is_full => {
                self.of_publishers.insert((topic, publisher_id), at);
            }
            // Too many to be kept apart: then it is a break of all of them, which hides nothing.
            None => self.broke(at),
        }
    }

    /// The connection broke, and its loss of this topic will stay unknown.
    pub fn broke_for_good(&mut self, topic: Topic, at: Break) {
        if self.unknown.len() < MAX_BREAKS {
            self.unknown.push((topic, at));
        }
    }

    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        let Self { breaks, of_publishers, unknown, counts, runs, uncounted, .. } = self;
        breaks.is_empty()
            && of_publishers.is_empty()
            && unknown.is_empty()
            && counts.is_empty()
            && runs.is_empty()
            && uncounted.is_empty()
    }
}
