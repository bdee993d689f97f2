//! The table of workers: a stacked bar with figures, and below each what the sources say of each other.
//!
//! The bars are cells of the table, elements like the others, so that they stay in line and take its patterns.

use leptos::prelude::*;
use radixscope_model::id::WorkerIx;

use super::row::{MemoryCell, MemoryRow, look};
use super::{Calculator, Legend};
use crate::format;
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::workers::unlisted;

#[component]
pub(super) fn Workers(store: Store, calculator: Calculator) -> impl IntoView {
    let bytes = Memo::new(move |_| calculator.bytes_per_token());
    let unlisted = unlisted(store);
    let unknown = Memo::new(move |_| {
        store.on_beat(|cluster| {
            let now = store.now_ms();
            let mut missing: Vec<(&'static str, Vec<String>)> = Vec::new();
            for worker in cluster.worker_list() {
                let row = look(cluster, worker, None, now);
                for what in row.into_iter().flat_map(|row| row.missing) {
                    let label = radixscope_icicle::palette::label(worker);
                    match missing.iter_mut().find(|(known, _)| *known == what) {
                        Some((_, workers)) => workers.push(label),
                        None => missing.push((what, vec![label])),
                    }
                }
            }
            missing
        })
    });
    let gib = move || match bytes.get() {
        Some(bytes) => format!("GiB by the calculator's {} bytes per token.", format::count(bytes)),
        None => "GiB appear once the calculator below is given the model.".to_owned(),
    };
    view! {
        <table class="mem-table" data-testid="mem-table">
            <thead><tr>
                <th scope="col">"Worker"</th>
                <th scope="col" class="mem-bar-head">"KV memory"</th>
                <th scope="col" class="n" title="Blocks of running requests, reported by the engine">"In use"</th>
                <th scope="col" class="n" title="Cached blocks that no running request uses: estimated from KV events less blocks in use">"Cached, evictable"</th>
                <th scope="col" class="n" title="Capacity less cached or used blocks">"Free"</th>
                <th scope="col" class="n" title="Blocks there are">"Capacity, blocks"</th>
                <th scope="col" class="n" title="Blocks evicted ÷ stored over the last 60 s">"Evicted ÷ stored"</th>
                <th scope="col" class="n" title="From stored to removed; sampled">"Lifetime p50"</th>
                <th scope="col" class="n" title="From one use to the next; sampled">"Re-use gap p50"</th>
            </tr></thead>
            <For each=move || store.listed.get() key=|worker| *worker let:worker>
                <WorkerRow store bytes worker/>
            </For>
        </table>
        <div class="mem-notes">
            <Legend/>
            <p class="quiet">{move || gib()}" Lifetimes and gaps are measured on a sample of blocks."</p>
            {move || unlisted.get().map(|text| view! { <p class="quiet" data-testid="mem-unlisted">{text}</p> })}
            {move || unknown.get().into_iter().map(|(what, workers)| view! {
                <p class="mem-missing" data-testid="mem-missing">{format!("Unknown for {}: {what}.", listed(&workers))}</p>
            }).collect_view()}
        </div>
    }
}

/// A few names, then how many more.
fn listed(workers: &[String]) -> String {
    match workers.len() {
        0..=6 => workers.join(", "),
        n => format!("{} and {} more", workers[..5].join(", "), n - 5),
    }
}

#[component]
fn WorkerRow(store: Store, bytes: Memo<Option<u64>>, worker: WorkerIx) -> impl IntoView {
    let row = Memo::new(move |_| {
        let now = store.now_ms();
        store.on_beat(|cluster| look(cluster, worker, bytes.get(), now)).unwrap_or_default()
    });
    let parts = Memo::new(move |_| row.with(|row| row.parts.clone()));
    let contradictions = Memo::new(move |_| row.with(|row| row.contradictions.clone()));
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
    let spoken = move || {
        let note =
            parts.with(|parts| parts.iter().map(|(_, _, text)| text.as_str()).collect::<Vec<_>>().join(", "));
        // An empty bar says why it is empty.
        let estimate = row.with(|row| row.estimate.clone());
        if note.is_empty() { estimate } else { format!("{note}. {estimate}") }
    };
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
            {move || {
                let all = contradictions.get();
                (!all.is_empty()).then(|| view! {
                    <tr class="mem-status"><td colspan="9" data-testid="mem-status"><span aria-hidden="true">"▲ "</span>{all.join(" ")}</td></tr>
                })
            }}
        </tbody>
    }
}
