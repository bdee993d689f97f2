//! Asks the server to ask a worker for its blocks. Knows nothing of how that is done; what comes of it is in the state.

use leptos::prelude::*;
use radixscope_model::id::WorkerIx;
use serde::Deserialize;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Response};

use crate::net::response::{error_message, json};
use crate::net::source;
use crate::store::Store;
use crate::view::control::view;

/// The server accepted the request, but queries no worker.
const NOT_QUERIED: &str = "Not queried: its endpoint is unknown (--discovery, or a frontend in --prometheus, reports it), or --tree-dumps is off";

/// The response of the server.
#[derive(Deserialize)]
struct QueriedWorkers {
    workers: Vec<QueriedWorker>,
}

#[derive(Deserialize)]
struct QueriedWorker {
    asked: bool,
}

/// The button, and what the server says where it refuses.
#[component]
pub(super) fn AskForBlocks(store: Store, worker: WorkerIx) -> impl IntoView {
    let refused = RwSignal::new(None::<String>);
    let is_sent = RwSignal::new(false);
    let ask = move |event: web_sys::MouseEvent| {
        // The row behind it selects its worker.
        event.stop_propagation();
        let Some(id) = store.peek(|shown| shown.worker(worker).map(|state| state.id)) else { return };
        is_sent.set(true);
        refused.set(None);
        leptos::task::spawn_local(async move {
            let outcome = post(id.id.0, id.dp_rank).await;
            // The row may be gone meanwhile.
            let _ = is_sent.try_set(false);
            let _ = refused.try_set(outcome.err());
        });
    };
    view! {
        <button class="plain ask" data-testid="ask-for-blocks" disabled=move || is_sent.get() || store.at.get() != 0 on:click=ask
            title=move || match store.at.get() {
                0 => "Sends the worker one query; it responds with all its blocks. Nothing changes in the cluster",
                _ => "Workers respond with what they have cached now: go back to live first (L)",
            }>
            "Query this worker for its blocks"
        </button>
        {move || refused.get().map(|why| view! { <span role="status" data-testid="ask-refused">{why}</span> })}
    }
}

/// Ids are text: they do not fit a JavaScript number.
async fn post(worker: u64, dp_rank: u32) -> Result<(), String> {
    let broken = |_: JsValue| "The connection to the server was lost".to_owned();
    let body = format!(r#"{{"workers":[{{"worker_id":"{worker}","dp_rank":{dp_rank}}}]}}"#);
    let init = RequestInit::new();
    init.set_method("POST");
    init.set_body(&body.into());
    let response = JsFuture::from(source::request("api/v1/tree-dumps", &init)).await;
    let response: Response = response.map_err(broken)?.unchecked_into();
    if response.ok() {
        let body: Option<QueriedWorkers> = json(&response).await;
        let is_queried = body.is_none_or(|body| body.workers.iter().all(|worker| worker.asked));
        return if is_queried { Ok(()) } else { Err(NOT_QUERIED.to_owned()) };
    }
    let message = error_message(&response).await;
    Err(message.unwrap_or_else(|| format!("The server refused: status {}", response.status())))
}
