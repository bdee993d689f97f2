//! Live traffic beside baselines at the same concurrency. Core computes; this shows, and keeps the reader's own baselines.

mod curves;
mod manage;
mod roles;
mod table;

use leptos::prelude::*;
use radixscope_insight::recent_window as live;
use radixscope_panels::compare::{EMPTY, WINDOW_KEY, WindowChoice, is_empty, is_simulated, subtitle};

use curves::Curves;
use manage::{Manage, Roles};
use roles::Baselines;
use table::Table;

use crate::store::{Feed, Store, zone};
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::{PanelHead, marked};

/// Figures are taken anew this often: a window's mean does not move faster.
const EVERY_MS: u64 = 1_000;
/// The server is asked for its own baselines this often: a run of an experiment takes minutes.
const ASK_EVERY_MS: u64 = 5_000;

/// The panel.
#[component]
pub fn ComparePanel(store: Store, dark: Memo<bool>) -> impl IntoView {
    let baselines = Baselines::new(store);
    let window = Memo::new(move |_| store.address.with(WindowChoice::of));
    let second = Memo::new(move |_| store.on_beat(|_| store.received_ms().0 / EVERY_MS));
    let ask = Memo::new(move |_| second.get() * EVERY_MS / ASK_EVERY_MS);
    Effect::new(move |_| {
        // Read, as below.
        let _ = ask.get();
        baselines.follow();
    });
    let live = Memo::new(move |_| {
        // Read, not only tracked: a memo that is not read never runs and so never notifies.
        let _ = second.get();
        let window = window.get();
        store.peek(|cluster| live::live(cluster, store.received_ms(), window.ms))
    });
    let is_simulated = Memo::new(move |_| store.on_beat(|shown| is_simulated(shown)));
    let source = move || {
        let as_of = store.as_of(Feed::Metrics);
        live.with(|live| subtitle(live, window.get(), is_simulated.get(), as_of, zone()))
    };
    let tells_nothing = Memo::new(move |_| live.with(is_empty));
    let choose =
        move |key: &'static str| store.address.update(|address| address.set_other(WINDOW_KEY, Some(key)));
    view! {
        <section class="panel compare" aria-labelledby="compare-title" data-testid="compare">
            <PanelHead store panel=Panel::Compare title="Compare">
                <span class="quiet cf-sub" data-testid="cmp-source">{move || source()}</span>
            </PanelHead>
            <div class="scroll cmp-scroll" tabindex="0" role="region" aria-label="Live traffic beside baselines">
                <div class="cap-line cmp-top">
                    <fieldset class="tabs"><legend class="hidden">"Window"</legend>
                        {WindowChoice::ALL.map(|of| view! {
                            <label class="tab"><input type="radio" name="cmp-window" data-testid=format!("cmp-window-{}", of.key)
                                prop:checked=move || window.get() == of on:change=move |_| choose(of.key)/><span>{of.name}</span></label>
                        }).into_iter().collect_view()}
                    </fieldset>
                    <Roles baselines/>
                </div>
                <Show when=move || tells_nothing.get()>
                    <p class="mem-missing" data-testid="cmp-empty">{marked(EMPTY)}</p>
                </Show>
                <Experiments baselines/>
                <div class="cmp-columns">
                    <div class="cmp-column"><Table live baselines/></div>
                    <div class="cmp-column"><Curves store dark live baselines/></div>
                </div>
                <Manage baselines live/>
            </div>
        </section>
    }
}

/// How far the experiments are whose results the server reads.
#[component]
fn Experiments(baselines: Baselines) -> impl IntoView {
    let running = Memo::new(move |_| baselines.set.with(|set| set.experiments()));
    view! {
        <ul class="cmp-list" aria-live="polite" data-testid="cmp-experiments">
            {move || running.get().into_iter().map(|(name, progress)| view! {
                <li data-testid="cmp-experiment"><b>{name}</b>": "{progress}"."</li>
            }).collect_view()}
            {move || baselines.served_notes.get().into_iter().map(|note| view! {
                <li class="quiet" data-testid="cmp-note">{note}</li>
            }).collect_view()}
        </ul>
    }
}
