//! The menu of the time that charts show, what of it is retained, and the way back from a part of it.

use leptos::prelude::*;
use radixscope_model::id::Millis;

use crate::keys;
use crate::store::{Store, time_of_day, zone};
use crate::time_range::{TimePoint, TimeRange, TimeSpan};
use crate::view::control::view;

/// The times offered, seconds; the last is all that is retained.
const LASTS: [(u64, &str); 4] =
    [(60, "Last 1 min"), (300, "Last 5 min"), (900, "Last 15 min"), (3_600, "Last 1 h: all retained")];
/// What is retained.
const RETAINED: &str = "Retained: the last hour, every second of the last 5 min, 15 s steps before. Drag over a chart to zoom in; Escape goes back.";

/// The menu.
#[component]
pub(super) fn TimeMenu(store: Store, span: Memo<TimeSpan>) -> impl IntoView {
    let range = Memo::new(move |_| store.address.with(|address| address.range));
    let is_last = move |seconds: u64| range.get() == TimeRange::last(seconds);
    let is_other = move || !LASTS.iter().any(|(seconds, _)| is_last(*seconds));
    let is_fixed = move || !matches!(range.get().to, TimePoint::Ago(0));
    let choose = move |event| {
        let chosen = event_target_value(&event).parse().ok().filter(|seconds| *seconds > 0);
        if let Some(seconds) = chosen {
            store.unzoomed.set(None);
            store.address.update(|address| address.range = TimeRange::last(seconds));
        }
    };
    let back = move || {
        let before = store.unzoomed.get_untracked().unwrap_or_default();
        store.unzoomed.set(None);
        store.address.update(|address| address.range = before);
    };
    let key = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "Escape" && !keys::is_elsewhere(&event) && untrack(is_other) {
            back();
        }
    });
    on_cleanup(move || key.remove());
    // A stretch that moves with now says its ends each second: only what stays is written in full.
    let other = Memo::new(move |_| match is_fixed() {
        true => span.with(|span| format!("{} – {}", time_of_day(span.from), time_of_day(span.until))),
        false => format!("From {}", range.get().from),
    });
    let from = Memo::new(move |_| {
        let first = store.on_beat(|shown| shown.workers().iter().map(|worker| worker.first_ms).min());
        first.filter(|first| *first > span.get().from).map(first_text)
    });
    view! {
        <div class="time-menu">
            <select aria-label="Time that the charts show" title=RETAINED data-testid="time-range" on:change=choose>
                {LASTS.map(|(seconds, name)| view! { <option value=seconds.to_string() prop:selected=move || is_last(seconds)>{name}</option> })
                    .into_iter().collect_view()}
                {move || is_other().then(|| view! { <option value="0" prop:selected=true data-testid="time-range-other">{other}</option> })}
            </select>
            {move || is_other().then(|| view! {
                <button class="plain" data-testid="time-range-back" title="Escape" on:click=move |_| back()>"Reset zoom"</button>
            })}
            <span class="quiet time-zone" title=RETAINED data-testid="time-zone">{zone()} {move || from.get()}</span>
        </div>
    }
}

fn first_text(first: Millis) -> String {
    format!(", nothing known before {}", time_of_day(first))
}
