//! The socket: connects, hands frames to the store, and connects again. Knows no frame's contents.

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use gloo_net::websocket::{Message, futures::WebSocket};
use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;

use super::backoff::Backoff;
use super::snapshot;
use super::source::DataSource;
use crate::store::{Broken, Link, Store};

/// The server sends at least one frame a second; after this long without one, what is shown is called stale.
const STALE_AFTER_MS: u32 = 3_000;
/// After this long without a frame the connection is given up: a half-open socket never ends by itself.
const GIVE_UP_AFTER_MS: u32 = 12_000;
/// How often a wait looks whether it was cut short.
const WAIT_STEP_MS: u32 = 250;

/// How a connection ended.
enum End {
    /// Lost or never made. `spoke`: at least one frame came.
    Lost { spoke: bool },
    /// The state must be fetched anew, at once.
    Resync,
    /// Nothing to be done but to load the page anew.
    Incompatible,
}

/// Keeps the store fed for as long as its source is the present one.
pub async fn run(store: Store) {
    let of = DataSource::now();
    let mut backoff = Backoff::default();
    loop {
        let end = connection(store, of).await;
        if of != DataSource::now() || of.is_file() {
            return;
        }
        match end {
            End::Incompatible => return,
            End::Resync => {
                store.forget_place();
                // A server that always disagrees must not get requests without end.
                wait(store, &mut backoff).await;
            }
            End::Lost { spoke } => {
                if spoke {
                    backoff.reset();
                }
                wait(store, &mut backoff).await;
            }
        }
    }
}

async fn connection(store: Store, of: DataSource) -> End {
    store.link.set(Link::Connecting);
    if store.resume().is_none()
        && let Some(end) = ended(store, snapshot::fetch(store).await)
    {
        return end;
    }
    // A file says all that it has at once.
    if of.is_file() {
        return End::Lost { spoke: true };
    }
    let Some(mut socket) = address(store).and_then(|url| WebSocket::open(&url).ok()) else {
        return End::Lost { spoke: false };
    };
    let mut spoke = false;
    let mut silent_ms = 0;
    loop {
        let come = select(socket.next(), TimeoutFuture::new(STALE_AFTER_MS)).await;
        if of != DataSource::now() {
            return End::Lost { spoke };
        }
        match come {
            Either::Left((Some(Ok(Message::Bytes(bytes))), _)) => {
                spoke = true;
                silent_ms = 0;
                fresh(store, true);
                if let Some(end) = ended(store, store.apply_frame(&bytes)) {
                    return end;
                }
            }
            Either::Left((Some(Ok(Message::Text(_))), _)) => {}
            Either::Left((Some(Err(_)) | None, _)) => return End::Lost { spoke },
            Either::Right(_) => {
                silent_ms += STALE_AFTER_MS;
                fresh(store, false);
                if silent_ms >= GIVE_UP_AFTER_MS {
                    return End::Lost { spoke };
                }
            }
        }
    }
}

/// What is to be done where a frame could not be taken.
fn ended(store: Store, applied: Result<(), Broken>) -> Option<End> {
    match applied.err()? {
        Broken::Resync => Some(End::Resync),
        Broken::Version(theirs) => {
            store.link.set(Link::Incompatible { theirs });
            Some(End::Incompatible)
        }
    }
}

fn fresh(store: Store, fresh: bool) {
    let stale = !fresh && untrack(|| store.ready());
    if store.stale.get_untracked() != stale {
        store.stale.set(stale);
    }
}

/// Waits for the next attempt, counting down, unless the reader does not want to wait.
async fn wait(store: Store, backoff: &mut Backoff) {
    let retries = store.retry.get_untracked();
    let mut left_ms = backoff.next_ms(js_sys::Math::random());
    while left_ms > 0 && store.retry.get_untracked() == retries {
        store.link.set(Link::Waiting { attempts: backoff.attempts(), seconds: left_ms.div_ceil(1000) });
        let step = left_ms.min(WAIT_STEP_MS);
        TimeoutFuture::new(step).await;
        left_ms -= step;
    }
}

/// Address of the socket below whatever path the page is served at.
fn address(store: Store) -> Option<String> {
    let base = document().base_uri().ok()??;
    let url = web_sys::Url::new_with_base("ws", &base).ok()?;
    url.set_protocol(if url.protocol() == "https:" { "wss:" } else { "ws:" });
    if let Some((epoch, seq)) = store.resume() {
        url.set_search(&format!("?after={seq}&epoch={epoch}"));
    }
    Some(url.href())
}
