//! Changes worker by worker, with those of its lower tiers, and of each pool.

use leptos::prelude::*;
use radixscope_model::id::{Worker, WorkerIx};
use radixscope_panels::changes::{COLUMNS, CellText, ChangesRow, rows};

use super::{ChangesSignal, shown};
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;

/// The table.
#[component]
pub(super) fn Table(store: Store, compared: ChangesSignal) -> impl IntoView {
    let rows = Memo::new(move |_| {
        let shown = shown(store);
        compared.with(|changes| changes.as_ref().map_or_else(Vec::new, |changes| rows(changes, &shown)))
    });
    let keys = move || {
        let key = |(at, row): (usize, &ChangesRow)| (at, row.worker);
        rows.with(|rows| rows.iter().enumerate().map(key).collect::<Vec<_>>())
    };
    let heads = COLUMNS.map(|(_, name, title)| view! { <th scope="col" class="n" title=title>{name}</th> });
    view! {
        <table data-testid="changes-table">
            <thead><tr><th scope="col">"Worker"</th>{heads.into_iter().collect_view()}</tr></thead>
            <For each=keys key=|key| *key let:key><Line store rows at=key.0 worker=key.1/></For>
        </table>
    }
}

#[component]
fn Line(
    store: Store,
    rows: Memo<Vec<ChangesRow>>,
    at: usize,
    worker: Option<(Worker, WorkerIx)>,
) -> impl IntoView {
    let row = Memo::new(move |_| rows.with(|rows| rows.get(at).cloned()).unwrap_or_default());
    let picked = Memo::new(move |_| store.address.with(|address| address.worker));
    let id = worker.map(|(id, _)| id);
    let pick = move |_| {
        if let Some(id) = id {
            store.address.update(|address| address.worker = (address.worker != Some(id)).then_some(id));
        }
    };
    let name = move || row.with(|row| row.name.clone());
    let head = move || match worker {
        Some((id, ix)) => view! {
            <button class="pick" aria-pressed=move || (picked.get() == Some(id)).to_string() title=format!("Worker {id}, click to select it")>
                <Chip store worker=ix/><span class="hidden">{id.to_string()}</span>
            </button>
            <span class="quiet" data-testid="changes-presence">{move || name()}</span>
        },
        None => view! { <b>{move || name()}</b> },
    };
    let cells = move || {
        row.with(|row| {
            let cell = |((id, name, _), [text, below, title]): (&(&'static str, &str, &str), &CellText)| {
                let below = (!below.is_empty()).then(|| view! { <span class="cell-sub">{below.clone()}</span> });
                view! { <td class="n" title=title.clone() data-name=*name><span data-testid=format!("changes-{id}")>{text.clone()}</span>{below}</td> }
            };
            COLUMNS.iter().zip(&row.cells).map(cell).collect_view()
        })
    };
    let is_picked = move || id.is_some() && picked.get() == id;
    view! {
        <tbody class=if worker.is_some() { "worker" } else { "" } class:picked=move || is_picked()
            class:other=move || id.is_some() && picked.get().is_some() && picked.get() != id
            on:click=pick data-testid=if worker.is_some() { "changes-worker" } else { "changes-sum" }
            data-worker=id.map(|id| id.to_string())>
            <tr><th scope="row" title=move || row.with(|row| row.note)>{head()}</th>{move || cells()}</tr>
        </tbody>
    }
}
