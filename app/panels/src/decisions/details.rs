//! One decision in full: why, every candidate's cost, the prompt, how the request went on.

use radixscope_export::TraceUrl;
use radixscope_export::panel::not_reused;
use radixscope_icicle::palette::label;
use radixscope_insight::latency;
use radixscope_insight::round_robin::{RoundRobin, not_known};
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{DecisionId, Millis, PoolIx, WorkerIx};
use radixscope_model::number_format::duration;
use radixscope_model::record::{ClientMeasured, Completeness, Outcome};
use radixscope_router::explain::Short;
use radixscope_state::cluster::{ByFilter, DecisionEntry, Hint, TtftPart, candidates_hint};

use super::candidates::Candidates;
use super::row::{clock_of, known_from, milliseconds, time};
use super::scores::Scores;
use super::strip::PromptStrip;
use crate::format;
use crate::time_zone::TimeZone;

/// Beside candidates that were computed on a tree that lacked blocks.
pub const ON_PARTIAL_TREE: &str = "Computed on a tree that lacked blocks: workers may have had more of the prompt cached, and \
    cost less, than shown. Cost gap and better-cached workers are withheld.";
/// In the place of a decision that the state does not have.
pub const GONE: &str =
    "This decision is no longer retained: the server retains the latest 10,000 since it started.";
/// Below a decision that the state had.
pub const DROPPED: &str = "The server no longer retains it; shown as last received.";

/// The decision that is open; it stays as it was last known, also when the state drops it.
#[derive(Clone, PartialEq, Debug)]
pub struct OpenDecision {
    /// What is known of it.
    pub decided: DecisionEntry,
    /// The state has it no more.
    pub is_dropped: bool,
}

impl OpenDecision {
    /// `found`: what the state has of it now; `before`: what was open.
    pub fn follow(id: DecisionId, found: Option<DecisionEntry>, before: Option<Self>) -> Option<Self> {
        let found = found.map(|decided| Self { decided, is_dropped: false });
        let before = before.filter(|open| open.decided.decision.id == id);
        found.or_else(|| before.map(|open| Self { is_dropped: true, ..open }))
    }
}

/// Heading of a decision.
pub fn title(id: DecisionId) -> String {
    format!("Decision {id}")
}

/// Everything that stands in a decision's details, apart from the other choice for the same request, which may still come.
#[derive(Clone, PartialEq, Debug)]
pub struct DecisionDetails {
    /// Which.
    pub id: DecisionId,
    /// The chosen worker.
    pub worker: WorkerIx,
    /// Its whole id.
    pub worker_id: Option<String>,
    /// Why it was chosen.
    pub why: String,
    /// That a better-cached worker was skipped, and why.
    pub lost_affinity: Option<String>,
    /// Why the prompt was not reused whole.
    pub not_reused: Option<String>,
    /// What round-robin would have done; `None`: not Dynamo's router.
    pub instead: Option<Instead>,
    /// That the state has it no more.
    pub dropped: Option<&'static str>,
    /// Adapter that the request asked for.
    pub adapter: Option<String>,
    /// The request.
    pub request: Option<String>,
    /// Its session.
    pub session: Option<String>,
    /// The link to its trace, and the trace's id.
    pub trace: Option<(String, Option<String>)>,
    /// How another router names the worker.
    pub endpoint: Option<String>,
    /// Which router decided.
    pub router: &'static str,
    /// What decided.
    pub decided_by: &'static str,
    /// How it is known, and from where.
    pub known: String,
    /// Heading of the costs.
    pub costs_title: &'static str,
    /// What was compared.
    pub costs: Costs,
    /// How far each worker had the prompt cached.
    pub cached: CachedPrompt,
    /// The way to its path in the tree; `None`: cached blocks did not matter.
    pub path: Option<TreePath>,
    /// How the request went on.
    pub timeline: Timeline,
    /// What the time to first token is made of.
    pub ttft: [TtftRow; 3],
    /// The whole as text, for a ticket.
    pub ticket: String,
}

/// What was compared.
#[derive(Clone, PartialEq, Debug)]
pub enum Costs {
    /// Another router's scores; `None`: not reported.
    Scores(Option<Scores>),
    /// Only the chosen worker is known: newer decisions took the place of its candidates.
    Forgotten(&'static str),
    /// Only the chosen worker is known: why the others could not be computed.
    NotReconstructed(String),
    /// Only the chosen worker is known: what would report the others.
    ChosenOnly(Hint),
    /// Every candidate, and a note where the tree lacked blocks.
    Candidates(Candidates, Option<&'static str>),
}

/// How far each worker had the prompt cached.
#[derive(Clone, PartialEq, Debug)]
pub enum CachedPrompt {
    /// It did not matter, and why.
    Ignored(&'static str),
    /// The prompt's length is unknown.
    Unknown,
    /// As a bar.
    Strip(PromptStrip),
}

/// The way to the tree.
#[derive(Clone, PartialEq, Debug)]
pub enum TreePath {
    /// There is nothing to show there, and why.
    None(&'static str),
    /// A button.
    Shown {
        /// What it says.
        text: &'static str,
        /// What will be shown.
        title: String,
        /// Whose pool the path is in; `None`: the decision's.
        worker: Option<WorkerIx>,
        /// The decision's pool.
        pool: PoolIx,
    },
}

/// What round-robin would have done with a decision, and how that was derived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instead {
    /// For people and tickets.
    pub sentence: String,
    /// `None` where nothing could be derived.
    pub derivation: Option<String>,
}

impl Instead {
    /// Of a decision.
    pub fn of(shown: &ViewContext<'_>, decided: &DecisionEntry) -> Self {
        match RoundRobin::of(shown.cluster, decided) {
            Ok(found) => Self { sentence: found.sentence(label), derivation: Some(found.derivation()) },
            Err(missing) => Self { sentence: not_known(missing), derivation: None },
        }
    }
}

impl DecisionDetails {
    /// Of an open decision. `utc`: its time written out with its zone, for the ticket; `trace_url`: the link to traces, if one is set.
    pub fn of(
        shown: &ViewContext<'_>,
        open: &OpenDecision,
        zone: TimeZone,
        utc: &str,
        trace_url: Option<&TraceUrl>,
    ) -> Self {
        let decided = &open.decided;
        let decision = &decided.decision;
        let worker = decision.worker;
        let is_of_other_router = decided.is_of_other_router();
        let not_reused = not_reused::sentence(shown.cluster, decided, label);
        let instead = (!is_of_other_router).then(|| Instead::of(shown, decided));
        Self {
            id: decision.id,
            worker,
            worker_id: shown.worker(worker).map(|worker| worker.id.to_string()),
            why: decided.why(label),
            lost_affinity: decided.why_affinity_was_lost(label),
            dropped: open.is_dropped.then_some(DROPPED),
            adapter: decision.adapter.as_ref().map(ToString::to_string),
            request: decision.request_id.as_ref().map(ToString::to_string),
            session: decision.session.as_ref().map(ToString::to_string),
            trace: trace_url
                .and_then(|template| template.of(decided))
                .map(|url| (url, decision.trace_id.as_ref().map(ToString::to_string))),
            endpoint: shown.endpoint_of(worker).map(str::to_owned),
            router: decision.arithmetic.label(),
            decided_by: ByFilter(decision.decided_by).to_text(),
            known: known_from(decided),
            costs_title: if is_of_other_router { "Score, higher wins" } else { "Cost, lower wins" },
            costs: Costs::of(shown, decided),
            cached: CachedPrompt::of(decided),
            path: (!decided.ignores_cache).then(|| TreePath::of(decided)),
            timeline: Timeline::of(decided, zone),
            ttft: ttft_rows(shown, decided),
            ticket: ticket(shown, decided, utc, not_reused.as_deref(), instead.as_ref()),
            not_reused,
            instead,
        }
    }
}

impl Costs {
    fn of(shown: &ViewContext<'_>, decided: &DecisionEntry) -> Self {
        let decision = &decided.decision;
        if decided.is_of_other_router() {
            return Self::Scores(Scores::of(shown, decided));
        }
        if decision.completeness != Completeness::ChosenOnly && !decision.candidates.is_empty() {
            return Self::Candidates(Candidates::of(decided), decided.partial.then_some(ON_PARTIAL_TREE));
        }
        if decided.candidates_forgotten() {
            return Self::Forgotten(
                "Its candidates are no longer retained: newer decisions took their place.",
            );
        }
        match decision.not_reconstructed {
            Some(missing) => Self::NotReconstructed(format!(
                "The costs of the others could not be computed: {}.",
                missing.to_text()
            )),
            None => Self::ChosenOnly(candidates_hint()),
        }
    }
}

impl CachedPrompt {
    fn of(decided: &DecisionEntry) -> Self {
        match decided.decision.isl_blocks.is_some_and(|isl| isl > 0) {
            _ if decided.ignores_cache => Self::Ignored(
                "Decode decisions ignore cached blocks: the KV cache is transferred from the prefill worker.",
            ),
            true => Self::Strip(PromptStrip::of(decided)),
            false => Self::Unknown,
        }
    }
}

impl TreePath {
    fn of(decided: &DecisionEntry) -> Self {
        let (path, ghost) = (decided.decision.path, not_reused::ghost(decided, label));
        if path.is_none() && ghost.is_none() {
            return Self::None(
                "Its source names no blocks, or none was cached: there is no path to show in the tree.",
            );
        }
        let blocks = path.map_or(0, |end| end.blocks);
        let way = format!("The path of its first {}", format::plural(blocks.into(), "block", "blocks"));
        Self::Shown {
            text: if ghost.is_some() { "Show in the tree what was gone" } else { "Show in the tree" },
            title: ghost.map_or(way.clone(), |ghost| format!("{way}, then {}", ghost.label)),
            worker: path.map(|end| end.worker),
            pool: decided.pool,
        }
    }
}

/// What happened when, as far as it was reported.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// When it was decided, and by whose clock.
    pub decided: String,
    /// The first token, and whether it was reported.
    pub ttft: (String, bool),
    /// The end, and whether its time was reported.
    pub end: (String, bool),
    /// What the client measured.
    pub client: Option<String>,
    /// Tokens and times between them; empty: not reported.
    pub more: String,
}

impl Timeline {
    fn of(decided: &DecisionEntry, zone: TimeZone) -> Self {
        let progress = decided.progress;
        let decided_ms = decided.decided_ms();
        let since = |at: Millis| milliseconds(at.since(decided_ms) as f64);
        let first = match decided.time_to_first_token_ms() {
            Some((ms, true)) => format!("after {}, as the frontend measured it", milliseconds(ms)),
            Some((ms, false)) => format!("after {}", milliseconds(ms)),
            None => "not reported".to_owned(),
        };
        let end = match (progress.ended_ms, progress.outcome.map(Outcome::as_str)) {
            (Some(at), outcome) => {
                format!("after {}{}", since(at), outcome.map_or(String::new(), |how| format!(", {how}")))
            }
            (None, Some(outcome)) => outcome.to_owned(),
            (None, None) => "in flight, or not reported".to_owned(),
        };
        let tokens = progress.output_tokens.map(|n| format::plural(n, "output token", "output tokens"));
        let itl =
            progress.itl_us.map(|us| format!("{:.1} ms between tokens on average", us as f64 / 1_000.0));
        let cached = progress
            .cached_tokens
            .map(|n| format!("{} from the cache", format::plural(n, "prompt token", "prompt tokens")));
        let more: Vec<String> = [tokens, itl, cached].into_iter().flatten().collect();
        Self {
            decided: format!("{}, {}", time(zone, decided_ms), clock_of(decided)),
            ttft: (first, progress.first_token_ms.is_some() || progress.ttft_us.is_some()),
            end: (end, progress.ended_ms.is_some()),
            client: decided.client.map(|measured| client_text(decided, &measured)),
            more: more.join(", "),
        }
    }
}

/// What the client measured, and how its time to first token differs from the frontend's.
fn client_text(decided: &DecisionEntry, measured: &ClientMeasured) -> String {
    let ttft = latency::ttft_difference(decided).map(|text| format!("TTFT {text}"));
    let ms = |us: u64| us as f64 / 1_000.0;
    let itl = measured.itl_us.map(|us| format!("{:.1} ms between tokens on average", ms(us)));
    let whole = measured.duration_us.map(|us| format!("{} in all", milliseconds(ms(us))));
    let end = (measured.outcome != Outcome::Success).then(|| match measured.status {
        Some(status) => format!("{}, status {status}", measured.outcome.as_str()),
        None => measured.outcome.as_str().to_owned(),
    });
    [end, ttft, itl, whole].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A part of the time to first token.
#[derive(Clone, PartialEq, Debug)]
pub struct TtftRow {
    /// Its colour, as a class.
    pub class: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// How long it took.
    pub time: String,
    /// Where it is known from, or what would report it.
    pub source: &'static str,
    /// Share of the known parts, as a width for the style sheet; `None`: not known, or nothing.
    pub width: Option<String>,
}

fn ttft_rows(shown: &ViewContext<'_>, decided: &DecisionEntry) -> [TtftRow; 3] {
    let parts = decided.ttft_parts(shown.parts_of(decided));
    let sum: f64 = parts.iter().filter_map(|part| part.ms).sum();
    let row = |part: TtftPart, class| TtftRow {
        class,
        name: part.name,
        time: part.ms.map_or("not reported".to_owned(), duration),
        source: part.source,
        width: part.ms.filter(|ms| *ms > 0.0 && sum > 0.0).map(|ms| format::width(ms / sum)),
    };
    let [queue, prefill, first_token] = parts;
    [row(queue, "queued"), row(prefill, "computed"), row(first_token, "handed")]
}

fn ticket(
    shown: &ViewContext<'_>,
    decided: &DecisionEntry,
    utc: &str,
    not_reused: Option<&str>,
    instead: Option<&Instead>,
) -> String {
    let mut text =
        decided.ticket(utc, |worker| (label(worker), shown.worker(worker).map(|worker| worker.id)));
    let derivation = instead.and_then(|instead| instead.derivation.as_deref());
    let more = [not_reused, instead.map(|instead| instead.sentence.as_str()), derivation];
    for line in more.into_iter().flatten() {
        text.push_str(&format!("- {line}\n"));
    }
    text
}

/// The other choice for the same request, where prefill and decode are apart.
#[derive(Clone, PartialEq, Debug)]
pub struct OtherPart {
    /// Before its worker.
    pub head: String,
    /// Its worker.
    pub worker: WorkerIx,
    /// Its cost, behind the worker; empty: unknown.
    pub cost: String,
    /// Why it was chosen.
    pub why: String,
    /// How long the KV cache was between both.
    pub gap: String,
    /// What opens it.
    pub open: String,
}

impl OtherPart {
    /// Of a decision for a request with two choices; `None`: the other one is not retained.
    pub fn of(shown: &ViewContext<'_>, decided: &DecisionEntry) -> Option<Self> {
        let parts = shown.parts_of(decided)?;
        let is_decode = parts.prefill.decision.id == decided.decision.id;
        let other = if is_decode { parts.decode } else { parts.prefill };
        let (name, does) = match is_decode {
            true => ("decode", "generates the response"),
            false => ("prefill", "computes the prompt"),
        };
        let cost = |cost: f64| format!(", cost {} blocks", Short((cost * 10.0).round() / 10.0));
        Some(Self {
            head: format!("The {name} worker of this request, which {does}: "),
            worker: other.decision.worker,
            cost: other.chosen_cost().map_or(String::new(), cost),
            why: other.why(label),
            gap: gap_text(parts.transfer_gap_ms()),
            open: format!("Open the {name} decision, {}", other.decision.id),
        })
    }

    /// In its place where it is not retained.
    pub fn gone_text(id: DecisionId) -> String {
        format!("The other decision for this request, {id}, is no longer retained.")
    }
}

fn gap_text(gap: Option<i64>) -> String {
    match gap {
        None => "Transfer gap not reported: from prefill freed to the first token".to_owned(),
        Some(ms) if ms < 0 => {
            format!(
                "No transfer gap: the first token came {} before prefill was freed",
                milliseconds(-ms as f64)
            )
        }
        Some(ms) => {
            format!("Transfer gap {}: from prefill freed to the first token", milliseconds(ms as f64))
        }
    }
}
