//! The address follows the view, so that it can be sent to someone, and the view follows the browser's history.

use leptos::prelude::*;
use wasm_bindgen::JsValue;

use crate::store::Store;
use crate::url::{Address, Panel};

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
            write(&query, panel != old_panel);
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

fn write(query: &str, is_other_panel: bool) {
    let location = window().location();
    let path = location.pathname().unwrap_or_default();
    let fragment = location.hash().unwrap_or_default();
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
