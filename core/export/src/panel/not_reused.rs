//! Why one prompt was not reused whole, in a sentence: each cause with the worker, the time and what else is known of it.

use radixscope_insight::in_flight;
use radixscope_insight::reuse::{LossCause, NoReuse, PromptReuse};
use radixscope_model::id::{DecisionId, Millis, WorkerIx};
use radixscope_model::number_format::{count, duration, percent, plural};
use radixscope_model::record::{GoneBlock, GoneReason, Reuse};
use radixscope_state::cluster::{Cluster, DecisionEntry};

/// Why a prompt was not reused whole. `None`: nothing is to be said of it, or nothing is known. `name`: a worker's.
pub fn sentence(
    cluster: &Cluster,
    decided: &DecisionEntry,
    name: impl Fn(WorkerIx) -> String,
) -> Option<String> {
    let reuse = match PromptReuse::of(decided) {
        Ok(reuse) => reuse,
        Err(NoReuse::NotVisible) => {
            return Some(
                "Why the rest was not cached is unknown: no source reports the blocks of this prompt."
                    .to_owned(),
            );
        }
        Err(_) => return None,
    };
    let text = CauseText { cluster, decided, blocks: decided.reuse?, name: &name };
    let parts: Vec<String> = reuse
        .losses
        .iter()
        .filter(|(cause, _)| *cause != LossCause::BelowBlock)
        .map(|(cause, tokens)| text.part(*cause, &plural(*tokens, "token", "tokens")))
        .collect();
    Some(match parts.as_slice() {
        [] => "All full blocks of the prompt were cached on the chosen worker.".to_owned(),
        parts => format!("Computed anew: {}.", parts.join("; ")),
    })
}

/// Blocks of a prompt that were cached before and were not any more when its worker was chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ghost {
    /// Blocks of the prompt before them.
    pub depth: u32,
    /// How many are known to have been cached.
    pub blocks: u32,
    /// How many, why, where and when.
    pub label: String,
}

/// The blocks behind the longest beginning of the prompt that any worker held. `None`: they were not gone, or it is not known.
pub fn ghost(decided: &DecisionEntry, name: impl Fn(WorkerIx) -> String) -> Option<Ghost> {
    let reuse = decided.reuse?;
    let gone = reuse.gone?;
    let blocks = reuse.seen_blocks.checked_sub(reuse.held_blocks).filter(|blocks| *blocks > 0)?;
    let why = match gone.why {
        GoneReason::Evicted => "evicted on",
        GoneReason::Cleared => "cleared on",
        GoneReason::Left => "gone with",
        GoneReason::NotReported => "gone, event lost, from",
    };
    let (count, worker) = (plural(blocks.into(), "block", "blocks"), name(gone.worker));
    let label = format!("{count} {why} {worker} {}", before(decided, gone.at_ms));
    Some(Ghost { depth: reuse.held_blocks, blocks, label })
}

/// How long before the decision.
fn before(decided: &DecisionEntry, at: Millis) -> String {
    match decided.decided_ms().since(at) {
        0..=999 => "in the second before".to_owned(),
        ms => format!("{} before", duration(ms as f64)),
    }
}

/// What a decision is called where another one is about it: by its session, its request, or its number.
pub(crate) fn request_name(cluster: &Cluster, id: DecisionId) -> String {
    let decision = cluster.decisions().get(id).map(|decided| &decided.decision);
    match decision.map(|decision| (&decision.session, &decision.request_id)) {
        Some((Some(session), _)) => format!("session {session}"),
        Some((None, Some(request))) => format!("request {request}"),
        _ => format!("decision {id}"),
    }
}

struct CauseText<'a, N> {
    cluster: &'a Cluster,
    decided: &'a DecisionEntry,
    blocks: Reuse,
    name: &'a N,
}

impl<N: Fn(WorkerIx) -> String> CauseText<'_, N> {
    fn part(&self, cause: LossCause, tokens: &str) -> String {
        let (gone, holder) = (self.blocks.gone, self.blocks.holder);
        match (cause, gone, holder) {
            (LossCause::Evicted, Some(gone), _) => self.evicted(gone, tokens),
            (LossCause::Cleared, Some(gone), _) => {
                let (worker, before) = (self.name(gone.worker), self.before(gone.at_ms));
                format!("{tokens} gone when {worker} cleared its cache, {before}")
            }
            (LossCause::WorkerLeft, Some(gone), _) => {
                let (worker, before) = (self.name(gone.worker), self.before(gone.at_ms));
                format!("{tokens} gone when {worker} left, {before}")
            }
            (LossCause::FirstSeen, ..) => format!("{tokens} seen for the first time"),
            (LossCause::Load, _, Some(holder)) => {
                let then = in_flight::most_at(self.cluster, holder, self.decided.decided_ms());
                let busy = then.map_or("which was busier".to_owned(), |requests| {
                    format!("which was busier: {} in flight", count(requests.into()))
                });
                format!("{tokens} cached on {}, {busy}", self.name(holder))
            }
            (LossCause::RouterIndex, _, Some(holder)) => {
                format!("{tokens} cached on {}, which the router's index did not have", self.name(holder))
            }
            (LossCause::Affinity, _, Some(holder)) => {
                format!(
                    "{tokens} cached on {}, but the request was bound to another worker",
                    self.name(holder)
                )
            }
            (LossCause::Policy, _, Some(holder)) => {
                format!("{tokens} cached on {}, but the policy chose another worker", self.name(holder))
            }
            (LossCause::Chance, _, Some(holder)) => {
                format!("{tokens} cached on {}, which cost no more", self.name(holder))
            }
            (LossCause::Skipped, _, Some(holder)) => {
                format!("{tokens} cached on {}, which was not chosen", self.name(holder))
            }
            (LossCause::EngineHadLess, ..) => {
                format!("{tokens} that the engine did not reuse though its events showed them")
            }
            (cause, ..) => format!("{tokens}: {}", cause.label()),
        }
    }

    /// By whom, when, how full it was, and whose blocks it stored around then.
    fn evicted(&self, gone: GoneBlock, tokens: &str) -> String {
        let capacity = self.cluster.capacity(gone.worker).map(|capacity| capacity.value);
        let full = match capacity {
            Some(capacity) => {
                format!(
                    "at {} of its blocks",
                    percent((f64::from(gone.held_blocks) / capacity as f64).min(1.0))
                )
            }
            None => format!("when it held {}", plural(gone.held_blocks.into(), "block", "blocks")),
        };
        let (worker, before) = (self.name(gone.worker), self.before(gone.at_ms));
        let stored = self.blocks.displaced_by.map_or(String::new(), |by| match by.decision {
            Some(id) => format!(
                ", while it stored {} of {} ({} of all that it stored then)",
                plural(by.decision_blocks.into(), "block", "blocks"),
                request_name(self.cluster, id),
                percent(f64::from(by.decision_blocks) / f64::from(by.stored_blocks.max(1))),
            ),
            None => format!(
                ", while it stored {} of requests that are not known",
                plural(by.stored_blocks.into(), "block", "blocks")
            ),
        });
        format!("{tokens} evicted on {worker}, {before}, {full}{stored}")
    }

    fn name(&self, worker: WorkerIx) -> String {
        (self.name)(worker)
    }

    fn before(&self, at: Millis) -> String {
        before(self.decided, at)
    }
}
