//! The prompt as a bar of blocks, with how far each candidate held it.

use radixscope_model::id::WorkerIx;
use radixscope_state::cluster::DecisionEntry;

use crate::format;

/// Depths that are marked at most; the chosen one's always is.
const MARKS: usize = 12;
/// Share of the width that a mark's label takes, in percent.
const LABEL: f64 = 13.0;
/// Workers that a mark names.
const NAMED: usize = 2;

/// A prompt, its first block at the left.
#[derive(Clone, PartialEq, Debug)]
pub struct PromptStrip {
    /// Share of it that was cached on the chosen worker, 0 … 1.
    pub cached: f64,
    /// Depths, the lowest first.
    pub marks: Vec<StripMark>,
    /// Rows of labels below the bar.
    pub lanes: usize,
    /// What is drawn.
    pub caption: String,
}

/// A depth and who held the prompt so far.
#[derive(Clone, PartialEq, Debug)]
pub struct StripMark {
    /// So many blocks.
    pub blocks: u32,
    /// Share of the prompt's length.
    pub at: f64,
    /// Its first workers, the chosen one before the others.
    pub workers: Vec<WorkerIx>,
    /// Further workers.
    pub more: usize,
    /// Whether the chosen worker is one of them.
    pub is_chosen: bool,
    /// Row of the label below the bar.
    pub lane: usize,
}

impl StripMark {
    /// The label behind the workers' chips.
    pub fn to_text(&self) -> String {
        let more = if self.more > 0 { format!("+{}", self.more) } else { String::new() };
        format!("{more} {}", format::count(self.blocks.into()))
    }

    /// Whether its label stands before it, since there is no room behind.
    pub fn is_at_end(&self) -> bool {
        self.at > 0.75
    }
}

impl PromptStrip {
    /// Of a decision whose prompt's length is known.
    pub fn of(decided: &DecisionEntry) -> Self {
        let isl = decided.decision.isl_blocks.unwrap_or(0);
        let marks = marks(decided, isl);
        Self {
            cached: decided.overlap_blocks().map_or(0.0, |held| held as f64 / isl.max(1) as f64),
            lanes: marks.iter().map(|mark| mark.lane + 1).max().unwrap_or(1),
            marks,
            caption: format!(
                "The prompt's {} from left to right; a tick is how far it was cached on a candidate",
                format::plural(isl, "block", "blocks")
            ),
        }
    }
}

fn marks(decided: &DecisionEntry, isl: u64) -> Vec<StripMark> {
    let chosen = decided.decision.worker;
    let mut depths: Vec<(u32, WorkerIx)> =
        decided.decision.candidates.iter().map(|c| (c.overlap_blocks, c.worker)).collect();
    if depths.is_empty() {
        depths.extend(decided.overlap_blocks().map(|held| (u32::try_from(held).unwrap_or(u32::MAX), chosen)));
    }
    // The chosen one first among equals, so that its chip is never among those left out.
    depths.sort_by_key(|&(depth, worker)| (depth, worker != chosen, worker));
    let mut marks: Vec<StripMark> = Vec::new();
    for (blocks, worker) in depths {
        match marks.last_mut().filter(|mark| mark.blocks == blocks) {
            Some(mark) if mark.workers.len() < NAMED => mark.workers.push(worker),
            Some(mark) => mark.more += 1,
            None => marks.push(StripMark {
                blocks,
                at: f64::from(blocks) / isl.max(1) as f64,
                workers: vec![worker],
                more: 0,
                is_chosen: worker == chosen,
                lane: 0,
            }),
        }
    }
    while marks.len() > MARKS
        && let Some(least) = marks.iter().position(|mark| !mark.is_chosen)
    {
        marks.remove(least);
    }
    // Labels go into the first row where they fit.
    let mut ends: Vec<f64> = Vec::new();
    for mark in &mut marks {
        let at = mark.at * 100.0;
        let begin = if mark.is_at_end() { at - LABEL } else { at };
        let free = ends.iter().position(|&end| end <= begin);
        mark.lane = free.unwrap_or(ends.len());
        match ends.get_mut(mark.lane) {
            Some(end) => *end = begin + LABEL,
            None => ends.push(begin + LABEL),
        }
    }
    marks
}
