//! The tree of the kiosk: the picture alone, which takes no input, with the workers' colours and loads below it.

use leptos::prelude::*;
use radixscope_model::id::WorkerIx;
use radixscope_panels::tree::{blocks_and_coverage, fill_text, turn_text};

use super::empty::EmptyTree;
use super::legend::Replicas;
use super::stage;
use super::state::{TreePlacement, TreeView};
use crate::store::Store;
use crate::view::chip::{Chip, key_colours};
use crate::view::control::view;

/// Workers named below the picture; more have no room there.
const NAMED: usize = 8;

/// The picture and what its colours mean.
#[component]
pub(in crate::view) fn KioskTree(store: Store, dark: Memo<bool>) -> impl IntoView {
    let tree = TreeView::new(TreePlacement::Overview, store, dark);
    let empty = Memo::new(move |_| store.on_beat(|shown| shown.tree().totals().nodes == 0));
    let blocks = Memo::new(move |_| store.on_beat(blocks_and_coverage));
    // Pools take turns: whose tree it is, and which of how many.
    let pool = Memo::new(move |_| {
        let drawn = store.pool();
        store.labels.with(|all| turn_text(all, drawn))
    });
    let here = move |worker: &WorkerIx| {
        store.peek(|shown| shown.worker(*worker).is_some_and(|w| w.departure.is_none()))
    };
    let named = Memo::new(move |_| store.drawn.get().into_iter().filter(here).collect::<Vec<_>>());
    let more = move || named.with(|all| all.len().checked_sub(NAMED).filter(|more| *more > 0));
    view! {
        <section class="kiosk-card kiosk-tree tree" aria-labelledby="kiosk-tree-title">
            <h2 id="kiosk-tree-title">"Prefix tree "{move || pool.get().map(|name| view! { <span data-testid="kiosk-pool">{format!("· {name} ")}</span> })}<span class="kiosk-note" data-testid="kiosk-blocks">{move || blocks.get()}</span></h2>
            <div class="icicle-box">
                <div inert=true><stage::Canvas tree/></div>
                <Show when=move || empty.get()><EmptyTree store/></Show>
            </div>
            <ul class="kiosk-workers" style=move || key_colours(store)>
                <For each=move || named.get().into_iter().take(NAMED) key=|worker| *worker let:worker>
                    <li><Chip store worker/>" "<span>{move || store.on_beat(|shown| fill_text(shown, worker))}</span></li>
                </For>
                {move || more().map(|more| view! { <li>{format!("and {more} more")}</li> })}
                <li><Replicas store what="workers"/></li>
            </ul>
        </section>
    }
}
