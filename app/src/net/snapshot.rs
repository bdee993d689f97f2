//! Fetches the state before the socket is opened: as a body it comes compressed, which a socket's frames do not. Where
//! that fails, the socket brings the state itself.

use futures_util::future::{Either, select};
use gloo_timers::future::TimeoutFuture;
use js_sys::{Promise, Reflect, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{ReadableStreamDefaultReader, RequestInit, Response};

use super::parts::{Parts, TooLong};
use super::source::{self, DataSource};
use crate::store::{Broken, Store};

/// Below whatever path the page is served at.
const ADDRESS: &str = "snapshot";
/// What other servers respond to any address is not of this type.
pub(super) const CONTENT_TYPE: &str = "application/octet-stream";
/// After this long without a byte the socket is opened instead.
const GIVE_UP_AFTER_MS: u32 = 12_000;

/// Gives the state to `store`, part by part as it comes.
///
/// # Errors
/// What came is not of this version, or cannot be the state. That it did not come is none.
pub(super) async fn fetch(store: Store) -> Result<(), Broken> {
    let Some(reader) = opened().await else { return Ok(()) };
    let applied = apply_all(store, &reader).await;
    // Ends the transfer where it was given up.
    let _ = JsFuture::from(reader.cancel()).await;
    applied
}

async fn apply_all(store: Store, reader: &ReadableStreamDefaultReader) -> Result<(), Broken> {
    let mut parts = Parts::default();
    let of = DataSource::now();
    while let Some(bytes) = read(reader).await {
        if of != DataSource::now() {
            return Ok(());
        }
        parts.push(&bytes);
        loop {
            match parts.next_frame() {
                Ok(Some(frame)) => store.apply_frame(frame)?,
                Ok(None) => break,
                Err(TooLong) => return Ok(()),
            }
        }
    }
    Ok(())
}

async fn opened() -> Option<ReadableStreamDefaultReader> {
    let response: Response = in_time(source::request(ADDRESS, &RequestInit::new())).await?.dyn_into().ok()?;
    let is_state = response.ok() && response.headers().get("content-type").ok()?? == CONTENT_TYPE;
    is_state.then_some(response.body()?.get_reader().unchecked_into())
}

/// The next bytes; `None` at the end, and where they do not come.
async fn read(reader: &ReadableStreamDefaultReader) -> Option<Vec<u8>> {
    let piece = in_time(reader.read()).await?;
    let bytes = Reflect::get(&piece, &"value".into()).ok()?.dyn_into::<Uint8Array>().ok()?;
    Some(bytes.to_vec())
}

async fn in_time(promise: Promise) -> Option<JsValue> {
    match select(JsFuture::from(promise), TimeoutFuture::new(GIVE_UP_AFTER_MS)).await {
        Either::Left((come, _)) => come.ok(),
        Either::Right(_) => None,
    }
}
