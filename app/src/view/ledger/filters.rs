//! Filters of the ledger, which live in the address, and its exports.

use leptos::prelude::*;
use radixscope_state::cluster::{HIT_SHARE, Kind};

use super::kind_words;
use super::save;
use super::state::Ledger;
use crate::format;
use crate::view::chip::Chip;

#[component]
pub(super) fn Filters(ledger: Ledger) -> impl IntoView {
    let store = ledger.store;
    let picked = Memo::new(move |_| store.picked());
    let worker = move || {
        picked.get().map(|worker| {
            view! {
                <button class="filter on" data-testid="filter-worker" title="Show all workers again"
                    on:click=move |_| store.pick(worker)>
                    <Chip store worker/> " only ×"
                </button>
            }
        })
    };
    let request = move || store.address.with(|address| address.request.clone());
    view! {
        <div class="filters">
            <div class="kinds" role="group" aria-label="Outcome">
                <KindButton ledger kind=None/>
                {Kind::ALL.map(|kind| view! { <KindButton ledger kind=Some(kind)/> }).collect_view()}
            </div>
            {worker}
            <label class="find">
                <span>"Request"</span>
                <input type="search" data-testid="filter-request" placeholder="part of its id" spellcheck="false"
                    prop:value=request
                    on:input=move |event| store.address.update(|a| a.request = event_target_value(&event))/>
            </label>
            <span class="spacer"></span>
            <span class="exports" role="group" aria-label="Export what is shown">
                <button class="plain" data-testid="export-csv" on:click=move |_| save::csv(ledger)
                    title="All shown decisions as comma-separated values, ids as text">"Save CSV"</button>
                <button class="plain" data-testid="export-json" on:click=move |_| save::json(ledger)
                    title="All shown decisions as the API gives them">"Save JSON"</button>
            </span>
        </div>
    }
}

/// One kind with its count; `None` is every kind.
#[component]
fn KindButton(ledger: Ledger, kind: Option<Kind>) -> impl IntoView {
    let store = ledger.store;
    let is_on = Memo::new(move |_| store.address.with(|address| address.outcome == kind));
    let count = Memo::new(move |_| {
        ledger.view.with(|view| match kind {
            Some(kind) => view.picked.of_kind[kind as usize],
            None => view.picked.of_any_kind,
        })
    });
    let choose = move |_| {
        store.address.update(|address| address.outcome = kind);
        ledger.said.set(format!(
            "{}: {}",
            kind.map_or("All", kind_words),
            format::plural(count.get_untracked().into(), "decision", "decisions")
        ));
    };
    view! {
        <button class="filter" class:on=move || is_on.get() aria-pressed=move || is_on.get().to_string()
            title=explained(kind) data-testid=format!("kind-{}", kind.map_or("all", Kind::as_str)) on:click=choose>
            {kind.map_or("All", kind_words)} " " <b>{move || format::count(count.get().into())}</b>
        </button>
    }
}

fn explained(kind: Option<Kind>) -> String {
    match kind {
        None => "Every decision".to_owned(),
        Some(Kind::Hit) => {
            format!(
                "At least {} of the prompt's full blocks were cached on the chosen worker",
                format::percent(HIT_SHARE)
            )
        }
        Some(Kind::Partial) => {
            format!(
                "Some, but less than {} of the full blocks were cached on the chosen worker",
                format::percent(HIT_SHARE)
            )
        }
        Some(Kind::Miss) => "No block of the prompt was cached on the chosen worker".to_owned(),
        Some(Kind::Tie) => {
            "The router reported a tie, or several workers share the lowest known cost".to_owned()
        }
        Some(Kind::LostAffinity) => {
            "Another worker had more of the prompt cached than the chosen one".to_owned()
        }
        Some(Kind::Unknown) => "The prompt's length or its cached part is unknown".to_owned(),
    }
}
