//! The table of workers: a stacked bar with figures, and below each what the sources say of each other.
//!
//! The bars are cells of the table, elements like the others, so that they stay in line and take its patterns.

use leptos::prelude::*;
use radixscope_model::id::WorkerIx;
use radixscope_panels::memory::{COLUMNS, MemoryCell, MemoryRow, missing, units_note};

use super::{Calculator, Legend};
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::workers::unlisted;

#[component]
pub(super) fn Workers(store: Store, calculator: Calculator) -> impl IntoView {
    let bytes = Memo::new(move |_| calculator.shown.with(|shown| shown.bytes_per_token()));
    let unlisted = unlisted(store);
    let unknown = Memo::new(move |_| {
        let now = store.now_ms();
        store.on_beat(|shown| missing(shown, now))
    });
    let head = |(at, (name, title)): (usize, (&'static str, &'static str))| match at {
        0 => view! { <th scope="col">{name}</th> },
        1 => view! { <th scope="col" class="mem-bar-head">{name}</th> },
        _ => view! { <th scope="col" class="n" title=title>{name}</th> },
    };
    view! {
        <table class="mem-table" data-testid="mem-table">
            <thead><tr>{COLUMNS.into_iter().enumerate().map(head).collect_view()}</tr></thead>
            <For each=move || store.listed.get() key=|worker| *worker let:worker>
                <WorkerRow store bytes worker/>
            </For>
        </table>
        <div class="mem-notes">
            <Legend/>
            <p class="quiet">{move || units_note(bytes.get())}</p>
            {move || unlisted.get().map(|text| view! { <p class="quiet" data-testid="mem-unlisted">{text}</p> })}
            {move || unknown.get().into_iter().map(|text| view! { <p class="mem-missing" data-testid="mem-missing">{text}</p> }).collect_view()}
        </div>
    }
}

#[component]
fn WorkerRow(store: Store, bytes: Memo<Option<u64>>, worker: WorkerIx) -> impl IntoView {
    let row = Memo::new(move |_| {
        let now = store.now_ms();
        store.on_beat(|cluster| MemoryRow::of(cluster, worker, bytes.get(), now)).unwrap_or_default()
    });
    let parts = Memo::new(move |_| row.with(|row| row.parts.clone()));
    let status = Memo::new(move |_| row.with(MemoryRow::status));
    let picked = move || store.picked() == Some(worker);
    let id = move || row.with(|row| row.id.clone());
    let cell = move |name: &'static str, of: fn(&MemoryRow) -> &MemoryCell| {
        let cell = Memo::new(move |_| row.with(|row| of(row).clone()));
        view! {
            <td class="n" title=move || cell.with(|c| c.title.clone())>
                <b data-testid=name>{move || cell.with(|c| c.main.clone())}</b>
                <span class="cell-sub">{move || cell.with(|c| c.sub.clone())}</span>
            </td>
        }
    };
    let spoken = move || row.with(MemoryRow::spoken);
    view! {
        <tbody class="mem-worker" class:picked=move || picked() class:other=move || store.picked().is_some_and(|p| p != worker)
            data-testid="mem-worker" data-worker=move || id()>
            <tr>
                <th scope="row">
                    <button class="pick" aria-pressed=move || picked().to_string() on:click=move |_| store.pick(worker)
                        title=move || format!("Worker {}, click to select it", id())>
                        <Chip store worker/>
                        <span class="id">{move || row.with(|row| row.tail.clone())}</span>
                        {move || store.pool_label(worker).map(|(beside, note)| view! { <span class="of-pool" title=note>{beside}</span> })}
                    </button>
                </th>
                <td class="mem-bar-cell">
                    <div class="mem-bar" role="img" aria-label=move || spoken() title=move || spoken()>
                        {move || parts.get().into_iter().map(|(class, width, _)| view! { <i class=class style=format!("width:{width}")></i> }).collect_view()}
                    </div>
                </td>
                {cell("mem-used", |row| &row.used)}
                {cell("mem-retained", |row| &row.retained)}
                {cell("mem-free", |row| &row.free)}
                {cell("mem-capacity", |row| &row.capacity)}
                {cell("mem-churn", |row| &row.churn)}
                {cell("mem-lifetime", |row| &row.lifetime)}
                {cell("mem-gap", |row| &row.gap)}
            </tr>
            {move || status.get().map(|text| view! {
                <tr class="mem-status"><td colspan="9" data-testid="mem-status"><span aria-hidden="true">"▲ "</span>{text}</td></tr>
            })}
        </tbody>
    }
}
