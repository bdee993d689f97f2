//! Fetches what is kept of the past. Knows nothing of what is in it.

use js_sys::{ArrayBuffer, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Response};

use super::source::{self, Source};
use crate::json::field;

fn lost(_: JsValue) -> String {
    "The server does not answer: the past cannot be fetched now".to_owned()
}

/// Below whatever path the page is served at.
async fn get(address: &str) -> Result<Response, String> {
    let asked = Source::now();
    let response: Response =
        JsFuture::from(source::ask(address, &RequestInit::new())).await.map_err(lost)?.unchecked_into();
    if asked != Source::now() {
        return Err("something else is shown now".to_owned());
    }
    if response.ok() {
        return Ok(response);
    }
    let body = JsFuture::from(response.json().map_err(lost)?).await.unwrap_or_default();
    let why = field(&field(&body, "error"), "message").as_string();
    Err(why.unwrap_or_else(|| "The server refused to give the past".to_owned()))
}

/// What stands at `address` as JSON.
///
/// # Errors
/// In words, for the reader.
pub async fn json(address: &str) -> Result<JsValue, String> {
    JsFuture::from(get(address).await?.json().map_err(lost)?).await.map_err(lost)
}

/// What stands at `address` as bytes.
///
/// # Errors
/// In words, for the reader.
pub async fn bytes(address: &str) -> Result<Vec<u8>, String> {
    let buffer = JsFuture::from(get(address).await?.array_buffer().map_err(lost)?).await.map_err(lost)?;
    Ok(Uint8Array::new(&buffer.unchecked_into::<ArrayBuffer>()).to_vec())
}
