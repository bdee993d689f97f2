//! Fetches the prompts that the model plays, with its progress. Knows nothing of what is in them.

use crate::net::response::error_message;
use crate::net::source;
use crate::url::encode;
use js_sys::{Reflect, Uint8Array};
use radixscope_model::id::Millis;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{AbortSignal, ReadableStreamDefaultReader, RequestInit, Response};

/// Larger responses are not taken: ten thousand requests with all blocks that the server keeps are far smaller.
const MAX_BYTES: usize = 64 << 20;

/// The prompts of the latest `last` requests before a moment, of `pool` if there are several, as the server encodes them; `progress` gets bytes so far and, if the
/// server says so, in all.
///
/// # Errors
/// A text for the reader.
pub(super) async fn arrivals(
    last: usize,
    pool: Option<&str>,
    at: Millis,
    signal: &AbortSignal,
    progress: impl Fn(usize, Option<usize>),
) -> Result<Vec<u8>, String> {
    let init = RequestInit::new();
    init.set_signal(Some(signal));
    let pool = pool.map_or(String::new(), |pool| format!("&pool={}", encode(pool)));
    let address = format!("api/v1/arrivals?last={last}&at_ms={at}{pool}");
    let response = JsFuture::from(source::request(&address, &init)).await;
    let broken =
        |_: JsValue| "the prompts could not be fetched: the connection to the server was lost".to_owned();
    let response: Response = response.map_err(broken)?.unchecked_into();
    if response.status() == 404 {
        return Err("no prompts of that moment are retained: a server retains those of the latest requests, a recording none".to_owned());
    }
    if !response.ok() {
        let why = error_message(&response).await;
        return Err(
            why.unwrap_or_else(|| format!("the server returned no prompts: status {}", response.status()))
        );
    }
    let total =
        response.headers().get("content-length").ok().flatten().and_then(|length| length.parse().ok());
    let body = response.body().ok_or("the server returned no prompts: its response is empty")?;
    let reader: ReadableStreamDefaultReader = body.get_reader().unchecked_into();
    let mut bytes = Vec::new();
    loop {
        let part = JsFuture::from(reader.read()).await.map_err(broken)?;
        let get = |key: &str| Reflect::get(&part, &key.into()).unwrap_or(JsValue::UNDEFINED);
        if get("done").is_truthy() {
            return Ok(bytes);
        }
        bytes.extend(get("value").dyn_into::<Uint8Array>().map(|part| part.to_vec()).unwrap_or_default());
        if bytes.len() > MAX_BYTES {
            return Err(format!("the prompts are larger than {} MiB", MAX_BYTES >> 20));
        }
        progress(bytes.len(), total);
    }
}
