//! What-if: a request put to the live state, or to a state that is retained, under settings and in a cluster of the reader's
//! choice, answered in the page by the same code as `POST /api/v1/score`.

mod asking;
mod fetch;
mod field;
mod fleet;
mod help;
mod prompt;
mod response;
mod settings;

use leptos::prelude::*;
use radixscope_model::id::{BlockHash, DecisionId, Millis, Worker};

use self::asking::{InputFault, QueryState};
use self::response::{OfflineReplay, ResponseView};
use crate::format;
use crate::store::{Store, now_ms, time_of_day};
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::PanelHead;

/// The live state is scored again so often at most: faster is flicker.
const PACE_MS: u64 = 500;

#[component]
pub fn WhatIfPanel(store: Store) -> impl IntoView {
    let asking = QueryState::new(store);
    begin(store, asking);
    let offline = StoredValue::new_local(None::<OfflineReplay>);
    let offline_seq = RwSignal::new(None::<u64>);
    let took_us = RwSignal::new(0);
    // By the page's clock: the server's may stand still, as that of a recording does.
    let tick = Memo::new(move |_| {
        store.on_beat(|cluster| {
            let now = if store.at.get() == 0 { now_ms() as u64 / PACE_MS } else { cluster.seq().0 };
            (cluster.seq().0 > 0, now)
        })
    });
    let result = response::keep_current(store, asking, offline, offline_seq, tick, took_us);
    let fault: Memo<Option<InputFault>> =
        Memo::new(move |_| result.with(|result| result.as_ref().err().cloned()));
    view! {
        <section class="panel whatif" aria-labelledby="whatif-title" data-testid="whatif">
            <PanelHead store panel=Panel::WhatIf title="What-if">
                <Moment store offline offline_seq/>
            </PanelHead>
            <div class="whatif-halves">
                <div class="whatif-question scroll" role="form" aria-label="Question">
                    <div class="row buttons">
                        <button type="button" class="plain" on:click=move |_| asking.use_example() data-testid="whatif-example">"Worked example"</button>
                        <help::Explained/>
                    </div>
                    <prompt::PromptForm store asking fault/>
                    <settings::Settings store asking fault/>
                    <fleet::Fleet store asking fault/>
                </div>
                <div class="whatif-right scroll">
                    <ResponseView store result took_us/>
                </div>
            </div>
        </section>
    }
}

/// Which state is scored, and the switch between the live one and one that is retained.
#[component]
fn Moment(
    store: Store,
    offline: StoredValue<Option<OfflineReplay>, LocalStorage>,
    offline_seq: RwSignal<Option<u64>>,
) -> impl IntoView {
    let toggle = move |_| {
        if offline_seq.get_untracked().is_some() {
            offline.set_value(None);
            offline_seq.set(None);
            return;
        }
        let copy = OfflineReplay {
            cluster: store.peek(|shown| shown.cluster.copy_without_forests()),
            at_ms: store.now_ms(),
        };
        offline_seq.set(Some(copy.cluster.seq().0));
        offline.set_value(Some(copy));
    };
    let text = move || match offline_seq.get() {
        Some(seq) => {
            let at =
                offline.with_value(|offline| offline.as_ref().map_or(Millis(0), |offline| offline.at_ms));
            format!("Fixed at {}, record {}", time_of_day(at), format::count(seq))
        }
        None => match store.at.get() {
            0 => "Live state".to_owned(),
            at => format!("State at {}", time_of_day(Millis(at))),
        },
    };
    view! {
        <span class="moment" class:frozen=move || offline_seq.get().is_some() data-testid="whatif-moment">{move || text()}</span>
        <button type="button" class="plain" on:click=toggle aria-pressed=move || offline_seq.get().is_some().to_string() data-testid="whatif-freeze">
            {move || match (offline_seq.get().is_some(), store.at.get()) {
                (false, _) => "Freeze",
                (true, 0) => "Back to live",
                (true, _) => "Unfreeze",
            }}
        </button>
    }
}

/// Takes what the address asks about, now and whenever it changes; else the latest decision, as soon as there is one.
fn begin(store: Store, asking: QueryState) {
    let requested = Memo::new(move |_| {
        store
            .address
            .with(|address| (address.decision, address.other("prefix"), address.other("example").is_some()))
    });
    let begun = StoredValue::new(false);
    Effect::new(move |before: Option<(Option<DecisionId>, Option<String>, bool)>| {
        if !store.ready() {
            return (None, None, false);
        }
        let requested = requested.get();
        let (decision, prefix, is_example) = &requested;
        if before.as_ref() != Some(&requested) {
            if let Some(id) = decision {
                asking.choose_decision(store, *id);
                begun.set_value(true);
            } else if let Some((worker, block)) = prefix.as_deref().and_then(parse_prefix) {
                asking.use_deployed(store);
                asking.choose_prefix(worker, block);
                begun.set_value(true);
            } else if *is_example {
                asking.use_example();
                begun.set_value(true);
            }
        }
        requested
    });
    Effect::new(move |_| {
        if begun.get_value() {
            return;
        }
        if let Some(id) = store.on_beat(prompt::latest_decision) {
            begun.set_value(true);
            asking.choose_decision(store, id);
        }
    });
}

/// `ID/RANK:BLOCK_HASH`.
fn parse_prefix(text: &str) -> Option<(Worker, BlockHash)> {
    let (worker, block) = text.rsplit_once(':')?;
    let (id, rank) = worker.split_once('/').unwrap_or((worker, "0"));
    Some((Worker::new(id.parse().ok()?, rank.parse().ok()?), BlockHash(block.parse().ok()?)))
}
