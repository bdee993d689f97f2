//! The prompt, in whichever form the reader has it.

use leptos::prelude::*;
use radixscope_model::id::DecisionId;
use radixscope_panels::paste;
use radixscope_panels::whatif::{
    InputFault, Mode, TokenIds, cached_prefix_of_latest, describe, latest, newer, older, prefix_workers,
};

use super::asking::QueryState;
use super::fetch;
use super::field::FaultOf;
use crate::format;
use crate::store::{Store, ViewContext, zone};
use crate::view::control::view;
use crate::view::prompt_text::PromptText;

#[component]
pub(super) fn PromptForm(store: Store, asking: QueryState, fault: Memo<Option<InputFault>>) -> impl IntoView {
    let tab = |(mode, id, title): (Mode, &'static str, &'static str)| {
        view! {
            <label class="tab">
                <input type="radio" name="whatif-mode" value=id prop:checked=move || asking.mode.get() == mode
                    on:change=move |_| if mode == Mode::Example { asking.use_example() } else { asking.mode.set(mode) }
                    data-testid=format!("mode-{id}")/>
                <span>{title}</span>
            </label>
        }
    };
    let fields = move || match asking.mode.get() {
        Mode::Recorded => view! { <Recorded store asking/> },
        Mode::Prefix => view! { <Prefix store asking/> },
        Mode::Text => {
            let on_tokens = Callback::new(move |given: Option<_>| {
                let (ids, described) = given.unwrap_or_default();
                asking.tokens.set(TokenIds { ids, described, complaint: None });
            });
            view! { <PromptText state=asking.text on_tokens/> <Seeding asking/> }
        }
        Mode::Tokens => view! { <Tokens asking/> },
        Mode::Hashes => view! { <Hashes asking/> },
        Mode::Length => view! { <Length asking/> },
        Mode::Example => view! {
            <p class="help-line">"100 blocks are requested. 20 of them are cached on worker 1, which has 10 blocks in use, 75 on
                worker 2, which has 5, and 10 on worker 3, which has 9. The settings below and the load of the three can be changed."</p>
        },
    };
    view! {
        <fieldset class="prompt">
            <legend>"Prompt"</legend>
            <div class="tabs">{Mode::ALL.map(tab).into_iter().collect_view()}</div>
            {move || fields()}
            <FaultOf fault fields=&["decision", "after", "prompt", "isl_tokens"]/>
            <Show when=move || asking.mode.get() != Mode::Example>
                <div class="row">
                    <label for="whatif-block-size">"Tokens per block"</label>
                    <input type="number" id="whatif-block-size" min="1" placeholder="cluster's" prop:value=move || asking.block_size.get()
                        on:change=move |event| asking.block_size.set(event_target_value(&event))/>
                </div>
                <FaultOf fault fields=&["block_size_tokens"]/>
            </Show>
        </fieldset>
    }
}

#[component]
fn Recorded(store: Store, asking: QueryState) -> impl IntoView {
    let described = Memo::new(move |_| {
        let id = asking.decision.with(|text| text.trim().parse().ok().map(DecisionId))?;
        store.on_beat(|cluster| cluster.decisions().get(id).map(|decided| describe(decided, zone())))
    });
    let step = move |pick: fn(&ViewContext<'_>, Option<DecisionId>) -> Option<DecisionId>| {
        let now = asking.decision_id();
        if let Some(id) = store.peek(|cluster| pick(cluster, now)) {
            asking.choose_decision(store, id);
        }
    };
    Effect::new(move |_| {
        let id = asking.decision.with(|text| text.trim().parse().ok().map(DecisionId));
        if let Some(id) = id.filter(|_| asking.live_tree.get()) {
            fetch::fetch(asking.fetched, id);
        }
    });
    let way = move |is_live: bool, title: &'static str, id: &'static str| {
        view! {
            <label class="check-row">
                <input type="radio" name="whatif-way" prop:checked=move || asking.live_tree.get() == is_live
                    on:change=move |_| asking.live_tree.set(is_live) data-testid=id/>" "{title}
            </label>
        }
    };
    view! {
        <div class="row">
            <label for="whatif-decision">"Decision"</label>
            <input type="text" inputmode="numeric" id="whatif-decision" class="short" data-testid="whatif-decision" prop:value=move || asking.decision.get()
                on:change=move |event| asking.decision.set(event_target_value(&event))/>
            <button class="plain" on:click=move |_| step(older) data-testid="whatif-older">"Older"</button>
            <button class="plain" on:click=move |_| step(newer) data-testid="whatif-newer">"Newer"</button>
            <button class="plain" on:click=move |_| step(|shown, _| latest(shown)) data-testid="whatif-latest">"Latest"</button>
        </div>
        <p class="help-line" data-testid="whatif-described">{move || described.get()}</p>
        <div class="row" role="radiogroup" aria-label="State the prompt is scored on">
            {way(false, "as the router saw it", "way-recorded")}
            {way(true, "against the tree as it is now", "way-live")}
        </div>
    }
}

#[component]
fn Prefix(store: Store, asking: QueryState) -> impl IntoView {
    let workers = Memo::new(move |_| {
        let drawn = store.drawn.get();
        store.peek(|shown| prefix_workers(shown, &drawn))
    });
    let of_latest = move |_| {
        if let Some((worker, block)) = store.peek(cached_prefix_of_latest) {
            asking.choose_prefix(worker, block);
        }
    };
    let options = move || {
        let options = workers.get().into_iter().map(|(id, title)| {
            let value = id.clone();
            view! { <option value=value selected=move || asking.prefix_worker.get() == id>{title}</option> }
        });
        options.collect_view()
    };
    view! {
        <div class="row">
            <label for="whatif-prefix-worker">"Cached on"</label>
            <select id="whatif-prefix-worker" on:change=move |event| asking.prefix_worker.set(event_target_value(&event))>
                <option value="">"choose a worker"</option>
                {move || options()}
            </select>
        </div>
        <div class="row">
            <label for="whatif-prefix-block">"Last block"</label>
            <input type="text" inputmode="numeric" id="whatif-prefix-block" class="mono wide" data-testid="whatif-prefix-block"
                placeholder="block hash, decimal" prop:value=move || asking.prefix_block.get()
                on:change=move |event| asking.prefix_block.set(event_target_value(&event))/>
        </div>
        <div class="row">
            <label for="whatif-new-tokens">"New tokens after it"</label>
            <input type="number" id="whatif-new-tokens" min="0" step="100" prop:value=move || asking.new_tokens.get().to_string()
                on:input=move |event| if let Ok(n) = event_target_value(&event).parse() { asking.new_tokens.set(n) }/>
        </div>
        <div class="row buttons"><button class="plain" on:click=of_latest data-testid="whatif-prefix-latest">"Cached prefix of the latest request"</button></div>
    }
}

#[component]
fn Tokens(asking: QueryState) -> impl IntoView {
    let complaint = move || asking.tokens.with(|tokens| tokens.complaint.clone());
    view! {
        <label for="whatif-tokens">"Token ids, however they are separated"</label>
        <textarea id="whatif-tokens" rows="5" spellcheck="false" data-testid="whatif-tokens"
            placeholder="[3, 2086, 203, 1140, …] up to 2,000,000 ids or 8 MiB"
            on:input=move |event| asking.tokens.set(TokenIds::pasted(&event_target_value(&event)))></textarea>
        <p class="help-line">{move || asking.tokens.with(|tokens| tokens.described.clone())}</p>
        {move || complaint().map(|text| view! { <p class="field-fault" role="alert" data-testid="whatif-complaint">{text}</p> })}
        <Seeding asking/>
    }
}

/// What token ids are hashed with.
#[component]
fn Seeding(asking: QueryState) -> impl IntoView {
    view! {
        <div class="row">
            <label for="whatif-lora">"LoRA name"</label>
            <input type="text" id="whatif-lora" prop:value=move || asking.lora_name.get()
                on:change=move |event| asking.lora_name.set(event_target_value(&event))/>
            <label for="whatif-salt">"Cache salt"</label>
            <input type="text" id="whatif-salt" prop:value=move || asking.cache_salt.get()
                on:change=move |event| asking.cache_salt.set(event_target_value(&event))/>
        </div>
    }
}

#[component]
fn Hashes(asking: QueryState) -> impl IntoView {
    let read = move |event| asking.hashes.set(paste::numbers(&event_target_value(&event)));
    let found = move || asking.hashes.with(|p| format::plural(p.numbers.len() as u64, "hash", "hashes"));
    let complaint = move || asking.hashes.with(|pasted| pasted.complaint());
    let way = move |is_chain: bool, title: &'static str| {
        view! {
            <label class="check-row">
                <input type="radio" name="whatif-hashes" prop:checked=move || asking.is_chain.get() == is_chain
                    on:change=move |_| asking.is_chain.set(is_chain)/>" "{title}
            </label>
        }
    };
    view! {
        <label for="whatif-hashes">"Hashes of the prompt's full blocks in order, decimal"</label>
        <textarea id="whatif-hashes" rows="5" spellcheck="false" data-testid="whatif-hashes"
            placeholder="12128555125535577085, 7625024881536107986, …" on:input=read></textarea>
        <p class="help-line">{move || found()}</p>
        {move || complaint().map(|text| view! { <p class="field-fault" role="alert">{text}</p> })}
        <div class="row" role="radiogroup" aria-label="What each hash covers">
            {way(false, "each of its block alone (tokens hash)")}
            {way(true, "each with all before it (sequence hash)")}
        </div>
    }
}

#[component]
fn Length(asking: QueryState) -> impl IntoView {
    view! {
        <div class="row">
            <label for="whatif-length">"Prompt tokens"</label>
            <input type="number" id="whatif-length" min="0" step="100" data-testid="whatif-length" prop:value=move || asking.length.get().to_string()
                on:input=move |event| if let Ok(n) = event_target_value(&event).parse() { asking.length.set(n) }/>
        </div>
    }
}
