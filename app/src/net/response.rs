//! Bodies of the API's responses as Rust types.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorText,
}

#[derive(Deserialize)]
struct ErrorText {
    message: String,
}

/// The body of a response. `None`: it is no JSON, or of another shape.
pub async fn json<T: DeserializeOwned>(response: &Response) -> Option<T> {
    let body = JsFuture::from(response.json().ok()?).await.ok()?;
    serde_wasm_bindgen::from_value(body).ok()
}

/// Why the server refused; `None`: its response does not say so.
pub async fn error_message(response: &Response) -> Option<String> {
    json::<ErrorBody>(response).await.map(|body| body.error.message)
}
