//! Where the page's files are: beside it, but in a page that is one file. Knows none of them.

use leptos::prelude::window;

use crate::json::field;

/// What a page that is one file keeps their addresses in, by their names.
const INSIDE: &str = "radixscopeAssets";

/// The address of a file of the page; empty: it has none of that name.
pub(crate) fn address(name: &str) -> String {
    field(&field(&window(), INSIDE), name).as_string().unwrap_or_else(|| name.to_owned())
}
