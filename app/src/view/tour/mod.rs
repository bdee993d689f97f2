//! The tour: the page's story in half a minute, by arrow keys or buttons; on a kiosk by itself. Which step is shown stands in the address.
//! What it shows and says is [`steps`]; it knows no panel.

mod steps;

use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;

use self::steps::{STEPS, Step};
use super::{stage, summary};
use crate::store::Store;
use crate::url::{Address, Panel};
use crate::view::control::view;

/// Key in the address: the number of the step, and how long each stays where it goes on by itself: `2`, `15s`, `2,15s`.
const KEY: &str = "tour";
/// How long a step stays on a kiosk, in seconds, and the bounds of what the address may say.
const STAYS_S: u32 = 10;
const STAYS_BOUNDS_S: (u32, u32) = (3, 600);
/// What is outlined moves with the page: it is looked for so often.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Room around what is outlined, CSS pixels.
const MARGIN_PX: f64 = 3.0;

/// Where the tour is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    /// Number of the step, from 0.
    step: usize,
    /// How long a step stays, in seconds, where the address says so.
    stays_s: Option<u32>,
}

impl Place {
    /// Where an address says; `None`: there is no tour.
    fn of(address: &Address) -> Option<Self> {
        let value = address.other(KEY)?;
        let mut place = Self { step: 0, stays_s: None };
        for part in value.split(',') {
            match part.strip_suffix('s') {
                Some(seconds) => {
                    let (least, most) = STAYS_BOUNDS_S;
                    place.stays_s = seconds.parse().ok().map(|seconds: u32| seconds.clamp(least, most));
                }
                None => place.step = part.parse::<usize>().map_or(0, |number| number.saturating_sub(1)),
            }
        }
        Some(place)
    }

    fn value(self) -> String {
        let number = self.step + 1;
        self.stays_s.map_or(number.to_string(), |seconds| format!("{number},{seconds}s"))
    }
}

/// Whether an address asks for the tour.
pub(super) fn is_asked(address: &Address) -> bool {
    address.other(KEY).is_some()
}

/// The steps of this page: what breaks something only where all is simulated, and never by itself.
fn steps(is_alone: bool) -> Vec<&'static Step> {
    let can_act = !is_alone && stage::is_simulated();
    STEPS.iter().filter(|step| can_act || step.act.is_none()).collect()
}

/// Shows the step that is `by` steps from the one that is shown; the tour begins anew where it goes on by itself.
fn go(store: Store, by: isize) {
    store.address.update(|address| {
        let Some(place) = Place::of(address) else { return };
        let is_alone = address.kiosk;
        let steps = steps(is_alone);
        let last = steps.len() - 1;
        let next = place.step.min(last).saturating_add_signed(by);
        let step = if is_alone { next % steps.len() } else { next.min(last) };
        address.panel = steps[step].panel;
        address.set_other(KEY, Some(&Place { step, ..place }.value()));
    });
}

/// Ends it where it began.
fn end(store: Store) {
    store.address.update(|address| {
        address.panel = Panel::Overview;
        address.set_other(KEY, None);
    });
}

/// Takes a key, if there is a tour that it means.
pub(crate) fn key(store: Store, key: &str) -> bool {
    if !store.address.with_untracked(is_asked) {
        return false;
    }
    match key {
        "ArrowRight" => go(store, 1),
        "ArrowLeft" => go(store, -1),
        "Escape" => end(store),
        _ => return false,
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
    let stays_s = place.get_untracked().and_then(|place| place.stays_s).unwrap_or(STAYS_S);
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
        tiles.with(|tiles| store.on_beat(|shown| (step.text)(shown, tiles)))
    });
    let title = move || steps(is_alone.get())[step.get()].title;
    let number = move || format!("{} of {}", step.get() + 1, count.get());
    let is_last = move || step.get() + 1 == count.get();
    let next = move |_| if untrack(is_last) { end(store) } else { go(store, 1) };
    view! {
        <Outline store step is_alone/>
        <section class="tour" class:alone=is_alone aria-label="Tour" data-testid="tour">
            <p class="tour-title"><span class="quiet" data-testid="tour-number">{number}</span>" "<b data-testid="tour-title">{title}</b></p>
            // Figures change each second: only the step itself is read aloud.
            <p class="hidden" role="status" aria-live="polite">{move || format!("{}: {}", number(), title())}</p>
            <p class="tour-text" data-testid="tour-text">{text}</p>
            <Show when=move || !is_alone.get()>
                <div class="tour-buttons">
                    {move || steps(false)[step.get()].act.as_ref().map(|act| view! { <ActButton label=act.label change=act.change/> })}
                    <span class="spacer"></span>
                    <button class="plain" on:click=move |_| end(store) title="Escape" data-testid="tour-end">"End"</button>
                    <button class="plain" on:click=move |_| go(store, -1) disabled=move || step.get() == 0 title="Left arrow"
                        data-testid="tour-back">"← Back"</button>
                    <button class="primary" on:click=next title="Right arrow" data-testid="tour-next">
                        {move || if is_last() { "Done" } else { "Next →" }}
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
