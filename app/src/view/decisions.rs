//! The latest routing decisions and what they add up to, every number with its denominator.

use leptos::html;
use leptos::prelude::*;
use radixscope_export::panel::decisions::{
    self, CACHED, DecisionRow, HIT_RATE, HitRates, OVERALL, PROMPT, PromptBars, RECENT, SOURCE, TIME, TITLE,
    WORKER,
};
use radixscope_panels::decisions::recent::{ROWS, RecentDecisions, held_text, latest_why, row_title};
use web_sys::Element;

use super::chip::ChipInPlace;
use super::figure::{EmptyPanel, Figure, PanelHead, Waiting};
use super::resize;
use crate::format;
use crate::store::{Store, time_of_day};
use crate::url::Panel;
use crate::view::control::view;

/// Rows beyond those in sight while they move, so that there is something to scroll to: each decision writes all rows anew.
const SPARE_ROWS: usize = 6;
/// Height of a row at least, CSS pixels.
const ROW_PX: f64 = 24.0;
/// The panel.
#[component]
pub(super) fn DecisionsPanel(store: Store) -> impl IntoView {
    // A row is read by pointing at it or by tabbing to it.
    let (pointed, focused) = (RwSignal::new(false), RwSignal::new(false));
    let held = Memo::new(move |_| pointed.get() || focused.get());
    let list = NodeRef::<html::Div>::new();
    // Down to where the reader sees, CSS pixels.
    let seen_px = RwSignal::new(0.0);
    // Called by the browser too while it takes the list out of the document, when the panel is gone.
    let look = move |list: &Element| {
        let _ = seen_px.try_set(f64::from(list.scroll_top() + list.client_height()));
    };
    Effect::new(move |_| {
        let Some(list) = list.get() else { return };
        let resized = list.clone();
        resize::observe(&list, move || look(&resized));
    });
    let moving_rows = Memo::new(move |_| ((seen_px.get() / ROW_PX).ceil() as usize + SPARE_ROWS).min(ROWS));
    let shown_rows = Memo::new(move |before: Option<&RecentDecisions>| {
        let held = held.get();
        match before {
            Some(before) if held && before.is_held => before.clone(),
            _ => {
                let picked = store.picked();
                let moving = if held { ROWS } else { moving_rows.get() };
                store.on_beat(|shown| RecentDecisions::of(shown, picked, held, moving, before))
            }
        }
    });
    let rows = Memo::new(move |_| shown_rows.with(|shown| shown.rows.clone()));
    let count = Memo::new(move |_| rows.with(Vec::len));
    let bars = Memo::new(move |_| rows.with(|rows| PromptBars::of(rows.iter().map(|row| row.prompt_blocks))));
    let newer = Memo::new(move |_| {
        let picked = store.picked();
        match held.get() {
            true => shown_rows.with(|rows| store.on_beat(|shown| rows.newer(shown, picked))),
            false => 0,
        }
    });
    let rates = Memo::new(move |_| {
        let picked = store.picked();
        let now = store.received_ms();
        store.on_beat(|shown| HitRates::of(shown, picked, now))
    });
    let recent = Memo::new(move |_| rates.with(|rates| rates.recent.rate_text()));
    let overall = Memo::new(move |_| rates.with(|rates| rates.overall.rate_text()));
    let any = Memo::new(move |_| rates.with(|rates| rates.overall.count > 0));
    let left = move |from: RwSignal<bool>| {
        if let Some(list) = list.try_get_untracked().flatten() {
            look(&list);
        }
        let _ = from.try_set(false);
    };
    let second = store.second();
    // Once a second, which is as fast as it can be read.
    let why = Memo::new(move |before: Option<&Option<String>>| match before {
        Some(before) if held.get() => before.clone(),
        _ => {
            second.track();
            let picked = store.picked();
            store.peek(|shown| latest_why(shown, picked))
        }
    });
    view! {
        <section class="panel decisions" aria-labelledby="decisions-title" data-testid="decisions">
            <PanelHead store panel=Panel::Decisions title=TITLE>
                <Figure id="overlap-60s" label=RECENT value=recent
                    title=Memo::new(move |_| rates.with(|rates| rates.recent.explain("in the last 60 s")))/>
                <Figure id="overlap-all" label=OVERALL value=overall
                    title=Memo::new(move |_| rates.with(|rates| rates.overall.explain("since the server started")))/>
            </PanelHead>
            <Show when=move || any.get() fallback=move || view! { <NoDecisions store/> }>
                <p class="caption" data-testid="decisions-caption">{move || rates.with(HitRates::caption)}</p>
                <p class="caption latest-why" title=move || why.get() data-testid="decisions-why">
                    {move || why.with(|why| why.as_ref().map(|why| format!("Latest: {why}")))}
                </p>
                <div class="scroll" tabindex="0" role="region" aria-label="Table of decisions"
                    node_ref=list on:pointerenter=move |_| pointed.set(true) on:pointerleave=move |_| left(pointed)
                    on:focusin=move |_| focused.set(true) on:focusout=move |_| left(focused)>
                    <table>
                        <thead><tr>
                            <th scope="col">{TIME}</th>
                            <th scope="col">{WORKER}</th>
                            <th scope="col" class="n" title="Prompt length in blocks, rounded up">{PROMPT}</th>
                            <th scope="col" class="n" title="Blocks of the prompt that were cached on the chosen worker, as the router counted them">{CACHED}</th>
                            <th scope="col" class="share-head" title=move || bars.get().to_text()>{HIT_RATE}</th>
                            <th scope="col" class="c-source">{SOURCE}</th>
                        </tr></thead>
                        <tbody>
                            <For each=move || 0..count.get() key=|at| *at let:at>
                                <DecisionRow store rows bars at/>
                            </For>
                        </tbody>
                    </table>
                </div>
                <p class="held-note" class:on=move || held.get() aria-live="off">
                    {move || held_text(pointed.get(), newer.get())}
                </p>
            </Show>
        </section>
    }
}

/// The row at a place: decisions move through the rows, and no row moves.
#[component]
fn DecisionRow(
    store: Store,
    rows: Memo<Vec<DecisionRow>>,
    bars: Memo<PromptBars>,
    at: usize,
) -> impl IntoView {
    let row = Memo::new(move |before: Option<&Option<DecisionRow>>| {
        rows.with(|rows| rows.get(at).cloned()).or_else(|| before.cloned().flatten())
    });
    let of = move |part: fn(&DecisionRow) -> String| move || row.with(|row| row.as_ref().map(part));
    let worker = Memo::new(move |_| row.with(|row| row.as_ref().map(|row| row.worker)));
    let open = move |_| {
        if let Some(id) = row.with_untracked(|row| row.as_ref().map(|row| row.id)) {
            store.address.update(|a| *a = a.with_decision(Panel::Decisions, id));
        }
    };
    // The button is what the keyboard finds; its click is the row's.
    view! {
        <tr data-testid="decision" data-seq=of(|row| row.seq.0.to_string()) title=of(row_title) on:click=open>
            <td class="time"><button class="pick" data-testid="decision-open">{of(|row| time_of_day(row.at_ms))}</button></td>
            <td>
                <ChipInPlace store worker/>
                {move || worker.get().and_then(|worker| store.pool_label(worker)).map(|(beside, text)| view! {
                    " " <span class="of-pool" title=text data-testid="decision-pool">{beside}</span>
                })}
            </td>
            <td class="n">{of(|row| row.prompt.clone())}</td>
            <td class="n">{of(|row| row.cached.clone())}</td>
            <td class="share">
                <PromptBar length=Signal::derive(move || row.with(|row| bars.get().length(row.as_ref()?.prompt_blocks)))
                    cached=Signal::derive(move || row.with(|row| row.as_ref()?.share))/>
                <span>{of(DecisionRow::share_text)}</span>
            </td>
            <td class="c-source">{of(|row| row.source.to_owned())}</td>
        </tr>
    }
}

/// A bar as long as the prompt, filled as far as it was cached; none where its length is unknown.
#[component]
pub(super) fn PromptBar(length: Signal<Option<f64>>, cached: Signal<Option<f64>>) -> impl IntoView {
    let width = |share: Option<f64>| format!("width:{}", format::width(share.unwrap_or(0.0)));
    view! {
        <span class="prompt-bar" aria-hidden="true">
            <span class="meter" style=move || width(length.get())><i style=move || width(cached.get())></i></span>
        </span>
    }
}

#[component]
fn NoDecisions(store: Store) -> impl IntoView {
    let text = Memo::new(move |_| {
        let picked = store.picked();
        store.on_beat(|shown| decisions::empty(shown, picked))
    });
    move || match store.ready() {
        true => view! { <EmptyPanel text=text.get()/> },
        false => view! { <Waiting id="decisions-wait"/> },
    }
}
