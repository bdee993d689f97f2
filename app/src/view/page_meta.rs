//! What the server says of itself in the document's head, where the page needs it before anything is received.

use leptos::prelude::document;

/// The content of `<meta name="radixscope-NAME">`; `None`: the server says nothing of it.
pub(super) fn page_meta(name: &str) -> Option<String> {
    let meta = document().query_selector(&format!("meta[name=radixscope-{name}]")).ok()??;
    meta.get_attribute("content")
}
