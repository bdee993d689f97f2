//! A line of the ledger as text.

use radixscope_insight::latency;
use radixscope_model::id::{DecisionId, Millis, PoolIx, Slot, WorkerIx};
use radixscope_model::record::{ClientMeasured, Completeness, DecidedBy, DecisionSource, Outcome};
use radixscope_router::explain::Short;
use radixscope_state::cluster::{CacheOutcome, DecisionEntry};

use crate::format::{self, UNKNOWN};
use crate::store::time_of_day;

/// Characters of a request id that are shown at most.
const REQUEST_CHARS: usize = 10;

/// Why a choice for decode has no outcome.
pub(super) const IGNORED: &str = "decode decisions ignore cached blocks";

/// What a line shows.
#[derive(Clone, PartialEq)]
pub(super) struct DecisionLine {
    pub id: DecisionId,
    /// Place among all lines, from 0.
    pub line: usize,
    pub time: String,
    pub time_title: &'static str,
    pub request: String,
    pub request_full: String,
    /// Its session, with its colour if it has one.
    pub session: Option<(String, Option<Slot>)>,
    pub worker: WorkerIx,
    pub pool: PoolIx,
    pub prompt: String,
    pub overlap: String,
    pub prompt_blocks: Option<u64>,
    /// Share of the room that the prompt's bar takes, beside the other lines in sight.
    pub prompt_bar: Option<f64>,
    pub share: Option<f64>,
    pub cost: String,
    pub cost_gap: String,
    pub cost_gap_title: String,
    pub verdict: CacheOutcome,
    /// Tie, better-cached worker skipped.
    pub flags: String,
    /// What else than the cost decided; empty: nothing else, or not reported.
    pub by: &'static str,
    pub by_title: String,
    pub known: &'static str,
    pub known_title: String,
    /// What was computed rests on a tree that lacked blocks.
    pub is_partial: bool,
    pub ttft: String,
    pub ttft_title: &'static str,
    /// Time to first token as the client measured it; empty where no result is joined.
    pub client: String,
    pub client_title: String,
}

impl DecisionLine {
    /// `sessions`: those with colours.
    pub(super) fn of(decided: &DecisionEntry, line: usize, sessions: &[(Box<str>, Slot)]) -> Self {
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
            time: time(decided.decided_ms()),
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
pub(super) fn time(at: Millis) -> String {
    format!("{}.{:03}", time_of_day(at), at.0 % 1_000)
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
