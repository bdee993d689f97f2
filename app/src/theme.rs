//! Dark or light: what the address asks for, else what the browser prefers. Knows no colour.

use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use web_sys::MediaQueryList;

use crate::store::Store;
use crate::url::Theme;

/// Whether the page is dark, kept up to date; the root element says it to the style sheets.
pub fn provide(store: Store) -> Memo<bool> {
    let preference = window().match_media("(prefers-color-scheme: dark)").ok().flatten();
    let prefers_dark = RwSignal::new(preference.as_ref().is_none_or(|query| query.matches()));
    if let Some(query) = preference {
        let changed = {
            let query = query.clone();
            Closure::<dyn Fn()>::new(move || prefers_dark.set(query.matches()))
        };
        query.set_onchange(Some(changed.as_ref().unchecked_ref()));
        let owned = StoredValue::new_local((query, changed));
        on_cleanup(move || owned.with_value(|(query, _)| query.set_onchange(None)));
    }
    let dark = Memo::new(move |_| match store.address.with(|address| address.theme) {
        Theme::Auto => prefers_dark.get(),
        Theme::Dark => true,
        Theme::Light => false,
    });
    Effect::new(move |_| {
        if let Some(root) = document().document_element() {
            let _ = root.set_attribute("data-theme", if dark.get() { "dark" } else { "light" });
        }
    });
    dark
}

/// Text of a style sheet's token.
pub fn token(name: &str) -> String {
    let root = document().document_element();
    let style = root.and_then(|root| window().get_computed_style(&root).ok().flatten());
    style.and_then(|style| style.get_property_value(name).ok()).unwrap_or_default()
}

/// Whether the reader requested less motion.
pub fn less_motion() -> bool {
    thread_local! {
        // Read several times a frame. The list follows the setting.
        static QUERY: Option<MediaQueryList> =
            window().match_media("(prefers-reduced-motion: reduce)").ok().flatten();
    }
    QUERY.with(|query| query.as_ref().is_some_and(|query| query.matches()))
}
