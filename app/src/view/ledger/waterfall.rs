//! What every candidate would have cost: stacked bars on one scale of blocks.
//!
//! The bars are elements between chips and sums in a list, with which a chart's bars could not be kept in line.

use leptos::prelude::*;
use radixscope_router::explain::Short;
use radixscope_state::cluster::{CostParts, DecisionEntry};

use crate::format;
use crate::store::Store;
use crate::view::chip::Chip;

/// Beyond so many candidates only the best are shown at first.
const MANY: usize = 16;
/// How many of them.
const BEST: usize = 8;

/// Shares of the scale.
struct Scale(f64);

impl Scale {
    fn width(&self, blocks: f64) -> String {
        format::width(if blocks.is_finite() { blocks.max(0.0) / self.0 } else { 1.0 })
    }
}

#[component]
pub(super) fn Waterfall(store: Store, decided: DecisionEntry) -> impl IntoView {
    let parts = decided.cost_parts();
    let total = parts.len();
    let ignores_cache = decided.ignores_cache;
    let all = RwSignal::new(total <= MANY);
    let finite = |blocks: f64| if blocks.is_finite() { blocks } else { 0.0 };
    let most = parts.iter().map(|part| finite(part.candidate.cost) + finite(part.saved)).fold(1.0, f64::max);
    let tied = decided.tied_at_lowest();
    let margin =
        decided.next_best().ok().map(|next| next.cost).zip(decided.chosen().map(|chosen| chosen.cost));
    let bars = move || {
        let scale = Scale(most);
        let is_shown = |(at, part): &(usize, &CostParts)| all.get() || *at < BEST || part.is_chosen;
        parts
            .iter()
            .enumerate()
            .filter(is_shown)
            .map(|(_, part)| {
                let margin = margin.filter(|_| part.is_chosen);
                bar(store, &scale, part, tied, margin, ignores_cache)
            })
            .collect_view()
    };
    let middle = Short((most / 2.0).round()).to_string();
    view! {
        <div class="waterfall" role="list" aria-label="Cost of every candidate, cheapest first">
            <p class="scale" aria-hidden="true"><span>"0"</span><span>{middle}</span><span>{Short(most.round()).to_string()} " blocks"</span></p>
            {bars}
        </div>
        <Show when=move || !all.get()>
            <button class="plain" data-testid="candidates-more" on:click=move |_| all.set(true)>
                {format!("Show all {}: the best {BEST} and the chosen one are shown", format::plural(total as u64, "candidate", "candidates"))}
            </button>
        </Show>
        <p class="keys" aria-hidden="true">
            <span><i class="key prefill"></i>"weight × prefill"</span>
            <span><i class="key decode"></i>"decode"</span>
            <span><i class="key other"></i>"other terms"</span>
            <span><i class="key saved"></i>"saved by overlap"</span>
        </p>
    }
}

fn bar(
    store: Store,
    scale: &Scale,
    part: &CostParts,
    tied: usize,
    margin: Option<(f64, f64)>,
    ignores_cache: bool,
) -> impl IntoView + use<> {
    let worker = part.candidate.worker;
    let overlap = u64::from(part.candidate.overlap_blocks);
    let holds = (!ignores_cache).then(|| format!(", {} cached", format::plural(overlap, "block", "blocks")));
    let words = match (part.is_chosen, part.is_lowest && tied > 1) {
        (true, true) => "chosen, tied",
        (true, false) => "chosen",
        (false, true) => "tied",
        (false, false) => "",
    };
    let margin = margin.map(|(next, chosen)| {
        let (from, to) = (chosen.min(next), chosen.max(next));
        let text = if next < chosen { "blocks above the lowest cost" } else { "blocks to the next best" };
        let style = format!("left: {}; width: {}", scale.width(from), scale.width(to - from));
        let text = format!("{} {text}", Short(to - from));
        view! {
            <span class="margin" data-testid="margin"><i style=style aria-hidden="true"></i><span>{text}</span></span>
        }
    });
    view! {
        <div class="candidate" class:chosen=part.is_chosen role="listitem" data-testid="candidate"
            data-cost=part.candidate.cost.to_string() data-overlap=overlap.to_string()>
            <span class="who"><Chip store worker/><em>{words}</em></span>
            <span class="track" aria-hidden="true">
                <i class="prefill" style=format!("width: {}", scale.width(part.prefill_cost))></i>
                <i class="decode" style=format!("width: {}", scale.width(part.candidate.decode_blocks))></i>
                <i class="other" style=format!("width: {}", scale.width(part.other_cost))></i>
                <i class="saved" style=format!("width: {}", scale.width(part.saved))></i>
            </span>
            <span class="sum">{part.sum()}<span class="quiet">{holds}</span></span>
            {margin}
        </div>
    }
}
