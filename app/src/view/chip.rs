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
        <span class="chip" title=move || title(store, worker)>
            <Swatch store worker/>
            {label(worker)}
        </span>
    }
}

/// The same in a place that shows one worker after the other. It is made once: elements and readers for each decision would be work for
/// nothing.
#[component]
pub(super) fn ChipInPlace(store: Store, worker: Memo<Option<WorkerIx>>) -> impl IntoView {
    let of =
        move |part: fn(Store, WorkerIx) -> String| move || worker.get().map(|worker| part(store, worker));
    view! {
        <span class="chip" title=move || worker.get().and_then(|worker| title(store, worker))>
            <i class=of(|_, worker| swatch_class(worker)) style=of(swatch_colour) aria-hidden="true"></i>
            {of(|_, worker| label(worker))}
        </span>
    }
}

/// The colour alone, for places that name the worker otherwise.
#[component]
pub(super) fn Swatch(store: Store, worker: WorkerIx) -> impl IntoView {
    view! { <i class=swatch_class(worker) style=move || swatch_colour(store, worker) aria-hidden="true"></i> }
}

fn title(store: Store, worker: WorkerIx) -> Option<String> {
    store.pool_label(worker).map(|(_, text)| format!("{}: {text}", label(worker)))
}

fn swatch_class(worker: WorkerIx) -> String {
    format!("swatch {}", Pattern::of(worker.slot()).class())
}

fn swatch_colour(store: Store, worker: WorkerIx) -> String {
    format!("--c: var({})", token(worker.slot(), store.worker_slots()))
}

/// The colours of the first two workers drawn, for keys that show one worker's colour or two.
pub(super) fn key_colours(store: Store) -> String {
    let workers = store.worker_slots();
    let first = store.drawn.with(|drawn| drawn.first().map(|worker| worker.slot()));
    format!("--key-first: var({})", token(first.unwrap_or(Slot(0)), workers))
}
