//! What fits, with units, sentences and the difference to what runs.

use radixscope_insight::capacity::{Capacity, FieldFault, FitSentence, against_live, fit_sentences};

use super::Calculator;
use crate::format;

/// Beside figures that rest on a number of blocks, not on memory.
const GIVEN: &str = "KV blocks per worker, as the deployment reports them or as typed, stand for GPU memory, weights and \
    fraction. Empty that field to compute the blocks from those.";

/// What the calculator computes.
#[derive(Clone, PartialEq, Debug)]
pub enum Results {
    /// Why nothing can be computed.
    Refused(String),
    /// What fits.
    Fits {
        /// Numbers with their units.
        figures: Vec<CapacityFigure>,
        /// What they mean.
        lines: Vec<FitLine>,
    },
}

/// A number of the calculator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapacityFigure {
    /// Its name in the page's document.
    pub id: &'static str,
    /// What it is.
    pub label: &'static str,
    /// The number.
    pub value: String,
    /// Its unit.
    pub unit: &'static str,
}

/// What the numbers mean, in a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FitLine {
    /// Its sign.
    pub icon: &'static str,
    /// The same in words; empty where it is neither good nor bad.
    pub word: &'static str,
    /// For the style sheet.
    pub class: &'static str,
    /// The sentence.
    pub text: String,
}

impl Results {
    /// Of what is typed.
    pub fn of(calculator: &Calculator) -> Self {
        let Some((inputs, capacity)) = calculator.computed() else {
            let faults = calculator.faults().iter().map(|fault: &FieldFault| fault.message.as_str());
            let faults = faults.collect::<Vec<_>>().join("; ");
            return Self::Refused(format!("Nothing can be computed until this is changed: {faults}."));
        };
        let lines = fit_sentences(inputs, capacity).into_iter().map(FitLine::of).collect();
        Self::Fits { figures: figures(capacity), lines }
    }
}

impl FitLine {
    fn of(sentence: FitSentence) -> Self {
        let (icon, word, class) = match sentence.fits {
            Some(true) => ("✓", "Fits.", "fits"),
            Some(false) => ("✕", "Does not fit.", "too-much"),
            None => ("·", "", "neither"),
        };
        Self { icon, word, class, text: sentence.text }
    }
}

fn figures(capacity: &Capacity) -> Vec<CapacityFigure> {
    let of = |id, label, value, unit| CapacityFigure { id, label, value, unit };
    vec![
        of("cap-gib", "KV cache per worker", format!("{:.1}", capacity.kv_gib_per_worker()), "GiB"),
        of("cap-tokens", "Tokens per worker", format::count(capacity.tokens_per_worker), "tokens"),
        of("cap-blocks-each", "Blocks per worker", format::count(capacity.blocks_per_worker), "blocks"),
        of("cap-blocks-all", "Blocks of all workers", format::count(capacity.blocks), "blocks"),
        of("cap-token-bytes", "One token", format::count(capacity.kv_bytes_per_token), "bytes"),
        of("cap-block-bytes", "One block", format::count(capacity.bytes_per_block), "bytes"),
    ]
}

/// How what fits compares to the blocks of the live workers, the least and the most of them; empty where nothing is computed.
pub fn against_live_note(calculator: &Calculator, live: Option<(u64, u64)>) -> String {
    let Some((inputs, capacity)) = calculator.computed() else { return String::new() };
    if inputs.blocks_per_worker.is_some() {
        return GIVEN.to_owned();
    }
    match live {
        Some((least, most)) if least == most => against_live(capacity, least),
        Some((least, most)) => format!(
            "{} Workers differ: {} to {} blocks.",
            against_live(capacity, least),
            format::count(least),
            format::count(most)
        ),
        None => "No live capacity to compare with: a model card from discovery or --prometheus frontend=http://HOST:8000/metrics reports it.".to_owned(),
    }
}
