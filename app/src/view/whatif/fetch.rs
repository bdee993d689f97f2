//! The prompt of a recorded decision, which only the server keeps.

use leptos::prelude::*;
use radixscope_insight::whatif::{Blocks, Hashes};
use radixscope_model::id::DecisionId;
use serde_json::Value;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;

use super::asking::Fault;

/// Where fetching stands.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) enum Fetched {
    /// Nothing was asked for.
    #[default]
    Nothing,
    /// Under way.
    Waiting(DecisionId),
    /// It came, or why it did not.
    Done(DecisionId, Result<Blocks, String>),
}

impl Fetched {
    fn id(&self) -> Option<DecisionId> {
        match self {
            Fetched::Nothing => None,
            Fetched::Waiting(id) | Fetched::Done(id, _) => Some(*id),
        }
    }

    /// The prompt of `wanted`.
    pub(super) fn blocks(&self, wanted: DecisionId) -> Result<Blocks, Fault> {
        match self {
            Fetched::Done(id, Ok(blocks)) if *id == wanted => Ok(blocks.clone()),
            Fetched::Done(id, Err(why)) if *id == wanted => Err(Fault::new("decision", why.clone())),
            _ => Err(Fault::new("decision", "Fetching the prompt's hashes from the server …")),
        }
    }
}

/// Fetches the prompt of `id`, unless that was done.
pub(super) fn fetch(into: RwSignal<Fetched>, id: DecisionId) {
    if into.with_untracked(Fetched::id) == Some(id) {
        return;
    }
    into.set(Fetched::Waiting(id));
    leptos::task::spawn_local(async move {
        let got = get(&format!("./api/v1/prompt?decision={id}")).await;
        // Another one may have been asked for meanwhile, or the panel be gone.
        if into.try_with_untracked(|now| now.id() == Some(id)) == Some(true) {
            into.set(Fetched::Done(id, got));
        }
    });
}

async fn get(url: &str) -> Result<Blocks, String> {
    let failed = |_| "The server did not answer; its prompts cannot be fetched now".to_owned();
    let response: Response =
        JsFuture::from(window().fetch_with_str(url)).await.map_err(failed)?.unchecked_into();
    let body = JsFuture::from(response.text().map_err(failed)?).await.map_err(failed)?;
    let body: Value = serde_json::from_str(&body.as_string().unwrap_or_default()).unwrap_or_default();
    if !response.ok() {
        let why = body["error"]["message"].as_str().unwrap_or("The server refused to give the prompt");
        return Err(why.to_owned());
    }
    read(&body)
        .ok_or_else(|| "The server's answer was not understood: it may be of another version".to_owned())
}

/// Hashes are text, in decimal: a reader of JSON may round numbers as large.
fn read(body: &Value) -> Option<Blocks> {
    let hashes = body["chain_hashes"].as_array()?.iter().map(|hash| hash.as_str()?.parse().ok());
    Some(Blocks {
        hashes: Hashes::Chain(hashes.collect::<Option<_>>()?),
        isl_tokens: body["isl_tokens"].as_u64(),
        block_size_tokens: body["block_size_tokens"].as_u64().and_then(|size| u32::try_from(size).ok()),
    })
}
