//! The worker's own side: listens, works, answers.

use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

use super::{WorkerResponse, run};

/// Listens for as long as the worker lives.
pub fn start() {
    console_error_panic_hook::set_once();
    let Ok(scope) = js_sys::global().dyn_into::<DedicatedWorkerGlobalScope>() else { return };
    let listen = {
        let scope = scope.clone();
        Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let message =
                event.data().dyn_into::<Uint8Array>().map(|bytes| bytes.to_vec()).unwrap_or_default();
            run(&message, |response| send(&scope, response));
        })
    };
    scope.set_onmessage(Some(listen.as_ref().unchecked_ref()));
    listen.forget();
    send(&scope, &WorkerResponse::Ready);
}

fn send(scope: &DedicatedWorkerGlobalScope, response: &WorkerResponse) {
    // Encoding into memory does not fail.
    let Ok(bytes) = postcard::to_allocvec(response) else { return };
    let bytes = Uint8Array::from(bytes.as_slice());
    let _ = scope.post_message_with_transfer(&bytes, &Array::of1(&bytes.buffer()));
}
