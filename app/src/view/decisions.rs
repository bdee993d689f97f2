//! The latest routing decisions and what they add up to, every number with its denominator.

use leptos::prelude::*;
use radixscope_model::id::{DecisionId, WorkerIx};
use radixscope_model::record::DecisionSource;

use super::chip::Chip;
use super::figure::{Empty, Figure, PanelHead};
use crate::format::{self, UNKNOWN};
use crate::store::{Store, ViewContext, time_of_day};
use crate::url::Panel;
use crate::view::control::view;
use crate::view_context::{caption, source_name};

/// Rows shown: more than anyone reads while they move, few enough to be written anew with each decision.
const ROWS: usize = 60;
/// What a click on a row does.
const OPEN: &str = "Click for the candidates and the reason";

#[derive(Clone, PartialEq)]
struct Row {
    seq: u64,
    id: DecisionId,
    time: String,
    worker: WorkerIx,
    prompt: String,
    overlap: String,
    share: Option<f64>,
    source: DecisionSource,
    title: String,
}

/// The panel.
#[component]
pub(super) fn DecisionsPanel(store: Store) -> impl IntoView {
    // A row is read by pointing at it or by tabbing to it.
    let (pointed, focused) = (RwSignal::new(false), RwSignal::new(false));
    let held = Memo::new(move |_| pointed.get() || focused.get());
    let rows = Memo::new(move |before: Option<&Vec<Row>>| match before {
        Some(before) if held.get() => before.clone(),
        _ => {
            let picked = store.picked();
            store.on_beat(|cluster| latest(cluster, picked))
        }
    });
    let count = Memo::new(move |_| rows.with(Vec::len));
    let newer = Memo::new(move |_| {
        let shown = rows.with(|rows| rows.first().map_or(0, |r| r.seq));
        let picked = store.picked();
        if !held.get() {
            0
        } else {
            store.on_beat(|c| c.decisions_on(picked).take_while(|d| d.seq.0 > shown).count())
        }
    });
    let totals = Memo::new(move |_| {
        let picked = store.picked();
        let now = store.received_ms();
        store.on_beat(|shown| shown.decision_figures(picked, now))
    });
    let recent = Memo::new(move |_| totals.with(|(recent, _)| recent.rate_text()));
    let overall = Memo::new(move |_| totals.with(|(_, all)| all.rate_text()));
    let any = Memo::new(move |_| totals.with(|(_, all)| all.count > 0));
    view! {
        <section class="panel decisions" aria-labelledby="decisions-title" data-testid="decisions">
            <PanelHead store panel=Panel::Decisions title="Decisions">
                <Figure id="overlap-60s" label="KV hit rate, last 60 s" value=recent
                    title=Memo::new(move |_| totals.with(|(recent, _)| recent.explain("in the last 60 s")))/>
                <Figure id="overlap-all" label="since start" value=overall
                    title=Memo::new(move |_| totals.with(|(_, all)| all.explain("since the server started")))/>
            </PanelHead>
            <Show when=move || any.get() fallback=move || view! { <NoDecisions store/> }>
                <p class="caption" data-testid="decisions-caption">{move || totals.with(|(recent, all)| caption(recent, all))}</p>
                <div class="scroll" tabindex="0" role="region" aria-label="Table of decisions"
                    on:pointerenter=move |_| pointed.set(true) on:pointerleave=move |_| pointed.set(false)
                    on:focusin=move |_| focused.set(true) on:focusout=move |_| focused.set(false)>
                    <table>
                        <thead><tr>
                            <th scope="col">"Time"</th>
                            <th scope="col">"Worker"</th>
                            <th scope="col" class="n" title="Prompt length in blocks, rounded up">"Prompt"</th>
                            <th scope="col" class="n" title="Blocks of the prompt that were cached on the chosen worker, as the router counted them">"Cached"</th>
                            <th scope="col" class="share-head" title="KV hit rate: cached blocks ÷ prompt blocks">"Hit rate"</th>
                            <th scope="col" class="c-source">"Source"</th>
                        </tr></thead>
                        <tbody>
                            <For each=move || 0..count.get() key=|at| *at let:at>
                                <DecisionRow store rows at/>
                            </For>
                        </tbody>
                    </table>
                </div>
                <p class="held-note" class:on=move || held.get() aria-live="off">
                    {move || {
                        let what = if pointed.get() { "pointer" } else { "focus" };
                        match newer.get() {
                            0 => format!("Held while the {what} is here"),
                            n => format!("Held while the {what} is here, {} newer", format::count(n as u64)),
                        }
                    }}
                </p>
            </Show>
        </section>
    }
}

/// The row at a place: decisions move through the rows, and no row moves.
#[component]
fn DecisionRow(store: Store, rows: Memo<Vec<Row>>, at: usize) -> impl IntoView {
    let row = Memo::new(move |before: Option<&Option<Row>>| {
        rows.with(|rows| rows.get(at).cloned()).or_else(|| before.cloned().flatten())
    });
    let of = move |part: fn(&Row) -> String| move || row.with(|row| row.as_ref().map(part));
    let worker = Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.worker)));
    let open = move |_| {
        if let Some(id) = row.with_untracked(|row| row.as_ref().map(|row| row.id)) {
            store.address.update(|a| *a = a.with_decision(Panel::Decisions, id));
        }
    };
    // The button is what the keyboard finds; its click is the row's.
    view! {
        <tr data-testid="decision" data-seq=of(|row| row.seq.to_string()) title=of(|row| row.title.clone()) on:click=open>
            <td class="time"><button class="pick" data-testid="decision-open">{of(|row| row.time.clone())}</button></td>
            <td>
                {move || worker.get().map(|worker| view! {
                    <Chip store worker/>
                    {move || store.pool_words(worker).map(|(beside, words)| view! { " " <span class="of-pool" title=words data-testid="decision-pool">{beside}</span> })}
                })}
            </td>
            <td class="n">{of(|row| row.prompt.clone())}</td>
            <td class="n">{of(|row| row.overlap.clone())}</td>
            <td class="share">
                <span class="meter" aria-hidden="true"><i style=of(|row| format!("width:{}", format::width(row.share.unwrap_or(0.0))))></i></span>
                <span>{of(|row| row.share.map_or(UNKNOWN.to_owned(), format::percent))}</span>
            </td>
            <td class="c-source">{of(|row| source_name(row.source).to_owned())}</td>
        </tr>
    }
}

#[component]
fn NoDecisions(store: Store) -> impl IntoView {
    let picked = move || store.picked().is_some();
    let events = Memo::new(move |_| store.has_kv_events());
    let hint = move || store.on_beat(|cluster| cluster.decisions_hint()).map(|hint| hint.to_string());
    move || {
        if !store.ready() {
            view! { <Empty id="decisions-wait" head="Waiting for the server's state"/> }
        } else if picked() {
            view! { <Empty id="decisions-none-picked" head="No decision for this worker yet"/> }
        } else if events.get() {
            view! {
                <Empty id="decisions-missing" head="No routing decisions received">
                    <p>{move || hint()}</p>
                    <p>"If no request was sent since the server started, there is nothing to show yet."</p>
                </Empty>
            }
        } else {
            view! {
                <Empty id="decisions-empty" head="No decision received yet">
                    <p>"Every request that the KV router places appears here, with the share of its prompt that was cached on the chosen worker."</p>
                </Empty>
            }
        }
    }
}

fn latest(cluster: &ViewContext<'_>, picked: Option<WorkerIx>) -> Vec<Row> {
    let number = |n: Option<u64>| n.map_or(UNKNOWN.to_owned(), format::count);
    cluster
        .decisions_on(picked)
        .take(ROWS)
        .map(|d| Row {
            seq: d.seq.0,
            id: d.decision.id,
            time: time_of_day(d.at_ms),
            worker: d.decision.worker,
            prompt: number(d.decision.isl_blocks),
            overlap: number(d.overlap_blocks().filter(|_| !d.ignores_cache)),
            share: d.overlap_share(),
            source: d.decision.source,
            title: d
                .decision
                .request_id
                .as_ref()
                .map_or(OPEN.to_owned(), |id| format!("Request {id}. {OPEN}")),
        })
        .collect()
}
