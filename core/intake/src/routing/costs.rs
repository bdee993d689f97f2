//! When the costs of a choice are computed: once the publishers' clocks have passed it, and again when a report changes what they
//! depend on.
//!
//! A decision is recorded at once as far as it is known. Its costs follow when the publishers' clocks have passed its time, or
//! half a second later by our clock. If they had not passed it by then, because messages were late, the costs are computed once
//! more when they do; and if that was in vain, once more half a second later, when the logs were read too.

use std::collections::BTreeMap;

use super::book::{
    Candidates, Computed, PartContext, PromptHashes, Reconstruction, RequestBook, Slots, contradiction,
};
use super::reconstruct::{AFTER_MS, Found, RouterReport};
use radixscope_model::id::{DecisionId, Millis};
use radixscope_model::micros::Micros;
use radixscope_model::record::{Counter, Decision, LogSignal, NotReconstructed, PathEnd, Reuse};
use radixscope_router::Formula;
use radixscope_state::cluster::{Cluster, ProcessState};

/// Longest that a decision waits for what was published before it: half a second by the clock of who receives. Events
/// are rarely later, and who looks on does not want to wait longer.
const WAIT_MS: u64 = 500;
/// Time by publishers' clocks from the first attempt to the second; the third is the last.
const AGAIN_MS: u64 = 100;
/// Neither clock comes so far.
const NEVER: (Micros, Millis) = (Micros(u64::MAX), Millis(u64::MAX));

/// A choice whose costs are to be computed.
#[derive(Clone, Copy, Debug)]
struct Open {
    since_ms: Millis,
    /// When the router decided.
    at: Micros,
    /// Whether all is reported that is reported at the time of a choice.
    is_whole: bool,
    /// Attempted when the publishers' clocks have come so far.
    due: Micros,
    attempts: u32,
    /// There is an outcome, but what it rests on may not have been received yet.
    is_early: bool,
    /// The publishers' clocks have passed it without success: attempted once more then, by our clock. Lines of a log that loads
    /// depend on are read up to half a second after the messages of their time, also in a backlog.
    last_ms: Option<Millis>,
}

impl Open {
    fn new(since_ms: Millis, at: Micros, is_whole: bool) -> Self {
        let due = at.plus_ms(AFTER_MS);
        Self { since_ms, at, is_whole, due, attempts: 0, is_early: false, last_ms: None }
    }

    /// From when on it is attempted by the publishers' clocks, and for the last time by ours.
    fn next(&self) -> (Micros, Millis) {
        match self.last_ms {
            Some(last) => (NEVER.0, last),
            None if self.is_early => (self.due, NEVER.1),
            None => {
                let last = Millis(self.since_ms.0.saturating_add(WAIT_MS));
                (if self.is_whole { self.due } else { NEVER.0 }, last)
            }
        }
    }
}

/// Choices whose costs are to be computed, by decision.
#[derive(Default)]
pub(super) struct Costs {
    open: BTreeMap<DecisionId, Open>,
    /// Latest time that a publisher reported.
    clock: Micros,
    /// The publishers' clock and ours from which on one may be due; `None`: they have to be looked at.
    next: Option<(Micros, Millis)>,
}

/// What an attempt gives.
pub(super) struct Attempt {
    pub(super) report: RouterReport,
    pub(super) path: Option<PathEnd>,
    pub(super) outcome: Result<Found, NotReconstructed>,
    pub(super) reuse: Option<Reuse>,
}

impl Costs {
    /// A publisher reported its time.
    #[inline]
    pub(super) fn pass(&mut self, clock: Micros) {
        self.clock = self.clock.max(clock);
    }

    /// Whether the costs of any choice may be due at `now`.
    #[inline]
    pub(super) fn is_due(&self, now: Millis) -> bool {
        !self.open.is_empty() && self.next.is_none_or(|(clock, ours)| self.clock >= clock || now >= ours)
    }

    /// Whether this choice waits for its costs.
    pub(super) fn waits(&self, id: DecisionId) -> bool {
        self.open.contains_key(&id)
    }

    /// A part changed; `decision` is what is known of it.
    pub(super) fn changed(
        &mut self,
        book: &RequestBook,
        decision: &Decision,
        report: RouterReport,
        now: Millis,
    ) {
        let id = decision.id;
        let Some(part) = book.part(id).filter(|part| part.prompt.is_some()) else { return };
        let is_whole = is_whole(&part.slots);
        let outcome = part.slots.reconstruction.as_ref().map(|of| &of.outcome);
        // What is reported of the chosen worker is what was computed of it anyway.
        let is_confirmed = |known: &RouterReport| {
            known.differs_only_in_reports(&report)
                && matches!(outcome, Some(Ok(computed)) if contradiction(computed, decision).is_none())
        };
        let is_new = part.computed_from.as_ref().is_none_or(|known| *known != report && !is_confirmed(known));
        match self.open.get_mut(&id) {
            Some(open) => {
                open.is_whole |= is_whole;
                if open.at != report.at || (is_new && part.computed_from.is_some()) {
                    *open = Open::new(open.since_ms, report.at, open.is_whole);
                }
            }
            None if is_new => {
                self.open.insert(id, Open::new(now, report.at, is_whole));
            }
            None => {}
        }
        self.next = None;
    }

    /// Other workers could have been chosen than it seemed, or the router ran with other settings: all choices since a time that
    /// still have their prompts are computed once more.
    pub(super) fn reopen(&mut self, book: &RequestBook, since: Micros) {
        for part in book.with_prompts() {
            let Some(report) = part.computed_from.as_ref().filter(|report| report.at >= since) else {
                continue;
            };
            self.open.insert(part.id, Open::new(part.prompt_ms(), report.at, true));
        }
        self.next = None;
    }

    /// Tries every choice that is due at `now`. `attempt` computes its costs, for the reports that it gives too.
    pub(super) fn resolve_due(
        &mut self,
        now: Millis,
        book: &mut RequestBook,
        mut attempt: impl FnMut(&RequestBook, DecisionId, bool) -> Option<Attempt>,
    ) {
        if !self.is_due(now) {
            return;
        }
        let clock = self.clock;
        self.open.retain(|&id, open| {
            let is_passed = clock >= open.at.plus_ms(AFTER_MS);
            let (due, last) = open.next();
            let is_last = now >= last;
            if !is_last && clock < due {
                // Without its prompt it stays as it is.
                return book.part(id).is_some_and(|part| part.prompt.is_some());
            }
            let is_final = is_last || open.is_early;
            let Some(attempt) = attempt(book, id, is_final) else { return false };
            let is_found = attempt.outcome.is_ok();
            if is_found || is_final {
                record(book, id, attempt);
                // What is late by our clock comes within the same time by the publishers' clocks.
                let complete = open.at.plus_ms(if is_found { AFTER_MS } else { WAIT_MS });
                open.is_early = if is_found { !is_passed } else { clock < complete };
                open.due = complete;
                let is_over = is_found || open.is_early || open.last_ms.is_some();
                open.last_ms = (!is_over).then(|| Millis(now.0 + WAIT_MS));
                return open.is_early || open.last_ms.is_some();
            }
            // Events of a slower publisher may still come.
            open.attempts += 1;
            open.due = if open.attempts == 1 { clock.plus_ms(AGAIN_MS) } else { NEVER.0 };
            true
        });
        let next = self.open.values().map(Open::next);
        self.next = Some(next.fold(NEVER, |(clock, ours), (due, last)| (clock.min(due), ours.min(last))));
    }
}

/// Fills the slot of what was computed.
fn record(book: &mut RequestBook, id: DecisionId, attempt: Attempt) {
    let Attempt { report, path, outcome, reuse } = attempt;
    let Some(part) = book.change(id) else { return };
    let worker = part.worker;
    let outcome = outcome.map(|found| {
        let chosen = found.candidates.iter().find(|candidate| candidate.worker == worker);
        let (overlap_blocks, cost) =
            chosen.map_or((0, f64::NAN), |of| (u64::from(of.overlap_blocks), of.cost));
        Computed {
            overlap_blocks,
            cost,
            formula: found.formula,
            prefill_factor: found.prefill_factor,
            candidates: Candidates::Here(found.candidates.into()),
        }
    });
    let count = outcome.as_ref().map_or(0, |computed| computed.candidates.len());
    part.computed_from = Some(report);
    let is_known = part.slots.reconstruction.as_ref().is_some_and(|of| of.outcome.is_ok());
    if is_known && matches!(outcome, Err(NotReconstructed::State | NotReconstructed::Loads)) {
        // What was computed while the state of that time was known stands.
        return;
    }
    let known = part.slots.reconstruction.as_ref();
    let path = path.or_else(|| known.and_then(|of| of.path));
    let reuse = reuse.or_else(|| known.and_then(|of| of.reuse));
    part.slots.reconstruction = Some(Reconstruction { path, outcome, reuse });
    book.count_candidates(id, count);
}

/// Whether all is reported that is reported at the time of a choice: a log's line of the choice leaves the overlap to the line that
/// follows.
fn is_whole(slots: &Slots) -> bool {
    slots.sequence.is_some() || slots.dispatched.is_some() || slots.routed.is_some()
}

/// What the costs of a choice depend on, by what is reported of it. `None`: no report contains when it was made. `are_keyed`: whether
/// hashes in the messages of its pool are not those of blocks.
pub(super) fn report(
    slots: &Slots,
    prompt: &PromptHashes,
    decision: &Decision,
    (context, are_keyed): (&PartContext<'_>, bool),
    cluster: &Cluster,
) -> Option<RouterReport> {
    let logged = slots.choice.map(|choice| choice.time);
    let sequence = slots.sequence.as_ref();
    let traced = || slots.trace.and_then(|of| of.chosen_at());
    let traced_costs = context.traced_costs;
    let time = logged.or(sequence.map(|of| of.time)).or(slots.dispatched.map(|of| of.time));
    let time = time.or(traced_costs.map(|costs| costs.time));
    let at = time.map(|time| time.at).or_else(traced)?;
    let by_message = || sequence.is_some_and(|of| of.isl_tokens.is_some()).then_some(Formula::A);
    let names_blocks = sequence.is_some_and(|of| of.full_blocks.is_some());
    Some(RouterReport {
        decision: decision.id,
        worker: decision.worker,
        at,
        is_logged: logged.is_some() || sequence.is_none(),
        isl_tokens: decision.isl_tokens,
        block_size_tokens: decision.block_size_tokens,
        overlap_blocks: decision.overlap_blocks,
        // As the line has it: a first block in host memory somewhere changes no earlier choice.
        lower_tier_blocks: slots.choice.and_then(|of| of.lower).map(|of| of.host.saturating_add(of.disk)),
        logit: decision.logit,
        // Dynamo 0.8 to 1.1 reports the length in its message, later versions do not.
        formula: slots.costs.as_ref().map(|costs| costs.formula).or_else(by_message),
        is_by_cost: decision.is_by_cost(),
        is_traced: prompt.are_of_trace() && !context.was_named,
        predicts: !context.ignores_cache && predicts(cluster),
        has_shared_cache: !context.ignores_cache && has_shared_cache(cluster),
        traced_costs: traced_costs.map_or(0, |costs| costs.candidates.len()),
        looked_up: context.looked_up(slots).filter(|&looked_up| looked_up < at).unwrap_or(at),
        is_named: context.ignores_cache || (names_blocks && !are_keyed) || prompt.are_public(),
    })
}

/// Whether a router counts blocks as cached that it expects.
fn predicts(cluster: &Cluster) -> bool {
    cluster.sign(|sign| matches!(sign, LogSignal::PredictsOnRoute { .. })).is_some()
}

/// Whether a router counts blocks of a shared cache.
fn has_shared_cache(cluster: &Cluster) -> bool {
    let looked_up = |process: &ProcessState| process.counter_value(Counter::SharedCacheLookups);
    cluster.processes().iter().any(|process| looked_up(process).is_some_and(|lookups| lookups > 0.0))
}
