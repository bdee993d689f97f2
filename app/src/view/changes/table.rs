//! Changes worker by worker, with those of its lower tiers, and of each pool.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::changes::{Blocks, Changes, PoolChange, WorkerChange};
use radixscope_model::id::{Millis, Worker, WorkerIx};
use radixscope_model::record::Tier;

use super::{ChangesSignal, sentences};
use crate::format::{self, UNKNOWN};
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;

/// Columns: for tests, name, what it counts.
const COLUMNS: [(&str, &str, &str); 11] = [
    ("before", "At A", "Blocks that it holds at A"),
    (
        "stored",
        "Stored",
        "Blocks that it holds at B and not at A. What it stored and evicted in between is in neither state and not counted",
    ),
    ("evicted", "Evicted", "Blocks that it holds at A and not at B; those of a worker that left too"),
    (
        "moved-in",
        "Moved in",
        "Of its stored blocks, those that another worker of the pool evicted between A and B",
    ),
    (
        "moved-out",
        "Moved out",
        "Of its evicted blocks, those that another worker of the pool stored between A and B",
    ),
    ("kept", "Retained", "Blocks that it has cached at A and at B"),
    ("after", "At B", "Blocks that it holds at B"),
    ("decisions", "Decisions", "Decisions for it between A and B"),
    (
        "hit-rate",
        "Hit rate",
        "KV hit rate: cached blocks ÷ prompt blocks, over the decisions of the 60 s before A → before B",
    ),
    ("ttft-p50", "TTFT p50", "Time to first token, median of the 60 s before A → before B"),
    ("ttft-p95", "TTFT p95", "Time to first token, 95th percentile of the 60 s before A → before B"),
];

/// Text of a cell, what stands below it, and what it says in full.
type CellText = [String; 3];

/// A line of the table.
#[derive(Clone, PartialEq, Default)]
struct ChangesRow {
    /// A worker; `None`: a pool, or a tier of the worker above.
    worker: Option<(Worker, WorkerIx)>,
    /// In place of a worker, or beside it.
    name: String,
    /// What it lacks.
    note: &'static str,
    cells: Vec<CellText>,
}

/// The table.
#[component]
pub(super) fn Table(store: Store, compared: ChangesSignal) -> impl IntoView {
    let rows = Memo::new(move |_| {
        let changes: Option<Arc<Changes>> = compared.get();
        changes.map_or_else(Vec::new, |changes| rows(store, &changes))
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

fn rows(store: Store, changes: &Changes) -> Vec<ChangesRow> {
    let mut rows = Vec::new();
    for pool in sentences::shown(store, changes) {
        let name = if changes.pools.len() > 1 { pool.name.clone() } else { "All workers".to_owned() };
        rows.push(of_pool(pool, name, changes.at));
        for worker in &pool.workers {
            rows.push(of_worker(worker, changes.at));
            rows.extend(worker.tiers.iter().map(|(tier, blocks)| of_tier(*tier, blocks)));
        }
    }
    rows
}

fn plain(text: String) -> CellText {
    [text, String::new(), String::new()]
}

fn of_blocks(blocks: &Blocks) -> Vec<CellText> {
    let counts = [
        blocks.before,
        blocks.stored,
        blocks.evicted,
        blocks.moved_in,
        blocks.moved_out,
        blocks.retained(),
        blocks.after(),
    ];
    counts.into_iter().map(|count| plain(format::count(count))).collect()
}

fn count(known: Option<u64>) -> CellText {
    plain(known.map_or(UNKNOWN.to_owned(), format::count))
}

fn of_pool(pool: &PoolChange, name: String, at: [Millis; 2]) -> ChangesRow {
    let mut cells = of_blocks(&pool.blocks);
    cells.push(count(pool.decisions));
    cells.extend([
        sentences::hit_rate(&pool.requests, at),
        sentences::ttft(&pool.requests, 0),
        sentences::ttft(&pool.requests, 1),
    ]);
    ChangesRow { worker: None, name, note: "", cells }
}

fn of_worker(worker: &WorkerChange, at: [Millis; 2]) -> ChangesRow {
    let mut cells = of_blocks(&worker.blocks);
    if let Some((stored, removed)) = worker.events {
        let status_text = |events: u64| {
            format!("Its events between A and B: {}", format::plural(events, "block", "blocks"))
        };
        cells[1][2] = status_text(stored);
        cells[2][2] = status_text(removed);
    }
    cells.push(count(worker.decisions));
    cells.extend([
        sentences::hit_rate(&worker.requests, at),
        sentences::ttft(&worker.requests, 0),
        sentences::ttft(&worker.requests, 1),
    ]);
    let name = worker.presence.map(sentences::presence).unwrap_or_default();
    let note = if worker.is_partial { "Not all blocks of this worker are known at A or B" } else { "" };
    ChangesRow { worker: Some((worker.id, worker.ix)), name, note, cells }
}

fn of_tier(tier: Tier, blocks: &Blocks) -> ChangesRow {
    ChangesRow { worker: None, name: format!("in {}", tier.as_str()), note: "", cells: of_blocks(blocks) }
}
