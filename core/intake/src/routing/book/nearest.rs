//! The choice that a report without a known id is about: of the same worker, with the same overlap and length, and nearest in
//! time. What was joined with a choice gives way to a report that is nearer to it.

use super::join::{CorrelationKey, Mark};
use super::slots::{ReportTime, Slots};
use super::{RequestBook, RequestPart};
use radixscope_model::id::{DecisionId, Millis, PoolIx, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::DecisionSource;

/// Most by which the times of two reports of one choice differ. Both are the frontend's clock: what lies between is
/// the time from its decision to its publishing or logging it, under load some tens of milliseconds.
pub(super) const WINDOW_MS: u64 = 1_000;
/// A line that names the request follows the line of its choice, which does not, within this time. Of several choices
/// that such a line may follow, it follows the first: the router answers in the order in which it chose.
pub(in crate::routing) const FOLLOWS_MS: u64 = 50;
/// Reports that give way to each other at one arrival. Each is nearer to its choice than the one before it.
const MAX_MOVES: usize = 32;

/// A report that gave way to a nearer one.
struct Displaced {
    mark: Mark,
    pool: PoolIx,
    is_query: bool,
    slots: Slots,
}

impl Displaced {
    fn key(&self) -> CorrelationKey<'static> {
        let Self { mark, pool, is_query, .. } = *self;
        CorrelationKey {
            source: mark.source,
            time: mark.time,
            is_query,
            worker: mark.worker,
            pool,
            role: None,
            request_id: None,
            http_id: None,
            overlap_blocks: mark.overlap_blocks,
            isl_blocks: mark.isl_blocks,
        }
    }
}

impl RequestBook {
    /// The only choice of `worker` within a time that no request is known of becomes that of a request: its own lines do not
    /// name it otherwise.
    pub(in crate::routing) fn name_only(
        &mut self,
        worker: WorkerIx,
        (from, to): (Millis, Millis),
        request_id: &str,
        received_ms: Millis,
    ) -> Option<DecisionId> {
        let (from, to) = (Micros::of(from), Micros::of(to).plus_ms(1).before());
        let fits = |part: &RequestPart| {
            !part.has_id() && part.marks.iter().any(|mark| (from..=to).contains(&mark.time.at))
        };
        let near = self.near(worker, from, to);
        let mut fitting = near.into_iter().filter(|&id| self.part(id).is_some_and(fits));
        let (only, None) = (fitting.next()?, fitting.next()) else { return None };
        if let Some(part) = self.part_mut(only)
            && let Some(mark) = part.marks.iter_mut().min_by_key(|mark| mark.time.at)
        {
            mark.has_id = true;
        }
        self.name(only, Some(request_id), None, received_ms);
        self.changed.insert(only);
        Some(only)
    }

    /// Choices of a worker that began within a time, or so near to it that a report of theirs may lie in it.
    fn near(&self, worker: WorkerIx, from: Micros, to: Micros) -> Vec<DecisionId> {
        let Some(of_worker) = self.by_choice.get(&worker) else { return Vec::new() };
        let (from, to) = (from.minus_ms(WINDOW_MS), to.plus_ms(WINDOW_MS));
        of_worker.range((from, DecisionId(0))..=(to, DecisionId(u64::MAX))).map(|(_, id)| *id).collect()
    }

    /// How far apart the times of two reports of one choice are, in microseconds.
    fn apart(&self, one: ReportTime, other: ReportTime) -> u64 {
        match (one.is_received, other.is_received) {
            (true, false) => one.at.0.abs_diff(other.at.0.saturating_add(self.delay_us)),
            (false, true) => other.at.0.abs_diff(one.at.0.saturating_add(self.delay_us)),
            _ => one.at.apart(other.at),
        }
    }

    /// How near a report is to what other sources reported of a choice; `None`: it cannot be about it.
    fn nearness(&self, part: &RequestPart, key: &CorrelationKey<'_>) -> Option<u64> {
        let others = || part.marks.iter().filter(|mark| mark.source != key.source);
        let agree = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
        let agrees = others().all(|mark| {
            agree(mark.overlap_blocks, key.overlap_blocks) && agree(mark.isl_blocks, key.isl_blocks)
        });
        let is_near = others().any(|mark| mark.time.at.apart(key.time.at) <= WINDOW_MS * 1_000);
        if !agrees || !is_near {
            return None;
        }
        others().map(|mark| self.apart(mark.time, key.time)).min()
    }

    /// The choice that a report without a known id is about, by its time.
    pub(super) fn join_by_time(&mut self, key: &CorrelationKey<'_>) -> Option<DecisionId> {
        let (found, is_only) = self.nearest(key)?;
        if is_only {
            self.learn_delay(found, key);
        }
        // A later line of a choice displaces no line of it.
        if !key.is_later_line() {
            let displaced = self.displace(found, key.source);
            // It has the place before the displaced one looks for another.
            if let Some(part) = self.part_mut(found).filter(|part| part.mark(key.source).is_none()) {
                part.marks.push(key.mark());
            }
            self.rejoin_displaced(displaced);
        }
        Some(found)
    }

    /// The nearest choice that a report may be about, and whether it is the only one.
    fn nearest(&self, key: &CorrelationKey<'_>) -> Option<(DecisionId, bool)> {
        let has_id = key.has_id();
        let is_later_line = key.is_later_line();
        let mut best: Option<((u8, u64, Micros, DecisionId), DecisionId)> = None;
        let mut count = 0;
        for id in self.near(key.worker, key.time.at, key.time.at) {
            let Some(part) = self.part(id) else { continue };
            if (part.has_id() && (has_id || key.is_query)) || (part.is_query && has_id && !is_later_line) {
                continue;
            }
            let own = part.mark(key.source);
            let begun = part.marks.iter().map(|mark| mark.time.at).min().unwrap_or_default();
            if is_later_line && let Some(own) = own {
                // The line of the choice came before it in the same log.
                let agrees = own.overlap_blocks.is_none()
                    || key.overlap_blocks.is_none()
                    || own.overlap_blocks == key.overlap_blocks;
                let apart = own.time.at.apart(key.time.at);
                if own.has_id || !agrees || apart > WINDOW_MS * 1_000 {
                    continue;
                }
                count += 1;
                let follows = own.time.at <= key.time.at && apart <= FOLLOWS_MS * 1_000;
                let rank = if follows { (0, own.time.at.0, begun, id) } else { (1, apart, begun, id) };
                if best.is_none_or(|(known, _)| rank < known) {
                    best = Some((rank, id));
                }
                continue;
            }
            let Some(apart) = self.nearness(part, key) else { continue };
            if let Some(own) = own {
                // Another report of the source stands there. It gives way to a nearer one, if its own source does not name it.
                let of_own = CorrelationKey {
                    time: own.time,
                    overlap_blocks: own.overlap_blocks,
                    isl_blocks: own.isl_blocks,
                    ..*key
                };
                let known = self.nearness(part, &of_own).unwrap_or(u64::MAX);
                if own.has_id || has_id || (known, own.time.at) <= (apart, key.time.at) {
                    continue;
                }
            }
            count += 1;
            let rank = (1, apart, begun, id);
            if best.is_none_or(|(known, _)| rank < known) {
                best = Some((rank, id));
            }
        }
        best.map(|(_, id)| (id, count == 1))
    }

    fn learn_delay(&mut self, id: DecisionId, key: &CorrelationKey<'_>) {
        let other = self.part(id).and_then(|part| {
            part.marks.iter().find(|mark| mark.time.is_received != key.time.is_received).map(|mark| mark.time)
        });
        let Some(other) = other else { return };
        let (received, decided) =
            if key.time.is_received { (key.time.at, other.at) } else { (other.at, key.time.at) };
        self.delay_us = received.0.saturating_sub(decided.0);
    }

    /// Takes the report of a source out of a part, if there is one that a nearer one may displace.
    fn displace(&mut self, id: DecisionId, source: DecisionSource) -> Option<Displaced> {
        if matches!(source, DecisionSource::ActiveSequences | DecisionSource::RequestTrace) {
            return None;
        }
        let part = self.part_mut(id)?;
        let at = part.marks.iter().position(|mark| mark.source == source && !mark.has_id)?;
        if part.marks.len() == 1 {
            return None;
        }
        let slots = part.slots.take_choice(source);
        let mark = part.marks.remove(at);
        let displaced = Displaced { mark, pool: part.pool, is_query: part.is_query, slots };
        self.changed.insert(id);
        Some(displaced)
    }

    /// Joins reports anew that gave way to nearer ones.
    fn rejoin_displaced(&mut self, mut displaced: Option<Displaced>) {
        for _ in 0..MAX_MOVES {
            let Some(moved) = displaced.take() else { return };
            let key = moved.key();
            let to = match self.nearest(&key) {
                Some((found, _)) => {
                    displaced = self.displace(found, moved.mark.source);
                    found
                }
                None => self.begin(&key, None, Millis(0)),
            };
            self.put(to, moved.mark, moved.slots);
        }
        // As many moves as this are never needed: what is left begins a choice of its own.
        if let Some(moved) = displaced {
            let to = self.begin(&moved.key(), None, Millis(0));
            self.put(to, moved.mark, moved.slots);
        }
    }

    /// Puts a report that was displaced into another part.
    fn put(&mut self, id: DecisionId, mark: Mark, slots: Slots) {
        self.changed.insert(id);
        let Some(part) = self.part_mut(id) else { return };
        if part.mark(mark.source).is_none() {
            part.marks.push(mark);
        }
        part.slots.hit_rate = part.slots.hit_rate.or(slots.hit_rate);
        part.slots.other_mode = part.slots.other_mode.or(slots.other_mode);
        if part.slots.costs.is_none() {
            part.slots.costs = slots.costs;
        }
        if part.slots.choice.is_none() {
            part.slots.choice = slots.choice;
        }
    }

    /// A message that names its request began a part: reports without an id that were joined with another such message, and are
    /// nearer to this one, are about this one.
    pub(super) fn attract(&mut self, id: DecisionId, key: &CorrelationKey<'_>) {
        for source in [DecisionSource::Log, DecisionSource::KvHitRate] {
            let near = self.near(key.worker, key.time.at, key.time.at);
            let nearer = |other: DecisionId| {
                let part = self.part(other).filter(|part| part.id != id)?;
                let mark = part.mark(source).filter(|mark| !mark.has_id)?;
                let known = part.mark(DecisionSource::ActiveSequences)?;
                let agree = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
                let agrees =
                    agree(mark.overlap_blocks, key.overlap_blocks) && agree(mark.isl_blocks, key.isl_blocks);
                let apart = self.apart(mark.time, key.time);
                let is_nearer = (apart, key.time.at) < (self.apart(mark.time, known.time), known.time.at);
                (agrees && is_nearer && mark.time.at.apart(key.time.at) <= WINDOW_MS * 1_000)
                    .then_some((apart, other))
            };
            let best = near.into_iter().filter_map(nearer).min();
            if let Some((_, from)) = best
                && let Some(Displaced { mark, slots, .. }) = self.displace(from, source)
            {
                self.put(id, mark, slots);
            }
        }
    }
}
