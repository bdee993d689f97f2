//! Loads the full bundle when the reader opens a panel of it, and fetches its files before that.

use std::time::Duration;

use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use web_sys::{HtmlLinkElement, HtmlScriptElement};

use crate::erased::effect;
use crate::store::{Opening, Store};

/// The module that loads the full bundle.
const SCRIPT: &str = "full-loader.js";
/// What the module says when it could not.
const FAILED: &str = "radixscope-full-failed";
/// What is fetched ahead, and as what.
const FILES: [(&str, &str); 3] = [(SCRIPT, "script"), ("full.js", "script"), ("full_bg.wasm", "fetch")];
/// From looking whether there is a view to fetching ahead.
const FETCH_AHEAD_AFTER: Duration = Duration::from_secs(3);
/// After this long without an answer the reader may try again; an answer that comes later is still taken.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);

/// Loads the full bundle whenever `wanted`, and keeps [`Store::opening`] true to how that goes.
pub(crate) fn keep_open(store: Store, wanted: Memo<bool>) {
    let attempts = StoredValue::new(0_u32);
    effect(move || match (wanted.get(), store.opening.get()) {
        (true, Opening::No) => {
            let attempt = attempts.get_value();
            attempts.set_value(attempt + 1);
            store.opening.set(if insert(attempt).is_some() { Opening::Loading } else { Opening::Failed });
            set_timeout(
                move || {
                    if attempts.try_get_value() == Some(attempt + 1) {
                        failed(store);
                    }
                },
                GIVE_UP_AFTER,
            );
        }
        (false, Opening::Failed) => store.opening.set(Opening::No),
        _ => {}
    });
    let told = window_event_listener_untyped(FAILED, move |_| failed(store));
    on_cleanup(move || told.remove());
    fetch_ahead_later(store);
}

/// Some seconds after the page has something to show: its own files and its chart come first.
fn fetch_ahead_later(store: Store) {
    set_timeout(
        move || match store.has_state() {
            Some(true) => fetch_ahead(),
            Some(false) => fetch_ahead_later(store),
            // The page is gone: the full bundle has taken it over.
            None => {}
        },
        FETCH_AHEAD_AFTER,
    );
}

fn failed(store: Store) {
    if store.opening.try_get_untracked() == Some(Opening::Loading) {
        store.opening.set(Opening::Failed);
    }
}

/// Puts the module into the document. A browser does not fetch a module again that failed, but it does under another
/// address; hence the number.
fn insert(attempt: u32) -> Option<()> {
    let script: HtmlScriptElement = document().create_element("script").ok()?.unchecked_into();
    script.set_type("module");
    script.set_src(&if attempt == 0 { SCRIPT.to_owned() } else { format!("{SCRIPT}?{attempt}") });
    let tell = Closure::once_into_js(|| {
        if let Ok(event) = web_sys::Event::new(FAILED) {
            let _ = window().dispatch_event(&event);
        }
    });
    script.set_onerror(Some(tell.unchecked_ref()));
    document().head()?.append_child(&script).ok().map(drop)
}

/// Low priority, and no error where it fails: the browser may do without.
fn fetch_ahead() {
    let Some(head) = document().head() else { return };
    for (file, kind) in FILES {
        let Ok(link) = document().create_element("link") else { continue };
        let link: HtmlLinkElement = link.unchecked_into();
        link.set_rel("prefetch");
        link.set_as(kind);
        link.set_href(file);
        let _ = head.append_child(&link);
    }
}
