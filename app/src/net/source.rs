//! Where the page asks for states: the server that it came from, or the player with a recording that the reader opened.
//! Knows nothing of what is requested.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use js_sys::{Array, Function, Promise, Uint8Array};
use leptos::prelude::window;
use radixscope_model::id::Millis;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;
use web_sys::{File, Headers, RequestInit, Response, ResponseInit};

use crate::player::{HEAD, READY, Reply};
use crate::worker::running::RunningJob;

/// The player's script.
const SCRIPT: &str = "player_loader.js";

/// Addresses that begin so go to the second recording, which is shown beside the first where two are compared.
pub const SECOND: &str = "second/";

thread_local! {
    static PLAYER: RefCell<Option<Rc<Player>>> = const { RefCell::new(None) };
    static SECOND_PLAYER: RefCell<Option<Rc<Player>>> = const { RefCell::new(None) };
    static SOURCE: Cell<DataSource> = const { Cell::new(DataSource { number: 0, is_file: false }) };
}

/// Where requests go: it changes whenever a recording is opened or closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataSource {
    number: u32,
    is_file: bool,
}

impl DataSource {
    /// The present one.
    pub fn now() -> Self {
        SOURCE.get()
    }

    /// Whether it is a recording that the reader opened.
    pub fn is_file(self) -> bool {
        self.is_file
    }
}

/// A recording that the reader opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opened {
    /// Name of the file, of several the first and how many more.
    pub name: String,
    /// Time of its first keyframe.
    pub from: Millis,
    /// Its end.
    pub until: Millis,
    /// Bytes at its end that were not written whole.
    pub lost_bytes: u64,
}

/// Asks for an address, below whatever path the page is served at; the promise is of a response. A player answers what needs a
/// server with a text that says so.
pub fn request(address: &str, how: &RequestInit) -> Promise {
    fetch(address, how, false)
}

/// The same, of bytes where a player has them: a response would copy some mebibytes twice.
pub fn request_bytes(address: &str) -> Promise {
    fetch(address, &RequestInit::new(), true)
}

fn fetch(address: &str, how: &RequestInit, as_bytes: bool) -> Promise {
    let (player, address) = match address.strip_prefix(SECOND) {
        Some(address) => (&SECOND_PLAYER, address),
        None => (&PLAYER, address),
    };
    match player.with_borrow(Option::clone) {
        Some(player) => player.request(address, as_bytes),
        None => window().fetch_with_str_and_init(address, how),
    }
}

/// Opens files in a player; requests go there from now on, or to the second one that is compared with what is shown.
///
/// # Errors
/// A text, where they are no recording that can be shown. Requests then go where they went before.
pub async fn open(files: &Array, is_second: bool) -> Result<Opened, String> {
    let first = File::from(files.get(0)).name();
    let name = match files.length() {
        0 | 1 => first,
        many => format!("{first} and {} more", many - 1),
    };
    let (player, opened) = Player::start(files);
    let failed = |_: JsValue| "This browser starts no worker".to_owned();
    let response = Response::from(JsFuture::from(opened).await.map_err(failed)?);
    let body = response.array_buffer().map_err(failed)?;
    let body = js_sys::Uint8Array::new(&JsFuture::from(body).await.map_err(failed)?).to_vec();
    if !response.ok() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&body)));
    }
    let number = |at: usize| {
        body.get(at * 8..at * 8 + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let (from, until) = (Millis(number(0)), Millis(number(1)));
    let opened = Opened { name, from, until, lost_bytes: number(2) };
    if is_second {
        SECOND_PLAYER.set(Some(player));
    } else {
        change(Some(player));
    }
    Ok(opened)
}

/// No more requests go to the second recording.
pub fn close_second() {
    SECOND_PLAYER.set(None);
}

/// Requests go to the server again.
pub fn close() {
    change(None);
}

fn change(player: Option<Rc<Player>>) {
    SOURCE.set(DataSource { number: SOURCE.get().number + 1, is_file: player.is_some() });
    PLAYER.set(player);
}

/// A worker with a recording.
struct Player {
    worker: RefCell<Option<RunningJob>>,
    files: Array,
    /// Requests without a response, by number: the promise to fulfil, and whether bytes are to be in the place of a response.
    waiting: RefCell<Vec<(u32, bool, Function)>>,
    last: Cell<u32>,
}

impl Player {
    /// Starts one; the promise is of the response to opening.
    fn start(files: &Array) -> (Rc<Self>, Promise) {
        let (waiting, last) = (RefCell::default(), Cell::new(READY));
        let player = Rc::new(Self { worker: RefCell::new(None), files: files.clone(), waiting, last });
        let opened = player.wait(false);
        let weak = Rc::downgrade(&player);
        let on_message = move |message: Uint8Array| {
            if let Some(player) = weak.upgrade() {
                player.notify(&message);
            }
        };
        let weak = Rc::downgrade(&player);
        let broken = move |why: String| {
            if let Some(player) = weak.upgrade() {
                player.fail(&format!("the player failed: {why}"));
            }
        };
        let worker = RunningJob::start(SCRIPT, on_message, broken);
        if worker.is_none() {
            player.fail("this browser starts no worker");
        }
        player.worker.replace(worker);
        (player, opened)
    }

    fn request(&self, address: &str, as_bytes: bool) -> Promise {
        let promise = self.wait(as_bytes);
        if let Some(worker) = &*self.worker.borrow() {
            worker.send(&[&self.last.get().to_le_bytes(), address.as_bytes()].concat());
        }
        promise
    }

    /// A promise that the response to the next request fulfils.
    fn wait(&self, as_bytes: bool) -> Promise {
        let number = self.last.get() + 1;
        self.last.set(number);
        Promise::new(&mut |resolve, _| self.waiting.borrow_mut().push((number, as_bytes, resolve)))
    }

    fn notify(&self, message: &Uint8Array) {
        let head = message.subarray(0, HEAD as u32).to_vec();
        let Some(Reply { number, status, .. }) = Reply::read(&head) else { return };
        if number == READY {
            if let Some(worker) = &*self.worker.borrow() {
                worker.send_value(&self.files);
            }
            return;
        }
        let waiting = {
            let mut all = self.waiting.borrow_mut();
            let found = all.iter().position(|(waiting, ..)| *waiting == number);
            found.map(|at| all.remove(at))
        };
        let Some((_, as_bytes, resolve)) = waiting else { return };
        let body = message.subarray(HEAD as u32, message.length());
        if as_bytes && status == 200 {
            let _ = resolve.call1(&JsValue::NULL, &body);
        } else {
            respond(&resolve, status, &body);
        }
    }

    /// Nothing more comes.
    fn fail(&self, why: &str) {
        let body = serde_json::json!({ "error": { "message": why } }).to_string();
        for (number, _, resolve) in self.waiting.take() {
            // The first opens files, and its body is the reason as plain text.
            let body = if number == READY + 1 { why } else { &body };
            respond(&resolve, 500, &body.as_bytes().into());
        }
    }
}

fn respond(resolve: &Function, status: u16, body: &Uint8Array) {
    let init = ResponseInit::new();
    init.set_status(status);
    if let Ok(headers) = Headers::new() {
        let _ = headers.set("content-type", super::snapshot::CONTENT_TYPE);
        init.set_headers(&headers);
    }
    let response = Response::new_with_opt_js_u8_array_and_init(Some(body), &init);
    let _ = resolve.call1(&JsValue::NULL, &response.unwrap_or_else(|error| error.into()));
}
