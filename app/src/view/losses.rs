//! What was lost or not understood: per source, topic and cause, with the last sample; and engines without Dynamo, each with what came of
//! it. Opened from the status bar.

use leptos::html;
use leptos::prelude::*;
use radixscope_panels::losses::{EXPLANATION, EngineLine, LossRow, NONE};

use crate::store::Store;
use crate::view::control::view;

/// Id of the popover.
pub(super) const LOSSES_ID: &str = "losses";

/// The popover; the button that opens it is in the status bar.
#[component]
pub(super) fn Losses(store: Store) -> impl IntoView {
    let element = NodeRef::<html::Div>::new();
    // Its tables are there while they are seen: they change with every update.
    let is_open = RwSignal::new(false);
    let toggled = move |_| {
        let element = element.get_untracked();
        is_open.set(element.is_some_and(|element| element.matches(":popover-open").unwrap_or_default()));
    };
    view! {
        <div id=LOSSES_ID class="popover" popover="auto" aria-label="Lost and rejected messages" data-testid="losses"
            node_ref=element on:toggle=toggled>
            <h2>"Lost and rejected messages"</h2>
            <p class="quiet">{EXPLANATION}</p>
            <Show when=move || is_open.get()><LossTable store/><Engines store/></Show>
        </div>
    }
}

#[component]
fn LossTable(store: Store) -> impl IntoView {
    let rows = Memo::new(move |_| {
        let now = store.now_ms();
        store.on_beat(|shown| LossRow::all(shown, now))
    });
    let has_any = Memo::new(move |_| rows.with(|rows| !rows.is_empty()));
    let row = |row: LossRow| {
        view! {
            <tr>
                <td>{row.source}</td><td>{row.topic}</td><td>{row.cause}</td>
                <td class="n">{row.count}</td><td class="n">{row.last}</td>
                <td class="sample">{row.sample}</td>
            </tr>
        }
    };
    view! {
        <Show when=move || has_any.get()
            fallback=|| view! { <p>{NONE}</p> }>
            <table>
                <thead><tr>
                    <th scope="col">"Source"</th><th scope="col">"Topic"</th><th scope="col">"Cause"</th>
                    <th scope="col" class="n">"Messages"</th><th scope="col" class="n">"Last"</th>
                    <th scope="col">"Last sample"</th>
                </tr></thead>
                <tbody>{move || rows.get().into_iter().map(row).collect_view()}</tbody>
            </table>
        </Show>
    }
}

/// Engines that are listened to without Dynamo, if there are any.
#[component]
fn Engines(store: Store) -> impl IntoView {
    let rows = Memo::new(move |_| store.on_beat(|shown| EngineLine::all(shown)));
    let has_any = Memo::new(move |_| rows.with(|rows| !rows.is_empty()));
    let row = move |row: EngineLine| {
        view! {
            <tr>
                <td>{row.name} <span class="quiet">" " {row.engine}</span></td>
                <td>{row.state}</td>
                <td class="n">{row.last_sequence}</td>
                <td class="n">{row.lost}</td>
                <td>{row.replay}</td>
                <td class="n">{row.block_size}</td>
                <td>{row.encoding}</td>
                <td class="sample">{row.rejected}</td>
            </tr>
        }
    };
    view! {
        <Show when=move || has_any.get()>
            <h2>"Engines without Dynamo"</h2>
            <table data-testid="engines">
                <thead><tr>
                    <th scope="col">"Engine"</th><th scope="col">"Connection"</th>
                    <th scope="col" class="n">"Latest batch"</th><th scope="col" class="n">"Lost"</th>
                    <th scope="col">"Sent again"</th><th scope="col" class="n" title="Tokens">"Block size"</th>
                    <th scope="col">"Events"</th><th scope="col">"Not understood"</th>
                </tr></thead>
                <tbody>{move || rows.get().into_iter().map(row).collect_view()}</tbody>
            </table>
        </Show>
    }
}
