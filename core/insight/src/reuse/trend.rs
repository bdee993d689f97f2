//! How the steps of reuse went over time.

use radixscope_model::id::Millis;
use radixscope_state::cluster::DecisionEntry;

use super::PromptReuse;
use crate::time_range::TimeSpan;

/// Tokens of the prompts of a part of the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TrendStep {
    /// At each step but the last, in the order of [`super::Step::ALL`].
    pub steps: [u64; 5],
    /// Of prompts whose reuse is reported, what their chosen workers held, and what was reused.
    pub reported: (u64, u64),
}

impl TrendStep {
    /// Shares of the prompts' tokens: seen, held, eligible, chosen. `None`: there were no prompts.
    pub fn shares(&self) -> Option<[f64; 4]> {
        let [prompt, rest @ ..] = self.steps;
        (prompt > 0).then(|| rest.map(|tokens| tokens as f64 / prompt as f64))
    }
}

/// Equal parts of a time, with the prompts that were routed in each.
#[derive(Clone, PartialEq, Debug)]
pub struct Trend {
    span: TimeSpan,
    /// In order of time.
    pub parts: Vec<TrendStep>,
}

impl Trend {
    /// So many parts of a time, empty.
    pub fn new(span: TimeSpan, parts: usize) -> Self {
        Self { span, parts: vec![TrendStep::default(); parts] }
    }

    /// When a part begins.
    pub fn begin(&self, part: usize) -> Millis {
        let length_ms = self.span.until.since(self.span.from);
        Millis(self.span.from.0 + length_ms * part as u64 / self.parts.len().max(1) as u64)
    }

    pub(super) fn add(&mut self, decided: &DecisionEntry, reuse: &PromptReuse) {
        let (at, count) = (decided.decided_ms(), self.parts.len() as u64);
        let length_ms = self.span.until.since(self.span.from).max(1);
        if !(self.span.from..=self.span.until).contains(&at) {
            return;
        }
        let part = (at.since(self.span.from) * count / length_ms).min(count.saturating_sub(1));
        let Some(part) = self.parts.get_mut(part as usize) else { return };
        part.steps.iter_mut().zip(reuse.steps).for_each(|(sum, of)| *sum += of);
        if let Some(reused) = reuse.reused {
            part.reported = (part.reported.0 + reuse.steps[4], part.reported.1 + reused);
        }
    }
}
