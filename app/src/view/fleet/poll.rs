//! Asks the server of this page for all members, every few seconds while the page can be seen, and keeps the points that came before.

use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;
use radixscope_export::fleet::FleetReport;
use radixscope_panels::fleet::keep_points;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Response};

use crate::net::{response, source};
use crate::store::now_ms;

/// After a failure, and where the server does not say how often.
const RETRY: Duration = Duration::from_secs(5);
/// The page asks at most and at least so often, seconds.
const INTERVAL_S: (f64, f64) = (1.0, 10.0);

/// What the page knows.
#[derive(Clone, Copy)]
pub(super) struct Feed {
    /// The latest response, with the points of those before.
    pub(super) report: RwSignal<Option<FleetReport>>,
    /// Why it is not current; empty: it is.
    pub(super) fault: RwSignal<String>,
    /// The server's clock, once a second.
    pub(super) now_ms: RwSignal<u64>,
}

/// Begins to ask.
pub(super) fn follow() -> Feed {
    let feed =
        Feed { report: RwSignal::new(None), fault: RwSignal::new(String::new()), now_ms: RwSignal::new(0) };
    // The page's clock when the last response came.
    let received = StoredValue::new(0.0);
    ask(feed, received);
    let tick = move || {
        let since = (now_ms() - received.get_value()).max(0.0) as u64;
        if let Some(at) = feed.report.with_untracked(|report| Some(report.as_ref()?.at_ms.0)) {
            feed.now_ms.set(at + since);
        }
    };
    if let Ok(handle) = set_interval_with_handle(tick, Duration::from_secs(1)) {
        on_cleanup(move || handle.clear());
    }
    feed
}

fn ask(feed: Feed, received: StoredValue<f64>) {
    spawn_local(async move {
        let wait = if document().hidden() && feed.report.with_untracked(Option::is_some) {
            Duration::from_secs(1)
        } else {
            match fetch(feed).await {
                Ok(report) => {
                    received.set_value(now_ms());
                    let (least, most) = INTERVAL_S;
                    let wait = Duration::from_secs_f64(report.poll_interval_s.clamp(least, most));
                    feed.now_ms.set(report.at_ms.0);
                    feed.fault.set(String::new());
                    feed.report.set(Some(report));
                    wait
                }
                Err(why) => {
                    feed.fault.set(why);
                    RETRY
                }
            }
        };
        set_timeout(move || ask(feed, received), wait);
    });
}

/// # Errors
/// A text for the reader.
async fn fetch(feed: Feed) -> Result<FleetReport, String> {
    let before = feed.report.with_untracked(|report| report.as_ref().map(|of| of.at_ms.0));
    // One that came in the same millisecond is asked for again.
    let address = before.map_or_else(
        || "api/v1/fleet".to_owned(),
        |at| format!("api/v1/fleet?after_ms={}", at.saturating_sub(1)),
    );
    let broken = "The server of this page does not respond; figures are those of its last response.";
    let response = JsFuture::from(source::request(&address, &RequestInit::new())).await;
    let response: Response = response.map_err(|_| broken.to_owned())?.unchecked_into();
    if !response.ok() {
        let why = response::error_message(&response).await;
        return Err(why.unwrap_or_else(|| {
            format!("The server of this page responds with status {}.", response.status())
        }));
    }
    let mut report: FleetReport = response::json(&response)
        .await
        .ok_or("The server of this page is of another version: load the page again.")?;
    feed.report.with_untracked(|before| {
        if let Some(before) = before {
            keep_points(&mut report, before);
        }
    });
    Ok(report)
}
