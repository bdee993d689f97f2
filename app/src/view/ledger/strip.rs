//! The prompt as a bar of blocks, with how far each candidate held it.
//!
//! Elements: the marks are chips that can be pressed, which ECharts does not draw.

use leptos::prelude::*;
use radixscope_icicle::palette::token;
use radixscope_model::id::WorkerIx;
use radixscope_state::cluster::DecisionEntry;

use crate::format;
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;

/// Depths that are marked at most; the chosen one's always is.
const MARKS: usize = 12;
/// Share of the width that a mark's label takes, in percent.
const LABEL: f64 = 13.0;

/// A depth and who held the prompt so far.
#[derive(Clone)]
struct StripMark {
    blocks: u32,
    workers: Vec<WorkerIx>,
    is_chosen: bool,
    /// Row of the label below the bar.
    lane: usize,
}

#[component]
pub(super) fn Strip(store: Store, decided: DecisionEntry) -> impl IntoView {
    let isl = decided.decision.isl_blocks.unwrap_or(0);
    let marks = marks(&decided, isl);
    let lanes = marks.iter().map(|mark| mark.lane + 1).max().unwrap_or(1);
    let share = move |blocks: u32| f64::from(blocks) / isl.max(1) as f64;
    let chosen = decided.decision.worker;
    let held = decided.overlap_blocks().map_or(0.0, |held| held as f64 / isl.max(1) as f64);
    let fill = move || {
        format!("width: {}; --c: var({})", format::width(held), token(chosen.slot(), store.worker_slots()))
    };
    let mark = move |mark: StripMark| {
        let at = share(mark.blocks);
        let left = format!("left: {}", format::width(at));
        let depth = left.clone();
        let label = format!("{left}; top: calc(1.6rem + {} * 1.5rem)", mark.lane);
        let more = mark.workers.len().saturating_sub(2);
        let chips =
            mark.workers.into_iter().take(2).map(|worker| view! { <Chip store worker/> }).collect_view();
        view! {
            <i class="depth" class:chosen=mark.is_chosen style=depth aria-hidden="true"></i>
            <span class="depth-label" class:last={at > 0.75} class:chosen=mark.is_chosen style=label>
                {chips} {(more > 0).then(|| format!("+{more}"))} " " {format::count(mark.blocks.into())}
            </span>
        }
    };
    view! {
        <div class="strip" data-testid="strip" style=format!("height: calc(1.8rem + {lanes} * 1.5rem)")>
            <div class="strip-bar" aria-hidden="true"><i style=move || fill()></i></div>
            {marks.into_iter().map(mark).collect_view()}
        </div>
        <p class="caption">{format!("The prompt's {} from left to right; a tick is how far it was cached on a candidate", format::plural(isl, "block", "blocks"))}</p>
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
        let is_chosen = worker == chosen;
        match marks.last_mut().filter(|mark| mark.blocks == blocks) {
            Some(mark) => mark.workers.push(worker),
            None => marks.push(StripMark { blocks, workers: vec![worker], is_chosen, lane: 0 }),
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
        let at = f64::from(mark.blocks) / isl.max(1) as f64 * 100.0;
        let begin = if at > 75.0 { at - LABEL } else { at };
        let free = ends.iter().position(|&end| end <= begin);
        mark.lane = free.unwrap_or(ends.len());
        match ends.get_mut(mark.lane) {
            Some(end) => *end = begin + LABEL,
            None => ends.push(begin + LABEL),
        }
    }
    marks
}
