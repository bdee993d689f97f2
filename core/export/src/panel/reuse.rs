//! Where the reuse of prompts is lost, and why one prompt was not reused whole.

use radixscope_insight::reuse::{Funnel, LossCause, NoReuse, PromptReuse, Step};
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{DecisionId, Millis, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, count, duration, percent, plural};
use radixscope_state::cluster::DecisionEntry;

use super::EmptyText;

/// Its heading.
pub const TITLE: &str = "Where reuse is lost";
/// What the bars are.
pub const CAPTION: &str =
    "Tokens of prompts, from the beginning of each without a hole, as of the decision's own time";

/// One step of the funnel.
#[derive(Clone, PartialEq, Debug)]
pub struct StepLine {
    /// Which.
    pub step: Step,
    /// Of the prompts' tokens, 0 … 1; `None`: unknown.
    pub share: Option<f64>,
    /// The same as text.
    pub text: String,
    /// Tokens, with what they are of.
    pub tokens: String,
}

/// Why tokens were computed.
#[derive(Clone, PartialEq, Debug)]
pub struct LossLine {
    /// Why.
    pub cause: LossCause,
    /// Share of the prompts' tokens.
    pub share: String,
    /// Tokens.
    pub tokens: String,
    /// Decisions.
    pub decisions: String,
    /// Estimated time to compute the tokens, for each request that is summed.
    pub prefill: String,
    /// The decision that lost most, and how much.
    pub largest: (DecisionId, String),
}

/// The panel's content.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReusePanel {
    /// Decisions that are summed.
    pub decisions: u32,
    /// Steps.
    pub steps: Vec<StepLine>,
    /// Losses, the largest first.
    pub losses: Vec<LossLine>,
    /// What is left out, since when departures are known, what times are from.
    pub notes: Vec<String>,
}

impl ReusePanel {
    /// Of the decisions in the pools shown that `is_meant` takes. `time` writes a time.
    pub fn of(
        shown: &ViewContext<'_>,
        is_meant: impl Fn(&DecisionEntry) -> bool,
        time: impl Fn(Millis) -> String,
    ) -> Self {
        let decisions = shown.decisions().newest_first();
        let funnel = Funnel::of(decisions.filter(|decided| shown.has(decided.pool) && is_meant(decided)));
        let all = funnel.steps[Step::Prompt as usize];
        let step = |step: Step| {
            let share = funnel.share(step);
            let tokens = match (step, funnel.reported) {
                (Step::Reused, (0, ..)) => "not reported".to_owned(),
                (Step::Reused, (reported, held, reused)) => {
                    let of = plural(reported.into(), "request that reports it", "requests that report it");
                    format!("{} of {} held, {of}", count(reused), count(held))
                }
                (step, _) => count(funnel.steps[step as usize]),
            };
            StepLine { step, share, text: share.map_or(UNKNOWN.to_owned(), percent), tokens }
        };
        let requests = f64::from(funnel.decisions.max(1));
        let losses = funnel.losses.iter().map(|loss| LossLine {
            cause: loss.cause,
            share: if all > 0 { percent(loss.tokens as f64 / all as f64) } else { UNKNOWN.to_owned() },
            tokens: count(loss.tokens),
            decisions: count(loss.decisions.into()),
            prefill: funnel.prefill_ms(loss.tokens).map_or(UNKNOWN.to_owned(), |ms| duration(ms / requests)),
            largest: (loss.largest.0, count(loss.largest.1)),
        });
        Self {
            decisions: funnel.decisions,
            steps: Step::ALL.map(step).into(),
            losses: losses.collect(),
            notes: notes(&funnel, time),
        }
    }
}

fn notes(funnel: &Funnel, time: impl Fn(Millis) -> String) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(since) = funnel.known_since_ms {
        notes.push(format!(
            "What became of blocks is known since {}: blocks that were gone before count as seen for the first time.",
            time(since)
        ));
    }
    for (why, decisions) in &funnel.left_out {
        notes.push(format!(
            "Left out: {} that {}.",
            plural((*decisions).into(), "decision", "decisions"),
            why.label()
        ));
    }
    if funnel.surplus_tokens > 0 {
        notes.push(format!(
            "Engines reused {} tokens beyond what their KV events showed.",
            count(funnel.surplus_tokens)
        ));
    }
    match funnel.prefill {
        Some(pace) => {
            let of_ttft = pace.ttft_us.map_or(String::new(), |(us, requests)| {
                format!(
                    "; mean TTFT {} of {}",
                    duration(us / 1_000.0),
                    plural(requests.into(), "request", "requests")
                )
            });
            notes.push(format!(
                "Times are estimates, for each request summed: frontends report {:.0} µs of prefill for a token that is not cached \
                 ({}){of_ttft}.",
                pace.us_per_token,
                plural(pace.requests.into(), "request", "requests"),
            ));
        }
        None => {
            notes.push("No frontend reports prefill times: its request traces or log have them.".to_owned())
        }
    }
    notes
}

/// What stands where no decision shows the blocks of its prompt.
pub fn empty() -> EmptyText {
    let mut text = EmptyText::new(
        "reuse-empty",
        "No decision shows the blocks of its prompt",
        "Prompts are visible in request traces (`DYN_REQUEST_TRACE=1`, from 1.4 on), in the messages of routers with replicas \
         (`--router-replica-sync`), and in a frontend's log at DEBUG.",
    );
    text.paragraphs.push("Workers must publish KV events.".into());
    text
}

/// Why a prompt was not reused whole, in a sentence or two. `None`: it is not known. `name`: a worker's.
pub fn sentence(decided: &DecisionEntry, name: impl Fn(WorkerIx) -> String) -> Option<String> {
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
    let blocks = decided.reuse?;
    let before = |at: Millis| match decided.decided_ms().since(at) {
        0..=999 => "in the second before".to_owned(),
        ms => format!("{} before", duration(ms as f64)),
    };
    let parts =
        reuse.losses.iter().filter(|(cause, _)| *cause != LossCause::BelowBlock).map(|(cause, tokens)| {
            let tokens = plural(*tokens, "token", "tokens");
            match (cause, blocks.gone, blocks.holder) {
                (LossCause::Evicted, Some(gone), _) => {
                    format!("{tokens} evicted on {}, {}", name(gone.worker), before(gone.at_ms))
                }
                (LossCause::Cleared, Some(gone), _) => {
                    format!(
                        "{tokens} gone when {} cleared its cache, {}",
                        name(gone.worker),
                        before(gone.at_ms)
                    )
                }
                (LossCause::WorkerLeft, Some(gone), _) => {
                    format!("{tokens} gone when {} left, {}", name(gone.worker), before(gone.at_ms))
                }
                (LossCause::FirstSeen, ..) => format!("{tokens} seen for the first time"),
                (LossCause::Load, _, Some(holder)) => {
                    format!("{tokens} cached on {}, which was busier", name(holder))
                }
                (LossCause::Affinity, _, Some(holder)) => {
                    format!(
                        "{tokens} cached on {}, but the request was bound to another worker",
                        name(holder)
                    )
                }
                (LossCause::Policy, _, Some(holder)) => {
                    format!("{tokens} cached on {}, but the policy chose another worker", name(holder))
                }
                (LossCause::Chance, _, Some(holder)) => {
                    format!("{tokens} cached on {}, which cost no more", name(holder))
                }
                (LossCause::Skipped, _, Some(holder)) => {
                    format!("{tokens} cached on {}, which was not chosen", name(holder))
                }
                (LossCause::EngineHadLess, ..) => {
                    format!("{tokens} that the engine did not reuse though its events showed them")
                }
                (cause, ..) => format!("{tokens}: {}", cause.label()),
            }
        });
    let parts: Vec<String> = parts.collect();
    Some(match parts.as_slice() {
        [] => "All full blocks of the prompt were cached on the chosen worker.".to_owned(),
        parts => format!("Computed anew: {}.", parts.join("; ")),
    })
}
