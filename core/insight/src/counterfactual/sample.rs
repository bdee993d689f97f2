//! The decisions of a counterfactual, taken out of the state: small enough to travel to a worker, complete enough to
//! be judged there without the state.

use serde::{Deserialize, Serialize};

use super::frozen::About;
use super::{DecisionRange, Selection};
use radixscope_model::id::{DecisionId, Millis};
use radixscope_model::record::{Candidate, DecisionSource};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use radixscope_router::RouterSettings;
use radixscope_router::frozen::{
    LeftOut, MAX_CANDIDATES, OfflineReplay, OfflineReplayBuilder, ReplayDecision,
};
use radixscope_state::requests::EXPIRE_MS;

/// Why a decision is left out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Reason {
    /// Nothing is known of the workers that were not chosen.
    ChosenOnly,
    /// Its candidates were known, but are no longer kept.
    Forgotten,
    /// Its candidates are known, but not with which weight they were compared.
    WeightUnknown,
    /// The chosen worker is not among the candidates.
    ChosenNotAmong,
    /// A term is negative, infinite or not a number.
    BadNumber,
    /// More candidates than are judged.
    TooMany,
    /// Its candidates were computed on a tree that lacked blocks, so others may have cost less.
    PartialTree,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 7] = [
        Reason::ChosenOnly,
        Reason::Forgotten,
        Reason::WeightUnknown,
        Reason::ChosenNotAmong,
        Reason::BadNumber,
        Reason::TooMany,
        Reason::PartialTree,
    ];

    /// In words, after a number of decisions.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::ChosenOnly => "of which only the chosen worker is known",
            Reason::Forgotten => "whose candidates are no longer retained",
            Reason::WeightUnknown => "whose weight is unknown",
            Reason::ChosenNotAmong => "whose worker was not among the candidates",
            Reason::BadNumber => "with a term that is no cost",
            Reason::TooMany => "with more candidates than are judged",
            Reason::PartialTree => "whose costs were computed on a tree that lacked blocks",
        }
    }
}

impl From<LeftOut> for Reason {
    fn from(left_out: LeftOut) -> Self {
        match left_out {
            LeftOut::NotAllCandidates => Reason::ChosenOnly,
            LeftOut::ActualNotAmongCandidates => Reason::ChosenNotAmong,
            LeftOut::BadNumber => Reason::BadNumber,
            LeftOut::TooMany => Reason::TooMany,
        }
    }
}

/// Decisions with all their candidates, and what was left out of them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    about: About,
    /// In order of decision.
    rows: Vec<Row>,
    /// Of all rows, in their order.
    candidates: Vec<Candidate>,
    /// Whether the load of workers beside each other can be known.
    whole: bool,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Row {
    id: DecisionId,
    decision: ReplayDecision,
    candidates: u16,
}

impl Sample {
    /// Copies what is needed out of the state.
    pub fn of(cluster: &Cluster, selection: Selection) -> Self {
        let mut sample = Self {
            about: About { seq: cluster.seq(), ..About::default() },
            rows: Vec::new(),
            candidates: Vec::new(),
            whole: selection.worker.is_none(),
        };
        let mut meant: Vec<(u64, &DecisionEntry)> = meant_in_turn(cluster, selection).collect();
        meant.reverse();
        sample.rows.reserve(meant.len());
        for (turn, decided) in meant {
            sample.take(turn, decided, cluster.now_ms());
        }
        sample
    }

    fn take(&mut self, turn: u64, decided: &DecisionEntry, now: Millis) {
        let about = &mut self.about;
        about.considered += 1;
        let at_ms = decided.decided_ms();
        about.from_ms = Some(about.from_ms.map_or(at_ms, |from| from.min(at_ms)));
        about.to_ms = about.to_ms.max(Some(at_ms));
        match judged(turn, decided, now) {
            Ok((decision, is_running)) => {
                let known = &decided.decision.candidates;
                about.reconstructed += u64::from(
                    decided.decision.completeness == radixscope_model::record::Completeness::Reconstructed,
                );
                about.running += u64::from(is_running);
                self.rows.push(Row { id: decided.decision.id, decision, candidates: known.len() as u16 });
                self.candidates.extend_from_slice(known);
            }
            Err(reason) => about.leave_out(reason),
        }
    }

    /// Whether nothing can be judged.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Weight or scale that the latest decision was made with.
    pub fn latest_weight(&self) -> Option<f64> {
        self.rows.last().map(|row| row.decision.recorded.prefill_factor())
    }

    /// What it is a sample of.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Ready to be asked, with what is now known of the sample and the ids of the decisions judged.
    pub(super) fn frozen(&self) -> (OfflineReplay, About, Vec<DecisionId>) {
        let mut about = self.about.clone();
        let mut builder = OfflineReplayBuilder::default();
        let mut ids = Vec::with_capacity(self.rows.len());
        let mut settings: Vec<RouterSettings> = Vec::new();
        let mut rest = &self.candidates[..];
        for row in &self.rows {
            let (of_row, after) = rest.split_at(usize::from(row.candidates).min(rest.len()));
            rest = after;
            match builder.push(&row.decision, of_row) {
                Ok(()) => {
                    ids.push(row.id);
                    if !settings.contains(&row.decision.recorded) && settings.len() < 8 {
                        settings.push(row.decision.recorded);
                    }
                }
                Err(left_out) => about.leave_out(left_out.into()),
            }
        }
        let frozen = builder.finish();
        about.judged = frozen.len() as u64;
        about.recorded = frozen.recorded();
        about.recorded_settings = settings.len() as u32;
        (frozen, about, ids)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }
}

/// The decisions meant, newest first.
pub(super) fn meant(cluster: &Cluster, selection: Selection) -> impl Iterator<Item = &DecisionEntry> {
    meant_in_turn(cluster, selection).map(|(_, decided)| decided)
}

/// The same, each with how many were taken before it in its pool.
fn meant_in_turn(cluster: &Cluster, selection: Selection) -> impl Iterator<Item = (u64, &DecisionEntry)> {
    let now = cluster.now_ms();
    let (last, ms) = match selection.span {
        DecisionRange::Last(last) => (last as usize, u64::MAX),
        DecisionRange::Ms(ms) => (usize::MAX, ms),
    };
    cluster
        .decisions()
        .with_turns()
        .take_while(move |(_, decided)| now.since(decided.at_ms) <= ms)
        .filter(move |(_, decided)| selection.pool.is_none_or(|pool| pool == decided.pool))
        .filter(move |(_, decided)| selection.worker.is_none_or(|worker| worker == decided.decision.worker))
        .take(last)
}

/// Place of the chosen worker among the candidates, where what each of them held and did is known.
pub(crate) fn chosen_among(decided: &DecisionEntry) -> Result<usize, Reason> {
    let decision = &decided.decision;
    if decision.candidates.is_empty() {
        return Err(if decided.candidates_forgotten() { Reason::Forgotten } else { Reason::ChosenOnly });
    }
    if decision.candidates.len() > MAX_CANDIDATES {
        return Err(Reason::TooMany);
    }
    if decided.partial {
        return Err(Reason::PartialTree);
    }
    let chosen = decision.candidates.iter().position(|candidate| candidate.worker == decision.worker);
    chosen.ok_or(Reason::ChosenNotAmong)
}

/// A decision as it is judged, and whether its request still runs.
fn judged(turn: u64, decided: &DecisionEntry, now: Millis) -> Result<(ReplayDecision, bool), Reason> {
    let decision = &decided.decision;
    let actual = chosen_among(decided)? as u16;
    let recorded = RouterSettings::of_decision(decision).ok_or(Reason::WeightUnknown)?;
    let at_ms = decided.decided_ms();
    // Replicas get the ends of requests whose beginnings they get; Dynamo itself gives up waiting.
    let is_running = decided.progress.ended_ms.is_none()
        && decided.is_from(DecisionSource::ActiveSequences)
        && now.since(at_ms) <= EXPIRE_MS;
    let prompt = || decision.isl_blocks?.checked_mul(decision.block_size_tokens?.into());
    let decision = ReplayDecision {
        at_ms,
        turn,
        ended_ms: decided.progress.ended_ms.or(is_running.then_some(Millis(now.0.saturating_add(1)))),
        isl_tokens: decision.isl_tokens.or_else(prompt),
        block_size_tokens: decision.block_size_tokens,
        ttft_ms: decided.time_to_first_token_ms().map(|(ms, _)| ms),
        actual,
        recorded,
    };
    Ok((decision, is_running))
}
