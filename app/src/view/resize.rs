//! Tells a widget that its element has another size.

use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use web_sys::{Element, ResizeObserver};

/// Calls `changed` now and whenever the size of `element` changes, until the present owner is cleaned up.
pub(super) fn observe(element: &Element, changed: impl Fn() + 'static) {
    let callback = Closure::<dyn Fn()>::new(changed);
    let Ok(observer) = ResizeObserver::new(callback.as_ref().unchecked_ref()) else { return };
    observer.observe(element);
    let owned = StoredValue::new_local((observer, callback));
    on_cleanup(move || owned.with_value(|(observer, _)| observer.disconnect()));
}
