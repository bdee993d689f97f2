//! What every candidate would have cost: bars from the cheapest on, with the whole sums as text.
//!
//! The bars are elements between chips and sums in a list, with which a chart's bars could not be kept in line.

use leptos::prelude::*;
use radixscope_router::explain::Short;
use radixscope_state::cluster::{CostParts, DecisionEntry};

use crate::format;
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::costs::CostScale;

/// Beyond so many candidates only the best are shown at first.
const MANY: usize = 16;
/// How many of them.
const BEST: usize = 8;

fn terms(part: &CostParts) -> [f64; 3] {
    [part.prefill_cost, part.candidate.decode_blocks, part.other_cost]
}

#[component]
pub(super) fn Waterfall(store: Store, decided: DecisionEntry) -> impl IntoView {
    let parts = decided.cost_parts();
    let total = parts.len();
    let ignores_cache = decided.ignores_cache;
    let all = RwSignal::new(total <= MANY);
    let costs = parts.iter().map(|part| (part.candidate.cost, terms(part)));
    let scale = CostScale::of(costs, std::iter::empty());
    let tied = decided.tied_at_lowest();
    let cost_gap =
        decided.next_best().ok().map(|next| next.cost).zip(decided.chosen().map(|chosen| chosen.cost));
    let bars = move || {
        let is_shown = |(at, part): &(usize, &CostParts)| all.get() || *at < BEST || part.is_chosen;
        parts
            .iter()
            .enumerate()
            .filter(is_shown)
            .map(|(_, part)| {
                let cost_gap = cost_gap.filter(|_| part.is_chosen);
                bar(store, &scale, part, tied, cost_gap, ignores_cache)
            })
            .collect_view()
    };
    let [from, to] = [scale.base, scale.end].map(|cost| Short((cost * 10.0).round() / 10.0).to_string());
    view! {
        <p class="costs-shared" data-testid="cost-shared">{scale.shared_text()}</p>
        <div class="waterfall" role="list" aria-label="Cost of every candidate, cheapest first">
            <p class="scale" aria-hidden="true"><span>{from}</span><span>{to} " blocks"</span></p>
            {move || bars()}
        </div>
        <Show when=move || !all.get()>
            <button class="plain" data-testid="candidates-more" on:click=move |_| all.set(true)>
                {format!("Show all {}: the best {BEST} and the chosen one are shown", format::plural(total as u64, "candidate", "candidates"))}
            </button>
        </Show>
        <p class="keys" aria-hidden="true">
            <span><i class="key prefill"></i>"more prefill × weight"</span>
            <span><i class="key decode"></i>"more decode"</span>
            <span><i class="key other"></i>"more of other terms"</span>
        </p>
    }
}

fn bar(
    store: Store,
    scale: &CostScale,
    part: &CostParts,
    tied: usize,
    cost_gap: Option<(f64, f64)>,
    ignores_cache: bool,
) -> impl IntoView + use<> {
    let worker = part.candidate.worker;
    let overlap = u64::from(part.candidate.overlap_blocks);
    let holds = (!ignores_cache).then(|| format!(", {} cached", format::plural(overlap, "block", "blocks")));
    let note = match (part.is_chosen, part.is_lowest && tied > 1) {
        (true, true) => "chosen, tied",
        (true, false) => "chosen",
        (false, true) => "tied",
        (false, false) => "",
    };
    let cost_gap = cost_gap.map(|(next, chosen)| {
        let (from, to) = (chosen.min(next), chosen.max(next));
        let text = if next < chosen { "blocks above the lowest cost" } else { "blocks to the next best" };
        let (left, width) = (scale.width(from), scale.width(scale.base + to - from));
        let style = format!("left:{left};width:{width}");
        let text = format!("Cost gap {} {text}", Short(to - from));
        view! {
            <span class="margin" data-testid="margin"><i style=style aria-hidden="true"></i><span>{text}</span></span>
        }
    });
    let cost = part.candidate.cost;
    view! {
        <div class="candidate" class:chosen=part.is_chosen role="listitem" data-testid="candidate"
            data-cost=cost.to_string() data-overlap=overlap.to_string()>
            <span class="who"><Chip store worker/><em>{note}</em></span>
            <span class="track" aria-hidden="true">{scale.bar(cost, terms(part), ["prefill", "decode", "other"])}</span>
            <span class="sum">{part.sum()}<span class="quiet">{holds}</span></span>
            {cost_gap}
        </div>
    }
}
