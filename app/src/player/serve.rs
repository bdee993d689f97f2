//! The worker's own side: takes files, answers addresses.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use js_sys::{Array, Uint8Array};
use radixscope_replay::{Replay, ReplayError, Response};
use wasm_bindgen::prelude::*;
use web_sys::{Blob, DedicatedWorkerGlobalScope, FileReaderSync, MessageEvent};

use super::slices::Slices;
use super::{OPENED, READY, Reply};

/// A file, its slices read by the browser.
type RecordingSlices = Slices<Box<dyn FnMut(u64, usize) -> io::Result<Vec<u8>>>>;

/// Reading on for the timeline waits until no request came for a moment for so long: who scrubs asks again once the state is
/// drawn, which takes a second where it is large, and a piece that is being read holds up the response.
const QUIET_MS: i32 = 1_500;

/// Listens for as long as the worker lives.
pub fn start() {
    console_error_panic_hook::set_once();
    let Ok(scope) = js_sys::global().dyn_into::<DedicatedWorkerGlobalScope>() else { return };
    let replay = Rc::new(RefCell::new(None::<Replay<RecordingSlices>>));
    let requested = Rc::new(Cell::new(false));
    let reading = read_on(&replay, &requested);
    let listen = {
        let scope = scope.clone();
        Closure::<dyn Fn(MessageEvent)>::new(move |event: MessageEvent| {
            let data = event.data();
            if let Some(files) = data.dyn_ref::<Array>() {
                let (status, body) = match open(files) {
                    Ok(opened) => {
                        let (from, until) = opened.range();
                        let numbers = [from.0, until.0, opened.lost_bytes()].map(u64::to_le_bytes);
                        replay.replace(Some(opened));
                        // Once the state at the end was requested.
                        reading();
                        (200, numbers.concat())
                    }
                    Err(error) => (422, error.to_string().into_bytes()),
                };
                send(&scope, &Reply { number: OPENED, status, body: &body });
            } else {
                let bytes = data.dyn_into::<Uint8Array>().map(|bytes| bytes.to_vec()).unwrap_or_default();
                let Some((number, address)) = bytes.split_first_chunk::<4>() else { return };
                let address = String::from_utf8_lossy(address);
                if let Some(replay) = &mut *replay.borrow_mut() {
                    // How far the timeline is, the page asks every second.
                    requested.set(requested.get() || address.starts_with("history/segment"));
                    let Response { status, body } = replay.respond(&address);
                    send(&scope, &Reply { number: u32::from_le_bytes(*number), status, body: &body });
                }
            }
        })
    };
    scope.set_onmessage(Some(listen.as_ref().unchecked_ref()));
    listen.forget();
    send(&scope, &Reply { number: READY, status: 200, body: &[] });
}

/// Reads on for the timeline whenever there is no request, until all is read. `requested`: a request came since the last look.
fn read_on(
    replay: &Rc<RefCell<Option<Replay<RecordingSlices>>>>,
    requested: &Rc<Cell<bool>>,
) -> impl Fn() + use<> {
    let again = Rc::new(RefCell::new(None::<Closure<dyn Fn()>>));
    let next = {
        let again = Rc::clone(&again);
        move |after_ms: i32| {
            let scope = js_sys::global().dyn_into::<DedicatedWorkerGlobalScope>();
            if let (Ok(scope), Some(again)) = (scope, &*again.borrow()) {
                let again = again.as_ref().unchecked_ref();
                let _ = scope.set_timeout_with_callback_and_timeout_and_arguments_0(again, after_ms);
            }
        }
    };
    let (replay, requested, then) = (Rc::clone(replay), Rc::clone(requested), next.clone());
    again.replace(Some(Closure::new(move || {
        if requested.replace(false) {
            then(QUIET_MS);
        } else if replay.borrow_mut().as_mut().is_some_and(Replay::read_on) {
            then(0);
        }
    })));
    move || next(0)
}

fn open(files: &Array) -> Result<Replay<RecordingSlices>, ReplayError> {
    let files: Vec<RecordingSlices> =
        files.iter().filter_map(|file| file.dyn_into().ok()).map(slices).collect();
    Replay::open(files)
}

fn slices(file: Blob) -> RecordingSlices {
    let len = file.size() as u64;
    let read = move |at: u64, len: usize| -> io::Result<Vec<u8>> {
        // Sizes are exact in a JavaScript number far beyond any file's.
        let (from, to) = (at as f64, (at + len as u64) as f64);
        let bytes = file
            .slice_with_f64_and_f64(from, to)
            .and_then(|slice| FileReaderSync::new()?.read_as_array_buffer(&slice));
        let unreadable =
            |_| io::Error::other("the browser cannot read the file; perhaps it was moved or changed");
        Ok(Uint8Array::new(&bytes.map_err(unreadable)?.into()).to_vec())
    };
    Slices::new(len, Box::new(read))
}

fn send(scope: &DedicatedWorkerGlobalScope, reply: &Reply<'_>) {
    // Each byte is copied once: a state may have some ten mebibytes.
    let (head, body) = (reply.head(), reply.body);
    let bytes = Uint8Array::new_with_length((head.len() + body.len()) as u32);
    bytes.subarray(0, head.len() as u32).copy_from(&head);
    bytes.subarray(head.len() as u32, bytes.length()).copy_from(body);
    let _ = scope.post_message_with_transfer(&bytes, &Array::of1(&bytes.buffer()));
}
