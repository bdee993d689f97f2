//! The response as it is shown: computed again for every touch of a field, and at a readable pace as the state changes.

use leptos::prelude::*;
use radixscope_insight::whatif::WhatIf;
use radixscope_model::id::Millis;
use radixscope_panels::whatif::{InputFault, Response, ResponseResult, respond};
use radixscope_state::cluster::Cluster;

use super::asking::QueryState;
use crate::store::{Store, ViewContext, now_ms};
use crate::view::control::view;
use crate::view::costs::{CostLegend, CostRows};

/// A state that was retained: the page's own goes on.
pub(super) struct OfflineReplay {
    pub cluster: Cluster,
    pub at_ms: Millis,
}

/// Asks whenever the question changes, and with `tick` as the state does. The last time it took is written to `took_us`.
pub(super) fn keep_current(
    store: Store,
    asking: QueryState,
    offline: StoredValue<Option<OfflineReplay>, LocalStorage>,
    offline_seq: RwSignal<Option<u64>>,
    tick: Memo<(bool, u64)>,
    took_us: RwSignal<u64>,
) -> Memo<ResponseResult> {
    let engine = StoredValue::new_local(WhatIf::default());
    Memo::new(move |_| {
        let start = now_ms();
        let is_offline = offline_seq.get().is_some();
        let ask = |cluster: &ViewContext<'_>, now: Millis| -> ResponseResult {
            let query = asking.query();
            let result = engine.try_update_value(|engine| respond(engine, cluster, now, query));
            result.unwrap_or_else(|| Err(InputFault::new("prompt", "The panel is closed")))
        };
        let result = if is_offline {
            let pools = store.pools.get();
            offline.with_value(|offline| {
                offline.as_ref().map(|offline| ask(&ViewContext::new(&offline.cluster, pools), offline.at_ms))
            })
        } else {
            None
        };
        let result = result.unwrap_or_else(|| {
            tick.track();
            let now = store.now_ms();
            store.peek(|cluster| ask(cluster, now))
        });
        let took = ((now_ms() - start) * 1_000.0).round() as u64;
        // After this run: a memo must not write while it is read.
        queue_microtask(move || {
            let _ = took_us.try_set(took);
        });
        result
    })
}

/// The right half of the panel.
#[component]
pub(super) fn ResponseView(
    store: Store,
    result: Memo<ResponseResult>,
    took_us: RwSignal<u64>,
) -> impl IntoView {
    let of = move |pick: fn(&Response) -> String| {
        Memo::new(move |_| result.with(|result| result.as_ref().map(pick).unwrap_or_default()))
    };
    let headline = of(|shown| shown.headline.clone());
    let cost_gap = of(|shown| shown.cost_gap.clone());
    let prompt = of(|shown| shown.prompt.clone());
    let more = of(|shown| shown.more.clone());
    let fault = Memo::new(move |_| result.with(|result| result.as_ref().err().cloned()));
    let versus =
        Memo::new(move |_| result.with(|result| result.as_ref().ok().and_then(|shown| shown.versus.clone())));
    let notes = Memo::new(move |_| {
        result.with(|result| result.as_ref().map(|t| t.notes.clone()).unwrap_or_default())
    });
    let partial = Memo::new(move |_| {
        result.with(|result| result.as_ref().ok().and_then(|shown| shown.partial.clone()))
    });
    let rows =
        Memo::new(move |_| result.with(|result| result.as_ref().map(|t| t.rows.clone()).unwrap_or_default()));
    view! {
        <section class="whatif-answer" aria-label="Result" data-testid="whatif-answer"
            data-took-us=move || took_us.get().to_string()>
            {move || fault.get().map(|fault| view! {
                <p class="whatif-none" role="status" data-testid="whatif-fault">{fault.message}</p>
            })}
            <Show when=move || fault.with(Option::is_none)>
                {move || partial.get().map(|why| view! { <p class="partial-note" data-testid="whatif-partial">{why}</p> })}
                <div class="verdict">
                    <p class="headline" role="status" aria-live="polite" data-testid="whatif-winner">{headline}</p>
                    <p class="quiet"><span data-testid="whatif-margin">{cost_gap}</span>" · "{prompt}</p>
                </div>
                {move || versus.get().map(|(sentence, changes_worker)| view! {
                    <p class="versus" class:flips=changes_worker data-testid="whatif-versus">
                        <b>{Response::versus_head(changes_worker)}</b>" "{sentence}
                    </p>
                })}
                <CostRows store rows/>
                <p class="quiet">{more}</p>
                <CostLegend ghost="cost as recorded"/>
                <Show when=move || notes.with(|notes| !notes.is_empty())>
                    <div class="whatif-notes" data-testid="whatif-notes">
                        <h3>"Assumptions"</h3>
                        <ul>{move || notes.get().into_iter().map(|note| view! { <li>{note}</li> }).collect_view()}</ul>
                    </div>
                </Show>
            </Show>
        </section>
    }
}
