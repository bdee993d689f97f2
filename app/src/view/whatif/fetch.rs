//! The prompt of a recorded decision, which only the server keeps.

use js_sys::Array;
use leptos::prelude::*;
use radixscope_insight::whatif::{Blocks, Hashes};
use radixscope_model::id::DecisionId;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Response};

use super::asking::Fault;
use crate::json::field;
use crate::net::source;

/// Where fetching stands.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) enum FetchedPrompt {
    /// Nothing was asked for.
    #[default]
    Nothing,
    /// Under way.
    Waiting(DecisionId),
    /// It came, or why it did not.
    Done(DecisionId, Result<Blocks, String>),
}

impl FetchedPrompt {
    fn id(&self) -> Option<DecisionId> {
        match self {
            FetchedPrompt::Nothing => None,
            FetchedPrompt::Waiting(id) | FetchedPrompt::Done(id, _) => Some(*id),
        }
    }

    /// The prompt of `wanted`.
    pub(super) fn blocks(&self, wanted: DecisionId) -> Result<Blocks, Fault> {
        match self {
            FetchedPrompt::Done(id, Ok(blocks)) if *id == wanted => Ok(blocks.clone()),
            FetchedPrompt::Done(id, Err(why)) if *id == wanted => Err(Fault::new("decision", why.clone())),
            _ => Err(Fault::hint("decision", "Fetching the prompt's hashes from the server …")),
        }
    }
}

/// Fetches the prompt of `id`, unless that was done.
pub(super) fn fetch(into: RwSignal<FetchedPrompt>, id: DecisionId) {
    if into.with_untracked(FetchedPrompt::id) == Some(id) {
        return;
    }
    into.set(FetchedPrompt::Waiting(id));
    leptos::task::spawn_local(async move {
        let got = get(&format!("api/v1/prompt?decision={id}")).await;
        // Another one may have been asked for meanwhile, or the panel be gone.
        if into.try_with_untracked(|now| now.id() == Some(id)) == Some(true) {
            into.set(FetchedPrompt::Done(id, got));
        }
    });
}

async fn get(url: &str) -> Result<Blocks, String> {
    let failed = |_| "The server did not answer; its prompts cannot be fetched now".to_owned();
    let response: Response =
        JsFuture::from(source::ask(url, &RequestInit::new())).await.map_err(failed)?.unchecked_into();
    // What is no JSON is read as nothing.
    let body = JsFuture::from(response.json().map_err(failed)?).await.unwrap_or_default();
    if !response.ok() {
        let why = field(&field(&body, "error"), "message").as_string();
        return Err(why.unwrap_or_else(|| "The server refused to give the prompt".to_owned()));
    }
    read(&body).ok_or_else(|| "The server's response is invalid: it may be of another version".to_owned())
}

/// Hashes are text, in decimal: a reader of JSON may round numbers as large.
fn read(body: &JsValue) -> Option<Blocks> {
    let hashes = field(body, "chain_hashes").dyn_into::<Array>().ok()?;
    let hashes = hashes.iter().map(|hash| hash.as_string()?.parse().ok());
    Some(Blocks {
        hashes: Hashes::Chain(hashes.collect::<Option<_>>()?),
        isl_tokens: whole(&field(body, "isl_tokens")),
        block_size_tokens: whole(&field(body, "block_size_tokens")).and_then(|size| u32::try_from(size).ok()),
    })
}

/// A count, as JavaScript has it.
fn whole(value: &JsValue) -> Option<u64> {
    value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0).map(|number| number as u64)
}
