//! A decision as its router saw it: every candidate's inputs, worked out backwards from its recorded terms.

use super::load::LoadFrom;
use super::prompt::same_size;
use super::request::{CandidateRef, Refused, WhatIfRequest};
use super::{WhatIf, WhatIfState};
use crate::counterfactual::{LeftOut, RecordedDecision};
use radixscope_model::id::DecisionId;
use radixscope_model::record::Completeness;
use radixscope_router::{Formula, Load, Overlap, RoutedRequest, RouterSettings, WorkerInput};

impl WhatIf {
    /// Fills in the candidates of a recorded decision. Recorded prefill blocks are what waits there and what of this
    /// prompt has to be computed there; the latter follows from length and overlap.
    pub(super) fn recorded(
        &mut self,
        state: WhatIfState<'_>,
        id: DecisionId,
        question: &WhatIfRequest,
    ) -> Result<RoutedRequest, Refused> {
        let decided = state.cluster.decisions().get(id).ok_or(Refused::NoDecision(id))?;
        let decision = &decided.decision;
        let recorded = RecordedDecision::of(decided).map_err(|why| match why {
            LeftOut::OtherRouter => Refused::OtherRouter(id, decision.arithmetic.to_text()),
            _ => Refused::NoCandidates(id),
        })?;
        let known = state.cluster.block_size_of(decision).map(|size| size.value);
        let size = same_size(known, question.block_size_tokens)?;
        let tokens = |blocks: f64| (blocks.max(0.0) * f64::from(size)).round() as u64;
        let cached = |overlap_blocks: u32| u64::from(overlap_blocks) * u64::from(size);
        // No worker had less to prefill than this prompt's own part, which bounds a length that is not known exactly.
        let at_most = recorded
            .candidates
            .iter()
            .map(|c| tokens(c.prefill_blocks).saturating_add(cached(c.overlap_blocks)))
            .min()
            .unwrap_or(0);
        let isl_tokens = decision.isl_tokens.unwrap_or_else(|| {
            let isl_tokens = recorded.isl_tokens(Some(size)).map_or(at_most, |isl| isl.min(at_most));
            self.notes.push(format!(
                "The prompt's length in tokens is not recorded: taken as {isl_tokens}, what follows from the candidates."
            ));
            isl_tokens
        });
        for (candidate, tree_size_blocks) in recorded.candidates.iter().zip(decision.tree_sizes_blocks()) {
            let own = isl_tokens.saturating_sub(cached(candidate.overlap_blocks));
            let load = Load {
                active_prefill_tokens: tokens(candidate.prefill_blocks).saturating_sub(own),
                decode_blocks: candidate.decode_blocks.max(0.0).round() as u64,
                active_requests: 0,
            };
            let input = WorkerInput {
                load: Some(load),
                overlap: Overlap {
                    host: candidate.host_blocks,
                    disk: candidate.disk_blocks,
                    ..Overlap::device(candidate.overlap_blocks)
                },
                taint_weight: 0.0,
                tree_size_blocks,
            };
            self.push(CandidateRef::Worker(candidate.worker), LoadFrom::Recorded, input);
        }
        if decided.partial {
            self.partial = Some(
                "The tree lacked blocks when this was decided: workers may have had more of the prompt cached than shown, so \
                 the ranking may be wrong."
                    .to_owned(),
            );
        }
        if let Some(by) = decision.decided_by.filter(|_| !decided.is_by_cost()) {
            self.notes.push(format!(
                "This decision was not made by cost but by {}: the ranking is what the cost formula would have given.",
                by.to_text()
            ));
        }
        self.note_recorded(decision.completeness, decision.formula, &question.options);
        Ok(RoutedRequest::new(isl_tokens, size))
    }

    fn note_recorded(
        &mut self,
        completeness: Completeness,
        formula: Option<Formula>,
        options: &RouterSettings,
    ) {
        let from = match completeness {
            Completeness::AllCandidates => "as the router itself wrote them",
            Completeness::Reconstructed => "as worked out here when the decision was received",
            Completeness::ChosenOnly => "as far as they were reported",
        };
        self.notes.push(format!("Caches and loads are those of the moment of the decision, {from}."));
        if formula.is_some_and(|formula| formula != Formula::A) {
            self.notes.push(
                "Recorded prefill blocks contain the cache credit; it is taken to have been Dynamo's default of 1, on \
                 the device alone."
                    .to_owned(),
            );
        }
        if matches!(options.formula, Formula::D | Formula::E) && options.decode_active_request_weight > 0.0 {
            self.notes.push("Active requests are not recorded with a decision and taken as 0.".to_owned());
        }
    }
}
