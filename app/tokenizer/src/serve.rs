//! The worker's own side: a file or a text comes in, a response goes out. A panic ends the worker; the page starts another.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Uint8Array};
use radixscope_tokenizer_messages::{Summary, Text, TokenizerResponse};
use wasm_bindgen::prelude::*;
use web_sys::{Blob, DedicatedWorkerGlobalScope, MessageEvent};

use crate::{Loaded, check_size};

type Current = Rc<RefCell<Option<Loaded>>>;

/// Listens for as long as the worker lives.
pub fn start() {
    console_error_panic_hook::set_once();
    let Ok(scope) = js_sys::global().dyn_into::<DedicatedWorkerGlobalScope>() else { return };
    let current = Current::default();
    let listen = {
        let scope = scope.clone();
        Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let data = event.data();
            if let Some(file) = data.dyn_ref::<Blob>() {
                let (scope, current, file) = (scope.clone(), Rc::clone(&current), file.clone());
                // The one before goes first: there need not be room for both.
                current.take();
                wasm_bindgen_futures::spawn_local(async move {
                    send(&scope, &TokenizerResponse::Loaded(load(&current, &file).await));
                });
            } else {
                let bytes = data.dyn_into::<Uint8Array>().map(|bytes| bytes.to_vec()).unwrap_or_default();
                send(&scope, &TokenizerResponse::Tokens(tokens(&current, &bytes)));
            }
        })
    };
    scope.set_onmessage(Some(listen.as_ref().unchecked_ref()));
    listen.forget();
    send(&scope, &TokenizerResponse::Ready);
}

async fn load(current: &Current, file: &Blob) -> Result<Summary, String> {
    // Sizes are exact in a JavaScript number far beyond the limit.
    check_size(file.size() as u64)?;
    let bytes = wasm_bindgen_futures::JsFuture::from(file.array_buffer());
    let bytes =
        bytes.await.map_err(|_| "The browser cannot read the file; perhaps it was moved or changed.")?;
    let (loaded, summary) = Loaded::read(&Uint8Array::new(&bytes).to_vec())?;
    current.replace(Some(loaded));
    Ok(summary)
}

fn tokens(current: &Current, message: &[u8]) -> Result<Vec<u32>, String> {
    let text: Text = postcard::from_bytes(message).map_err(|error| format!("Not a text: {error}."))?;
    match &*current.borrow() {
        Some(loaded) => loaded.tokens(&text),
        None => Err("No tokenizer is loaded.".to_owned()),
    }
}

fn send(scope: &DedicatedWorkerGlobalScope, response: &TokenizerResponse) {
    // Encoding into memory does not fail.
    let Ok(bytes) = postcard::to_allocvec(response) else { return };
    let bytes = Uint8Array::from(bytes.as_slice());
    let _ = scope.post_message_with_transfer(&bytes, &Array::of1(&bytes.buffer()));
}
