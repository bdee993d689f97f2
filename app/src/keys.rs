//! The keyboard, for the page as a whole; the tree has keys of its own. `help.html` lists all of them.

use leptos::prelude::*;
use radixscope_panels::keys::PageKey;
use wasm_bindgen::JsCast;

use crate::store::Store;
use crate::view::{timeline, tour};

/// Listens for the page's keys for as long as it is open. `help` is raised for `?`.
pub fn listen(store: Store, help: RwSignal<u32>) {
    let handle = window_event_listener(leptos::ev::keydown, move |event| {
        if is_elsewhere(&event) {
            return;
        }
        let key = event.key();
        if tour::key(store, &key) {
            event.prevent_default();
            return;
        }
        if timeline::key(store, &key, &event) {
            event.prevent_default();
            return;
        }
        match PageKey::of(&key) {
            None => return,
            Some(PageKey::Help) => help.update(|n| *n += 1),
            Some(PageKey::FocusTree) => focus("tree"),
            Some(PageKey::Mark(which)) => store.mark(which),
            Some(PageKey::Pick(slot)) => {
                let worker = store.peek(|shown| shown.workers().in_slot(slot));
                worker.into_iter().for_each(|worker| store.pick(worker));
            }
            Some(PageKey::Address(key)) => store.address.update(|address| key.change(address)),
        }
        event.prevent_default();
    });
    on_cleanup(move || handle.remove());
}

/// Whether a key is meant for a field, the browser, or somebody who took it already.
pub(crate) fn is_elsewhere(event: &web_sys::KeyboardEvent) -> bool {
    let typing = event
        .target()
        .and_then(|target| target.dyn_into::<web_sys::Element>().ok())
        .is_some_and(|element| matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT"));
    typing || event.ctrl_key() || event.meta_key() || event.alt_key() || event.default_prevented()
}

/// Moves the focus to the element with this id.
pub fn focus(id: &str) {
    let element = document().get_element_by_id(id).and_then(|e| e.dyn_into::<web_sys::HtmlElement>().ok());
    if let Some(element) = element {
        let _ = element.focus();
    }
}

/// Closes the popover with this id; nothing where it is not open.
pub fn close(id: &str) {
    let element = document().get_element_by_id(id).and_then(|e| e.dyn_into::<web_sys::HtmlElement>().ok());
    if let Some(element) = element {
        let _ = element.hide_popover();
    }
}
