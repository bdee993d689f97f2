//! What stands beside the picture: the selected block, and below it, one at a time, lists, copies and the open decision.

use leptos::prelude::*;
use radixscope_model::id::WorkerIx;
use radixscope_state::redundancy::BlockSize;

use super::decision::DecisionOnTree;
use super::lists::{List, Ranked};
use super::redundancy::Copies;
use super::save::Save;
use super::search::Search;
use super::selected::Details;
use super::state::TreeView;
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::memory;

/// What is shown below the block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tab {
    Largest,
    Hottest,
    Copies,
    Decision,
}

const TABS: [(Tab, &str, &str); 4] = [
    (Tab::Largest, "largest", "Largest"),
    (Tab::Hottest, "hottest", "Hottest"),
    (Tab::Copies, "copies", "Duplicates"),
    (Tab::Decision, "decision", "Decision"),
];

/// The column beside the picture.
#[component]
pub(super) fn Side(tree: TreeView) -> impl IntoView {
    let size = block_size(tree.store);
    let decision = Memo::new(move |_| tree.store.address.with(|address| address.decision));
    let chosen = RwSignal::new(Tab::Largest);
    // A decision that is opened wants to be seen.
    Effect::new(move |_| {
        if decision.get().is_some() {
            chosen.set(Tab::Decision);
        }
    });
    let tab = move |(at, (tab, id, name)): (usize, (Tab, &'static str, &'static str))| {
        let is_on = move || chosen.get() == tab;
        let key = move |event: web_sys::KeyboardEvent| {
            let to = match event.key().as_str() {
                "ArrowRight" => (at + 1) % TABS.len(),
                "ArrowLeft" => (at + TABS.len() - 1) % TABS.len(),
                "Home" => 0,
                "End" => TABS.len() - 1,
                _ => return,
            };
            event.prevent_default();
            chosen.set(TABS[to].0);
            crate::keys::focus(&format!("side-tab-{}", TABS[to].1));
        };
        view! {
            <button role="tab" id=format!("side-tab-{id}") data-testid=format!("side-{id}") aria-controls="side-panel"
                aria-selected=move || is_on().to_string() tabindex=move || if is_on() { "0" } else { "-1" }
                on:click=move |_| chosen.set(tab) on:keydown=key>{name}</button>
        }
    };
    let labelled = move || {
        let (_, id, _) = TABS.into_iter().find(|(tab, ..)| *tab == chosen.get()).unwrap_or(TABS[0]);
        format!("side-tab-{id}")
    };
    view! {
        <Search tree/>
        <Details tree size/>
        <div class="side-tabs" role="tablist" aria-label="Beside the tree">
            {TABS.into_iter().enumerate().map(tab).collect_view()}
        </div>
        <div class="side-panel" id="side-panel" role="tabpanel" tabindex="0" aria-labelledby=move || labelled()>
            {move || match chosen.get() {
                Tab::Largest => view! { <List tree by=Ranked::Largest/> },
                Tab::Hottest => view! { <List tree by=Ranked::Hottest/> },
                Tab::Copies => view! { <Copies tree size/> },
                Tab::Decision => view! { <DecisionOnTree tree/> },
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
