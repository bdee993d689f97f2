//! The prompt of a recorded decision, which only the server keeps.

use leptos::prelude::*;
use radixscope_insight::whatif::{Blocks, Hashes};
use radixscope_model::id::DecisionId;
use radixscope_panels::whatif::FetchedPrompt;
use serde::Deserialize;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::{RequestInit, Response};

use crate::net::response::{error_message, json};
use crate::net::source;

/// Fetches the prompt of `id`, unless that was done.
pub(super) fn fetch(into: RwSignal<FetchedPrompt>, id: DecisionId) {
    if into.with_untracked(FetchedPrompt::id) == Some(id) {
        return;
    }
    into.set(FetchedPrompt::Waiting(id));
    leptos::task::spawn_local(async move {
        let got = get(&format!("api/v1/prompt?decision={id}")).await;
        // Another one may have been requested meanwhile, or the panel be gone.
        if into.try_with_untracked(|now| now.id() == Some(id)) == Some(true) {
            into.set(FetchedPrompt::Done(id, got));
        }
    });
}

async fn get(url: &str) -> Result<Blocks, String> {
    let failed = |_| "The server did not respond; its prompts cannot be fetched now".to_owned();
    let response: Response =
        JsFuture::from(source::request(url, &RequestInit::new())).await.map_err(failed)?.unchecked_into();
    if !response.ok() {
        let why = error_message(&response).await;
        return Err(why.unwrap_or_else(|| "The server refused to give the prompt".to_owned()));
    }
    let prompt: Option<PromptBody> = json(&response).await;
    prompt
        .and_then(PromptBody::blocks)
        .ok_or_else(|| "The server's response is invalid: it may be of another version".to_owned())
}

/// A prompt as the API gives it.
#[derive(Deserialize)]
struct PromptBody {
    /// As decimal strings: a reader of JSON may round numbers as large.
    chain_hashes: Vec<String>,
    isl_tokens: Option<u64>,
    block_size_tokens: Option<u32>,
}

impl PromptBody {
    fn blocks(self) -> Option<Blocks> {
        let hashes = self.chain_hashes.iter().map(|hash| hash.parse().ok());
        Some(Blocks {
            hashes: Hashes::Chain(hashes.collect::<Option<_>>()?),
            isl_tokens: self.isl_tokens,
            block_size_tokens: self.block_size_tokens,
        })
    }
}
