//! Fetches what is retained of the past. Knows nothing of what is in it.

use js_sys::{Promise, Uint8Array};
use serde::de::DeserializeOwned;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Response};

use super::response::error_message;
use super::source::{self, DataSource};

fn lost(_: JsValue) -> String {
    "The server does not respond: the past cannot be fetched now".to_owned()
}

/// What was promised, if requests still go to the same source then: bytes, or the body of a response, as JSON or as a buffer.
async fn come(promise: Promise, is_json: bool) -> Result<JsValue, String> {
    let at_start = DataSource::now();
    let mut come = JsFuture::from(promise).await.map_err(lost)?;
    if let Some(response) = come.dyn_ref::<Response>() {
        if !response.ok() {
            let why = error_message(response).await;
            return Err(why.unwrap_or_else(|| "The server refused to give the past".to_owned()));
        }
        let body = if is_json { response.json() } else { response.array_buffer() };
        come = JsFuture::from(body.map_err(lost)?).await.map_err(lost)?;
    }
    // Also between the head of a response and its body.
    if at_start != DataSource::now() {
        return Err("something else is shown now".to_owned());
    }
    Ok(come)
}

/// What stands at `address`, below whatever path the page is served at, as JSON.
///
/// # Errors
/// A text for the reader.
pub async fn json<T: DeserializeOwned>(address: &str) -> Result<T, String> {
    let body = come(source::request(address, &RequestInit::new()), true).await?;
    serde_wasm_bindgen::from_value(body)
        .map_err(|_| "The server's response is invalid: it may be of another version".to_owned())
}

/// The same as bytes.
///
/// # Errors
/// A text for the reader.
pub async fn bytes(address: &str) -> Result<Vec<u8>, String> {
    let come = come(source::request_bytes(address), false).await?;
    Ok(come.dyn_into().unwrap_or_else(|buffer| Uint8Array::new(&buffer)).to_vec())
}
