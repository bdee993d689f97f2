//! How the cluster differs: workers left out, made busier, added.

use leptos::prelude::*;
use radixscope_insight::whatif::{Adjustment, Busy, CandidateRef, MAX_ADDED, WorkerChanges};
use radixscope_router::{Formula, example};

use super::asking::{InputFault, Mode, QueryState, more};
use super::field::FaultOf;
use super::response::name;
use crate::store::{Store, ViewContext};
use crate::view::chip::Chip;
use crate::view::control::view;

/// Workers listed: more could not be worked with by hand.
const LISTED: usize = 64;

/// What of a load is changed.
#[derive(Clone, Copy)]
enum LoadPart {
    Prefill,
    Decode,
    Requests,
}

impl LoadPart {
    fn of(self, busy: &Busy) -> i64 {
        let adjust = match self {
            LoadPart::Prefill => busy.prefill_tokens,
            LoadPart::Decode => busy.decode_blocks,
            LoadPart::Requests => busy.active_requests,
        };
        match adjust {
            Adjustment::Add(by) => by,
            Adjustment::Keep | Adjustment::Set(_) => 0,
        }
    }

    fn set(self, busy: &mut Busy, by: i64) {
        let part = match self {
            LoadPart::Prefill => &mut busy.prefill_tokens,
            LoadPart::Decode => &mut busy.decode_blocks,
            LoadPart::Requests => &mut busy.active_requests,
        };
        *part = more(by);
    }
}

#[component]
pub(super) fn Fleet(store: Store, asking: QueryState, fault: Memo<Option<InputFault>>) -> impl IntoView {
    let workers = Memo::new(move |_| {
        store.on_beat(|shown| {
            let pool = asking.pool(shown);
            ViewContext { pool, ..*shown }.drawn_workers().collect::<Vec<_>>()
        })
    });
    let listed = Memo::new(move |_| {
        if asking.mode.get() == Mode::Example {
            return (0..example::COSTS.len() as u32).map(CandidateRef::Example).collect::<Vec<_>>();
        }
        let added = asking.changes.with(|changes| changes.added);
        workers
            .get()
            .into_iter()
            .take(LISTED)
            .map(CandidateRef::Worker)
            .chain((0..added).map(CandidateRef::Added))
            .collect()
    });
    let counts_requests =
        Memo::new(move |_| asking.options.with(|o| matches!(o.formula, Formula::D | Formula::E)));
    let added = Memo::new(move |_| asking.changes.with(|changes| changes.added));
    let is_changed = Memo::new(move |_| asking.changes.with(|changes| *changes != WorkerChanges::default()));
    let unlisted = move || workers.with(Vec::len).saturating_sub(LISTED);
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
                    <For each=move || listed.get() key=|who| *who let:who>
                        <Row store asking who counts_requests/>
                    </For>
                </tbody>
            </table>
            <Show when=move || unlisted() != 0>
                <p class="quiet">{move || format!("{} more workers are weighed but not listed", unlisted())}</p>
            </Show>
            <FaultOf fault fields=&["workers"]/>
            <div class="row buttons">
                <button class="plain" data-testid="whatif-add" disabled=move || added.get() == MAX_ADDED
                    on:click=move |_| asking.changes.update(|c| c.added = (c.added + 1).min(MAX_ADDED))>"Add an idle worker"</button>
                <button class="plain" data-testid="whatif-remove" disabled=move || added.get() == 0
                    on:click=move |_| asking.changes.update(|c| c.added = c.added.saturating_sub(1))>"Remove one"</button>
                <button class="plain" data-testid="whatif-as-is" disabled=move || !is_changed.get()
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
    let is_out = move || asking.changes.with(|changes| changes.left_out.contains(&who));
    let leave = move |event| {
        let is_out = event_target_checked(&event);
        asking.changes.update(|changes| {
            changes.left_out.retain(|other| *other != who);
            if is_out {
                changes.left_out.push(who);
            }
        });
    };
    let number = move |part: LoadPart, what: &str, step: &'static str| {
        let set = move |event| {
            let by = event_target_value(&event).trim().parse().unwrap_or(0);
            asking.set_busy(who, |busy| part.set(busy, by));
        };
        view! {
            <input type="number" step=step prop:value=move || part.of(&asking.busy(who)).to_string()
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
