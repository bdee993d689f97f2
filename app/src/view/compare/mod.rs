//! Live traffic beside baselines at the same concurrency. Core computes; this shows, and keeps the reader's own baselines.

mod curves;
mod manage;
mod roles;
mod table;

use leptos::prelude::*;
use radixscope_insight::recent_window as live;
use radixscope_model::record::SourceKind;

use curves::Curves;
use manage::{Manage, Roles};
use roles::Baselines;
use table::Table;

use crate::format;
use crate::store::{Feed, Store, time_of_day};
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::PanelHead;

/// Key of the window's length in the address.
const WINDOW_KEY: &str = "cmp.window";
/// Lengths: value in the address, name, milliseconds.
const WINDOWS: [(&str, &str, u64); 2] = [("60s", "60 s", 60_000), ("5min", "5 min", 300_000)];
/// Figures are taken anew this often: a window's mean does not move faster.
const EVERY_MS: u64 = 1_000;
/// The server is asked for its own baselines this often: a run of an experiment takes minutes.
const ASK_EVERY_MS: u64 = 5_000;

/// The panel.
#[component]
pub fn ComparePanel(store: Store, dark: Memo<bool>) -> impl IntoView {
    let baselines = Baselines::new(store);
    let window = Memo::new(move |_| {
        let name = store.address.with(|address| address.other(WINDOW_KEY));
        WINDOWS.into_iter().find(|(key, ..)| name.as_deref() == Some(key)).unwrap_or(WINDOWS[0])
    });
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
        let (.., ms) = window.get();
        store.peek(|cluster| live::live(cluster, store.received_ms(), ms))
    });
    let is_simulated = Memo::new(move |_| {
        store.on_beat(|cluster| cluster.sources().iter().any(|source| source.kind == SourceKind::Simulator))
    });
    let source = move || {
        let what = if is_simulated.get() { "Live: simulated cluster" } else { "Live" };
        let (_, name, _) = window.get();
        let name = match store.as_of(Feed::Metrics) {
            None => format!("last {name}"),
            Some(at) => format!("{name} before {}, not current", time_of_day(at)),
        };
        live.with(|live| match live.concurrency {
            Some((mean, how)) => {
                format!("{what}, {name}, concurrency {} ({}).", whole(mean), how.label())
            }
            None => format!("{what}, {name}, concurrency unknown."),
        })
    };
    let tells_nothing = Memo::new(move |_| {
        live.with(|live| {
            radixscope_insight::baseline::Figure::ALL
                .iter()
                .all(|&figure| live.window.figures.get(figure).is_none())
        })
    });
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
                        {WINDOWS.map(|(key, name, _)| view! {
                            <label class="tab"><input type="radio" name="cmp-window" data-testid=format!("cmp-window-{key}")
                                prop:checked=move || window.get().0 == key on:change=move |_| choose(key)/><span>{name}</span></label>
                        }).into_iter().collect_view()}
                    </fieldset>
                    <Roles baselines/>
                </div>
                <Show when=move || tells_nothing.get()>
                    <p class="mem-missing" data-testid="cmp-empty">
                        "No request was reported in this window: "<code>"--prometheus frontend=http://HOST:8000/metrics"</code>
                        " brings latencies, lengths and throughput; logs of 1.5 and later or request traces bring each request."
                    </p>
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
    view! {
        <ul class="cmp-list" aria-live="polite" data-testid="cmp-experiments">
            {move || baselines.running().into_iter().filter_map(|baseline| {
                let progress = baseline.progress()?.to_text();
                Some(view! {
                    <li data-testid="cmp-experiment"><b>{format!("{}, {}", baseline.name(), baseline.router().as_str())}</b>": "{progress}"."</li>
                })
            }).collect_view()}
            {move || baselines.served_notes.get().into_iter().map(|note| view! {
                <li class="quiet" data-testid="cmp-note">{note}</li>
            }).collect_view()}
        </ul>
    }
}

/// A mean of requests, to the nearest whole one; below ten with a decimal.
fn whole(mean: f64) -> String {
    if mean < 10.0 { format!("{mean:.1}") } else { format::count(mean.round() as u64) }
}
