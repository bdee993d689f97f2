//! Where the reuse of prompts is lost: steps, causes, how it went over time, and whose sessions lost most.

use radixscope_insight::reuse::{Funnel, Loss, LossCause, SessionLoss, Sessions, Step, Trend};
use radixscope_insight::time_range::TimeSpan;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{DecisionId, Millis};
use radixscope_model::number_format::{UNKNOWN, count, duration, percent, plural};
use radixscope_state::cluster::DecisionEntry;

use super::{EmptyText, NO_ROUTER};

/// Its heading.
pub const TITLE: &str = "Where reuse is lost";
/// What the bars are.
pub const CAPTION: &str =
    "Tokens of prompts, from the beginning of each without a hole, as of the decision's own time";

/// Parts of the time that the way of reuse over time is drawn in.
pub const TREND_PARTS: usize = 60;
/// Sessions that are listed: those that lost most.
const SESSIONS: usize = 5;

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

/// What a session lost.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionLine {
    /// Its name.
    pub session: String,
    /// Tokens that were computed though they had been cached before, of how many, in how many requests, and why.
    pub text: String,
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
    /// What would avoid half of the losses that can be avoided; empty: there are none.
    pub half: String,
    /// Sessions that lost most.
    pub sessions: Vec<SessionLine>,
    /// Shares of the prompts' tokens over time, for each step from the second to the last but one; `None`: no prompts.
    pub trend: Vec<(Millis, Option<[f64; 4]>)>,
    /// What is left out, since when departures are known, what times are from.
    pub notes: Vec<String>,
}

impl ReusePanel {
    /// Of the decisions of a time in the pools shown that `is_meant` takes. `time` writes a time.
    pub fn of(
        shown: &ViewContext<'_>,
        span: TimeSpan,
        is_meant: impl Fn(&DecisionEntry) -> bool,
        time: impl Fn(Millis) -> String,
    ) -> Self {
        let (mut trend, mut sessions) = (Trend::new(span, TREND_PARTS), Sessions::default());
        let is_shown = |decided: &&DecisionEntry| {
            (span.from..=span.until).contains(&decided.decided_ms())
                && shown.has(decided.pool)
                && is_meant(decided)
        };
        let meant = shown.decisions().newest_first().filter(is_shown);
        let funnel = Funnel::with_parts(meant, &mut trend, &mut sessions);
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
            half: half(&funnel),
            sessions: sessions.largest(SESSIONS).into_iter().map(SessionLine::of).collect(),
            trend: trend
                .parts
                .iter()
                .enumerate()
                .map(|(at, part)| (trend.begin(at), part.shares()))
                .collect(),
            notes: notes(&funnel, time),
        }
    }
}

impl SessionLine {
    fn of(loss: SessionLoss) -> Self {
        let SessionLoss { session, decisions, prompt_tokens, lost_tokens, cause } = loss;
        let requests = plural(decisions.into(), "request", "requests");
        let (lost, all) = (count(lost_tokens), count(prompt_tokens));
        let text = format!("{lost} of {all} tokens computed anew in {requests}, most: {}", cause.label());
        Self { session, text }
    }
}

/// Half of the avoidable losses and what helps against them.
fn half(funnel: &Funnel) -> String {
    let avoidable = funnel.losses.iter().filter(|loss| loss.cause.is_avoidable());
    let all: u64 = avoidable.map(|loss| loss.tokens).sum();
    let line = |loss: Loss| {
        let (label, share) = (loss.cause.label(), percent(loss.tokens as f64 / all as f64));
        let help = loss.cause.remedy().map_or(String::new(), |help| format!(" {help}"));
        format!("{label}, {share}.{help}")
    };
    let lines: Vec<String> = funnel.half_of_avoidable().into_iter().map(line).collect();
    match lines.as_slice() {
        [] => String::new(),
        lines => format!("Avoidable losses: {}", lines.join(" Then: ")),
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

/// What stands where no decision shows the blocks of its prompt. `has_no_router`: engines are listened to without Dynamo.
pub fn empty(has_no_router: bool) -> EmptyText {
    if has_no_router {
        return EmptyText::new("reuse-empty", NO_ROUTER.0, NO_ROUTER.1);
    }
    let mut text = EmptyText::new(
        "reuse-empty",
        "No decision shows the blocks of its prompt",
        "Prompts are visible in request traces (`DYN_REQUEST_TRACE=1`, from 1.4 on; `--request-trace` reads their files), in the messages \
         of routers with replicas (`--router-replica-sync`), and in a frontend's log at DEBUG.",
    );
    text.paragraphs.push("Workers must publish KV events.".into());
    text
}
