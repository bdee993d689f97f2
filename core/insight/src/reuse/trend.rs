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
        let length_ms = u128::from(self.span.until.since(self.span.from));
        Millis(self.span.from.0 + (length_ms * part as u128 / self.parts.len().max(1) as u128) as u64)
    }

    pub(super) fn add(&mut self, decided: &DecisionEntry, reuse: &PromptReuse) {
        let at = decided.decided_ms();
        if !(self.span.from..=self.span.until).contains(&at) {
            return;
        }
        // A time may be as long as addresses say.
        let (count, length_ms) = (self.parts.len() as u128, self.span.until.since(self.span.from).max(1));
        let part = u128::from(at.since(self.span.from)) * count / u128::from(length_ms);
        let Some(part) = self.parts.get_mut(part.min(count.saturating_sub(1)) as usize) else { return };
        part.steps.iter_mut().zip(reuse.steps).for_each(|(sum, of)| *sum += of);
    }
}
