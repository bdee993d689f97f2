//! What every candidate would have cost: bars from the cheapest on, with the whole sums as text.
//!
//! The bars are elements between chips and sums in a list, with which a chart's bars could not be kept in line.

use leptos::prelude::*;
use radixscope_panels::decisions::candidates::{CandidateRow, Candidates, CostGap};

use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::costs::bar;

#[component]
pub(super) fn Waterfall(store: Store, candidates: Candidates) -> impl IntoView {
    let Candidates { rows, shared, scale: [from, to], show_all } = candidates;
    let all = RwSignal::new(show_all.is_none());
    let bars = move || {
        let is_shown = |row: &&CandidateRow| all.get() || row.is_first;
        rows.iter().filter(is_shown).map(|row| candidate(store, row)).collect_view()
    };
    view! {
        <p class="costs-shared" data-testid="cost-shared">{shared}</p>
        <div class="waterfall" role="list" aria-label="Cost of every candidate, cheapest first">
            <p class="scale" aria-hidden="true"><span>{from}</span><span>{to} " blocks"</span></p>
            {move || bars()}
        </div>
        <ShowAll all text=show_all/>
        <p class="keys" aria-hidden="true">
            <span><i class="key prefill"></i>"more prefill × weight"</span>
            <span><i class="key decode"></i>"more decode"</span>
            <span><i class="key other"></i>"more of other terms"</span>
        </p>
    }
}

/// The button that shows all candidates, until they are shown.
#[component]
pub(super) fn ShowAll(all: RwSignal<bool>, text: Option<String>) -> impl IntoView {
    let text = StoredValue::new(text.unwrap_or_default());
    view! {
        <Show when=move || !all.get()>
            <button class="plain" data-testid="candidates-more" on:click=move |_| all.set(true)>{text.get_value()}</button>
        </Show>
    }
}

fn candidate(store: Store, row: &CandidateRow) -> impl IntoView + use<> {
    let worker = row.worker;
    let gap = row.gap.clone().map(|CostGap { left, width, text }| {
        let style = format!("left:{left};width:{width}");
        view! {
            <span class="margin" data-testid="margin"><i style=style aria-hidden="true"></i><span>{text}</span></span>
        }
    });
    view! {
        <div class="candidate" class:chosen=row.is_chosen role="listitem" data-testid="candidate"
            data-cost=row.cost.to_string() data-overlap=row.overlap_blocks.to_string()>
            <span class="who"><Chip store worker/><em>{row.note}</em></span>
            <span class="track" aria-hidden="true">{bar(&row.bar, ["prefill", "decode", "other"])}</span>
            <span class="sum">{row.sum.clone()}<span class="quiet">{row.cached.clone()}</span></span>
            {gap}
        </div>
    }
}
