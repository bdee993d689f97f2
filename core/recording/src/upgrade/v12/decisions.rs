//! Decisions up to version 12: a record of one, or of its progress, was a patch with what one source reported, and the state merged
//! them by priorities. That rule is kept here as it was, so that old files show whole decisions. Must not know the file.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;

use radixscope_model::formula::Formula;
use radixscope_model::id::{DecisionId, Millis, PoolIx, Seq, WorkerIx};
use radixscope_model::record::{
    self, Arithmetic, Candidate, Completeness, DecisionSource, DecisionSources, NotReconstructed, PathEnd,
    Progress, RoutingMode, same_cost,
};
use radixscope_state::cluster::{MAX_CANDIDATES, MAX_DECISIONS};

use super::super::v13::EntryV14;

/// A decision without the set of its sources.
#[derive(Deserialize)]
pub(super) struct Decision {
    id: DecisionId,
    worker: WorkerIx,
    source: DecisionSource,
    decided_ms: Option<Millis>,
    router: Option<u64>,
    request_id: Option<String>,
    isl_tokens: Option<u64>,
    isl_blocks: Option<u64>,
    block_size_tokens: Option<u32>,
    overlap_blocks: Option<u64>,
    lower_tier_blocks: Option<u64>,
    logit: Option<f64>,
    chosen_cost: Option<f64>,
    formula: Option<Formula>,
    prefill_factor: Option<f64>,
    tied: bool,
    candidates: Vec<Candidate>,
    completeness: Completeness,
    not_reconstructed: Option<NotReconstructed>,
    path: Option<PathEnd>,
    dispatched: Option<bool>,
    adapter: Option<String>,
    other_part: Option<DecisionId>,
    mode: Option<RoutingMode>,
}

impl Decision {
    /// The same in the present form, of these sources.
    pub(super) fn next(self, sources: DecisionSources) -> record::Decision {
        let Self { id, worker, source, decided_ms, router, request_id, isl_tokens, isl_blocks, .. } = self;
        let Self { block_size_tokens, overlap_blocks, lower_tier_blocks, logit, chosen_cost, .. } = self;
        let Self { formula, prefill_factor, tied, candidates, completeness, not_reconstructed, .. } = self;
        let Self { path, dispatched, adapter, other_part, mode, .. } = self;
        record::Decision {
            id,
            worker,
            source,
            sources,
            decided_ms,
            router,
            request_id,
            isl_tokens,
            isl_blocks,
            block_size_tokens,
            overlap_blocks,
            lower_tier_blocks,
            logit,
            chosen_cost,
            formula,
            prefill_factor,
            tied,
            candidates,
            completeness,
            not_reconstructed,
            path,
            dispatched,
            adapter,
            other_part,
            mode,
            session: None,
            trace_id: None,
            decided_by: None,
            prefill_bypassed: None,
            arithmetic: Arithmetic::Dynamo,
            scores: None,
        }
    }

    /// A patch: its only source is the one that it is of.
    pub(super) fn patch(self) -> record::Decision {
        let sources = self.source.into();
        self.next(sources)
    }
}

/// A decision as a state retained it.
#[derive(Deserialize)]
pub(super) struct Entry {
    seq: Seq,
    at_ms: Millis,
    decision: Decision,
    progress: Progress,
    pool: PoolIx,
    ignores_cache: bool,
    partial: bool,
    sources: DecisionSources,
    forgotten: bool,
}

impl Entry {
    /// The same in the present form.
    pub(super) fn next(self) -> EntryV14 {
        let Self { seq, at_ms, decision, progress, pool, ignores_cache, partial, sources, forgotten } = self;
        let decision = decision.next(sources);
        EntryV14 {
            seq,
            at_ms,
            decision,
            progress,
            pool,
            ignores_cache,
            reuse: None,
            client: None,
            partial,
            forgotten,
        }
    }
}

/// The decisions that a state retained, as far as patches are merged with them.
#[derive(Clone, Default)]
pub(super) struct Merged {
    /// Shared, because a reader's place in a file is copied.
    latest: VecDeque<Arc<Known>>,
    /// Candidates of all of them.
    candidates: usize,
    /// Those before this place have no candidates any more.
    forgotten_to: usize,
}

#[derive(Clone)]
struct Known {
    decision: record::Decision,
    progress: Progress,
}

impl Merged {
    /// Begins with what a keyframe has, in its order.
    pub(super) fn of(entries: &VecDeque<EntryV14>) -> Self {
        let known =
            |entry: &EntryV14| Arc::new(Known { decision: entry.decision.clone(), progress: entry.progress });
        let candidates = entries.iter().map(|entry| entry.decision.candidates.len()).sum();
        Self { latest: entries.iter().map(known).collect(), candidates, forgotten_to: 0 }
    }

    /// Merges a patch; it becomes the whole. One of a decision that was forgotten stays as it is.
    pub(super) fn decision(&mut self, patch: &mut record::Decision) {
        match self.position(patch.id) {
            Some(at) => {
                let known = Arc::make_mut(&mut self.latest[at]);
                self.candidates -= known.decision.candidates.len();
                complete(&mut known.decision, patch);
                self.candidates += known.decision.candidates.len();
                patch.clone_from(&known.decision);
                self.forgotten_to = self.forgotten_to.min(at);
            }
            None if self.latest.back().is_none_or(|last| last.decision.id < patch.id) => {
                check_against_reports(patch);
                if self.latest.len() == MAX_DECISIONS
                    && let Some(oldest) = self.latest.pop_front()
                {
                    self.candidates -= oldest.decision.candidates.len();
                    self.forgotten_to = self.forgotten_to.saturating_sub(1);
                }
                self.candidates += patch.candidates.len();
                let known = Known { decision: patch.clone(), progress: Progress::default() };
                self.latest.push_back(Arc::new(known));
            }
            None => {}
        }
        while self.candidates > MAX_CANDIDATES && self.forgotten_to < self.latest.len() {
            let known = Arc::make_mut(&mut self.latest[self.forgotten_to]);
            self.candidates -= std::mem::take(&mut known.decision.candidates).len();
            self.forgotten_to += 1;
        }
    }

    /// The same of progress.
    pub(super) fn progress(&mut self, id: DecisionId, patch: &mut Progress) {
        let Some(at) = self.position(id) else { return };
        let known = &mut Arc::make_mut(&mut self.latest[at]).progress;
        let more = *patch;
        fill(&mut known.first_token_ms, more.first_token_ms);
        fill(&mut known.ended_ms, more.ended_ms);
        fill(&mut known.outcome, more.outcome);
        fill(&mut known.ttft_us, more.ttft_us);
        fill(&mut known.queue_us, more.queue_us);
        fill(&mut known.prefill_us, more.prefill_us);
        fill(&mut known.itl_us, more.itl_us);
        fill(&mut known.output_tokens, more.output_tokens);
        fill(&mut known.cached_tokens, more.cached_tokens);
        *patch = *known;
    }

    fn position(&self, id: DecisionId) -> Option<usize> {
        self.latest.binary_search_by_key(&id, |known| known.decision.id).ok()
    }
}

fn fill<T: Copy>(known: &mut Option<T>, more: Option<T>) {
    *known = known.or(more);
}

/// Adds what a source reported to what is known.
fn complete(known: &mut record::Decision, more: &record::Decision) {
    known.sources = known.sources.union(more.sources);
    fill(&mut known.decided_ms, more.decided_ms);
    fill(&mut known.router, more.router);
    if known.request_id.is_none() {
        known.request_id.clone_from(&more.request_id);
    }
    if known.adapter.is_none() {
        known.adapter.clone_from(&more.adapter);
    }
    if is_better_below(known, more) {
        (known.isl_tokens, known.isl_blocks) =
            (more.isl_tokens.or(known.isl_tokens), more.isl_blocks.or(known.isl_blocks));
        known.overlap_blocks = more.overlap_blocks.or(known.overlap_blocks);
        known.lower_tier_blocks = more.lower_tier_blocks.or(known.lower_tier_blocks);
    }
    fill(&mut known.isl_tokens, more.isl_tokens);
    fill(&mut known.isl_blocks, more.isl_blocks);
    fill(&mut known.block_size_tokens, more.block_size_tokens);
    fill(&mut known.overlap_blocks, more.overlap_blocks);
    fill(&mut known.lower_tier_blocks, more.lower_tier_blocks);
    fill(&mut known.logit, more.logit);
    fill(&mut known.chosen_cost, more.chosen_cost);
    fill(&mut known.path, more.path);
    fill(&mut known.dispatched, more.dispatched);
    fill(&mut known.other_part, more.other_part);
    fill(&mut known.mode, more.mode);
    known.tied |= more.tied;
    // What was computed again, with more reports of the router, counts instead of what was computed before.
    let is_computed = more.completeness == Completeness::Reconstructed || more.not_reconstructed.is_some();
    let is_written = known.completeness == Completeness::AllCandidates;
    if more.completeness > known.completeness || (is_computed && !is_written) {
        known.completeness = more.completeness;
        known.candidates.clone_from(&more.candidates);
        (known.formula, known.prefill_factor) = (more.formula, more.prefill_factor);
        known.not_reconstructed = more.not_reconstructed;
    } else {
        fill(&mut known.formula, more.formula);
        fill(&mut known.prefill_factor, more.prefill_factor);
    }
    check_against_reports(known);
}

/// Where the worker held blocks below its device, what messages contain of the prompt's length and of the device rests on what
/// our trees held when they came; the router's log knows it.
fn is_better_below(known: &record::Decision, more: &record::Decision) -> bool {
    let is_below = |of: &record::Decision| of.lower_tier_blocks.is_some_and(|blocks| blocks > 0);
    more.source == DecisionSource::Log && (is_below(known) || is_below(more))
}

/// Costs that were computed do not stand against what the router itself reported of the chosen worker.
fn check_against_reports(decision: &mut record::Decision) {
    if decision.completeness != Completeness::Reconstructed {
        return;
    }
    let chosen = decision.candidates.iter().find(|candidate| candidate.worker == decision.worker);
    let Some(chosen) = chosen else { return };
    let differs =
        if decision.overlap_blocks.is_some_and(|reported| reported != u64::from(chosen.overlap_blocks)) {
            NotReconstructed::Overlap
        } else if decision.logit.is_some_and(|reported| !same_cost(chosen.cost, reported)) {
            NotReconstructed::Cost
        } else {
            return;
        };
    decision.completeness = Completeness::ChosenOnly;
    decision.candidates = Vec::new();
    (decision.formula, decision.prefill_factor) = (None, None);
    decision.not_reconstructed = Some(differs);
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: WorkerIx = WorkerIx(0);

    fn patch(
        id: u64,
        source: DecisionSource,
        change: impl FnOnce(&mut record::Decision),
    ) -> record::Decision {
        let mut patch = record::Decision::new(DecisionId(id), W, source);
        change(&mut patch);
        patch
    }

    fn candidate(cost: f64) -> Candidate {
        Candidate {
            worker: W,
            overlap_blocks: 3,
            host_blocks: 0,
            disk_blocks: 0,
            prefill_blocks: 1.0,
            decode_blocks: 1.0,
            cost,
            tree_size: None,
        }
    }

    #[test]
    fn each_patch_becomes_the_whole_that_the_state_had() {
        let mut merged = Merged::default();
        let mut first = patch(1, DecisionSource::KvHitRate, |of| {
            (of.isl_blocks, of.overlap_blocks) = (Some(9), Some(3));
        });
        merged.decision(&mut first);
        let mut second = patch(1, DecisionSource::Log, |of| {
            (of.isl_blocks, of.logit, of.request_id) = (Some(8), Some(2.5), Some("a".into()));
        });
        merged.decision(&mut second);
        let sources = first.sources.union(second.sources);
        let whole =
            record::Decision { sources, logit: Some(2.5), request_id: Some("a".into()), ..first.clone() };
        assert_eq!(second, whole);
        let mut computed = patch(1, DecisionSource::ActiveSequences, |of| {
            (of.completeness, of.candidates) = (Completeness::Reconstructed, vec![candidate(7.0)]);
        });
        merged.decision(&mut computed);
        assert_eq!(computed.not_reconstructed, Some(NotReconstructed::Cost), "the router reported 2.5");
        assert_eq!((computed.isl_blocks, computed.candidates.len()), (Some(9), 0));
        let mut ended = Progress { ended_ms: Some(Millis(9)), ..Progress::default() };
        merged.progress(DecisionId(1), &mut ended);
        let mut token = Progress { first_token_ms: Some(Millis(4)), ..Progress::default() };
        merged.progress(DecisionId(1), &mut token);
        assert_eq!((token.first_token_ms, token.ended_ms), (Some(Millis(4)), Some(Millis(9))));
    }

    #[test]
    fn what_a_state_had_forgotten_is_left_as_it_is() {
        let mut merged = Merged::default();
        for id in 1..=MAX_DECISIONS as u64 + 1 {
            merged.decision(&mut patch(id, DecisionSource::Log, |of| {
                (of.completeness, of.candidates) =
                    (Completeness::AllCandidates, vec![candidate(1.0); MAX_CANDIDATES / MAX_DECISIONS + 1]);
            }));
        }
        assert_eq!(merged.latest.len(), MAX_DECISIONS);
        assert!(merged.candidates <= MAX_CANDIDATES);
        let mut old = patch(1, DecisionSource::KvHitRate, |_| {});
        merged.decision(&mut old);
        assert_eq!(old, patch(1, DecisionSource::KvHitRate, |_| {}));
        let mut second = patch(2, DecisionSource::KvHitRate, |_| {});
        merged.decision(&mut second);
        assert_eq!((second.completeness, second.candidates.len()), (Completeness::AllCandidates, 0));
    }
}
