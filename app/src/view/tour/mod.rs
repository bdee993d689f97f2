//! The tour: the page's story in half a minute, by arrow keys or buttons; on a kiosk by itself. Which step is shown stands in the address.
//! What it shows and says is [`radixscope_panels::tour`]'s; it knows no panel.

use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;
pub(super) use radixscope_panels::tour::is_asked;
use radixscope_panels::tour::{self, Card, Place, Step, TourFigures, TourKey};

use super::{stage, summary};
use crate::store::Store;
use crate::view::control::view;

/// What is outlined moves with the page: it is looked for so often.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Room around what is outlined, CSS pixels.
const MARGIN_PX: f64 = 3.0;

/// The steps of this page.
fn steps(is_alone: bool) -> Vec<&'static Step> {
    tour::steps(is_alone, stage::is_simulated())
}

/// Shows the step that is `by` steps from the one that is shown.
fn go(store: Store, by: isize) {
    let is_simulated = stage::is_simulated();
    store.address.update(|address| tour::go(address, by, is_simulated));
}

/// Ends it where it began.
fn end(store: Store) {
    store.address.update(tour::end);
}

/// Takes a key, if there is a tour that it means.
pub(crate) fn key(store: Store, key: &str) -> bool {
    match store.address.with_untracked(|address| TourKey::of(address, key)) {
        None => return false,
        Some(TourKey::Go(by)) => go(store, by),
        Some(TourKey::End) => end(store),
    }
    true
}

/// The card with the step's sentence, and the outline of what is meant.
#[component]
pub fn TourCard(store: Store) -> impl IntoView {
    let is_alone = Memo::new(move |_| store.address.with(|address| address.kiosk));
    let place = Memo::new(move |_| store.address.with(Place::of));
    let count = Memo::new(move |_| steps(is_alone.get()).len());
    let step = Memo::new(move |_| place.get().map_or(0, |place| place.step).min(count.get() - 1));
    // The address may name a step without its view.
    go(store, 0);
    let stays_s = store.address.with_untracked(tour::stays_s);
    let turn = move || {
        if is_alone.get_untracked() {
            go(store, 1);
        }
    };
    if let Ok(turning) = set_interval_with_handle(turn, Duration::from_secs(stays_s.into())) {
        on_cleanup(move || turning.clear());
    }
    let tiles = summary::tiles(store);
    let text = Memo::new(move |_| {
        let step = steps(is_alone.get())[step.get()];
        tiles.with(|tiles| {
            let figures = TourFigures {
                hit_rate: &tiles[2].value,
                ttft_p95: &tiles[0].value,
                in_flight: &tiles[4].value,
            };
            store.on_beat(|shown| (step.text)(shown, figures))
        })
    });
    let card = Memo::new(move |_| Card::of(&steps(is_alone.get()), step.get()));
    let next = move |_| if card.with_untracked(|card| card.is_last) { end(store) } else { go(store, 1) };
    view! {
        <Outline store step is_alone/>
        <section class="tour" class:alone=is_alone aria-label="Tour" data-testid="tour">
            <p class="tour-title"><span class="quiet" data-testid="tour-number">{move || card.with(|card| card.number.clone())}</span>" "<b data-testid="tour-title">{move || card.with(|card| card.title)}</b></p>
            // Figures change each second: only the step itself is read aloud.
            <p class="hidden" role="status" aria-live="polite">{move || card.with(Card::announcement)}</p>
            <p class="tour-text" data-testid="tour-text">{text}</p>
            <Show when=move || !is_alone.get()>
                <div class="tour-buttons">
                    {move || steps(false)[step.get()].act.as_ref().map(|act| view! { <ActButton label=act.label change=act.change/> })}
                    <span class="spacer"></span>
                    <button class="plain" on:click=move |_| end(store) title="Escape" data-testid="tour-end">"End"</button>
                    <button class="plain" on:click=move |_| go(store, -1) disabled=move || card.with(|card| !card.can_go_back) title="Left arrow"
                        data-testid="tour-back">"← Back"</button>
                    <button class="primary" on:click=next title="Right arrow" data-testid="tour-next">
                        {move || card.with(|card| card.next)}
                    </button>
                </div>
            </Show>
        </section>
    }
}

/// The change that belongs to a step: made when it is pressed, and never by itself.
#[component]
fn ActButton(label: &'static str, change: fn() -> radixscope_export::stage::StageChange) -> impl IntoView {
    let outcome = RwSignal::new(String::new());
    let act = move |_| {
        spawn_local(async move {
            let text = match stage::post(&change()).await {
                Ok(report) => report.latest.map_or(String::new(), |latest| latest.text),
                Err(why) => why,
            };
            // The step may have been left meanwhile.
            let _ = outcome.try_set(text);
        });
    };
    view! {
        <button class="tour-act" on:click=act data-testid="tour-act">{label}</button>
        <span class="tour-outcome" role="status" data-testid="tour-outcome">{outcome}</span>
    }
}

/// A frame around what the step speaks of, wherever it is.
#[component]
fn Outline(store: Store, step: Memo<usize>, is_alone: Memo<bool>) -> impl IntoView {
    let place = RwSignal::new(None::<String>);
    let look = move || {
        // A frame that was asked for comes also when the tour has ended.
        let Some((step, is_alone)) = step.try_get_untracked().zip(is_alone.try_get_untracked()) else {
            return;
        };
        let step = steps(is_alone)[step];
        let found = document().query_selector(step.subject).ok().flatten();
        let window_px = window().inner_width().ok().and_then(|width| width.as_f64()).unwrap_or(f64::MAX);
        let style = found.map(|element| element.get_bounding_client_rect()).map(|rect| {
            // What reaches from edge to edge has its frame within the window.
            let (left, right) =
                ((rect.left() - MARGIN_PX).max(0.0), (rect.right() + MARGIN_PX).min(window_px));
            let (top, height) = (rect.top() - MARGIN_PX, rect.height() + 2.0 * MARGIN_PX);
            format!("left:{left}px;top:{top}px;width:{}px;height:{height}px", right - left)
        });
        if place.with_untracked(|before| *before != style) {
            place.set(style);
        }
    };
    Effect::new(move |_| {
        step.track();
        // The next frame has the step's view.
        request_animation_frame(look);
    });
    if let Ok(looking) = set_interval_with_handle(look, LOOK_EVERY) {
        on_cleanup(move || looking.clear());
    }
    let is_ready = move || store.ready();
    view! {
        <Show when=is_ready>
            {move || place.get().map(|style| view! { <div class="tour-outline" style=style aria-hidden="true" data-testid="tour-outline"></div> })}
        </Show>
    }
}
