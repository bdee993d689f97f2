//! A prompt as text, and the `tokenizer.json` that makes token ids of it. Neither leaves the browser. Knows nothing of what
//! is done with the ids.

use std::time::Duration;

use leptos::prelude::*;
use radixscope_panels::prompt_text::{CountText, Counted, FileFacts, FileState};
use radixscope_tokenizer_messages::{Text, TokenizerResponse};
use web_sys::File;

use super::file::FileDrop;
use crate::view::control::view;
use crate::worker::tokenizer::Tokenizer;

/// After so long without a key the text is tokenized.
const PAUSE: Duration = Duration::from_millis(250);

/// What the reader gave. Owned by the panel, so that it is still there when the reader comes back to it.
#[derive(Clone, Copy)]
pub(super) struct PromptTextState {
    loaded: RwSignal<FileState>,
    text: RwSignal<String>,
    add_special_tokens: RwSignal<bool>,
    counted: RwSignal<Counted>,
    tokens: RwSignal<Option<(Vec<u32>, String)>>,
    tokenizer: StoredValue<Tokenizer, LocalStorage>,
    pause: StoredValue<Option<TimeoutHandle>>,
    /// Whether the next response is of the text as it is.
    is_pending: StoredValue<bool>,
}

impl PromptTextState {
    /// Nothing given. The worker is started with the first file.
    pub(super) fn new() -> Self {
        let loaded = RwSignal::new(FileState::None);
        let text = RwSignal::new(String::new());
        let counted = RwSignal::new(Counted::Nothing);
        let tokens = RwSignal::new(None);
        let again = RwSignal::new(0_u32);
        let is_pending = StoredValue::new(false);
        let tokenizer = Tokenizer::new(move |response| match response {
            TokenizerResponse::Ready => {}
            TokenizerResponse::Loaded(Ok(summary)) => {
                loaded.try_update(|loaded| {
                    if let FileState::Loading(name) = loaded {
                        *loaded = FileState::Ready(std::mem::take(name), summary);
                    }
                });
                again.try_update(|times| *times += 1);
            }
            TokenizerResponse::Loaded(Err(why)) => {
                loaded.try_set(FileState::Failed(why));
                counted.try_set(Counted::Nothing);
            }
            TokenizerResponse::Tokens(_) if is_pending.try_get_value() != Some(true) => {}
            TokenizerResponse::Tokens(Ok(ids)) => {
                let bytes = text.try_with_untracked(String::len).unwrap_or_default() as u64;
                let described = loaded.try_with_untracked(|loaded| loaded.describe(ids.len() as u64, bytes));
                counted.try_set(Counted::Tokens { tokens: ids.len() as u64, bytes });
                tokens.try_set(described.map(|described| (ids, described)));
            }
            TokenizerResponse::Tokens(Err(why)) => {
                counted.try_set(Counted::Failed(why));
                tokens.try_set(None);
            }
        });
        let state = Self {
            loaded,
            text,
            add_special_tokens: RwSignal::new(false),
            counted,
            tokens,
            tokenizer: StoredValue::new_local(tokenizer),
            pause: StoredValue::new(None),
            is_pending,
        };
        Effect::new(move |_| {
            if again.get() > 0 {
                state.count();
            }
        });
        state
    }

    fn load(self, file: &File) {
        self.is_pending.set_value(false);
        self.tokens.set(None);
        self.counted.set(Counted::Nothing);
        self.loaded.set(FileState::Loading(file.name()));
        self.tokenizer.with_value(|tokenizer| tokenizer.load(file.clone()));
    }

    fn edit(self, text: String) {
        self.text.set(text);
        self.is_pending.set_value(false);
        self.tokens.set(None);
        self.counted.set(Counted::Counting);
        let pause = set_timeout_with_handle(move || self.count(), PAUSE).ok();
        if let Some(before) = self.pause.try_update_value(|timer| std::mem::replace(timer, pause)).flatten() {
            before.clear();
        }
    }

    /// Asks for the tokens of the text as it is.
    fn count(self) {
        self.is_pending.set_value(false);
        self.tokens.set(None);
        let is_ready = self.loaded.with_untracked(FileState::is_ready);
        let bytes = self.text.with_untracked(String::len);
        if !is_ready || bytes == 0 {
            return self.counted.set(Counted::Nothing);
        }
        if let Some(too_long) = Counted::too_long(bytes) {
            return self.counted.set(too_long);
        }
        self.counted.set(Counted::Counting);
        self.is_pending.set_value(true);
        let add_special_tokens = self.add_special_tokens.get_untracked();
        let text = Text { text: self.text.get_untracked(), add_special_tokens };
        self.tokenizer.with_value(|tokenizer| tokenizer.tokenize(text));
    }
}

/// The whole form. `on_tokens` gets the token ids and where they come from; `None` as soon as they no longer are those of
/// the text.
#[component]
pub(super) fn PromptText(
    state: PromptTextState,
    on_tokens: Callback<Option<(Vec<u32>, String)>>,
) -> impl IntoView {
    Effect::new(move |_| on_tokens.run(state.tokens.get()));
    view! {
        <div class="prompt-text" data-testid="prompt-text">
            <TokenizerFile state/>
            <label for="prompt-text">"Prompt with its chat template applied"</label>
            <textarea id="prompt-text" rows="7" spellcheck="false" autocomplete="off" aria-describedby="prompt-text-help prompt-text-count"
                data-testid="prompt-text-input" prop:value=move || state.text.get()
                on:input=move |event| state.edit(event_target_value(&event))></textarea>
            <Count state/>
            <p class="help-line" id="prompt-text-help">
                "The chat template is not applied here: give the text as the model reads it. Dynamo reports it in the event "
                <code>"formatted_prompt"</code>" of a streamed response, to a request with the annotation of that name."
            </p>
            <label class="check-row">
                <input type="checkbox" prop:checked=move || state.add_special_tokens.get() data-testid="prompt-text-special"
                    on:change=move |event| {
                        state.add_special_tokens.set(event_target_checked(&event));
                        state.count();
                    }/>
                "Add special tokens"
            </label>
            <p class="help-line">"Off, as Dynamo's frontend has it: the chat template writes them into the text."</p>
        </div>
    }
}

/// Takes the file, and says what it is.
#[component]
fn TokenizerFile(state: PromptTextState) -> impl IntoView {
    let load = move |files: Vec<web_sys::File>| files.iter().for_each(|file| state.load(file));
    view! {
        <FileDrop id="tokenizer" accept=".json,application/json" described_by="tokenizer-state" on_files=load>
            <p>
                <label for="tokenizer-file" class="file-button">
                    {move || state.loaded.with(FileState::button)}
                </label>
                " or drop it here. It stays in this browser."
            </p>
            <div id="tokenizer-state" aria-live="polite" data-testid="tokenizer-state">
                {move || state.loaded.with(|loaded| match loaded {
                    FileState::None => view! { <p class="help-line">"It lies with the model's files. Without it a text has no token ids."</p> },
                    FileState::Loading(name) => view! { <p class="help-line">{format!("Reading {name}")}</p> },
                    FileState::Failed(why) => view! { <p class="field-fault">{why.clone()}</p> },
                    FileState::Ready(name, summary) => facts(FileFacts::of(name, summary)).into_any(),
                })}
            </div>
        </FileDrop>
    }
}

/// What a file says of itself.
fn facts(facts: FileFacts) -> impl IntoView + use<> {
    let rows = facts.rows.map(|(term, value)| view! { <dt>{term}</dt><dd class="mono">{value}</dd> });
    let fault = |text: String| view! { <p class="field-fault">{text}</p> };
    view! {
        <p class="file-name"><b>{facts.name}</b>" "{facts.bytes}" bytes, SHA-256 "
            <span class="mono" title=facts.digest>{facts.short_digest}</span></p>
        <dl class="file-facts">{rows.into_iter().collect_view()}</dl>
        {facts.faults.into_iter().map(fault).collect_view()}
    }
}

/// How many tokens, or why there are none.
#[component]
fn Count(state: PromptTextState) -> impl IntoView {
    view! {
        <p id="prompt-text-count" class="token-count" aria-live="polite" data-testid="prompt-text-count">
            {move || match state.counted.with(|counted| state.loaded.with(|file| counted.to_text(file))) {
                CountText::Note(note) => note.into_any(),
                CountText::Tokens(tokens, of) => view! { <b>{tokens}</b>{of} },
                CountText::Fault(why) => view! { <span class="field-fault">{why}</span> },
            }}
        </p>
    }
}
