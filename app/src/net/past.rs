//! Fetches what is kept of the past. Knows nothing of what is in it.

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Response};

use super::source::{self, DataSource};
use crate::json::field;

fn lost(_: JsValue) -> String {
    "The server does not answer: the past cannot be fetched now".to_owned()
}

/// What was promised, if what is asked is still the same then: bytes, or the body of a response, as JSON or as a buffer.
async fn come(promise: Promise, is_json: bool) -> Result<JsValue, String> {
    let asked = DataSource::now();
    let mut come = JsFuture::from(promise).await.map_err(lost)?;
    if let Some(response) = come.dyn_ref::<Response>() {
        let is_ok = response.ok();
        let body = if is_json || !is_ok { response.json() } else { response.array_buffer() };
        let body = JsFuture::from(body.map_err(lost)?).await;
        if !is_ok {
            let why = field(&field(&body.unwrap_or_default(), "error"), "message").as_string();
            return Err(why.unwrap_or_else(|| "The server refused to give the past".to_owned()));
        }
        come = body.map_err(lost)?;
    }
    // Also between the head of an answer and its body.
    if asked != DataSource::now() {
        return Err("something else is shown now".to_owned());
    }
    Ok(come)
}

/// What stands at `address`, below whatever path the page is served at, as JSON.
///
/// # Errors
/// In words, for the reader.
pub async fn json(address: &str) -> Result<JsValue, String> {
    come(source::ask(address, &RequestInit::new()), true).await
}

/// The same as bytes.
///
/// # Errors
/// In words, for the reader.
pub async fn bytes(address: &str) -> Result<Vec<u8>, String> {
    let come = come(source::ask_for_bytes(address), false).await?;
    Ok(come.dyn_into().unwrap_or_else(|buffer| Uint8Array::new(&buffer)).to_vec())
}
