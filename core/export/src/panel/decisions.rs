//! The latest routing decisions, and the KV hit rate over them.

use radixscope_insight::view_context::{Sums, ViewContext, caption, source_name};
use radixscope_model::id::{DecisionId, Millis, Seq, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, count, percent};
use radixscope_state::cluster::DecisionEntry;

use super::EmptyText;

/// Its heading.
pub const TITLE: &str = "Decisions";
/// Columns of the table.
pub const TIME: &str = "Time";
/// The chosen worker.
pub const WORKER: &str = "Worker";
/// Prompt length.
pub const PROMPT: &str = "Prompt";
/// Cached part of the prompt.
pub const CACHED: &str = "Cached";
/// Cached share of the prompt.
pub const HIT_RATE: &str = "Hit rate";
/// Where the decision is known from.
pub const SOURCE: &str = "Source";
/// Head of an empty panel before the first decision.
pub const NO_DECISION: &str = "No decision received yet";
/// What the figure of the last minute is.
pub const RECENT: &str = "KV hit rate, last 60 s";
/// What the figure over all decisions is.
pub const OVERALL: &str = "since start";

/// KV hit rates.
#[derive(Clone, PartialEq, Debug)]
pub struct HitRates {
    /// Over the last minute.
    pub recent: Sums,
    /// Since the server started.
    pub overall: Sums,
}

impl HitRates {
    /// Over the decisions of the pools shown, or for the one worker that is picked.
    pub fn of(shown: &ViewContext<'_>, picked: Option<WorkerIx>, now: Millis) -> Self {
        let (recent, overall) = shown.decision_figures(picked, now);
        Self { recent, overall }
    }

    /// What both are taken over.
    pub fn caption(&self) -> String {
        caption(&self.recent, &self.overall)
    }
}

/// A row of the table.
#[derive(Clone, PartialEq, Debug)]
pub struct DecisionRow {
    /// The record.
    pub seq: Seq,
    /// Which decision.
    pub id: DecisionId,
    /// The request, where it is known.
    pub request: Option<String>,
    /// When it was made.
    pub at_ms: Millis,
    /// The chosen worker.
    pub worker: WorkerIx,
    /// Prompt blocks.
    pub prompt: String,
    /// Prompt blocks that were cached on the chosen worker.
    pub cached: String,
    /// Prompt blocks as a number.
    pub prompt_blocks: Option<u64>,
    /// Cached share of the prompt, 0 … 1.
    pub share: Option<f64>,
    /// Where it is known from.
    pub source: &'static str,
}

impl DecisionRow {
    fn of(entry: &DecisionEntry) -> Self {
        let decision = &entry.decision;
        let number = |blocks: Option<u64>| blocks.map_or(UNKNOWN.to_owned(), count);
        Self {
            seq: entry.seq,
            id: decision.id,
            request: decision.request_id.as_ref().map(ToString::to_string),
            at_ms: entry.at_ms,
            worker: decision.worker,
            prompt: number(decision.isl_blocks),
            cached: number(entry.overlap_blocks().filter(|_| !entry.ignores_cache)),
            prompt_blocks: decision.isl_blocks,
            share: entry.overlap_share(),
            source: source_name(decision.source),
        }
    }

    /// The share as text.
    pub fn share_text(&self) -> String {
        self.share.map_or(UNKNOWN.to_owned(), percent)
    }
}

/// What the bars of decisions say: as long as the prompt, filled as far as it was cached.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PromptBars {
    /// Prompt blocks of a bar that takes all the room.
    longest_blocks: u64,
}

impl PromptBars {
    /// For decisions with these prompts. The longest is rounded up to a power of two, so that bars keep their length while
    /// decisions come and go.
    pub fn of(prompts: impl Iterator<Item = Option<u64>>) -> Self {
        let longest = prompts.flatten().max().unwrap_or(1);
        Self { longest_blocks: longest.checked_next_power_of_two().unwrap_or(longest) }
    }

    /// Share of the room that a prompt's bar takes, 0 … 1; `None`: its length is unknown.
    pub fn length(self, prompt_blocks: Option<u64>) -> Option<f64> {
        Some(prompt_blocks? as f64 / self.longest_blocks as f64)
    }

    /// What they are, as text.
    pub fn to_text(self) -> String {
        format!(
            "KV hit rate: cached blocks ÷ prompt blocks. Bar: as long as the prompt, {} blocks the whole width; filled: cached",
            count(self.longest_blocks)
        )
    }
}

/// The newest decisions, at most `limit`, of the pools shown or of the one worker that is picked.
pub fn rows(shown: &ViewContext<'_>, picked: Option<WorkerIx>, limit: usize) -> Vec<DecisionRow> {
    shown.decisions_on(picked).take(limit).map(DecisionRow::of).collect()
}

/// Why there is no decision.
pub fn empty(shown: &ViewContext<'_>, picked: Option<WorkerIx>) -> EmptyText {
    if picked.is_some() {
        let head = "No decision for this worker yet";
        return EmptyText { id: "decisions-none-picked", head, paragraphs: Vec::new() };
    }
    match shown.decisions_hint().filter(|_| shown.has_kv_events()) {
        Some(hint) if hint.settings.is_empty() => {
            EmptyText::new("decisions-missing", "No routing decisions received", hint.text)
        }
        Some(hint) => EmptyText {
            id: "decisions-missing",
            head: "No routing decisions received",
            paragraphs: vec![
                hint.to_string().into(),
                "If no request was sent since the server started, there is nothing to show yet.".into(),
            ],
        },
        None => EmptyText::new(
            "decisions-empty",
            NO_DECISION,
            "Every request that the KV router places appears here, with the share of its prompt that was cached on the chosen \
             worker.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::PromptBars;

    #[test]
    fn a_bar_is_as_long_as_its_prompt_and_unknown_without_one() {
        let bars = PromptBars::of([Some(300), None, Some(64)].into_iter());
        assert_eq!(
            [Some(256), Some(0), None].map(|blocks| bars.length(blocks)),
            [Some(0.5), Some(0.0), None]
        );
        assert!(bars.to_text().contains("512 blocks the whole width"), "{}", bars.to_text());
        assert_eq!(PromptBars::of([None].into_iter()).length(Some(1)), Some(1.0));
        assert_eq!(PromptBars::of([Some(u64::MAX)].into_iter()).length(Some(u64::MAX)), Some(1.0));
    }
}
