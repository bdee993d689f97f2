//! A worker's short label beside its colour: never the colour alone.

use leptos::prelude::*;
use radixscope_icicle::palette::{Pattern, label, token};
use radixscope_model::id::{Slot, WorkerIx};

use crate::store::Store;
use crate::view::control::view;

/// Colour and short label of a worker.
#[component]
pub(super) fn Chip(store: Store, worker: WorkerIx) -> impl IntoView {
    view! {
        <span class="chip" title=move || store.pool_label(worker).map(|(_, text)| format!("{}: {text}", label(worker)))>
            <Swatch store worker/>
            {label(worker)}
        </span>
    }
}

/// The colour alone, for places that name the worker otherwise.
#[component]
pub(super) fn Swatch(store: Store, worker: WorkerIx) -> impl IntoView {
    let colour = move || format!("--c: var({})", token(worker.slot(), store.workers.get()));
    view! { <i class=format!("swatch {}", Pattern::of(worker.slot()).class()) style=move || colour() aria-hidden="true"></i> }
}

/// The colours of the first two workers drawn, for keys that show one worker's colour or two.
pub(super) fn key_colours(store: Store) -> String {
    let workers = store.workers.get();
    let first = store.drawn.with(|drawn| drawn.first().map(|worker| worker.slot()));
    format!("--key-first: var({})", token(first.unwrap_or(Slot(0)), workers))
}
