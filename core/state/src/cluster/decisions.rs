//! The latest routing decisions, bounded, and totals over all of them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::hash;
use crate::per_worker::PerWorker;
use crate::redact::{self, Pseudonyms};
use radixscope_model::id::{DecisionId, Millis, PoolIx, Seq, WorkerIx};
use radixscope_model::record::{
    Candidate, ClientMeasured, Completeness, Decision, DecisionSource, Progress, Reuse, RoutingMode,
    ScoredCandidate,
};

/// Decisions kept one by one; older ones live on in the totals.
pub const MAX_DECISIONS: usize = 10_000;
/// Candidates kept over all decisions. With more than 26 workers the oldest decisions lose theirs before they go.
pub const MAX_CANDIDATES: usize = 1 << 18;

/// A decision as it is retained: the last record of it, with what the state knows of its pool and its tree.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DecisionEntry {
    /// The first record of it.
    pub seq: Seq,
    /// When it was first received.
    pub at_ms: Millis,
    /// What was decided.
    pub decision: Decision,
    /// How the request went on.
    pub progress: Progress,
    /// The pool that was chosen from.
    pub pool: PoolIx,
    /// Cached blocks were not considered: a choice among decode workers, or by a mode that looks at no cache.
    pub ignores_cache: bool,
    /// How much of the prompt was cached where; `None`: not computed, or not yet.
    pub reuse: Option<Reuse>,
    /// What its client measured. Of two choices for a request that of the response has it.
    pub client: Option<ClientMeasured>,
    /// What was computed here of the candidates rests on a tree that lacked blocks: workers may have held more than it shows.
    pub partial: bool,
    /// Candidates were known, but are no longer kept.
    forgotten: bool,
    /// Hash of all of the above. Not written: it follows from them.
    #[serde(skip)]
    hash: u64,
}

impl DecisionEntry {
    /// Blocks of the prompt that the chosen worker held: by the router's own count, else as reconstructed here from a tree that
    /// lacked no blocks.
    pub fn overlap_blocks(&self) -> Option<u64> {
        let reconstructed =
            || self.chosen().filter(|_| !self.partial).map(|candidate| u64::from(candidate.overlap_blocks));
        self.decision.overlap_blocks.or_else(reconstructed)
    }

    /// Blocks of the prompt that the chosen worker held in lower tiers, beyond those on its device; 0 where no source tells of
    /// any.
    pub fn lower_tier_blocks(&self) -> u64 {
        let reconstructed = || self.chosen().map(|c| u64::from(c.host_blocks) + u64::from(c.disk_blocks));
        self.decision.lower_tier_blocks.or_else(reconstructed).unwrap_or(0)
    }

    /// Blocks of the prompt that the chosen worker held, on its device and below.
    pub fn held_blocks(&self) -> Option<u64> {
        Some(self.overlap_blocks()?.saturating_add(self.lower_tier_blocks()))
    }

    /// Share of the prompt's blocks that the chosen worker held, 0 … 1; `None` where either number is unknown, the prompt
    /// has no block, or what workers hold did not matter.
    pub fn overlap_share(&self) -> Option<f64> {
        if self.ignores_cache {
            return None;
        }
        let isl = self.decision.isl_blocks.filter(|&isl| isl > 0)?;
        Some(self.held_blocks()? as f64 / isl as f64)
    }

    /// The chosen worker among the candidates.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.decision.candidates.iter().find(|candidate| candidate.worker == self.decision.worker)
    }

    /// Whether `source` reported something of it.
    pub fn is_from(&self, source: DecisionSource) -> bool {
        self.decision.sources.contains(source)
    }

    /// Every source that reported something of it.
    pub fn sources(&self) -> impl Iterator<Item = DecisionSource> {
        self.decision.sources.iter()
    }

    /// Whether candidates were known that are no longer kept, see [`MAX_CANDIDATES`].
    pub fn candidates_forgotten(&self) -> bool {
        self.forgotten
    }

    /// Whether the router is known to choose by a mode that looks at no cache.
    pub fn has_other_mode(&self) -> bool {
        has_other_mode(&self.decision)
    }

    /// Whether the cost decided, as far as is known: not so where a report shows that something else did.
    pub fn is_by_cost(&self) -> bool {
        self.decision.is_by_cost()
    }

    /// When the router decided: by its own clock where that is known, else when it was received.
    pub fn decided_ms(&self) -> Millis {
        self.decision.decided_ms.unwrap_or(self.at_ms)
    }

    /// From decision to first output token in milliseconds, and whether the frontend measured it itself; else it is the
    /// difference of two times that were reported.
    pub fn time_to_first_token_ms(&self) -> Option<(f64, bool)> {
        let measured = self.progress.ttft_us.map(|us| (us as f64 / 1_000.0, true));
        let reported = || self.progress.first_token_ms.map(|at| (at.since(self.decided_ms()) as f64, false));
        measured.or_else(reported)
    }

    /// Takes the whole that is known now in place of what was known before.
    fn replace(&mut self, new: &Decision, is_partial: bool) {
        let known = std::mem::replace(&mut self.decision, new.clone());
        let decision = &mut self.decision;
        if self.forgotten && candidates_of(decision) == 0 {
            // What the forgotten candidates showed.
            decision.overlap_blocks = decision.overlap_blocks.or(known.overlap_blocks);
            decision.lower_tier_blocks = decision.lower_tier_blocks.or(known.lower_tier_blocks);
        } else {
            self.forgotten = false;
        }
        self.ignores_cache = ignores_cache(&self.decision, self.ignores_cache);
        let is_computed_anew =
            !self.forgotten && is_computed(new) && !is_same_computation(&known, &self.decision);
        if is_computed_anew {
            self.partial = is_partial && !self.ignores_cache;
        }
        if self.decision.completeness == Completeness::AllCandidates {
            self.partial = false;
        }
    }

    fn rehash(&mut self) {
        self.hash = hash(&*self);
    }
}

/// Whether candidates were computed here from the tree, be it in vain.
pub(super) fn is_computed(decision: &Decision) -> bool {
    decision.completeness == Completeness::Reconstructed || decision.not_reconstructed.is_some()
}

/// Whether what was computed here is the same in both.
fn is_same_computation(one: &Decision, other: &Decision) -> bool {
    one.completeness == other.completeness
        && one.not_reconstructed == other.not_reconstructed
        && one.candidates == other.candidates
}

/// Whether what workers hold did not matter, if choices in its pool usually ignore it or do not: a decode worker that computes the
/// prompt uses its own cache.
fn ignores_cache(decision: &Decision, usually: bool) -> bool {
    has_other_mode(decision) || (usually && decision.prefill_bypassed != Some(true))
}

/// Whether the router chooses by a mode that looks at no cache.
fn has_other_mode(decision: &Decision) -> bool {
    decision.mode.is_some_and(|mode| mode != RoutingMode::Kv)
}

/// Sums over decisions. Blocks and rates are of requests that were dispatched, as far as that is known: routers leave
/// queries that run nothing out of their own hit rate too.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DecisionTotals {
    /// Decisions.
    pub count: u64,
    /// Decisions with both numbers: prompt blocks and what the chosen worker held of them.
    pub with_blocks: u64,
    /// Prompt blocks, of decisions with both numbers.
    pub isl_blocks: u64,
    /// Blocks the chosen workers held, of decisions with both numbers.
    pub overlap_blocks: u64,
    /// Sum of the hit rates of decisions with both numbers.
    pub hit_rates: f64,
}

impl DecisionTotals {
    /// Adds a decision.
    pub fn add(&mut self, decided: &DecisionEntry) {
        self.count += 1;
        self.replace(None, blocks(decided));
    }

    fn replace(&mut self, before: Option<(u64, u64)>, after: Option<(u64, u64)>) {
        let of = |blocks: Option<(u64, u64)>| {
            let (isl, overlap) = blocks.unwrap_or_default();
            let rate = if isl > 0 { overlap as f64 / isl as f64 } else { 0.0 };
            (u64::from(blocks.is_some()), isl, overlap, rate)
        };
        let (before, after) = (of(before), of(after));
        let changed = |sum: u64, before: u64, after: u64| sum.saturating_sub(before).saturating_add(after);
        self.with_blocks = changed(self.with_blocks, before.0, after.0);
        self.isl_blocks = changed(self.isl_blocks, before.1, after.1);
        self.overlap_blocks = changed(self.overlap_blocks, before.2, after.2);
        self.hit_rates += after.3 - before.3;
    }

    /// Overlap over prompt blocks, 0 … 1; `None` while no prompt block was counted.
    pub fn overlap_share(&self) -> Option<f64> {
        (self.isl_blocks > 0).then(|| self.overlap_blocks as f64 / self.isl_blocks as f64)
    }

    /// Mean over decisions of what the chosen worker held of the prompt, 0 … 1, as routers' own histograms have it: a
    /// short prompt counts as much as a long one. `None` while no prompt block was counted.
    pub fn mean_hit_rate(&self) -> Option<f64> {
        (self.isl_blocks > 0).then(|| self.hit_rates / self.with_blocks as f64)
    }

    /// What is known of prompts no longer counts.
    fn forget_blocks(&mut self) {
        *self = Self { count: self.count, ..Self::default() };
    }

    /// Takes another sum away that is part of this one.
    fn take_away(&mut self, part: &Self) {
        self.count = self.count.saturating_sub(part.count);
        self.with_blocks = self.with_blocks.saturating_sub(part.with_blocks);
        self.isl_blocks = self.isl_blocks.saturating_sub(part.isl_blocks);
        self.overlap_blocks = self.overlap_blocks.saturating_sub(part.overlap_blocks);
        self.hit_rates -= part.hit_rates;
    }

    /// Both sums.
    pub fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            with_blocks: self.with_blocks + other.with_blocks,
            isl_blocks: self.isl_blocks.saturating_add(other.isl_blocks),
            overlap_blocks: self.overlap_blocks.saturating_add(other.overlap_blocks),
            hit_rates: self.hit_rates + other.hit_rates,
        }
    }
}

/// The candidates that another router than Dynamo's scored.
fn scored(decision: &Decision) -> &[ScoredCandidate] {
    decision.scores.as_ref().map_or(&[], |scores| &scores.candidates)
}

/// Candidates of a decision, of whichever router.
fn candidates_of(decision: &Decision) -> usize {
    decision.candidates.len() + scored(decision).len()
}

/// Prompt and overlap of a decision with both, if the prompt has a block and the request was not a query alone.
fn blocks(decided: &DecisionEntry) -> Option<(u64, u64)> {
    let is_query = decided.decision.dispatched == Some(false);
    let counts = !is_query && !decided.ignores_cache;
    let isl = decided.decision.isl_blocks.filter(|&isl| isl > 0 && counts)?;
    Some((isl, decided.held_blocks()?))
}

/// Decisions and totals.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Decisions {
    latest: VecDeque<DecisionEntry>,
    totals: DecisionTotals,
    per_worker: PerWorker<DecisionTotals>,
    /// By [`PoolIx`].
    per_pool: Vec<DecisionTotals>,
    /// Sum of the hashes of `latest`: hashing ten thousand decisions anew every second would cost more than all else.
    #[serde(skip)]
    digest: u64,
    /// Candidates of all of `latest`.
    #[serde(skip)]
    candidates: usize,
    /// Decisions before this one have no candidates that could be forgotten.
    #[serde(skip)]
    forgotten_to: usize,
}

impl Decisions {
    /// Adds a decision, or replaces the one with the same id.
    /// `pool`: which was chosen from, and whether its choices ignore what workers hold.
    /// `is_partial`: whether that pool's tree lacked blocks when the router decided.
    pub(super) fn put(
        &mut self,
        seq: Seq,
        at_ms: Millis,
        new: &Decision,
        pool: (PoolIx, bool),
        is_partial: bool,
    ) {
        if let Some(at) = self.position(new.id) {
            self.change(at, |decided| decided.replace(new, is_partial));
            self.forgotten_to = self.forgotten_to.min(at);
        } else if self.latest.back().is_none_or(|last| last.decision.id < new.id) {
            let ignores_cache = ignores_cache(new, pool.1);
            self.push(DecisionEntry {
                seq,
                at_ms,
                decision: new.clone(),
                progress: Progress::default(),
                pool: pool.0,
                ignores_cache,
                reuse: None,
                client: None,
                partial: is_partial && is_computed(new) && !ignores_cache,
                forgotten: false,
                hash: 0,
            });
        }
        self.forget_candidates();
    }

    /// Replaces the progress of a request. Progress of a decision that is no longer retained is ignored.
    pub(super) fn progress(&mut self, id: DecisionId, progress: &Progress) {
        if let Some(at) = self.position(id) {
            self.change(at, |decided| decided.progress = *progress);
        }
    }

    /// Replaces what is known of how much of a prompt could have been used again, of a decision that is retained.
    pub(super) fn reuse(&mut self, reuse: &Reuse) {
        if let Some(at) = self.position(reuse.decision) {
            self.change(at, |decided| decided.reuse = Some(*reuse));
        }
    }

    /// Joins what a client measured with a decision that is retained, and takes it from the other choice for the request. Gives
    /// whether it is the first of its request; `None`: the decision is not retained.
    pub(super) fn client(&mut self, id: DecisionId, measured: &ClientMeasured) -> Option<bool> {
        let at = self.position(id)?;
        let entry = self.latest.get(at)?;
        let (had, other) = (entry.client.is_some(), entry.decision.other_part);
        self.change_quietly(at, |decided| decided.client = Some(*measured));
        let other = other.and_then(|other| self.position(other));
        let other = other.filter(|&at| self.latest.get(at).is_some_and(|entry| entry.client.is_some()));
        if let Some(at) = other {
            self.change_quietly(at, |decided| decided.client = None);
        }
        Some(!had && other.is_none())
    }

    fn position(&self, id: DecisionId) -> Option<usize> {
        self.latest.binary_search_by_key(&id, |decided| decided.decision.id).ok()
    }

    fn push(&mut self, mut decided: DecisionEntry) {
        self.totals.add(&decided);
        self.per_worker.of(decided.decision.worker).add(&decided);
        self.of_pool(decided.pool).add(&decided);
        if self.latest.len() == MAX_DECISIONS
            && let Some(oldest) = self.latest.pop_front()
        {
            self.digest = self.digest.wrapping_sub(oldest.hash);
            self.candidates -= candidates_of(&oldest.decision);
            self.forgotten_to = self.forgotten_to.saturating_sub(1);
        }
        decided.rehash();
        self.digest = self.digest.wrapping_add(decided.hash);
        self.candidates += candidates_of(&decided.decision);
        self.latest.push_back(decided);
    }

    /// Changes one decision and everything that is summed over decisions.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut DecisionEntry)) {
        let Some(decided) = self.latest.get_mut(at) else { return };
        let (hash, counted, candidates) = (decided.hash, blocks(decided), candidates_of(&decided.decision));
        change(decided);
        decided.rehash();
        self.digest = self.digest.wrapping_sub(hash).wrapping_add(decided.hash);
        self.candidates = self.candidates - candidates + candidates_of(&decided.decision);
        let (worker, pool, now) = (decided.decision.worker, decided.pool, blocks(decided));
        if now != counted {
            self.totals.replace(counted, now);
            self.of_pool(pool).replace(counted, now);
            // One that departed has no totals of its own any more.
            if let Some(of_worker) = self.per_worker.get_mut(worker) {
                of_worker.replace(counted, now);
            }
        }
    }

    /// From now on choices among these workers look at caches, or do not. Of decisions that are no longer kept one by one
    /// nothing counts any more.
    pub(super) fn set_ignores_cache(&mut self, pool: PoolIx, workers: &[WorkerIx], ignores: bool) {
        for at in 0..self.latest.len() {
            if self.latest[at].pool == pool && self.latest[at].ignores_cache != ignores {
                self.change(at, |decided| {
                    decided.ignores_cache = ignores_cache(&decided.decision, ignores);
                });
            }
        }
        if ignores {
            for &worker in workers {
                if let Some(of_worker) = self.per_worker.get_mut(worker) {
                    of_worker.forget_blocks();
                }
            }
            let before = DecisionTotals { count: 0, ..*self.of_pool(pool) };
            self.of_pool(pool).forget_blocks();
            self.totals.take_away(&before);
        }
    }

    /// A worker turns out to be of another pool, whose choices ignore what workers hold or do not.
    pub(super) fn move_worker(&mut self, worker: WorkerIx, from: PoolIx, to: (PoolIx, bool)) {
        let Some(of_worker) = self.per_worker.get(worker).copied() else { return };
        self.of_pool(from).take_away(&of_worker);
        let of_pool = self.of_pool(to.0);
        *of_pool = of_pool.plus(of_worker);
        for at in 0..self.latest.len() {
            if self.latest[at].decision.worker == worker {
                self.change_quietly(at, |decided| decided.pool = to.0);
                self.change(at, |decided| {
                    decided.ignores_cache = ignores_cache(&decided.decision, to.1);
                });
            }
        }
    }

    /// Another pool takes the place.
    pub(super) fn begin_pool(&mut self, pool: PoolIx) {
        *self.of_pool(pool) = DecisionTotals::default();
    }

    fn of_pool(&mut self, pool: PoolIx) -> &mut DecisionTotals {
        if self.per_pool.len() <= pool.at() {
            self.per_pool.resize(pool.at() + 1, DecisionTotals::default());
        }
        &mut self.per_pool[pool.at()]
    }

    /// Changes what no sum depends on.
    fn change_quietly(&mut self, at: usize, change: impl FnOnce(&mut DecisionEntry)) {
        let Some(decided) = self.latest.get_mut(at) else { return };
        self.digest = self.digest.wrapping_sub(decided.hash);
        change(decided);
        decided.rehash();
        self.digest = self.digest.wrapping_add(decided.hash);
    }

    /// Calls `named` with every worker that a retained decision names.
    pub(super) fn each_worker(&self, named: &mut dyn FnMut(WorkerIx)) {
        for DecisionEntry { decision, reuse, .. } in &self.latest {
            named(decision.worker);
            decision.candidates.iter().for_each(|candidate| named(candidate.worker));
            scored(decision).iter().for_each(|candidate| named(candidate.worker));
            reuse.and_then(|reuse| reuse.holder).into_iter().for_each(&mut *named);
            reuse.and_then(|reuse| reuse.gone).into_iter().for_each(|gone| named(gone.worker));
        }
    }

    fn forget_candidates(&mut self) {
        while self.candidates > MAX_CANDIDATES && self.forgotten_to < self.latest.len() {
            let at = self.forgotten_to;
            self.forgotten_to += 1;
            if candidates_of(&self.latest[at].decision) > 0 {
                self.change(at, |decided| {
                    decided.forgotten = true;
                    decided.decision.overlap_blocks = decided.overlap_blocks();
                    decided.decision.lower_tier_blocks = Some(decided.lower_tier_blocks());
                    decided.decision.candidates = Vec::new();
                    if let Some(scores) = &mut decided.decision.scores {
                        scores.candidates = Vec::new();
                    }
                });
            }
        }
    }

    /// Equal for equal decisions.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    /// Replaces names and ids.
    pub(super) fn redact(&mut self, names: &mut dyn Pseudonyms) {
        self.latest.iter_mut().for_each(|decided| redact::decision(&mut decided.decision, names));
        self.restored();
    }

    /// Works out what is not written into a snapshot.
    pub(super) fn restored(&mut self) {
        self.latest.iter_mut().for_each(DecisionEntry::rehash);
        self.digest = self.latest.iter().fold(0, |sum, decided| sum.wrapping_add(decided.hash));
        self.candidates = self.latest.iter().map(|decided| candidates_of(&decided.decision)).sum();
    }

    /// One decision, if it is still kept.
    pub fn get(&self, id: DecisionId) -> Option<&DecisionEntry> {
        self.latest.get(self.position(id)?)
    }

    /// The latest ones, newest first.
    pub fn newest_first(&self) -> impl DoubleEndedIterator<Item = &DecisionEntry> + ExactSizeIterator {
        self.latest.iter().rev()
    }

    /// The latest ones, newest first, each with how many were taken before it in its pool: its turn, if requests went round.
    pub fn with_turns(&self) -> impl Iterator<Item = (u64, &DecisionEntry)> {
        let mut turns: Vec<u64> = self.per_pool.iter().map(|totals| totals.count).collect();
        self.newest_first().map(move |decided| {
            let turn = turns.get_mut(decided.pool.at());
            let turn = turn.map_or(0, |turn| {
                *turn = turn.saturating_sub(1);
                *turn
            });
            (turn, decided)
        })
    }

    /// The one so many places behind the newest.
    pub fn newest(&self, place: usize) -> Option<&DecisionEntry> {
        self.latest.get(self.latest.len().checked_sub(place + 1)?)
    }

    /// How many are newer than this one; `None` if it is not kept.
    pub fn newer_than(&self, id: DecisionId) -> Option<usize> {
        Some(self.latest.len() - 1 - self.position(id)?)
    }

    /// Sums over all decisions ever received.
    pub fn totals(&self) -> DecisionTotals {
        self.totals
    }

    /// Sums over all decisions ever received for one worker.
    pub fn totals_of(&self, worker: WorkerIx) -> DecisionTotals {
        self.per_worker.get(worker).copied().unwrap_or_default()
    }

    /// Sums over all decisions ever received in one pool.
    pub fn totals_in(&self, pool: PoolIx) -> DecisionTotals {
        self.per_pool.get(pool.at()).copied().unwrap_or_default()
    }

    /// Sums over the decisions of the `window_ms` before `now`, as far as they are kept one by one.
    pub fn window(&self, now: Millis, window_ms: u64) -> DecisionTotals {
        self.window_in(None, now, window_ms)
    }

    /// The same in one pool; `None`: in all of them.
    pub fn window_in(&self, pool: Option<PoolIx>, now: Millis, window_ms: u64) -> DecisionTotals {
        let mut totals = DecisionTotals::default();
        let lately = self.newest_first().take_while(|d| now.since(d.at_ms) <= window_ms);
        for decided in lately.filter(|decided| pool.is_none_or(|pool| decided.pool == pool)) {
            totals.add(decided);
        }
        totals
    }

    /// Totals as the digest of the whole state takes them in.
    pub(super) fn sums(&self) -> (&DecisionTotals, &PerWorker<DecisionTotals>, &[DecisionTotals]) {
        (&self.totals, &self.per_worker, &self.per_pool)
    }
}
