//! Breaks of connections and losses of messages: of whom not everything is known any more, and what shows that nothing was
//! lost after all.
//!
//! A worker is complete only as long as its events go on without a hole from a response on, or from its first event. A
//! connection that is lost is doubt: the next event, or the next message of its publisher, may show that nothing was
//! published meanwhile. Once something is missing for certain, nothing but a response that was requested later makes it whole.

use radixscope_model::id::{Millis, SourceIx, WorkerIx};
use radixscope_model::record::{KnowledgeWhy, MissedCause, Topic, TreeKnowledge};

use radixscope_state::cluster::Cluster;

use super::watched::{AttachState, Gap, Loss};
use super::{Attach, MAX_PUBLISHERS};

impl Attach {
    /// A source receives all messages of this publisher from now on, or of any.
    pub(crate) fn subscribed(&mut self, source: SourceIx, publisher_id: Option<u64>) {
        match publisher_id {
            None => {
                self.open.insert(source);
            }
            Some(publisher_id) if self.subscribed.len() < MAX_PUBLISHERS => {
                let is_again = !self.subscribed.insert(publisher_id);
                for (_, watched) in self.workers.iter_mut() {
                    if is_again && watched.publisher_id == Some(publisher_id) {
                        broke(watched);
                    }
                }
            }
            Some(_) => {}
        }
        for (_, watched) in self.workers.iter_mut() {
            let is_its = match publisher_id {
                // A stream is read on from where it was: its next event shows it.
                None => watched.source == Some(source) && !watched.is_stream,
                Some(id) => watched.publisher_id == Some(id),
            };
            if is_its {
                watched.is_broken = false;
            }
        }
        self.due = Some(Millis(0));
    }

    /// Something that was published came by this source, with its number.
    #[inline]
    pub(crate) fn received_from(&mut self, source: SourceIx) {
        if !self.received_from.contains(&source) {
            self.received_from.insert(source);
            self.due = Some(Millis(0));
        }
    }

    /// A source receives nothing more, for now: of all publishers, or of this one.
    pub(crate) fn unsubscribed(&mut self, source: SourceIx, publisher_id: Option<u64>) {
        match publisher_id {
            None => self.broke(source),
            Some(publisher_id) => {
                self.subscribed.remove(&publisher_id);
                self.broke_of(publisher_id);
            }
        }
    }

    /// A source's connection broke, or did and is there again: anything may have been missed.
    pub(crate) fn broke(&mut self, source: SourceIx) {
        self.open.remove(&source);
        let direct = &self.direct;
        let is_its = |watched: &AttachState| match watched.source {
            Some(its) => its == source,
            None => !watched.publisher_id.is_some_and(|id| direct.contains(&id)),
        };
        for (_, watched) in self.workers.iter_mut().filter(|(_, watched)| is_its(watched)) {
            broke(watched);
        }
        self.due = Some(Millis(0));
    }

    /// The connection to one publisher broke, or did and is there again.
    pub(crate) fn broke_of(&mut self, publisher_id: u64) {
        for (_, watched) in self.workers.iter_mut() {
            if watched.publisher_id == Some(publisher_id) {
                broke(watched);
            }
        }
        self.due = Some(Millis(0));
    }

    /// The first message of a publisher after a break follows the one before it: nothing of it was missed.
    pub(crate) fn unbroken(&mut self, source: SourceIx, publisher_id: u64) {
        let its = |watched: &AttachState| {
            watched.source == Some(source)
                && watched.publisher_id == Some(publisher_id)
                && !watched.is_contiguous
        };
        for (_, watched) in self.workers.iter_mut().filter(|(_, watched)| its(watched)) {
            if watched.known.1 == KnowledgeWhy::ConnectionBroke {
                watched.went_on();
            }
        }
        self.due = Some(Millis(0));
    }

    /// Messages of a publisher are missing before the next one. They may come late, but not across a break. Gives the number
    /// of the gap, which [`Attach::lost_of`] reports once it is certain.
    pub(crate) fn gap_of(&mut self, publisher_id: u64) -> u64 {
        self.gaps += 1;
        let last = self.gaps;
        for (_, watched) in self.workers.iter_mut().filter(|(_, w)| w.publisher_id == Some(publisher_id)) {
            // Else its ids show it.
            if !watched.is_contiguous && watched.source.is_some() {
                // Several events may share an id, so that the last is requested again.
                let before = watched.last_event_id.unwrap_or(0);
                let from = watched.gap.map_or(before, |gap| gap.from.min(before));
                watched.gap = Some(Gap { from, last });
                watched.kept_since = None;
                if watched.known.1 == KnowledgeWhy::ConnectionBroke {
                    watched.has_gap = true;
                    watched.lost_since(Some(from), KnowledgeWhy::EventsLost);
                }
            }
        }
        self.due = Some(Millis(0));
        last
    }

    /// So many messages of a publisher are lost and counted; they were missing since gap number `gap`.
    pub(crate) fn lost_of(
        &mut self,
        publisher_id: u64,
        source: SourceIx,
        cause: MissedCause,
        (gap, count): (u64, u64),
    ) {
        for (_, watched) in self.workers.iter_mut() {
            if watched.publisher_id != Some(publisher_id) {
                continue;
            }
            watched.lose(Loss { source, topic: Topic::KvEvents, cause, count });
            // A response that was requested later holds it.
            if watched.is_contiguous || watched.source.is_none() || gap <= watched.covered {
                continue;
            }
            watched.has_gap = true;
            let from = watched.gap.map(|gap| gap.from).or(watched.last_event_id);
            let is_before = watched.query.as_ref().map(|query| gap <= query.gap);
            // Events are kept only since the latest gap.
            match (is_before.unwrap_or(watched.kept_since.is_some()), from) {
                (true, Some(from)) if watched.query.is_none() => {
                    watched.lost_from(from);
                    watched.doubt(KnowledgeWhy::EventsLost);
                }
                (true, _) => watched.doubt(KnowledgeWhy::EventsLost),
                (false, from) => watched.lost_since(from, KnowledgeWhy::EventsLost),
            }
        }
        self.due = Some(Millis(0));
    }

    /// Publishers of KV events whose workers left.
    pub(crate) fn departed_publishers(&self, cluster: &Cluster) -> Vec<u64> {
        let is_there = |worker| cluster.workers().get(worker).is_some_and(|state| state.departure.is_none());
        let departed = self.workers.iter().filter(|(worker, _)| !is_there(*worker));
        departed.filter_map(|(_, watched)| watched.publisher_id).collect()
    }

    /// A source lost events of unknown workers.
    pub(crate) fn lost_for_good(&mut self, source: SourceIx) {
        for (_, watched) in self.workers.iter_mut().filter(|(_, w)| w.source == Some(source)) {
            watched.has_gap = true;
            watched.lost_since(watched.next_event(), KnowledgeWhy::EventsLost);
        }
        self.due = Some(Millis(0));
    }

    /// Events of a worker are lost, and counted.
    pub(crate) fn lost(&mut self, worker: WorkerIx, source: SourceIx, cause: MissedCause, count: u64) {
        self.workers.of(worker).lose(Loss { source, topic: Topic::KvEvents, cause, count });
    }
}

/// Anything of a worker may have been missed.
fn broke(watched: &mut AttachState) {
    if watched.source.is_none() {
        // What it answered is true no more once its events do not come, nor what it is about to answer.
        let is_answered = watched.known == (TreeKnowledge::Partial, KnowledgeWhy::NoEvents);
        let is_asked = watched.query.is_some() || is_answered;
        if watched.is_complete() || is_asked {
            watched.lost_since(None, KnowledgeWhy::ConnectionBroke);
        }
        return;
    }
    watched.is_broken = true;
    watched.lost_since(watched.next_event(), KnowledgeWhy::ConnectionBroke);
}
