//! Decisions: every retained one in one table, with what it came to, and one of them in detail. What they show is computed by
//! [`radixscope_panels::decisions`].
//!
//! # How it works
//!
//! The table keeps as many elements as fit the window and fills them anew. Its anchor is a decision, not a pixel, so that lines stay
//! where they are while others come and go. The path that an open decision paints on the tree is in the full bundle only; the tree panel
//! calls it through two function pointers.

mod details;
mod filters;
mod instead;
mod other_routers;
mod save;
mod scores;
mod state;
mod strip;
mod table;
mod trace_link;
mod waterfall;

use leptos::prelude::*;
use radixscope_panels::decisions::NoDecisions;
pub(super) use radixscope_panels::decisions::details::ON_PARTIAL_TREE;
use radixscope_panels::decisions::list::{SincePause, held_back_text};
use wasm_bindgen::JsCast;

use super::hint::HintList;
use crate::store::Store;
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::{Empty, PanelHead, Waiting};
use crate::view::session_turns::SessionTurns;
use details::Details;
use filters::Filters;
use other_routers::OtherRouters;
use state::Ledger;
use table::Table;

/// The panel.
#[component]
pub fn LedgerPanel(store: Store) -> impl IntoView {
    let ledger = Ledger::new(store);
    listen(ledger);
    let any = Memo::new(move |_| ledger.view.with(|view| view.ever > 0));
    view! {
        <section class="panel ledger" aria-labelledby="decisions-title" data-testid="ledger">
            <PanelHead store panel=Panel::Decisions title="Decisions">
                <Pause ledger/>
            </PanelHead>
            <OtherRouters store/>
            <Show when=move || any.get() fallback=move || view! { <Nothing store/> }>
                <Filters ledger/>
                <Summary ledger/>
                <SessionTurns store/>
                <div class="ledger-body">
                    <Table ledger/>
                    <Details ledger/>
                </div>
            </Show>
            <p class="hidden" role="status" aria-live="polite" data-testid="ledger-status">{move || ledger.status_text.get()}</p>
        </section>
    }
}

/// Live or paused, and the way to the other.
#[component]
fn Pause(ledger: Ledger) -> impl IntoView {
    let text =
        move || ledger.since().map_or_else(|| ledger.store.newest_name().to_owned(), SincePause::to_text);
    view! {
        <span class="state" class:live=move || !ledger.is_paused() class:wait=move || ledger.is_paused() data-testid="ledger-state">
            <i aria-hidden="true"></i>{move || text()}
        </span>
        <button class="plain" data-testid="ledger-pause" aria-keyshortcuts="Space P"
            aria-pressed=move || ledger.is_paused().to_string() on:click=move |_| ledger.toggle_pause()>
            {move || if ledger.is_paused() { "Go on" } else { "Pause" }}
        </button>
    }
}

/// How many are shown of how many, and what they add up to.
#[component]
fn Summary(ledger: Ledger) -> impl IntoView {
    let text = move || ledger.view.with(|view| ledger.store.peek(|shown| view.summary(shown)));
    let held_back = move || ledger.newer_held_back().map(held_back_text);
    view! {
        <p class="caption"><span data-testid="ledger-summary">{move || text()}</span><span class="held-back" data-testid="ledger-held">{move || held_back()}</span></p>
    }
}

#[component]
fn Nothing(store: Store) -> impl IntoView {
    let none = Memo::new(move |_| store.on_beat(|shown| NoDecisions::of(shown)));
    view! {
        <Show when=move || store.ready()
            fallback=|| view! { <Waiting id="ledger-wait"/> }>
            <Empty id="ledger-empty" head=none.with(|none| none.head)>
                <p>{move || none.with(|none| none.text)}</p>
                {move || none.with(|none| none.hint).map(|hint| view! { <HintList hint/> })}
            </Empty>
        </Show>
    }
}

/// Keys that work wherever the focus is in the page.
fn listen(ledger: Ledger) {
    let handle = window_event_listener(leptos::ev::keydown, move |event| {
        let element = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
        let tag = element.map(|element| element.tag_name()).unwrap_or_default();
        let is_typing = matches!(tag.as_str(), "INPUT" | "TEXTAREA" | "SELECT");
        let is_pressing = matches!(tag.as_str(), "BUTTON" | "A" | "SUMMARY");
        let has_modifier = event.ctrl_key() || event.meta_key() || event.alt_key();
        if is_typing || has_modifier || event.default_prevented() {
            return;
        }
        match event.key().as_str() {
            "p" | "P" => ledger.toggle_pause(),
            " " if !is_pressing => ledger.toggle_pause(),
            "Escape" if ledger.store.address.with_untracked(|a| a.decision.is_some()) => {
                ledger.open(None);
                crate::keys::focus(table::GRID_ID);
            }
            _ => return,
        }
        event.prevent_default();
    });
    on_cleanup(move || handle.remove());
}
