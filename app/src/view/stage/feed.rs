//! What the server says of its stage, asked every few seconds while the page can be seen, and the changes that are sent to it.

use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;
use radixscope_export::stage::{StageChange, StageReport};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Response};

use crate::net::response::{error_message, json};

/// Others steer too, and some of what began ends by itself.
const ASK_EVERY: Duration = Duration::from_secs(2);
/// Address of the stage.
const STAGE: &str = "api/v1/stage";

/// What the bar shows.
#[derive(Clone, Copy)]
pub(super) struct Feed {
    /// What the server confirmed last.
    pub(super) report: RwSignal<Option<StageReport>>,
    /// Whether there was any.
    pub(super) is_known: Memo<bool>,
    /// Whether changes are taken.
    pub(super) is_ready: Memo<bool>,
    /// Why the last change was not made; empty: it was.
    pub(super) fault: RwSignal<String>,
}

/// Begins to ask.
pub(super) fn follow() -> Feed {
    let report = RwSignal::new(None::<StageReport>);
    let is = move |what: fn(&StageReport) -> bool| {
        Memo::new(move |_| report.with(|report| report.as_ref().is_some_and(what)))
    };
    let (is_known, is_ready) = (is(|_| true), is(|report| report.is_ready));
    let feed = Feed { report, is_known, is_ready, fault: RwSignal::new(String::new()) };
    feed.ask();
    let tick = move || {
        if !document().hidden() {
            feed.ask();
        }
    };
    if let Ok(asking) = set_interval_with_handle(tick, ASK_EVERY) {
        on_cleanup(move || asking.clear());
    }
    feed
}

impl Feed {
    fn ask(self) {
        spawn_local(async move {
            // Where it does not come, the page says elsewhere that the connection is lost.
            if let Ok(report) = request(&RequestInit::new()).await {
                self.show(report);
            }
        });
    }

    /// Shows what the server has, unless the bar is gone.
    fn show(self, report: StageReport) {
        if self.report.try_with_untracked(|before| before.as_ref() != Some(&report)) == Some(true) {
            self.report.set(Some(report));
        }
    }

    /// Sends a change.
    pub(super) fn send(self, change: StageChange) {
        self.send_then(change, || {});
    }

    /// Sends a change; `then` is called with what came of it shown, whether it was made or not.
    pub(super) fn send_then(self, change: StageChange, then: impl FnOnce() + 'static) {
        spawn_local(async move {
            let outcome = post(&change).await;
            if self.fault.is_disposed() {
                return;
            }
            match outcome {
                Ok(report) => {
                    self.fault.set(String::new());
                    // Also where nothing differs: controls that moved ahead fall back to it.
                    self.report.set(Some(report));
                }
                Err(why) => {
                    self.fault.set(why);
                    self.report.update(|_| {});
                }
            }
            then();
        });
    }
}

/// Makes a change; gives what is then.
pub(in crate::view) async fn post(change: &StageChange) -> Result<StageReport, String> {
    let body = serde_json::to_string(change).map_err(|error| error.to_string())?;
    let init = RequestInit::new();
    init.set_method("POST");
    init.set_body(&body.into());
    request(&init).await
}

/// The stage is the server's, also while the page shows a recording.
async fn request(init: &RequestInit) -> Result<StageReport, String> {
    let broken = |_: JsValue| "The connection to the server was lost".to_owned();
    let response = JsFuture::from(window().fetch_with_str_and_init(STAGE, init)).await;
    let response: Response = response.map_err(broken)?.unchecked_into();
    if response.ok() {
        return json(&response).await.ok_or_else(|| "The server's response cannot be read".to_owned());
    }
    let message = error_message(&response).await;
    Err(message.unwrap_or_else(|| format!("The server refused: status {}", response.status())))
}
