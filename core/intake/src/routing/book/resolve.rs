//! From the reports of all sources to one decision: the only place that knows which report counts more. Pure: the same reports
//! give the same decision, in whatever order they were received.
//!
//! # Priorities
//! - What the router itself wrote or published of its choice counts before what others measured or computed of it.
//! - Of two reports of one fact the one nearer to the choice counts: the log's line of the choice, then messages of that
//!   moment, then lines that follow, then the request's trace and its end.
//! - Costs that the router wrote of all candidates count before costs computed here. Computed costs that contradict what the
//!   router reported of the chosen worker do not count at all.
//! - What a restored state knew stands.

use super::length::{Length, on_device};
use super::part::RequestWay;
use super::slots::{
    Candidates, ChosenBy, Completed, Computed, FoundBinding, Sequence, Session, Slots, TracedCosts,
};
use crate::routing::sessions::Binding;
use radixscope_model::id::{DecisionId, Millis, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::{
    Arithmetic, Candidate, Completeness, DecidedBy, Decision, DecisionSource, NotReconstructed, Progress,
    Scores, same_cost,
};
use radixscope_router::RouterSettings;
use radixscope_state::cluster::LONG_WAIT_US;

/// What a part's decision depends on beside its own reports.
#[derive(Clone, Copy)]
pub(in crate::routing) struct PartContext<'a> {
    pub(in crate::routing) id: DecisionId,
    pub(in crate::routing) worker: WorkerIx,
    /// The source that reported it first.
    pub(in crate::routing) source: DecisionSource,
    /// The router's id of the request.
    pub(in crate::routing) request_id: Option<&'a str>,
    /// The other choice for the same request, and its reports.
    pub(in crate::routing) other: Option<(DecisionId, &'a Slots)>,
    /// The end of the request.
    pub(in crate::routing) completed: Option<&'a Completed>,
    /// Whether the request's response comes from this part.
    pub(in crate::routing) is_responding: bool,
    /// What the candidates of the choice cost, by the router's trace.
    pub(in crate::routing) traced_costs: Option<&'a TracedCosts>,
    /// By the worker's sources of it.
    pub(in crate::routing) block_size_tokens: Option<u32>,
    /// What lines about the whole request say of its way.
    pub(in crate::routing) way: RequestWay,
    /// A choice among decode workers.
    pub(in crate::routing) is_decode: bool,
    /// The router skipped the prefill pool.
    pub(in crate::routing) is_bypassed: bool,
    /// A choice among decode workers that do not compute the prompt: what they hold does not matter.
    pub(in crate::routing) ignores_cache: bool,
    /// Whether workers of the pool hold blocks below device memory.
    pub(in crate::routing) has_tiers: bool,
    /// What the router ran with when it decided, as far as that is known.
    pub(in crate::routing) settings: RouterSettings,
    /// Candidates that only the state still has.
    pub(in crate::routing) in_state: &'a [Candidate],
    /// What another router gave them, which only the state still has.
    pub(in crate::routing) scores_in_state: Option<&'a Scores>,
    /// Whether a router's message or a log named its prompt.
    pub(in crate::routing) was_named: bool,
    /// The id of its trace.
    pub(in crate::routing) trace_id: Option<&'a str>,
    /// The session of the request.
    pub(in crate::routing) session: Option<SessionContext<'a>>,
    /// Whether it may have been bound to its worker although no report says so: routers bind sessions, and not so that a log
    /// would say it.
    pub(in crate::routing) may_be_bound: bool,
}

/// A session and what it was bound to.
#[derive(Clone, Copy)]
pub(in crate::routing) struct SessionContext<'a> {
    pub(in crate::routing) session: &'a Session,
    /// By the routers' messages.
    pub(in crate::routing) bindings: &'a [Binding],
}

impl SessionContext<'_> {
    /// Whether the session was bound to a worker before the choice. `None`: not reported.
    fn was_bound(self, to: WorkerIx, decided_ms: Option<Millis>) -> Option<bool> {
        match self.session.found {
            Some(FoundBinding::To(worker)) => return Some(worker == to),
            Some(FoundBinding::None) => return Some(false),
            None => {}
        }
        // The router reports a binding a little after it makes it. So one that was reported before the choice was there before it;
        // one that was not may have been.
        let decided_ms = decided_ms?;
        let mut before = self.bindings.iter().filter(|of| of.first.millis() < decided_ms).peekable();
        before.peek()?;
        Some(before.any(|of| of.worker == to))
    }
}

impl<'a> PartContext<'a> {
    /// When the router looked up what workers hold, where reports show that it was not at the time of the choice: a request that waits
    /// in its queue is weighed with what was looked up before, unless that was done anew.
    pub(in crate::routing) fn looked_up(&self, slots: &Slots) -> Option<Micros> {
        if self.way.is_refreshed {
            return None;
        }
        let by_input = || Some(slots.input?.time).filter(|time| !time.is_received).map(|time| time.at);
        // Between arrival and the look-up the prompt is tokenised, which takes some milliseconds.
        let waited = || queued_us(slots, self).filter(|&us| us > LONG_WAIT_US);
        let arrived = || self.way.arrived.or_else(|| slots.trace?.received_ms.map(Micros::of));
        by_input().or_else(|| waited().and_then(|_| arrived()))
    }

    /// The message about the other part, if it contains what that of this one does not: one of them names the prompt's blocks.
    pub(super) fn counterpart(&self) -> Option<(&'a Sequence, &'a Slots)> {
        let (_, slots) = self.other?;
        Some((slots.sequence.as_ref()?, slots))
    }
}

/// From the request's arrival to the choice of its first worker, in microseconds: the trace measures it, the log's lines give it.
fn queued_us(slots: &Slots, context: &PartContext<'_>) -> Option<u64> {
    let is_first = !context.is_decode || context.is_bypassed;
    let chosen = slots.choice.map(|choice| choice.time).filter(|time| !time.is_received && is_first);
    let by_lines = || chosen?.at.0.checked_sub(context.way.arrived?.0);
    slots.trace.and_then(|trace| trace.progress.queue_us).or_else(by_lines)
}

/// The decision by all that was reported.
pub(in crate::routing) fn resolve(slots: &Slots, context: &PartContext<'_>) -> Decision {
    let mut decision = Decision::new(context.id, context.worker, context.source);
    decision.sources = decision.sources.union(slots.sources());
    if context.completed.is_some() {
        decision.sources.insert(DecisionSource::Log);
    }
    if context.traced_costs.is_some() {
        decision.sources.insert(DecisionSource::RequestTrace);
    }
    decision.request_id = context.request_id.map(str::to_owned);
    decision.other_part = context.other.map(|(id, _)| id);
    let traced_ms = || context.traced_costs.and_then(|costs| costs.time.reported_ms());
    decision.decided_ms = chosen_ms(slots).or_else(traced_ms).or_else(|| slots.trace?.received_ms);
    decision.router = slots.hit_rate.and_then(|of| of.router);
    if let Some(sequence) = &slots.sequence {
        decision.router = decision.router.or(sequence.router);
        decision.adapter = sequence.adapter.as_deref().map(str::to_owned);
    }
    let traced = || context.traced_costs?.cost(context.worker);
    // The line of a policy without costs is one of a choice without costs.
    decision.logit = slots.choice.map_or_else(traced, |choice| choice.logit);
    decision.session = context.session.map(|of| of.session.name.as_ref().to_owned());
    decision.trace_id = context.trace_id.map(str::to_owned);
    decision.mode = slots.other_mode.map(|of| of.mode);
    let is_handed = slots.scored.as_ref().is_some_and(|scored| scored.is_handed);
    let given = slots.dispatched.is_some() || slots.routed.is_some() || is_handed;
    decision.dispatched = match context.is_bypassed && !context.is_decode {
        // The prefill worker was only looked at.
        true => Some(false),
        false if given => Some(true),
        false => context.completed.and_then(Completed::is_dispatched),
    };
    decision.prefill_bypassed = match (context.is_bypassed, context.is_decode) {
        (true, _) => Some(true),
        (false, true) => context.other.map(|_| false),
        (false, false) => None,
    };
    prompt(&mut decision, slots, context);
    costs(&mut decision, slots, context);
    scores(&mut decision, slots, context);
    decided_by(&mut decision, slots, context);
    if let Some((known, _)) = slots.restored.as_deref() {
        restore(&mut decision, known, context);
    }
    decision
}

/// How the request went on, by all that was reported.
pub(in crate::routing) fn progress(slots: &Slots, context: &PartContext<'_>) -> Progress {
    let completed = context.completed.filter(|_| context.is_responding).map(|of| of.ended.progress);
    let completed = completed.unwrap_or_default();
    let trace = slots.trace.map(|trace| trace.progress).unwrap_or_default();
    let restored = slots.restored.as_deref().map(|(_, progress)| *progress).unwrap_or_default();
    let freed_ms = slots.steps.freed.map(|(at, _)| at.millis());
    let routed = slots.routed;
    Progress {
        first_token_ms: restored.first_token_ms.or(slots.steps.first_token.map(Micros::millis)),
        ended_ms: restored
            .ended_ms
            .or(freed_ms)
            .or(routed.map(|of| of.ended_ms))
            .or(completed.ended_ms)
            .or(trace.ended_ms),
        outcome: restored.outcome.or(routed.map(|of| of.outcome)).or(completed.outcome).or(trace.outcome),
        ttft_us: restored.ttft_us.or(completed.ttft_us).or(trace.ttft_us),
        queue_us: restored.queue_us.or(queued_us(slots, context)),
        prefill_us: restored.prefill_us.or(trace.prefill_us),
        itl_us: restored.itl_us.or(completed.itl_us).or(trace.itl_us),
        output_tokens: restored.output_tokens.or(completed.output_tokens).or(trace.output_tokens),
        cached_tokens: restored.cached_tokens.or(trace.cached_tokens),
    }
}

/// When the router decided, without what request traces alone have. It hands a request to the worker that it chose at once.
pub(in crate::routing) fn chosen_ms(slots: &Slots) -> Option<Millis> {
    let scored = slots.scored.as_ref().map(|of| of.time);
    let logged = slots.choice.map(|of| of.time).or(slots.other_mode.map(|of| of.time)).or(scored);
    let published = [slots.hit_rate.map(|of| of.time), slots.sequence.as_ref().map(|of| of.time)];
    let reported = std::iter::once(logged).chain(published).flatten().find_map(|time| time.reported_ms());
    reported.or_else(|| slots.routed?.started_ms)
}

/// When the router decided: the log's line of the choice is nearest to it.
pub(in crate::routing) fn decided_ms(slots: &Slots) -> Option<Millis> {
    chosen_ms(slots).or_else(|| slots.trace?.received_ms)
}

/// How long the prompt is, and what the chosen worker held of it.
fn prompt(decision: &mut Decision, slots: &Slots, context: &PartContext<'_>) {
    let by_message = Length::of(slots, context);
    let by_input = slots.input.map_or_else(Length::default, |input| Length {
        isl_tokens: Some(input.isl_tokens),
        block_size_tokens: Some(input.block_size_tokens),
        ..Length::default()
    });
    let by_trace = slots.trace.map_or_else(Length::default, |trace| Length {
        isl_tokens: trace.isl_tokens,
        block_size_tokens: trace.block_size_tokens,
        ..Length::default()
    });
    let isl_of_end = context.completed.and_then(|completed| completed.ended.isl_tokens);
    let by_end = isl_of_end.map_or_else(Length::default, |isl_tokens| Length {
        isl_tokens: Some(isl_tokens),
        block_size_tokens: context.block_size_tokens,
        ..Length::default()
    });
    let lengths = [by_input, by_message, by_trace, by_end];
    decision.isl_tokens = lengths.iter().find_map(|length| length.isl_tokens);
    decision.block_size_tokens = lengths.iter().find_map(|length| length.block_size_tokens);
    decision.isl_blocks = by_input
        .isl_blocks()
        .or(by_message.isl_blocks())
        .or(slots.hit_rate.map(|of| of.isl_blocks))
        .or(by_trace.isl_blocks())
        .or(slots.dispatched.and_then(|of| of.isl_blocks))
        .or(by_end.isl_blocks());
    let cares = |blocks: Option<u64>| blocks.filter(|_| !context.ignores_cache);
    let lower_by_log = slots.choice.and_then(|choice| choice.lower).and_then(|lower| {
        let below = lower.host.saturating_add(lower.disk);
        (below > 0 || context.has_tiers).then_some(below)
    });
    decision.lower_tier_blocks = lower_by_log.or(cares(by_message.lower_tier_blocks));
    // Lines that follow the choice count what lower tiers earned as cached.
    let lower = decision.lower_tier_blocks.unwrap_or(0);
    decision.overlap_blocks = slots
        .choice
        .and_then(|choice| choice.cached_blocks)
        .or(slots.costs.as_ref().map(|costs| costs.overlap_blocks))
        .or(slots.hit_rate.map(|of| of.overlap_blocks))
        .or(cares(by_message.overlap_blocks))
        .or(slots.dispatched.and_then(|of| on_device(of.cached_blocks, lower, &context.settings)))
        .or(slots.routed.and_then(|of| on_device(of.cached_blocks?, lower, &context.settings)))
        .or(slots.trace.and_then(|trace| trace.overlap_blocks));
    decision.chosen_cost = cost_by_messages(slots, &by_message, context);
}

/// What the chosen prefill worker cost in blocks, by the router's own messages: what waited there and what of this prompt it
/// does not hold. It needs no tree. Of a request that is computed where it is answered the router counts more.
fn cost_by_messages(slots: &Slots, length: &Length, context: &PartContext<'_>) -> Option<f64> {
    let own = slots.sequence.as_ref().filter(|own| own.full_blocks.is_none())?;
    context.counterpart().filter(|(other, _)| other.full_blocks.is_some())?;
    let size = length.block_size_tokens.filter(|&size| size > 0)?;
    let tokens = own.waiting_tokens.saturating_add(length.prefill_tokens?);
    Some(context.settings.prefill_factor() * tokens as f64 / f64::from(size))
}

/// What each candidate costs.
fn costs(decision: &mut Decision, slots: &Slots, context: &PartContext<'_>) {
    let all = |candidates: &Candidates| match candidates {
        Candidates::Here(candidates) => candidates.to_vec(),
        Candidates::InState => context.in_state.to_vec(),
    };
    let reconstruction = slots.reconstruction.as_ref();
    decision.path = reconstruction.and_then(|of| of.path);
    if let Some(logged) = &slots.costs {
        decision.completeness = Completeness::AllCandidates;
        decision.candidates = all(&logged.candidates);
        (decision.formula, decision.prefill_factor) = (Some(logged.formula), Some(logged.prefill_factor));
        decision.tied = logged.tied;
        return;
    }
    match reconstruction.map(|of| &of.outcome) {
        Some(Ok(computed)) => match contradiction(computed, decision) {
            Some(differs) => decision.not_reconstructed = Some(differs),
            None => {
                let candidates = all(&computed.candidates);
                decision.completeness = match context.traced_costs {
                    Some(traced) if traced.is_whole && traced.agrees(&candidates) => {
                        Completeness::AllCandidates
                    }
                    _ => Completeness::Reconstructed,
                };
                decision.candidates = candidates;
                (decision.formula, decision.prefill_factor) =
                    (Some(computed.formula), Some(computed.prefill_factor));
            }
        },
        // Another mode weighs no costs.
        Some(Err(missing)) if slots.other_mode.is_none() => decision.not_reconstructed = Some(*missing),
        Some(Err(_)) | None => {}
    }
}

/// What another router than Dynamo's gave each worker. Its arithmetic is its own: nothing is computed from it here.
fn scores(decision: &mut Decision, slots: &Slots, context: &PartContext<'_>) {
    let Some(scored) = &slots.scored else { return };
    let scores = scored.scores.as_deref().or(context.scores_in_state);
    decision.arithmetic = scored.arithmetic;
    decision.scores = scores.cloned().map(Box::new);
    // The gateway's log has the chosen worker alone.
    let lists_all = scored.arithmetic == Arithmetic::EndpointPicker;
    if lists_all && scores.is_some_and(|scores| !scores.candidates.is_empty()) {
        decision.completeness = Completeness::AllCandidates;
    }
}

/// What decided, where the reports show it.
fn decided_by(decision: &mut Decision, slots: &Slots, context: &PartContext<'_>) {
    // The trace of a request names its session: without one there is none.
    let has_no_session = || slots.trace.filter(|_| context.session.is_none()).map(|_| false);
    let bound = context.session.and_then(|of| of.was_bound(decision.worker, decision.decided_ms));
    let bound = bound.or_else(has_no_session);
    let chosen_by = slots.choice.map(|choice| match choice.chosen_by {
        // By the router itself, to the worker that it had looked at before: by cost, unless a session says otherwise.
        ChosenBy::Pinned if context.is_bypassed => ChosenBy::Weighing,
        chosen_by => chosen_by,
    });
    // A trace does not tell a pinned choice from a session's.
    let traced_by = || {
        context.traced_costs.filter(|costs| costs.is_pinned && !context.is_bypassed).map(|_| ChosenBy::Pinned)
    };
    let chosen_by = chosen_by.or_else(traced_by);
    if bound == Some(true) && context.session.is_some_and(|of| of.session.found.is_none()) {
        decision.sources.insert(DecisionSource::SessionAffinity);
    }
    // Computed costs by which the choice was the cheapest show nothing alone: another policy may have chosen the same.
    let is_weighed = slots.costs.is_some()
        || (decision.completeness != Completeness::ChosenOnly && decision.logit.is_some());
    decision.decided_by = match (bound, chosen_by) {
        _ if slots.scored.is_some() => Some(DecidedBy::Scores),
        _ if slots.other_mode.is_some() => Some(DecidedBy::Mode),
        (Some(true), _) => Some(DecidedBy::SessionAffinity),
        (_, Some(ChosenBy::Pinned)) => Some(DecidedBy::Pinned),
        (_, Some(ChosenBy::Policy)) => Some(DecidedBy::Policy),
        // The router's own costs, or computed ones by which its choice was the cheapest.
        (Some(false), _) if is_weighed => Some(DecidedBy::Cost),
        (None, _) if is_weighed && !(context.may_be_bound && slots.costs.is_none()) => Some(DecidedBy::Cost),
        _ => None,
    };
}

/// In what computed costs contradict what the router itself reported of the chosen worker.
pub(in crate::routing) fn contradiction(
    computed: &Computed,
    decision: &Decision,
) -> Option<NotReconstructed> {
    if decision.overlap_blocks.is_some_and(|reported| reported != computed.overlap_blocks) {
        return Some(NotReconstructed::Overlap);
    }
    let differs = decision.logit.is_some_and(|reported| !same_cost(computed.cost, reported));
    differs.then_some(NotReconstructed::Cost)
}

/// What a restored state knew of a decision stands, and what was reported since is added.
fn restore(decision: &mut Decision, known: &Decision, context: &PartContext<'_>) {
    let since = std::mem::replace(decision, known.clone());
    decision.sources = known.sources.union(since.sources);
    decision.request_id = known.request_id.clone().or(since.request_id);
    decision.adapter = known.adapter.clone().or(since.adapter);
    decision.decided_ms = known.decided_ms.or(since.decided_ms);
    decision.router = known.router.or(since.router);
    decision.isl_tokens = known.isl_tokens.or(since.isl_tokens);
    decision.isl_blocks = known.isl_blocks.or(since.isl_blocks);
    decision.block_size_tokens = known.block_size_tokens.or(since.block_size_tokens);
    decision.overlap_blocks = known.overlap_blocks.or(since.overlap_blocks);
    decision.lower_tier_blocks = known.lower_tier_blocks.or(since.lower_tier_blocks);
    decision.logit = known.logit.or(since.logit);
    decision.chosen_cost = known.chosen_cost.or(since.chosen_cost);
    decision.path = known.path.or(since.path);
    decision.dispatched = known.dispatched.or(since.dispatched);
    decision.other_part = known.other_part.or(since.other_part);
    decision.mode = known.mode.or(since.mode);
    decision.tied |= since.tied;
    decision.session = known.session.clone().or(since.session);
    decision.trace_id = known.trace_id.clone().or(since.trace_id);
    decision.decided_by = known.decided_by.or(since.decided_by);
    decision.prefill_bypassed = known.prefill_bypassed.or(since.prefill_bypassed);
    if known.candidates.is_empty() && known.completeness != Completeness::ChosenOnly {
        decision.candidates = context.in_state.to_vec();
    }
    if known.arithmetic == Arithmetic::Dynamo {
        (decision.arithmetic, decision.scores) = (since.arithmetic, since.scores);
    } else if known.scores.is_none() {
        decision.scores = context.scores_in_state.cloned().map(Box::new);
    }
    if since.completeness > known.completeness {
        decision.completeness = since.completeness;
        decision.candidates = since.candidates;
        (decision.formula, decision.prefill_factor) = (since.formula, since.prefill_factor);
        decision.not_reconstructed = since.not_reconstructed;
    }
}
