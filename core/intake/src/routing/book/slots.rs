//! What each source reported of one part of a request: a slot for each report, filled by the first one of its kind. A slot says
//! what was reported and when, by the clock of the source. Must not know which report counts more: that is [`super::resolve`].

use std::sync::Arc;

use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::micros::Micros;
use radixscope_model::record::{
    Arithmetic, Candidate, Decision, DecisionSource, DecisionSources, Ended, NotReconstructed, Outcome,
    PathEnd, Progress, Reuse, RoutingMode, Scores, same_cost,
};
use radixscope_router::Formula;
use radixscope_state::requests::Prompt;

/// When something happened, as its source reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::routing) struct ReportTime {
    pub(in crate::routing) at: Micros,
    /// The source reports no time (0.8): `at` is when it was received.
    pub(in crate::routing) is_received: bool,
}

impl ReportTime {
    /// In milliseconds, where the source reports it.
    pub(in crate::routing) fn reported_ms(self) -> Option<Millis> {
        (!self.is_received).then_some(self.at.millis())
    }
}

/// All reports of one part.
#[derive(Default)]
pub(in crate::routing) struct Slots {
    /// `kv-hit-rate`.
    pub(in crate::routing) hit_rate: Option<HitRate>,
    /// `AddRequest` of `active_sequences_events`.
    pub(in crate::routing) sequence: Option<Sequence>,
    /// The log's line of the choice.
    pub(in crate::routing) choice: Option<LoggedChoice>,
    /// The log's lines of what each candidate costs.
    pub(in crate::routing) costs: Option<LoggedCosts>,
    /// The log's line of what the router looked up.
    pub(in crate::routing) input: Option<LoggedInput>,
    /// The log's line that the worker was given the request.
    pub(in crate::routing) dispatched: Option<Dispatched>,
    /// The log's line of the end, as the router saw it.
    pub(in crate::routing) routed: Option<Routed>,
    /// The log's line of a choice by another mode than KV.
    pub(in crate::routing) other_mode: Option<OtherMode>,
    /// The log's lines of a choice of another router than Dynamo's.
    pub(in crate::routing) scored: Option<ScoredChoice>,
    /// A request trace.
    pub(in crate::routing) trace: Option<Trace>,
    /// First token and end by `active_sequences_events`.
    pub(in crate::routing) steps: Steps,
    /// What was computed here.
    pub(in crate::routing) reconstruction: Option<Reconstruction>,
    /// What a restored state knew of it.
    pub(in crate::routing) restored: Option<Box<(Decision, Progress)>>,
}

impl Slots {
    /// Takes out what a source reported of the choice itself.
    pub(super) fn take_choice(&mut self, source: DecisionSource) -> Self {
        let mut taken = Self::default();
        match source {
            DecisionSource::KvHitRate => taken.hit_rate = self.hit_rate.take(),
            DecisionSource::ActiveSequences => taken.sequence = self.sequence.take(),
            DecisionSource::Log => {
                taken.choice = self.choice.take();
                taken.costs = self.costs.take();
                taken.other_mode = self.other_mode.take();
                taken.scored = self.scored.take();
            }
            DecisionSource::RequestTrace => taken.trace = self.trace.take(),
            // It is of a session, not of a part.
            DecisionSource::SessionAffinity => {}
        }
        taken
    }

    /// Every source that filled a slot. First tokens and ends alone are no report of a choice.
    pub(in crate::routing) fn sources(&self) -> DecisionSources {
        use DecisionSource::{ActiveSequences, KvHitRate, Log, RequestTrace};
        let is_logged = self.choice.is_some()
            || self.costs.is_some()
            || self.input.is_some()
            || self.dispatched.is_some()
            || self.routed.is_some()
            || self.other_mode.is_some()
            || self.scored.is_some();
        let filled = [
            (KvHitRate, self.hit_rate.is_some()),
            (ActiveSequences, self.sequence.is_some()),
            (Log, is_logged),
            (RequestTrace, self.trace.is_some()),
        ];
        let mut sources = DecisionSources::default();
        filled.into_iter().filter(|(_, is_filled)| *is_filled).for_each(|(source, _)| sources.insert(source));
        sources
    }
}

/// A router's report of a hit rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::routing) struct HitRate {
    pub(in crate::routing) time: ReportTime,
    pub(in crate::routing) router: Option<u64>,
    pub(in crate::routing) isl_blocks: u64,
    pub(in crate::routing) overlap_blocks: u64,
}

/// A router's message that it adds a request. Which numbers it contains depends on the version and on the worker's role.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::routing) struct Sequence {
    pub(in crate::routing) time: ReportTime,
    pub(in crate::routing) router: Option<u64>,
    pub(in crate::routing) adapter: Option<Box<str>>,
    /// Full blocks of the prompt, where it names them.
    pub(in crate::routing) full_blocks: Option<u64>,
    /// Prompt length in tokens (0.8 – 1.1).
    pub(in crate::routing) isl_tokens: Option<u64>,
    /// Blocks that the worker held (0.8 – 1.1).
    pub(in crate::routing) overlap_blocks: Option<u64>,
    /// Tokens that the worker has to prefill (≥ 1.1).
    pub(in crate::routing) prefill_tokens: Option<u64>,
    /// Whether the router counts the prompt as load of this worker until its first token (≥ 1.1).
    pub(in crate::routing) tracks_prefill: Option<bool>,
    /// Prompt tokens that waited on the worker before, by the messages.
    pub(in crate::routing) waiting_tokens: u64,
    /// Blocks of the prompt that the worker held by our trees at that time: on its device, and beyond those below it.
    pub(in crate::routing) held: HeldBlocks,
}

/// Blocks of a prompt that a worker held, each beyond those of the tiers above.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::routing) struct HeldBlocks {
    pub(in crate::routing) device: u64,
    pub(in crate::routing) host: u32,
    pub(in crate::routing) disk_or_external: u32,
}

/// What each candidate of a choice cost, by the router's trace.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::routing) struct TracedCosts {
    /// When the router chose.
    pub(in crate::routing) time: ReportTime,
    /// Whether the worker was given.
    pub(in crate::routing) is_pinned: bool,
    /// Whether all candidates are listed: the trace has the cheapest ones.
    pub(in crate::routing) is_whole: bool,
    /// Their costs in blocks.
    pub(in crate::routing) candidates: Box<[(WorkerIx, f64)]>,
}

impl TracedCosts {
    /// Whether computed costs are these.
    pub(in crate::routing) fn agrees(&self, computed: &[Candidate]) -> bool {
        let is_same = |&(worker, cost): &(WorkerIx, f64)| {
            computed.iter().any(|of| of.worker == worker && same_cost(of.cost, cost))
        };
        self.candidates.iter().all(is_same) && (!self.is_whole || computed.len() == self.candidates.len())
    }

    /// What a worker cost.
    pub(in crate::routing) fn cost(&self, worker: WorkerIx) -> Option<f64> {
        self.candidates.iter().find(|(of, _)| *of == worker).map(|(_, cost)| *cost)
    }
}

/// The log's line of a choice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::routing) struct LoggedChoice {
    pub(in crate::routing) time: ReportTime,
    /// Whether the router may only have looked at the worker, if prefill and decode are apart.
    pub(in crate::routing) may_be_look: bool,
    /// Its cost. `None`: what the line has is not one of the cost formula.
    pub(in crate::routing) logit: Option<f64>,
    /// What the line shows of how it was chosen.
    pub(in crate::routing) chosen_by: ChosenBy,
    /// Blocks on the worker's device, where the line contains what counted as cached.
    pub(in crate::routing) cached_blocks: Option<u64>,
    /// Blocks in host memory and on disk, where the line contains them (≥ 1.2).
    pub(in crate::routing) lower: Option<LowerBlocks>,
}

/// What the log's line of a choice shows of what decided it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::routing) enum ChosenBy {
    /// The line is that of a choice among several.
    Weighing,
    /// It says that the request was bound to the worker.
    Pinned,
    /// It is the line of another worker-selection policy than the cost formula.
    Policy,
}

/// The session of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::routing) struct Session {
    pub(in crate::routing) name: Box<str>,
    /// What the router found when it looked for a binding, by its log. `None`: no line says.
    pub(in crate::routing) found: Option<FoundBinding>,
}

/// What a router found of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::routing) enum FoundBinding {
    /// It was bound to this worker.
    To(WorkerIx),
    /// It was not bound.
    None,
}

impl Session {
    /// Adds a report to what is known: all sources name the same session, and the log alone says what was found.
    pub(super) fn join(known: &mut Option<Self>, report: Self) {
        match known {
            Some(known) => known.found = known.found.or(report.found),
            None => *known = Some(report),
        }
    }
}

/// Blocks below a device, by a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::routing) struct LowerBlocks {
    pub(in crate::routing) host: u64,
    pub(in crate::routing) disk: u64,
}

/// What every candidate costs, as the router wrote it.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::routing) struct LoggedCosts {
    pub(in crate::routing) candidates: Candidates,
    pub(in crate::routing) formula: Formula,
    pub(in crate::routing) prefill_factor: f64,
    pub(in crate::routing) tied: bool,
    /// Blocks that the chosen worker held.
    pub(in crate::routing) overlap_blocks: u64,
}

/// Candidates. Those of old requests are in the state alone.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::routing) enum Candidates {
    Here(Box<[Candidate]>),
    /// As the state has them.
    InState,
}

impl Candidates {
    /// Those that are here.
    pub(in crate::routing) fn here(&self) -> &[Candidate] {
        match self {
            Self::Here(candidates) => candidates,
            Self::InState => &[],
        }
    }

    /// How many are here.
    pub(in crate::routing) fn len(&self) -> usize {
        self.here().len()
    }
}

/// What the router looked up, as logged at DEBUG.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::routing) struct LoggedInput {
    pub(in crate::routing) isl_tokens: u64,
    pub(in crate::routing) block_size_tokens: u32,
    /// When it was looked up.
    pub(in crate::routing) time: ReportTime,
}

/// The worker was given the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::routing) struct Dispatched {
    pub(in crate::routing) time: ReportTime,
    /// Blocks that counted as cached, those of lower tiers by their weight.
    pub(in crate::routing) cached_blocks: u64,
    /// Prompt length in blocks, in lines that contain it.
    pub(in crate::routing) isl_blocks: Option<u64>,
}

/// The end of a request, as its router saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::routing) struct Routed {
    /// When the worker was given it: its span alone says so.
    pub(in crate::routing) started_ms: Option<Millis>,
    pub(in crate::routing) ended_ms: Millis,
    pub(in crate::routing) outcome: Outcome,
    pub(in crate::routing) cached_blocks: Option<u64>,
}

/// A choice by a mode that looks at no cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::routing) struct OtherMode {
    pub(in crate::routing) time: ReportTime,
    pub(in crate::routing) mode: RoutingMode,
}

/// A choice of another router than Dynamo's.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::routing) struct ScoredChoice {
    pub(in crate::routing) time: ReportTime,
    pub(in crate::routing) arithmetic: Arithmetic,
    /// What each worker scored. `None`: as the state has it, where alone that of old requests is.
    pub(in crate::routing) scores: Option<Box<Scores>>,
    /// Whether a line says that the request was handed to the worker.
    pub(in crate::routing) is_handed: bool,
}

/// A request's trace, as far as it is about this part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::routing) struct Trace {
    pub(in crate::routing) received_ms: Option<Millis>,
    pub(in crate::routing) isl_tokens: Option<u64>,
    pub(in crate::routing) block_size_tokens: Option<u32>,
    pub(in crate::routing) overlap_blocks: Option<u64>,
    pub(in crate::routing) progress: Progress,
    /// It names a decode worker and no prefill worker; one that does both is named as both.
    pub(in crate::routing) is_without_prefill: bool,
}

impl Trace {
    /// About when the worker was chosen: when the router gave the request to it.
    pub(in crate::routing) fn chosen_at(&self) -> Option<Micros> {
        let waited_us = self.progress.queue_us?;
        Some(Micros(Micros::of(self.received_ms?).0.saturating_add(waited_us)))
    }
}

/// First token and end of a request on a worker, by messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::routing) struct Steps {
    /// First output token. Worker and router both report it: the earlier one counts.
    pub(in crate::routing) first_token: Option<Micros>,
    /// Its end, and the worker that it was on.
    pub(in crate::routing) freed: Option<(Micros, WorkerIx)>,
}

impl Steps {
    /// Adds what else is reported.
    pub(in crate::routing) fn add(&mut self, more: Self) {
        self.first_token = self.first_token.into_iter().chain(more.first_token).min();
        self.freed = self.freed.or(more.freed);
    }
}

/// What was computed here of the costs of all workers.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::routing) struct Reconstruction {
    /// Where in the tree the prompt's held beginning ended.
    pub(in crate::routing) path: Option<PathEnd>,
    pub(in crate::routing) outcome: Result<Computed, NotReconstructed>,
    /// How much of the prompt was cached where.
    pub(in crate::routing) reuse: Option<Reuse>,
}

/// Costs that were computed.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::routing) struct Computed {
    pub(in crate::routing) candidates: Candidates,
    pub(in crate::routing) formula: Formula,
    pub(in crate::routing) prefill_factor: f64,
    /// Of the chosen worker.
    pub(in crate::routing) overlap_blocks: u64,
    pub(in crate::routing) cost: f64,
}

/// The end of a request, as its frontend measured it. It is about all parts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::routing) struct Completed {
    pub(in crate::routing) ended: Ended,
    /// Whether the request ran nothing.
    pub(in crate::routing) is_query: bool,
}

impl Completed {
    /// Whether any token came back.
    fn has_output(&self) -> bool {
        let progress = &self.ended.progress;
        progress.ttft_us.is_some() || progress.output_tokens.is_some_and(|tokens| tokens > 0)
    }

    /// Whether a worker was given the request, as far as its end shows it.
    pub(in crate::routing) fn is_dispatched(&self) -> Option<bool> {
        if self.is_query { Some(false) } else { self.has_output().then_some(true) }
    }
}

/// A prompt's hashes.
#[derive(Clone, Debug)]
pub(in crate::routing) enum PromptHashes {
    /// Of a router's message.
    Chain(Arc<[u64]>),
    /// Of a trace, whose hashes are those of the blocks in any case.
    Public(Arc<[u64]>),
    /// Of a log, block by block.
    Local(Arc<[u64]>),
}

impl PromptHashes {
    /// As it is read.
    pub(in crate::routing) fn prompt(&self) -> Prompt<'_> {
        match self {
            Self::Chain(hashes) | Self::Public(hashes) => Prompt::Chain(hashes),
            Self::Local(hashes) => Prompt::Local(hashes),
        }
    }

    /// Whether they are those of the blocks, whatever a router's messages name blocks by.
    pub(in crate::routing) fn are_public(&self) -> bool {
        matches!(self, Self::Public(_) | Self::Local(_))
    }

    /// Whether a trace reported them, when the request was over.
    pub(in crate::routing) const fn are_of_trace(&self) -> bool {
        matches!(self, Self::Public(_))
    }

    /// The hash of the first block, which is the same as its chain's.
    pub(super) fn first(&self) -> Option<u64> {
        match self {
            Self::Chain(hashes) | Self::Public(hashes) | Self::Local(hashes) => hashes.first().copied(),
        }
    }

    /// Of two of one prompt the one with the greater rank is kept.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Chain(_) => 0,
            Self::Public(_) => 1,
            Self::Local(_) => 2,
        }
    }
}
