//! What stands beside the picture: the selected block, and below it, one at a time, lists, copies and the open decision.

use leptos::prelude::*;
use radixscope_model::id::WorkerIx;
use radixscope_panels::tree::{Ranked, SideTab};
use radixscope_state::redundancy::BlockSize;

use super::decision::DecisionOnTree;
use super::lists::List;
use super::redundancy::Copies;
use super::save::Save;
use super::search::Search;
use super::selected::Details;
use super::state::TreeView;
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::memory;

/// The column beside the picture.
#[component]
pub(super) fn Side(tree: TreeView) -> impl IntoView {
    let size = block_size(tree.store);
    let decision = Memo::new(move |_| tree.store.address.with(|address| address.decision));
    let chosen = RwSignal::new(SideTab::Largest);
    // A decision that is opened wants to be seen.
    Effect::new(move |_| {
        if decision.get().is_some() {
            chosen.set(SideTab::Decision);
        }
    });
    let tab = move |(at, tab): (usize, SideTab)| {
        let is_on = move || chosen.get() == tab;
        let key = move |event: web_sys::KeyboardEvent| {
            let Some(to) = SideTab::after(at, &event.key()) else { return };
            event.prevent_default();
            chosen.set(to);
            crate::keys::focus(&to.id());
        };
        view! {
            <button role="tab" id=tab.id() data-testid=format!("side-{}", tab.key()) aria-controls="side-panel"
                aria-selected=move || is_on().to_string() tabindex=move || if is_on() { "0" } else { "-1" }
                on:click=move |_| chosen.set(tab) on:keydown=key>{tab.name()}</button>
        }
    };
    let labelled = move || chosen.get().id();
    view! {
        <Search tree/>
        <Details tree size/>
        <div class="side-tabs" role="tablist" aria-label="Beside the tree">
            {SideTab::ALL.into_iter().enumerate().map(tab).collect_view()}
        </div>
        <div class="side-panel" id="side-panel" role="tabpanel" tabindex="0" aria-labelledby=move || labelled()>
            {move || match chosen.get() {
                SideTab::Largest => view! { <List tree by=Ranked::Largest/> },
                SideTab::Hottest => view! { <List tree by=Ranked::Hottest/> },
                SideTab::Copies => view! { <Copies tree size/> },
                SideTab::Decision => view! { <DecisionOnTree tree/> },
            }}
        </div>
        <Save tree/>
    }
}

/// What a block is in tokens and bytes, as far as it is known.
pub(super) fn block_size(store: Store) -> Memo<BlockSize> {
    let bytes_per_token = memory::bytes_per_token(store);
    let tokens = Memo::new(move |_| store.on_beat(|shown| shown.block_tokens()));
    Memo::new(move |_| BlockSize { tokens: tokens.get(), bytes_per_token: bytes_per_token.get() })
}

/// Labels of up to `most` workers, and how many more there are.
pub(super) fn chips(store: Store, workers: &[WorkerIx], most: usize) -> AnyView {
    if workers.is_empty() {
        return "no worker".into_any();
    }
    let more = workers.len().saturating_sub(most);
    let chips: Vec<_> = workers.iter().take(most).map(|&worker| view! { <Chip store worker/> " " }).collect();
    view! { <span class="side-chips">{chips} {(more > 0).then(|| view! { <span class="quiet">{format!("+{more}")}</span> })}</span> }
}
