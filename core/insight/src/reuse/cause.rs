//! Why tokens of a prompt were computed anew.

use radixscope_model::record::{Completeness, DecidedBy, GoneReason, Reuse, same_cost};
use radixscope_state::cluster::DecisionEntry;

/// A cause, in the order of the steps at which it acts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum LossCause {
    /// The end of the prompt fills no block, or its last token had to be computed.
    BelowBlock,
    /// No worker of the pool ever stored these blocks, as far as is known.
    FirstSeen,
    /// The tree lacked blocks, so that they may have been cached.
    NotKnown,
    /// A worker held the first of these blocks last and its engine evicted it.
    Evicted,
    /// Its engine cleared its cache.
    Cleared,
    /// It left.
    WorkerLeft,
    /// That a worker ceased to hold the first of these blocks was not received: an event was lost.
    EventLost,
    /// No worker held all of them, but several together did.
    Scattered,
    /// A worker held them that the router could not choose.
    NotEligible,
    /// A worker that could be chosen held them by its KV events, and the router's index did not have them.
    RouterIndex,
    /// A worker that could be chosen held them, and cost more: it was busier.
    Load,
    /// It was not chosen, because the session of the request, or the request itself, was bound to another worker.
    Affinity,
    /// It was not chosen by a worker-selection policy other than the cost.
    Policy,
    /// It cost no more, and the router chose another one: at random (`router_temperature`) or among equals.
    Chance,
    /// It was not chosen, and what it cost is not known.
    Skipped,
    /// The chosen worker's engine reused less than its KV events let expect.
    EngineHadLess,
}

impl LossCause {
    /// All, in their order.
    pub const ALL: [Self; 16] = [
        Self::BelowBlock,
        Self::FirstSeen,
        Self::NotKnown,
        Self::Evicted,
        Self::Cleared,
        Self::WorkerLeft,
        Self::EventLost,
        Self::Scattered,
        Self::NotEligible,
        Self::RouterIndex,
        Self::Load,
        Self::Affinity,
        Self::Policy,
        Self::Chance,
        Self::Skipped,
        Self::EngineHadLess,
    ];

    /// Whether the blocks had been seen before, so that they might have been reused.
    pub const fn is_avoidable(self) -> bool {
        !matches!(self, Self::BelowBlock | Self::FirstSeen | Self::NotKnown)
    }

    /// Name in JSON and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BelowBlock => "below_block",
            Self::FirstSeen => "first_seen",
            Self::NotKnown => "not_known",
            Self::Evicted => "evicted",
            Self::Cleared => "cleared",
            Self::WorkerLeft => "worker_left",
            Self::EventLost => "event_lost",
            Self::Scattered => "scattered",
            Self::NotEligible => "not_eligible",
            Self::RouterIndex => "router_index",
            Self::Load => "load",
            Self::Affinity => "affinity",
            Self::Policy => "policy",
            Self::Chance => "chance",
            Self::Skipped => "skipped",
            Self::EngineHadLess => "engine_had_less",
        }
    }
}

/// Why blocks were not seen before.
pub(super) fn of_unseen(decided: &DecisionEntry, reuse: &Reuse) -> LossCause {
    if decided.partial || reuse.lacked_blocks { LossCause::NotKnown } else { LossCause::FirstSeen }
}

/// Why blocks that were seen were held by no worker any more.
pub(super) fn of_gone(reuse: &Reuse) -> LossCause {
    match reuse.gone.map(|gone| gone.why) {
        Some(GoneReason::Evicted) => LossCause::Evicted,
        Some(GoneReason::Cleared) => LossCause::Cleared,
        Some(GoneReason::Left) => LossCause::WorkerLeft,
        Some(GoneReason::NotReported) => LossCause::EventLost,
        None => LossCause::Scattered,
    }
}

/// What the worker of `eligible_blocks` held by the router's own index, where the router reported it; at least `chosen_blocks`.
pub(super) fn blocks_in_index(decided: &DecisionEntry, reuse: &Reuse) -> u32 {
    let decision = &decided.decision;
    let holder = decision.candidates.iter().find(|of| Some(of.worker) == reuse.holder);
    let reported = holder.filter(|_| decision.completeness == Completeness::AllCandidates);
    let blocks = reported.map(|of| of.overlap_blocks + of.host_blocks + of.disk_blocks);
    blocks.map_or(reuse.eligible_blocks, |blocks| blocks.clamp(reuse.chosen_blocks, reuse.eligible_blocks))
}

/// Why a worker that could be chosen and held more was not.
pub(super) fn of_skipped(decided: &DecisionEntry, reuse: &Reuse) -> LossCause {
    match decided.decision.decided_by {
        Some(DecidedBy::SessionAffinity | DecidedBy::Pinned) => return LossCause::Affinity,
        Some(DecidedBy::Policy | DecidedBy::Mode | DecidedBy::Scores) => return LossCause::Policy,
        Some(DecidedBy::Cost) | None => {}
    }
    let cost_of = |worker| {
        let candidates = &decided.decision.candidates;
        candidates.iter().find(|candidate| Some(candidate.worker) == worker).map(|candidate| candidate.cost)
    };
    match (cost_of(reuse.holder), cost_of(Some(decided.decision.worker))) {
        (Some(holder), Some(chosen)) if same_cost(holder, chosen) || holder < chosen => LossCause::Chance,
        (Some(_), Some(_)) => LossCause::Load,
        _ => LossCause::Skipped,
    }
}
