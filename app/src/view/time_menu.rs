//! The menu of the time that charts show, what of it is retained, and the way back from a part of it.

use leptos::prelude::*;
use radixscope_panels::time_menu::{LASTS, RETAINED, TimeChoice, known_from};

use crate::keys;
use crate::store::{Store, zone};
use crate::time_range::{TimeRange, TimeSpan};
use crate::view::control::view;

/// The menu.
#[component]
pub(super) fn TimeMenu(store: Store, span: Memo<TimeSpan>) -> impl IntoView {
    let shown = Memo::new(move |_| {
        let range = store.address.with(|address| address.range);
        span.with(|span| TimeChoice::of(range, *span, zone()))
    });
    let is_last = move |seconds: u64| shown.with(|shown| *shown == TimeChoice::Last(seconds));
    let other = Memo::new(move |_| match shown.get() {
        TimeChoice::Last(_) => None,
        TimeChoice::Other(text) => Some(text),
    });
    let is_other = Memo::new(move |_| other.with(Option::is_some));
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
        if event.key() == "Escape" && !keys::is_elsewhere(&event) && is_other.get_untracked() {
            back();
        }
    });
    on_cleanup(move || key.remove());
    let from = Memo::new(move |_| {
        let span = span.get();
        store.on_beat(|shown| known_from(shown, span, zone()))
    });
    view! {
        <div class="time-menu">
            <select aria-label="Time that the charts show" title=RETAINED data-testid="time-range" on:change=choose>
                {LASTS.map(|(seconds, name)| view! { <option value=seconds.to_string() prop:selected=move || is_last(seconds)>{name}</option> })
                    .into_iter().collect_view()}
                {move || is_other.get().then(|| view! { <option value="0" prop:selected=true data-testid="time-range-other">{other}</option> })}
            </select>
            {move || is_other.get().then(|| view! {
                <button class="plain" data-testid="time-range-back" title="Escape" on:click=move |_| back()>"Reset zoom"</button>
            })}
            <span class="quiet time-zone" title=RETAINED data-testid="time-zone">{zone().to_string()} {move || from.get()}</span>
        </div>
    }
}
