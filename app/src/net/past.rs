//! Fetches what is kept of the past. Knows nothing of what is in it.

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Response};

use super::source::{self, Source};
use crate::json::field;

fn lost(_: JsValue) -> String {
    "The server does not answer: the past cannot be fetched now".to_owned()
}

/// What comes of asking, body and all, if what is asked is still the same then.
async fn of_now<T>(asking: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let asked = Source::now();
    let come = asking.await?;
    if asked != Source::now() {
        return Err("something else is shown now".to_owned());
    }
    Ok(come)
}

/// What was promised: bytes, or a response that has what was asked for.
async fn come(promise: Promise) -> Result<JsValue, String> {
    let come = JsFuture::from(promise).await.map_err(lost)?;
    let Some(response) = come.dyn_ref::<Response>().filter(|response| !response.ok()) else {
        return Ok(come);
    };
    let body = JsFuture::from(response.json().map_err(lost)?).await.unwrap_or_default();
    let why = field(&field(&body, "error"), "message").as_string();
    Err(why.unwrap_or_else(|| "The server refused to give the past".to_owned()))
}

/// What stands at `address`, below whatever path the page is served at, as JSON.
///
/// # Errors
/// In words, for the reader.
pub async fn json(address: &str) -> Result<JsValue, String> {
    of_now(async {
        let response: Response = come(source::ask(address, &RequestInit::new())).await?.unchecked_into();
        JsFuture::from(response.json().map_err(lost)?).await.map_err(lost)
    })
    .await
}

/// The same as bytes.
///
/// # Errors
/// In words, for the reader.
pub async fn bytes(address: &str) -> Result<Vec<u8>, String> {
    of_now(async {
        match come(source::ask_for_bytes(address)).await?.dyn_into::<Response>() {
            Err(bytes) => Ok(bytes.unchecked_into::<Uint8Array>().to_vec()),
            Ok(response) => {
                let buffer = JsFuture::from(response.array_buffer().map_err(lost)?).await.map_err(lost)?;
                Ok(Uint8Array::new(&buffer).to_vec())
            }
        }
    })
    .await
}
