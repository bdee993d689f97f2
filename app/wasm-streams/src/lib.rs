//! Stands in for the crate of this name. Leptos cannot be built without its server functions, and those stream through
//! that crate, whose classes for JavaScript no linker may leave out: 4 kB of every bundle, compressed. The page has no
//! server function, so nothing here is ever called.
#![cfg(target_arch = "wasm32")]

use futures_util::Stream;
use futures_util::stream::Empty;
use wasm_bindgen::{JsValue, throw_str};

/// A stream of the browser's.
pub struct ReadableStream(web_sys::ReadableStream);

impl ReadableStream {
    /// Wraps it.
    pub fn from_raw(raw: web_sys::ReadableStream) -> Self {
        Self(raw)
    }

    /// Gives it back.
    pub fn into_raw(self) -> web_sys::ReadableStream {
        self.0
    }

    /// Throws.
    pub fn from_stream(_: impl Stream<Item = Result<JsValue, JsValue>> + 'static) -> Self {
        throw_str("the page streams nothing to a server function")
    }

    /// Throws.
    pub fn into_stream(self) -> Empty<Result<JsValue, JsValue>> {
        throw_str("the page streams nothing from a server function")
    }
}
