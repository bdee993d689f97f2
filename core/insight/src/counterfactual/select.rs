//! Which decisions are judged, and how each is read out of the state: the one reading for samples, recorded what-if and
//! round-robin.

use radixscope_model::id::Millis;
use radixscope_model::record::{Candidate, Completeness, DecisionSource};
use radixscope_state::cluster::{Cluster, DecisionEntry};
use radixscope_state::requests::EXPIRE_MS;

use super::report::About;
use super::sample::{LeftOut, MAX_CANDIDATES, Sample, SampleBuilder, SampledDecision};
use super::{DecisionRange, Selection};

/// A decision of which all candidates are known.
#[derive(Clone, Copy)]
pub(crate) struct RecordedDecision<'a> {
    pub(crate) entry: &'a DecisionEntry,
    /// At least one.
    pub(crate) candidates: &'a [Candidate],
}

impl<'a> RecordedDecision<'a> {
    pub(crate) fn of(entry: &'a DecisionEntry) -> Result<Self, LeftOut> {
        match &entry.decision.candidates[..] {
            _ if entry.is_of_other_router() => Err(LeftOut::OtherRouter),
            [] if entry.candidates_forgotten() => Err(LeftOut::Forgotten),
            [] => Err(LeftOut::ChosenOnly),
            candidates => Ok(Self { entry, candidates }),
        }
    }

    /// Place of the chosen worker among the candidates, where they can be judged.
    pub(crate) fn chosen(self) -> Result<usize, LeftOut> {
        if self.candidates.len() > MAX_CANDIDATES {
            return Err(LeftOut::TooMany);
        }
        if self.entry.partial {
            return Err(LeftOut::PartialTree);
        }
        let chosen = self.candidates.iter().position(|c| c.worker == self.entry.decision.worker);
        chosen.ok_or(LeftOut::ChosenNotAmong)
    }

    /// Length of the prompt: as reported, else its blocks of `block_size_tokens`.
    pub(crate) fn isl_tokens(self, block_size_tokens: Option<u32>) -> Option<u64> {
        let decision = &self.entry.decision;
        let of_blocks = || decision.isl_blocks?.checked_mul(block_size_tokens?.into());
        decision.isl_tokens.or_else(of_blocks)
    }

    /// Whether its request is in flight. Replicas receive the ends of requests whose beginnings they receive; Dynamo itself
    /// stops waiting.
    fn is_running(self, now: Millis) -> bool {
        self.entry.progress.ended_ms.is_none()
            && self.entry.is_from(DecisionSource::ActiveSequences)
            && now.since(self.entry.decided_ms()) <= EXPIRE_MS
    }
}

impl Sample {
    /// The decisions selected, out of the state.
    pub fn of(cluster: &Cluster, selection: Selection) -> Self {
        let about = About { seq: cluster.seq(), ..About::default() };
        let mut builder = SampleBuilder::new(about, selection.worker.is_some());
        let mut all: Vec<(u64, &DecisionEntry)> = selected_in_turn(cluster, selection).collect();
        all.reverse();
        for (turn, entry) in all {
            let about = builder.about_mut();
            about.considered += 1;
            let at_ms = entry.decided_ms();
            about.from_ms = Some(about.from_ms.map_or(at_ms, |from| from.min(at_ms)));
            about.to_ms = about.to_ms.max(Some(at_ms));
            if let Err(reason) = add(&mut builder, turn, entry, cluster) {
                builder.leave_out(reason);
            }
        }
        builder.finish()
    }
}

fn add(
    builder: &mut SampleBuilder,
    turn: u64,
    entry: &DecisionEntry,
    cluster: &Cluster,
) -> Result<(), LeftOut> {
    let now = cluster.now_ms();
    let decision = &entry.decision;
    if !entry.is_by_cost() && !entry.is_of_other_router() {
        return Err(LeftOut::NotByCost);
    }
    let recorded = RecordedDecision::of(entry)?;
    let chosen = recorded.chosen()? as u16;
    let settings = cluster.settings_of_decision(decision).ok_or(LeftOut::WeightUnknown)?;
    let is_running = recorded.is_running(now);
    let about = builder.about_mut();
    about.reconstructed += u64::from(decision.completeness == Completeness::Reconstructed);
    about.running += u64::from(is_running);
    let sampled = SampledDecision {
        id: decision.id,
        at_ms: entry.decided_ms(),
        turn,
        ended_ms: entry.progress.ended_ms.or(is_running.then_some(Millis(now.0.saturating_add(1)))),
        isl_tokens: recorded.isl_tokens(decision.block_size_tokens),
        block_size_tokens: decision.block_size_tokens,
        ttft_ms: entry.time_to_first_token_ms().map(|(ms, _)| ms),
        chosen,
    };
    // It counts itself what it leaves out.
    let _ = builder.push(&sampled, &settings, recorded.candidates);
    Ok(())
}

/// The decisions selected, newest first.
pub(super) fn selected(cluster: &Cluster, selection: Selection) -> impl Iterator<Item = &DecisionEntry> {
    selected_in_turn(cluster, selection).map(|(_, entry)| entry)
}

/// The same, each with how many were taken before it in its pool.
fn selected_in_turn(cluster: &Cluster, selection: Selection) -> impl Iterator<Item = (u64, &DecisionEntry)> {
    let now = cluster.now_ms();
    let (last, ms) = match selection.span {
        DecisionRange::Last(last) => (last as usize, u64::MAX),
        DecisionRange::Ms(ms) => (usize::MAX, ms),
    };
    cluster
        .decisions()
        .with_turns()
        .take_while(move |(_, entry)| now.since(entry.at_ms) <= ms)
        .filter(move |(_, entry)| selection.pool.is_none_or(|pool| pool == entry.pool))
        .filter(move |(_, entry)| selection.worker.is_none_or(|worker| worker == entry.decision.worker))
        .take(last)
}
