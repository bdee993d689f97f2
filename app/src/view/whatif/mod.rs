//! What-if: a request put to the live state, or to a state that is retained, under settings and in a cluster of the reader's
//! choice, answered in the page by the same code as `POST /api/v1/score`.

mod asking;
mod fetch;
mod field;
mod fleet;
pub(super) mod help;
mod prompt;
mod response;
mod settings;

use leptos::prelude::*;
use radixscope_model::id::Millis;
use radixscope_panels::whatif::{self, InputFault, MomentText, Wanted};

use self::asking::QueryState;
use self::response::{OfflineReplay, ResponseView};
use crate::store::{Store, now_ms, zone};
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
    let moment = Memo::new(move |_| {
        let at_ms =
            || offline.with_value(|offline| offline.as_ref().map_or(Millis(0), |offline| offline.at_ms));
        let fixed = offline_seq.get().map(|seq| (at_ms(), seq));
        MomentText::of(fixed, store.at.get(), zone())
    });
    let is_fixed = move || moment.with(|moment| moment.is_fixed);
    view! {
        <span class="moment" class:frozen=is_fixed data-testid="whatif-moment">{move || moment.with(|moment| moment.state.clone())}</span>
        <button type="button" class="plain" on:click=toggle aria-pressed=move || is_fixed().to_string() data-testid="whatif-freeze">
            {move || moment.with(|moment| moment.button)}
        </button>
    }
}

/// Takes what the address asks about, now and whenever it changes; else the latest decision, as soon as there is one.
fn begin(store: Store, asking: QueryState) {
    let wanted = Memo::new(move |_| store.address.with(Wanted::of));
    let begun = StoredValue::new(false);
    Effect::new(move |before: Option<Option<Wanted>>| {
        if !store.ready() {
            return None;
        }
        let wanted = wanted.get();
        if before.as_ref() != Some(&wanted) {
            match &wanted {
                None => {}
                Some(Wanted::Decision(id)) => asking.choose_decision(store, *id),
                Some(Wanted::Prefix(worker, block)) => {
                    asking.use_deployed(store);
                    asking.choose_prefix(*worker, *block);
                }
                Some(Wanted::Example) => asking.use_example(),
            }
            begun.update_value(|begun| *begun |= wanted.is_some());
        }
        wanted
    });
    Effect::new(move |_| {
        if begun.get_value() {
            return;
        }
        if let Some(id) = store.on_beat(whatif::latest) {
            begun.set_value(true);
            asking.choose_decision(store, id);
        }
    });
}
