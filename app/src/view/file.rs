//! Text or a picture given to the reader as a file that the browser saves. Nothing leaves the page.

use std::time::Duration;

use js_sys::Array;
use leptos::prelude::*;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Blob, BlobPropertyBag, HtmlAnchorElement, Url};

/// How long the file stays with the page for the browser to take it.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// Has the browser save `text`.
pub(super) fn offer(name: &str, kind: &str, text: &str) -> Result<(), JsValue> {
    let bag = BlobPropertyBag::new();
    bag.set_type(kind);
    offer_blob(name, &Blob::new_with_str_sequence_and_options(&Array::of1(&text.into()), &bag)?)
}

/// Has the browser save what it holds.
pub(super) fn offer_blob(name: &str, blob: &Blob) -> Result<(), JsValue> {
    let url = Url::create_object_url_with_blob(blob)?;
    let link: HtmlAnchorElement = document().create_element("a")?.unchecked_into();
    link.set_href(&url);
    link.set_download(name);
    link.click();
    // Some browsers read the address only after the click.
    set_timeout(move || drop(Url::revoke_object_url(&url)), KEPT_FOR);
    Ok(())
}
