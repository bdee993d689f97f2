//! A Web Worker that was started. It ends when it is dropped. Knows nothing of the messages.

use js_sys::{Array, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{ErrorEvent, MessageEvent, Worker, WorkerOptions, WorkerType};

/// A worker that runs.
pub(crate) struct RunningJob {
    worker: Worker,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _broken: Closure<dyn FnMut(ErrorEvent)>,
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        self.worker.set_onmessage(None);
        self.worker.set_onerror(None);
        self.worker.terminate();
    }
}

impl RunningJob {
    /// Starts the module `script`. `on_message` gets each message, `broken` what ended the worker; neither may
    /// drop it, because that would drop themselves. `None` where the browser starts no workers, or there is no such script.
    pub(crate) fn start(
        script: &str,
        on_message: impl Fn(Uint8Array) + 'static,
        broken: impl Fn(String) + 'static,
    ) -> Option<Self> {
        let address = Some(crate::asset::address(script)).filter(|address| !address.is_empty())?;
        let options = WorkerOptions::new();
        // Chromium starts no module that a page from a disk made itself; what such a page made is no module.
        if !address.starts_with("blob:") {
            options.set_type(WorkerType::Module);
        }
        // Resolved against <base>, as every address of the page.
        let url =
            web_sys::Url::new_with_base(&address, &web_sys::window()?.document()?.base_uri().ok()??).ok()?;
        let worker = Worker::new_with_options(&url.href(), &options).ok()?;
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if let Ok(message) = event.data().dyn_into() {
                on_message(message);
            }
        });
        let broken = Closure::<dyn FnMut(ErrorEvent)>::new(move |event: ErrorEvent| {
            // One that cannot be fetched says nothing.
            let message = Reflect::get(&event, &"message".into()).ok();
            broken(message.and_then(|message| message.as_string()).unwrap_or_default());
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        worker.set_onerror(Some(broken.as_ref().unchecked_ref()));
        Some(Self { worker, _on_message: on_message, _broken: broken })
    }

    /// Sends bytes.
    pub(crate) fn send(&self, bytes: &[u8]) {
        let bytes = Uint8Array::from(bytes);
        let _ = self.worker.post_message_with_transfer(&bytes, &Array::of1(&bytes.buffer()));
    }

    /// Sends something of the browser's, as a file's handle.
    pub(crate) fn send_value(&self, value: &JsValue) {
        let _ = self.worker.post_message(value);
    }
}
