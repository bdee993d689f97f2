//! Panels that are loaded when they are opened: each is a chunk of the page's program of its own (`xtask/bundle` cuts them),
//! asked for when the pointer rests on its link or when it is opened, and then kept by the browser. Whatever only such a panel
//! uses is in its chunk. A chunk that does not come is said, and asked for again by a button.

use futures_util::FutureExt;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::{SplitLoaderError, wasm_split};

use super::figure::{PanelHead, heading_id};
use super::{changes, compare, counterfactual, findings, latency, ledger, memory, whatif};
use crate::keys;
use crate::memo::Memo;
use crate::signal::RwSignal;
use crate::store::Store;
use crate::url::Panel;
use crate::view::control::view;

type Part = Result<AnyView, SplitLoaderError>;

#[wasm_split(findings, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_findings))]
fn findings_part(store: Store) -> Part {
    Ok(view! { <findings::FindingsPanel store/> })
}

#[wasm_split(latency, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_latency))]
fn latency_part(store: Store, dark: Memo<bool>) -> Part {
    Ok(view! { <latency::LatencyPanel store dark/> })
}

#[wasm_split(memory, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_memory))]
fn memory_part(store: Store) -> Part {
    Ok(view! { <memory::MemoryPanel store/> })
}

#[wasm_split(decisions, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_decisions))]
fn decisions_part(store: Store) -> Part {
    Ok(view! { <ledger::LedgerPanel store/> })
}

#[wasm_split(whatif, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_whatif))]
fn whatif_part(store: Store) -> Part {
    Ok(view! { <whatif::WhatIfPanel store/> })
}

#[wasm_split(counterfactual, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_counterfactual))]
fn counterfactual_part(store: Store) -> Part {
    Ok(view! { <counterfactual::CounterfactualPanel store/> })
}

#[wasm_split(compare, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_compare))]
fn compare_part(store: Store, dark: Memo<bool>) -> Part {
    Ok(view! { <compare::ComparePanel store dark/> })
}

#[wasm_split(changes, wasm_split_path = ::leptos::wasm_split, fallible, preload(load_changes))]
fn changes_part(store: Store, dark: Memo<bool>) -> Part {
    Ok(view! { <changes::ChangesPanel store dark/> })
}

/// Loads a panel's chunk, if it has one and does not have it yet.
async fn load(panel: Panel) -> Result<(), SplitLoaderError> {
    match panel {
        Panel::Findings => load_findings().await,
        Panel::Latency => load_latency().await,
        Panel::Memory => load_memory().await,
        Panel::Decisions => load_decisions().await,
        Panel::WhatIf => load_whatif().await,
        Panel::Counterfactual => load_counterfactual().await,
        Panel::Compare => load_compare().await,
        Panel::Changes => load_changes().await,
        Panel::Overview | Panel::Tree | Panel::Workers | Panel::Rates => Ok(()),
    }
}

/// The panel, whose chunk is loaded. `None`: it has none.
fn loaded(panel: Panel, store: Store, dark: Memo<bool>) -> Option<AnyView> {
    let part = match panel {
        Panel::Findings => findings_part(store).now_or_never(),
        Panel::Latency => latency_part(store, dark).now_or_never(),
        Panel::Memory => memory_part(store).now_or_never(),
        Panel::Decisions => decisions_part(store).now_or_never(),
        Panel::WhatIf => whatif_part(store).now_or_never(),
        Panel::Counterfactual => counterfactual_part(store).now_or_never(),
        Panel::Compare => compare_part(store, dark).now_or_never(),
        Panel::Changes => changes_part(store, dark).now_or_never(),
        Panel::Overview | Panel::Tree | Panel::Workers | Panel::Rates => None,
    };
    part?.ok()
}

/// Loads a panel's chunk before it is opened. A failure is shown when it is.
pub(super) fn preload(panel: Panel) {
    spawn_local(async move {
        let _ = load(panel).await;
    });
}

#[derive(Clone, Copy, PartialEq)]
enum Progress {
    Loading,
    Loaded,
    Failed,
}

/// A panel that is loaded when it is opened.
#[component]
pub(super) fn PanelPart(panel: Panel, store: Store, dark: Memo<bool>) -> impl IntoView {
    let progress = RwSignal::new(Progress::Loading);
    let begin = move || {
        progress.set(Progress::Loading);
        spawn_local(async move {
            let done = if load(panel).await.is_ok() { Progress::Loaded } else { Progress::Failed };
            let heading = heading_id(panel);
            let has_focus = document().active_element().is_some_and(|element| element.id() == heading);
            // The panel may have been left meanwhile.
            if progress.try_set(done) && has_focus {
                // The panel's own heading takes the place of the one that had it, unless something in it was asked for.
                request_animation_frame(move || {
                    let is_lost =
                        document().active_element().is_none_or(|element| element.tag_name() == "BODY");
                    if is_lost {
                        keys::focus(&heading);
                    }
                });
            }
        });
    };
    begin();
    let shown = Memo::new(move |_| progress.get());
    move || match shown.get() {
        Progress::Loaded => {
            loaded(panel, store, dark).unwrap_or_else(|| view! { <Failed panel store again=begin/> })
        }
        Progress::Failed => view! { <Failed panel store again=begin/> },
        Progress::Loading => view! {
            <section class="panel part" aria-busy="true" data-testid="part-loading">
                <PanelHead store panel title=panel.title()>""</PanelHead>
                <p class="empty part-loading" role="status">{format!("Loading {}…", panel.title())}</p>
            </section>
        },
    }
}

#[component]
fn Failed(panel: Panel, store: Store, again: impl Fn() + 'static) -> impl IntoView {
    view! {
        <section class="panel part" data-testid="part-failed">
            <PanelHead store panel title=panel.title()>""</PanelHead>
            <div class="empty" role="alert">
                <p class="empty-head">{format!("{} was not loaded", panel.title())}</p>
                <p>
                    "This part of the page did not arrive; the browser's console names the file. The rest of the page still
                     works. After an update of the server, reload the page."
                </p>
                <button class="plain" on:click=move |_| again() data-testid="part-again">"Try again"</button>
            </div>
        </section>
    }
}
