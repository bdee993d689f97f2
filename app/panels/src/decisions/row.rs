//! The table of decisions: its columns, and a row as text.

use std::ops::Range;

use radixscope_export::panel::decisions::PromptBars;
use radixscope_insight::latency;
use radixscope_model::id::{DecisionId, Millis, PoolIx, Slot, WorkerIx};
use radixscope_model::record::{ClientMeasured, Completeness, DecidedBy, DecisionSource, Outcome};
use radixscope_router::explain::Short;
use radixscope_state::cluster::{CacheOutcome, DecisionEntry};

use super::list::{DecisionList, Listed};
use crate::format::{self, UNKNOWN};
use crate::time_zone::TimeZone;

/// Characters of a request id that are shown at most.
const REQUEST_CHARS: usize = 10;

/// The head, a row for each of [`Column::ALL`]: class that says where the column stands, name, explanation.
pub const COLUMNS: [(&str, &str, &str); 12] = [
    (
        "l-time",
        "Time",
        "When it was decided, by the router's own clock where that is known, else when it was received; each row says which",
    ),
    (
        "l-request",
        "Request",
        "The router's request id, shortened; click a row for all of it. The dot is its session, in the colour that the tree can show",
    ),
    ("l-worker", "Worker", "The worker chosen"),
    ("l-prompt n", "Prompt", "Length in tokens, if known, and in blocks, a partial last one included"),
    (
        "l-overlap n",
        "Cached",
        "Blocks of the prompt that were cached on the chosen worker, as the router counted them, else as reconstructed here; after +, those in host memory and below",
    ),
    (
        "l-share",
        "Hit rate",
        "KV hit rate: cached blocks ÷ prompt blocks. The bar is as long as the prompt beside the others in sight, filled as far as it was cached",
    ),
    ("l-cost n", "Cost", "Cost of the chosen worker, in blocks"),
    ("l-margin n", "Cost gap", "Cost of the next best candidate − cost of the chosen one, in blocks"),
    (
        "l-verdict",
        "Outcome",
        "How much of the prompt was cached on the chosen worker; tie: several share the lowest cost; −N: so many more blocks were cached on another worker; session, bound, policy: what decided, not the cost",
    ),
    (
        "l-known",
        "Detail",
        "Whose costs are known: all candidates' from the router, all candidates' reconstructed here for the decision's own time, the same on a tree that lacked blocks, or the chosen worker's only",
    ),
    ("l-ttft n", "TTFT", "Time to first token: from the decision to the first output token"),
    (
        "l-client n",
        "Client TTFT",
        "Time to first token as the client measured it (--client-results): the network and what waits before the frontend are in it",
    ),
];

/// Why a choice for decode has no outcome.
pub const IGNORED: &str = "decode decisions ignore cached blocks";

/// What a row shows. Figures that are unknown are `–`.
#[derive(Clone, PartialEq, Debug)]
pub struct DecisionRow {
    /// Which decision.
    pub id: DecisionId,
    /// Place among all lines, from 0.
    pub line: usize,
    /// When it was decided.
    pub time: String,
    /// By whose clock.
    pub time_title: &'static str,
    /// The request id, shortened.
    pub request: String,
    /// The whole of it; empty where it is unknown.
    pub request_full: String,
    /// Its session, with its colour if it has one.
    pub session: Option<(String, Option<Slot>)>,
    /// The chosen worker.
    pub worker: WorkerIx,
    /// The pool that was chosen from.
    pub pool: PoolIx,
    /// The prompt in tokens, if known, and blocks.
    pub prompt: String,
    /// Cached blocks of it, and behind `+` those in lower tiers.
    pub overlap: String,
    /// The prompt in blocks as a number.
    pub prompt_blocks: Option<u64>,
    /// Share of the room that the prompt's bar takes, beside the other lines in sight.
    pub prompt_bar: Option<f64>,
    /// Cached share of the prompt, 0 … 1.
    pub share: Option<f64>,
    /// Cost of the chosen worker.
    pub cost: String,
    /// Cost of the next best candidate less that.
    pub cost_gap: String,
    /// What that is, or why it is unknown.
    pub cost_gap_title: String,
    /// How much of the prompt was cached.
    pub verdict: CacheOutcome,
    /// Tie, better-cached worker skipped.
    pub flags: String,
    /// What else than the cost decided; empty: nothing else, or not reported.
    pub by: &'static str,
    /// The same in full, with the session.
    pub by_title: String,
    /// Whose costs are known.
    pub known: &'static str,
    /// How they are known, and from where.
    pub known_title: String,
    /// What was computed rests on a tree that lacked blocks.
    pub is_partial: bool,
    /// Time to first token.
    pub ttft: String,
    /// By whom that is known.
    pub ttft_title: &'static str,
    /// Time to first token as the client measured it; empty where no result is joined.
    pub client: String,
    /// How it differs from what the frontend measured.
    pub client_title: String,
}

impl DecisionRow {
    /// `line`: its place among all rows; `sessions`: those with colours.
    pub fn of(decided: &DecisionEntry, line: usize, sessions: &[(Box<str>, Slot)], zone: TimeZone) -> Self {
        let decision = &decided.decision;
        let request = decision.request_id.as_deref().unwrap_or_default();
        let (cost_gap, cost_gap_title) = match decided.cost_gap_blocks() {
            Ok(cost_gap) => (
                Short(tenth(cost_gap)).to_string(),
                "Cost of the next best candidate less that of the chosen one".to_owned(),
            ),
            Err(why) => (UNKNOWN.to_owned(), format!("Unknown: {}", why.as_str())),
        };
        let by = match decision.decided_by {
            Some(DecidedBy::SessionAffinity) => "session",
            Some(DecidedBy::Pinned) => "bound",
            Some(DecidedBy::Policy) => "policy",
            Some(DecidedBy::Mode) => "mode",
            Some(DecidedBy::Scores) => "scores",
            Some(DecidedBy::Cost) | None => "",
        };
        let mut flags = String::new();
        if decided.is_tie() {
            flags.push_str("tie");
        }
        if let Some(lost) = decided.lost_affinity() {
            let comma = if flags.is_empty() { "" } else { ", " };
            flags.push_str(&format!("{comma}−{}", format::count(lost.more_blocks.into())));
        }
        let (ttft, ttft_title) = match decided.time_to_first_token_ms() {
            Some((ms, true)) => (milliseconds(ms), "As the frontend measured it"),
            Some((ms, false)) => (
                milliseconds(ms),
                "Time to first token: from the decision to the first output token, both as reported",
            ),
            None => (UNKNOWN.to_owned(), "No first token was reported"),
        };
        Self {
            id: decision.id,
            line,
            time: time(zone, decided.decided_ms()),
            time_title: clock_of(decided),
            request: shortened(request),
            request_full: request.to_owned(),
            session: decision.session.as_ref().map(|session| {
                let colour = sessions.iter().find(|(name, _)| **name == **session).map(|(_, slot)| *slot);
                (session.to_string(), colour)
            }),
            worker: decision.worker,
            pool: decided.pool,
            prompt: prompt(decided),
            overlap: overlap(decided),
            prompt_blocks: decision.isl_blocks,
            prompt_bar: None,
            share: decided.overlap_share(),
            cost: decided.chosen_cost().map_or(UNKNOWN.to_owned(), |cost| Short(tenth(cost)).to_string()),
            cost_gap,
            cost_gap_title,
            verdict: decided.cache_outcome(),
            flags,
            by,
            by_title: by_title(decided),
            known: match decision.completeness {
                Completeness::AllCandidates => "all",
                Completeness::Reconstructed if decided.partial => "partial tree",
                Completeness::Reconstructed => "reconstr.",
                Completeness::ChosenOnly => "chosen",
            },
            known_title: known_from(decided),
            is_partial: decided.partial,
            ttft,
            ttft_title,
            client: decided.client.map_or(String::new(), client),
            client_title: latency::ttft_difference(decided).unwrap_or_default(),
        }
    }

    /// The rows of these lines, `None` beyond the last one; the bars of their prompts compare with each other.
    pub fn of_lines(
        list: &DecisionList,
        listed: Listed<'_>,
        lines: Range<usize>,
        zone: TimeZone,
    ) -> Vec<Option<Self>> {
        let row = |line: usize| {
            let decided = listed.at(*list.picked.at.get(line)?)?;
            Some(Self::of(decided, line, &list.sessions, zone))
        };
        let mut rows: Vec<Option<Self>> = lines.map(row).collect();
        let bars = PromptBars::of(rows.iter().flatten().map(|row| row.prompt_blocks));
        for row in rows.iter_mut().flatten() {
            row.prompt_bar = bars.length(row.prompt_blocks);
        }
        rows
    }

    /// The cached share as text.
    pub fn share_text(&self) -> String {
        self.share.map_or(UNKNOWN.to_owned(), format::percent)
    }

    /// The outcome as text: a choice for decode has none.
    pub const fn outcome_text(&self) -> &'static str {
        match self.verdict {
            CacheOutcome::Ignored => UNKNOWN,
            known => known.as_str(),
        }
    }

    /// Why it has none.
    pub fn outcome_title(&self) -> Option<&'static str> {
        (self.verdict == CacheOutcome::Ignored).then_some(IGNORED)
    }
}

/// What the client saw: the time to its first token, or how else the request ended for it.
fn client(measured: ClientMeasured) -> String {
    match (measured.ttft_us, measured.outcome) {
        (Some(us), Outcome::Success) => milliseconds(us as f64 / 1_000.0),
        (_, Outcome::Success) => UNKNOWN.to_owned(),
        (_, other) => measured.status.map_or(other.as_str().to_owned(), |status| status.to_string()),
    }
}

/// What else than the cost decided, with the session.
fn by_title(decided: &DecisionEntry) -> String {
    let Some(by) = decided.decision.decided_by.filter(|_| !decided.is_by_cost()) else {
        return String::new();
    };
    match &decided.decision.session {
        Some(session) => format!("Decided by: {}; session {session}", by.to_text()),
        None => format!("Decided by: {}", by.to_text()),
    }
}

/// How it is known, and from where.
pub(super) fn known_from(decided: &DecisionEntry) -> String {
    let sources: Vec<&str> = decided.sources().map(DecisionSource::as_str).collect();
    format!("{}, from {}", decided.known_text(), sources.join(", "))
}

/// By whose clock a decision's time is.
pub(super) fn clock_of(decided: &DecisionEntry) -> &'static str {
    if decided.decision.decided_ms.is_some() { "by the router's clock" } else { "when it was received" }
}

/// `HH:MM:SS.mmm`.
pub(super) fn time(zone: TimeZone, at: Millis) -> String {
    format!("{}.{:03}", zone.time_of_day(at), at.0 % 1_000)
}

/// `342 ms`, `5.1 s`.
pub(super) fn milliseconds(ms: f64) -> String {
    format::lag(ms.round().clamp(0.0, 1e15) as i64)
}

fn prompt(decided: &DecisionEntry) -> String {
    let blocks = number(decided.decision.isl_blocks);
    match decided.decision.isl_tokens {
        Some(tokens) => format!("{} / {blocks}", format::short(tokens)),
        None => blocks,
    }
}

/// Blocks on the device and, if there are any, those below it.
fn overlap(decided: &DecisionEntry) -> String {
    let device = number(decided.overlap_blocks().filter(|_| !decided.ignores_cache));
    match decided.lower_tier_blocks() {
        0 => device,
        below => format!("{device} + {}", format::count(below)),
    }
}

fn number(n: Option<u64>) -> String {
    n.map_or(UNKNOWN.to_owned(), format::count)
}

fn tenth(blocks: f64) -> f64 {
    (blocks * 10.0).round() / 10.0
}

fn shortened(id: &str) -> String {
    match id.char_indices().nth(REQUEST_CHARS) {
        Some((at, _)) => format!("{}…", &id[..at]),
        None if id.is_empty() => UNKNOWN.to_owned(),
        None => id.to_owned(),
    }
}
