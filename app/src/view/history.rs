//! The address follows the view, so that it can be sent to someone, and the view follows the browser's history.

use leptos::prelude::*;
use radixscope_panels::time_menu::RequestedMoment;
use wasm_bindgen::JsValue;

use crate::store::Store;
use crate::url::{Address, Panel};

/// The moment in the address and the one that is shown follow each other.
pub(super) fn keep_moment(store: Store) {
    let requested = || RequestedMoment::of(&fragment());
    let is_taken = StoredValue::new(false);
    let known = StoredValue::new(fragment());
    // What is retained is known a little after the page, or a recording in it, is open.
    Effect::new(move |_| {
        let is_known = store.history_version.get() != 0;
        let was_taken = is_taken.get_value();
        is_taken.set_value(is_known);
        if is_known && !was_taken {
            show_moment(store, requested());
        }
    });
    Effect::new(move |before: Option<u64>| {
        let at = store.debounced_at.get();
        let has_changed = before.is_some_and(|before| before != at);
        // Where the reader has changed it meanwhile, the browser is about to say so.
        if has_changed && known.get_value() == fragment() {
            let fragment = RequestedMoment::fragment(at);
            write(&store.address.with_untracked(Address::query), &fragment, false);
            known.set_value(fragment);
        }
        at
    });
    let changed = window_event_listener_untyped("hashchange", move |_| {
        known.set_value(fragment());
        show_moment(store, requested());
    });
    on_cleanup(move || changed.remove());
}

fn fragment() -> String {
    window().location().hash().unwrap_or_default()
}

/// Shows the moment that the address asks for.
fn show_moment(store: Store, requested: RequestedMoment) {
    let shown = untrack(|| store.at.get());
    match requested {
        RequestedMoment::At(at) if at.0 == shown => {}
        RequestedMoment::At(at) => {
            let nothing = store.why_no_history();
            if nothing.is_empty() { store.go(at) } else { store.past_fault.set(nothing.to_owned()) }
        }
        RequestedMoment::Invalid(why) => store.past_fault.set(why),
        RequestedMoment::Present if shown != 0 => store.back_to_live(),
        RequestedMoment::Present => {}
    }
}

/// Keeps address and view the same. Another panel is another entry of the history, so that Back returns from it;
/// anything else changes the entry.
pub(super) fn keep_address(store: Store) {
    let now = move || store.address.with_untracked(|address| (address.query(), address.panel));
    let written = StoredValue::new(now());
    Effect::new(move |_| {
        store.address.track();
        let (query, panel) = now();
        let (old_query, old_panel) = written.get_value();
        if query != old_query {
            write(&query, &fragment(), panel != old_panel);
            written.set_value((query, panel));
        }
    });
    let moved = window_event_listener_untyped("popstate", move |_| {
        let (address, misread) = Address::parse(&window().location().search().unwrap_or_default());
        let view: (String, Panel) = (address.query(), address.panel);
        written.set_value(view);
        store.misread.set(misread);
        store.address.set(address);
    });
    on_cleanup(move || moved.remove());
}

fn write(query: &str, fragment: &str, is_other_panel: bool) {
    let location = window().location();
    let path = location.pathname().unwrap_or_default();
    // A relative address would be resolved against <base>.
    let url = format!("{path}{query}{fragment}");
    if let Ok(history) = window().history() {
        let _ = if is_other_panel {
            history.push_state_with_url(&JsValue::NULL, "", Some(&url))
        } else {
            history.replace_state_with_url(&JsValue::NULL, "", Some(&url))
        };
    }
}
