//! Breaks of a source's connection: of which topics they cost an unknown number of messages.
//!
//! Where every publisher of a topic numbers its messages, the first message of each after the break shows exactly what
//! it lost, and the gap is then counted as a jump of its numbers. Until all have spoken, and for good where messages
//! have no numbers, the gap is of unknown size. After that the count stays a lower bound: publishers that came and left during
//! the break, or began to count anew, have sent what no number shows.

use std::collections::BTreeMap;

use super::missing::Break;
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::{Record, Topic};
use radixscope_state::cluster::UnknownGaps;

#[derive(Default)]
pub(super) struct Gaps {
    // Bounded by its keys: sources and topics are few.
    topics: BTreeMap<(SourceIx, Topic), Gap>,
}

#[derive(Default)]
struct Gap {
    /// Messages came that have a number, and such as have none.
    numbered: bool,
    unnumbered: bool,
    /// Breaks that stay of unknown size.
    unknown: u64,
    /// The last break counted there.
    unknown_since: Option<Millis>,
    /// Breaks that become exact once all of `awaited` have spoken.
    open: u64,
    /// Publishers whose own connection broke and that have not spoken since.
    alone: u64,
    /// Publishers that have not spoken since the last break.
    awaited: usize,
    /// From the begin of the first break to the end of the last.
    span: Option<Break>,
    changed: bool,
}

impl Gaps {
    /// A message came, over a line that keeps nothing.
    pub(super) fn received(&mut self, source: SourceIx, topic: Topic, is_numbered: bool) {
        let gap = self.topics.entry((source, topic)).or_default();
        gap.numbered |= is_numbered;
        gap.unnumbered |= !is_numbered;
    }

    /// Whether every message of a topic has a number, so that no loss escapes.
    pub(super) fn is_numbered(&self, source: SourceIx, topic: Topic) -> bool {
        self.topics.get(&(source, topic)).is_some_and(|gap| gap.numbered && !gap.unnumbered)
    }

    /// The connection broke. `publishers` returns how many are known of a topic.
    pub(super) fn broke(&mut self, source: SourceIx, at: Break, publishers: impl Fn(Topic) -> usize) {
        for (&(_, topic), gap) in self.topics.iter_mut().filter(|((of, _), _)| *of == source) {
            gap.awaited = publishers(topic);
            if gap.unnumbered {
                gap.unknown(at);
            } else if gap.awaited > 0 {
                gap.open += 1;
                gap.reach(at);
            }
        }
    }

    /// The connection to one publisher broke; its next message shows what that cost.
    pub(super) fn broke_of(&mut self, source: SourceIx, topic: Topic, at: Break) {
        let gap = self.topics.entry((source, topic)).or_default();
        gap.alone += 1;
        gap.reach(at);
    }

    /// The first message of a publisher after its own connection broke, or none will come.
    pub(super) fn spoke_alone(&mut self, source: SourceIx, topic: Topic) {
        let Some(gap) = self.topics.get_mut(&(source, topic)) else { return };
        gap.alone = gap.alone.saturating_sub(1);
        gap.changed = true;
    }

    /// The connection broke, and its loss stays unknown. One break counts once, however many signs of it
    /// there are.
    pub(super) fn unknown(&mut self, source: SourceIx, topic: Topic, at: Break) {
        let gap = self.topics.entry((source, topic)).or_default();
        if gap.unknown_since != Some(at.since_ms) {
            gap.unknown(at);
        }
    }

    /// More may be missing since that break than is counted, be it little.
    pub(super) fn at_least(&mut self, source: SourceIx, topic: Topic, at: Break) {
        self.topics.entry((source, topic)).or_default().reach(at);
    }

    /// So much was missing before: what is missing from now on adds to it.
    pub(super) fn resume(&mut self, source: SourceIx, known: &UnknownGaps) {
        let &UnknownGaps { topic, count, since_ms, until_ms } = known;
        let gap = self.topics.entry((source, topic)).or_default();
        gap.unknown = count;
        gap.span = Some(Break { since_ms, until_ms });
    }

    /// The first message of a publisher after a break.
    pub(super) fn spoke(&mut self, source: SourceIx, topic: Topic) {
        let Some(gap) = self.topics.get_mut(&(source, topic)) else { return };
        gap.awaited = gap.awaited.saturating_sub(1);
        if gap.awaited == 0 && gap.open > 0 {
            gap.open = 0;
            gap.changed = true;
        }
    }

    /// A publisher first seen after a break starts in the middle of its count: earlier messages may have
    /// been lost during the break.
    pub(super) fn begins_late(&mut self, source: SourceIx, topic: Topic, last: Break) {
        self.unknown(source, topic, last);
    }

    /// What changed since the last call.
    pub(super) fn flush(&mut self, out: &mut dyn FnMut(Record<'_>)) {
        for (&(source, topic), gap) in self.topics.iter_mut().filter(|(_, gap)| gap.changed) {
            gap.changed = false;
            let count = gap.unknown + gap.open + gap.alone;
            let Break { since_ms, until_ms } =
                gap.span.unwrap_or(Break { since_ms: Millis(0), until_ms: Millis(0) });
            out(Record::Gaps { source, topic, count, since_ms, until_ms });
        }
    }
}

impl Gap {
    fn unknown(&mut self, at: Break) {
        self.unknown += 1;
        self.unknown_since = Some(at.since_ms);
        self.reach(at);
    }

    fn reach(&mut self, at: Break) {
        let span = self.span.unwrap_or(at);
        self.span = Some(Break { since_ms: span.since_ms, until_ms: span.until_ms.max(at.until_ms) });
        self.changed = true;
    }
}
