//! Where the page's files are: beside it, but in a page that is one file. Knows none of them.

use js_sys::Reflect;
use leptos::prelude::window;
use wasm_bindgen::JsValue;

/// What a page that is one file keeps their addresses in, by their names.
const INSIDE: &str = "radixscopeAssets";

/// What the document gave to the page under this name; undefined: nothing.
pub(crate) fn from_document(name: &str) -> JsValue {
    Reflect::get(&window(), &name.into()).unwrap_or_default()
}

/// The address of a file of the page; empty: it has none of that name.
pub(crate) fn address(name: &str) -> String {
    let inside = Reflect::get(&from_document(INSIDE), &name.into()).ok();
    inside.and_then(|address| address.as_string()).unwrap_or_else(|| name.to_owned())
}
