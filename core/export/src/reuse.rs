//! Where the reuse of prompts is lost, as `GET /api/v1/reuse` gives it, and the same of one decision.

use serde::Serialize;

use radixscope_insight::reuse::{Funnel, Loss, PrefillPace, PromptReuse, Step};
use radixscope_model::id::{DecisionId, Millis, Seq, Worker};
use radixscope_model::record::{DisplacedBy, GoneReason, Reuse};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::finding_ticket::worker_name;
use crate::panel::not_reused;

/// Where the reuse of the prompts of many decisions was lost. Counts are tokens of prompts unless their names say otherwise; `null` is
/// unknown.
#[derive(Serialize, Debug)]
pub struct ReuseReport {
    /// The last record folded.
    seq: Seq,
    at_ms: Millis,
    /// Decisions that are summed.
    decisions: u32,
    /// Decisions that are not, and why.
    left_out: Vec<LeftOut>,
    /// From the prompt to what was reused; each is a part of the one before.
    steps: Vec<StepRow>,
    /// What engines are reported to have reused: of how many of the decisions, and of how many tokens that their chosen workers held.
    reported: Reported,
    /// Tokens that engines reused beyond what the chosen workers held by their events.
    surplus_tokens: u64,
    /// Why tokens had to be computed, the most first. With the reused ones they are those of the prompts; where it is not reported what
    /// an engine reused, what its worker held counts as reused.
    losses: Vec<LossRow>,
    /// Blocks that were gone before this are not known to have been cached.
    known_since_ms: Option<Millis>,
    /// How long tokens take that are not cached; `null`: no request reports it.
    prefill: Option<Prefill>,
}

#[derive(Serialize, Debug)]
struct LeftOut {
    why: &'static str,
    decisions: u32,
}

#[derive(Serialize, Debug)]
struct StepRow {
    step: &'static str,
    /// Of the last step: of the decisions that report it.
    tokens: u64,
    /// Of the prompts' tokens, 0 … 1; of the last step the share of what the chosen workers held that was reused, times theirs.
    share: Option<f64>,
}

#[derive(Serialize, Debug)]
struct Reported {
    decisions: u32,
    held_tokens: u64,
    reused_tokens: u64,
}

#[derive(Serialize, Debug)]
struct LossRow {
    cause: &'static str,
    text: &'static str,
    remedy: Option<&'static str>,
    tokens: u64,
    /// Of the prompts' tokens, 0 … 1.
    share: Option<f64>,
    decisions: u32,
    /// Estimated time to compute them.
    prefill_ms: Option<f64>,
}

/// Frontends' prefill times over the tokens that were not cached.
#[derive(Serialize, Debug)]
struct Prefill {
    us_per_token: f64,
    requests: u32,
    /// Mean time to first token of the decisions that report one.
    ttft_ms: Option<f64>,
    ttft_requests: u32,
}

impl ReuseReport {
    /// Of these decisions of `cluster`, at `now`.
    pub fn of<'a>(
        cluster: &Cluster,
        now: Millis,
        decisions: impl IntoIterator<Item = &'a DecisionEntry>,
    ) -> Self {
        let funnel = Funnel::of(decisions);
        let (reported, held_tokens, reused_tokens) = funnel.reported;
        let tokens = |step: Step| funnel.steps.get(step as usize).copied().unwrap_or(reused_tokens);
        Self {
            seq: cluster.seq(),
            at_ms: now,
            decisions: funnel.decisions,
            left_out: funnel
                .left_out
                .iter()
                .map(|(why, decisions)| LeftOut { why: why.as_str(), decisions: *decisions })
                .collect(),
            steps: Step::ALL
                .into_iter()
                .map(|step| StepRow { step: step.as_str(), tokens: tokens(step), share: funnel.share(step) })
                .collect(),
            reported: Reported { decisions: reported, held_tokens, reused_tokens },
            surplus_tokens: funnel.surplus_tokens,
            losses: funnel.losses.iter().map(|loss| LossRow::of(&funnel, *loss)).collect(),
            known_since_ms: funnel.known_since_ms,
            prefill: funnel.prefill.map(Prefill::of),
        }
    }
}

impl LossRow {
    fn of(funnel: &Funnel, loss: Loss) -> Self {
        let all = funnel.steps[Step::Prompt as usize];
        Self {
            cause: loss.cause.as_str(),
            text: loss.cause.sentence(),
            remedy: loss.cause.remedy(),
            tokens: loss.tokens,
            share: (all > 0).then(|| loss.tokens as f64 / all as f64),
            decisions: loss.decisions,
            prefill_ms: funnel.prefill_ms(loss.tokens),
        }
    }
}

impl Prefill {
    fn of(pace: PrefillPace) -> Self {
        Self {
            us_per_token: pace.us_per_token,
            requests: pace.requests,
            ttft_ms: pace.ttft_us.map(|(us, _)| us / 1_000.0),
            ttft_requests: pace.ttft_us.map_or(0, |(_, requests)| requests),
        }
    }
}

/// How much of one prompt was cached where when the router decided, in full blocks from its beginning.
#[derive(Serialize, Debug)]
pub(crate) struct ReuseRow {
    prompt_blocks: u32,
    seen_blocks: u32,
    held_blocks: u32,
    eligible_blocks: u32,
    chosen_blocks: u32,
    /// The worker that held `eligible_blocks`.
    holder: Option<Worker>,
    /// What became of the first block that no worker held.
    gone: Option<GoneRow>,
    known_since_ms: Millis,
    /// Why tokens of the prompt had to be computed.
    losses: Vec<LossOf>,
    /// The same in a sentence.
    text: Option<String>,
}

#[derive(Serialize, Debug)]
struct GoneRow {
    #[serde(flatten)]
    worker: Worker,
    at_ms: Millis,
    /// `evicted`, `cleared`, `worker_left` or `not_reported` (its removal was not received).
    why: GoneReason,
    /// Blocks that the worker held at that moment.
    worker_blocks: u32,
    /// Blocks that it has room for; `null`: not reported.
    worker_capacity_blocks: Option<u64>,
    /// What it stored around then; `null` where it was not evicted, nothing was stored, or it was too long ago.
    displaced_by: Option<DisplacedByRow>,
}

/// Blocks that the worker stored on its device from ten seconds before it evicted until a second after. That it evicted for these no
/// event says.
#[derive(Serialize, Debug)]
struct DisplacedByRow {
    stored_blocks: u32,
    /// The decision of the request that most of these are of, its id and session; `null`: not known.
    decision: Option<DecisionId>,
    request_id: Option<String>,
    session: Option<String>,
    /// How many are of that request.
    decision_blocks: u32,
}

#[derive(Serialize, Debug)]
struct LossOf {
    cause: &'static str,
    tokens: u64,
}

impl ReuseRow {
    pub(crate) fn of(cluster: &Cluster, decided: &DecisionEntry) -> Option<Self> {
        let Reuse { prompt_blocks, seen_blocks, held_blocks, eligible_blocks, chosen_blocks, .. } =
            decided.reuse?;
        let Reuse { holder, gone, known_since_ms, displaced_by, .. } = decided.reuse?;
        let id_of = |worker| cluster.worker(worker).map(|worker| worker.id);
        let losses = PromptReuse::of(decided).map(|reuse| reuse.losses).unwrap_or_default();
        Some(Self {
            prompt_blocks,
            seen_blocks,
            held_blocks,
            eligible_blocks,
            chosen_blocks,
            holder: holder.and_then(id_of),
            gone: gone.and_then(|gone| {
                let worker = id_of(gone.worker)?;
                Some(GoneRow {
                    worker,
                    at_ms: gone.at_ms,
                    why: gone.why,
                    worker_blocks: gone.held_blocks,
                    worker_capacity_blocks: cluster.capacity(gone.worker).map(|capacity| capacity.value),
                    displaced_by: displaced_by.map(|by| DisplacedByRow::of(cluster, by)),
                })
            }),
            known_since_ms,
            losses: losses
                .into_iter()
                .map(|(cause, tokens)| LossOf { cause: cause.as_str(), tokens })
                .collect(),
            text: not_reused::sentence(cluster, decided, |worker| worker_name(cluster, worker)),
        })
    }
}

impl DisplacedByRow {
    fn of(cluster: &Cluster, by: DisplacedBy) -> Self {
        let DisplacedBy { stored_blocks, decision, decision_blocks } = by;
        let known = decision.and_then(|id| cluster.decisions().get(id)).map(|decided| &decided.decision);
        Self {
            stored_blocks,
            decision,
            request_id: known.and_then(|known| known.request_id.clone()),
            session: known.and_then(|known| known.session.clone()),
            decision_blocks,
        }
    }
}
