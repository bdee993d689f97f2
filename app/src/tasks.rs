//! Runs effects, which follow changes of signals, a few at a time: keys and pointer are answered between them.
//!
//! Leptos wakes each effect as a task of its own, and the browser's queue of microtasks runs all of them before anything else. On a slow
//! machine the numbers of many workers take longer than a person should wait: what has not run after [`SLICE_MS`] goes on in the browser's
//! next task. What must be seen all at once, such as another moment of the past, is not cut ([`all_at_once`]).

use std::cell::Cell;

use any_spawner::{CustomExecutor, Executor, PinnedFuture, PinnedLocalFuture};
use async_executor::LocalExecutor;
use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::MessageChannel;

use crate::store::now_ms;

/// How long effects run before the browser gets its turn: half of what it calls a long task. On most machines an update takes less, and is
/// seen as one.
const SLICE_MS: f64 = 25.0;

thread_local! {
    static DUE: &'static LocalExecutor<'static> = Box::leak(Box::new(LocalExecutor::new()));
    /// What is due now runs in one task.
    static UNCUT: Cell<bool> = const { Cell::new(false) };
}

struct InSlices;

impl CustomExecutor for InSlices {
    fn spawn(&self, future: PinnedFuture<()>) {
        DUE.with(|due| due.spawn(future).detach());
    }

    fn spawn_local(&self, future: PinnedLocalFuture<()>) {
        DUE.with(|due| due.spawn(future).detach());
    }

    /// The browser's queue polls.
    fn poll_local(&self) {}
}

/// Before the page is mounted.
pub(crate) fn run_in_slices() {
    if Executor::init_local_custom_executor(InSlices).is_ok() {
        spawn_local(run());
    }
}

/// What is due now, and what follows from it, runs in one task.
pub(crate) fn all_at_once() {
    UNCUT.set(true);
}

async fn run() {
    let due = DUE.with(|due| *due);
    let turn = NextTurn::new();
    loop {
        // Until something is due.
        due.tick().await;
        let mut began_ms = now_ms();
        while due.try_tick() {
            if !UNCUT.get() && now_ms() - began_ms >= SLICE_MS {
                turn.wait().await;
                began_ms = now_ms();
            }
        }
        UNCUT.set(false);
    }
}

/// Gives the browser its turn. Timers would do it a second later while the page is hidden; a message does it soon.
struct NextTurn(Option<MessageChannel>);

impl NextTurn {
    fn new() -> Self {
        Self(MessageChannel::new().ok())
    }

    async fn wait(&self) {
        let Self(Some(channel)) = self else { return };
        let mut came = Promise::new(&mut |resolve, _| channel.port1().set_onmessage(Some(&resolve)));
        if channel.port2().post_message(&JsValue::NULL).is_err() {
            came = Promise::resolve(&JsValue::NULL);
        }
        drop(JsFuture::from(came).await);
    }
}
