//! How the cluster differs: workers left out, made busier, added.

use leptos::prelude::*;
use radixscope_insight::whatif::{CandidateRef, MAX_ADDED, WorkerChanges};
use radixscope_panels::whatif::{
    FleetTable, InputFault, LoadPart, busy, exclude, is_excluded, name, pool, set_busy,
};

use super::asking::QueryState;
use super::field::FaultOf;
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;

#[component]
pub(super) fn Fleet(store: Store, asking: QueryState, fault: Memo<Option<InputFault>>) -> impl IntoView {
    let workers = Memo::new(move |_| {
        let (mode, decision) = (asking.mode.get(), asking.decision.get());
        store.on_beat(|shown| FleetTable::workers(shown, pool(shown, mode, &decision)))
    });
    let table = Memo::new(move |_| {
        let (mode, formula) = (asking.mode.get(), asking.options.with(|options| options.formula));
        workers.with(|workers| asking.changes.with(|changes| FleetTable::of(workers, mode, formula, changes)))
    });
    let is = move |part: fn(&FleetTable) -> bool| Memo::new(move |_| table.with(part));
    let counts_requests = is(|table| table.counts_requests);
    let (can_add, can_remove, can_reset) =
        (is(|table| table.can_add), is(|table| table.can_remove), is(|table| table.can_reset));
    let unlisted = Memo::new(move |_| table.with(|table| table.unlisted.clone()));
    view! {
        <fieldset class="fleet">
            <legend>"Workers"</legend>
            <table data-testid="whatif-fleet">
                <thead><tr>
                    <th scope="col">"Worker"</th>
                    <th scope="col">"Exclude"</th>
                    <th scope="col" title="Prompt tokens queued there, more or less than now">"± queued tokens"</th>
                    <th scope="col" title="Blocks in use there, more or less than now">"± blocks in use"</th>
                    <Show when=move || counts_requests.get()><th scope="col">"± requests"</th></Show>
                </tr></thead>
                <tbody>
                    <For each=move || table.with(|table| table.listed.clone()) key=|who| *who let:who>
                        <Row store asking who counts_requests/>
                    </For>
                </tbody>
            </table>
            {move || unlisted.get().map(|text| view! { <p class="quiet">{text}</p> })}
            <FaultOf fault fields=&["workers"]/>
            <div class="row buttons">
                <button class="plain" data-testid="whatif-add" disabled=move || !can_add.get()
                    on:click=move |_| asking.changes.update(|c| c.added = (c.added + 1).min(MAX_ADDED))>"Add an idle worker"</button>
                <button class="plain" data-testid="whatif-remove" disabled=move || !can_remove.get()
                    on:click=move |_| asking.changes.update(|c| c.added = c.added.saturating_sub(1))>"Remove one"</button>
                <button class="plain" data-testid="whatif-as-is" disabled=move || !can_reset.get()
                    on:click=move |_| asking.changes.set(WorkerChanges::default())>"Reset"</button>
            </div>
        </fieldset>
    }
}

#[component]
fn Row(store: Store, asking: QueryState, who: CandidateRef, counts_requests: Memo<bool>) -> impl IntoView {
    let called = name(who);
    let chip = match who {
        CandidateRef::Worker(worker) => view! { <Chip store worker/> },
        CandidateRef::Added(_) | CandidateRef::Example(_) => {
            view! { <span class="chip">{called.clone()}</span> }
        }
    };
    let is_out = move || asking.changes.with(|changes| is_excluded(changes, who));
    let leave = move |event| {
        let is_out = event_target_checked(&event);
        asking.changes.update(|changes| exclude(changes, who, is_out));
    };
    let number = move |part: LoadPart, what: &str, step: &'static str| {
        let set = move |event| {
            let typed = event_target_value(&event);
            asking.changes.update(|changes| set_busy(changes, who, part, &typed));
        };
        let value = move || asking.changes.with(|changes| part.of(&busy(changes, who)).to_string());
        view! {
            <input type="number" step=step prop:value=move || value()
                aria-label=format!("{called}: {what}, more or less") on:change=set/>
        }
    };
    let prefill = number(LoadPart::Prefill, "queued prompt tokens", "500");
    let decode = number(LoadPart::Decode, "blocks in use", "10");
    let requests = move || {
        counts_requests.get().then(|| view! { <td>{number(LoadPart::Requests, "active requests", "1")}</td> })
    };
    view! {
        <tr class:out=move || is_out() data-name=name(who)>
            <th scope="row">{chip}</th>
            <td><input type="checkbox" prop:checked=move || is_out() on:change=leave aria-label=format!("Exclude {}", name(who))/></td>
            <td>{prefill}</td>
            <td>{decode}</td>
            {move || requests()}
        </tr>
    }
}
