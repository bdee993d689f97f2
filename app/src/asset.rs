//! Where the page's files are: beside it, but in a page that is one file. Knows none of them.

use js_sys::Reflect;
use leptos::prelude::{document, window};
use wasm_bindgen::JsValue;

/// What a page that is one file keeps their addresses in, by their names.
const INSIDE: &str = "radixscopeAssets";

/// Where the document names the program that it was built without.
const WITHOUT: &str = "meta[name=radixscope-without]";

/// Whether the page was built without this program of a Web Worker.
pub(crate) fn is_left_out(program: &str) -> bool {
    let named = document().query_selector(WITHOUT).ok().flatten();
    named.and_then(|named| named.get_attribute("content")).is_some_and(|name| name == program)
}

/// What the document gave to the page under this name; undefined: nothing.
pub(crate) fn from_document(name: &str) -> JsValue {
    Reflect::get(&window(), &name.into()).unwrap_or_default()
}

/// The address of a file of the page; empty: it has none of that name.
pub(crate) fn address(name: &str) -> String {
    let inside = Reflect::get(&from_document(INSIDE), &name.into()).ok();
    inside.and_then(|address| address.as_string()).unwrap_or_else(|| name.to_owned())
}
