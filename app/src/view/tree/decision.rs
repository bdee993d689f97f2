//! The open decision beside the tree: as text, with its candidates over the same prompt, and the way to the next one.

use leptos::prelude::*;
use radixscope_icicle::camera::Goal;
use radixscope_icicle::palette::{label, token};
use radixscope_model::id::DecisionId;
use radixscope_panels::tree::{
    CandidateLane, DecisionStep, LaneTable, NONE_OPEN, OpenDecision, end_of_path, gone_text, next_with_path,
    path_note, pool_to_show,
};
use radixscope_state::cluster::DecisionEntry;

use super::state::TreeView;
use crate::store::Store;
use crate::url::Panel;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::ledger::ON_PARTIAL_TREE;

/// Moves the camera to the path of a decision when it is opened.
pub(super) fn follow(tree: TreeView) {
    let store = tree.store;
    let open = Memo::new(move |_| store.address.with(|address| address.decision));
    let seen = StoredValue::new(None::<DecisionId>);
    Effect::new(move |_| {
        let Some(id) = open.get() else {
            seen.set_value(None);
            return;
        };
        // The state or its forest may not be there yet.
        store.on_beat(|_| ());
        if seen.get_value() == Some(id) {
            return;
        }
        let other = store.peek(|shown| pool_to_show(shown, id));
        if let Some(pool) = other {
            return store.show_pool(pool);
        }
        let end = store.look(|shown, _| end_of_path(shown, id));
        if let Some(end) = end.filter(|_| store.ready()) {
            seen.set_value(Some(id));
            if let Some(crumb) = end {
                store.renew_tree();
                tree.selected.set(Some(crumb));
                tree.look_at(Goal::Path(crumb));
            }
        }
    });
}

/// The tab.
#[component]
pub(super) fn DecisionOnTree(tree: TreeView) -> impl IntoView {
    let store = tree.store;
    let open = Memo::new(move |_| store.address.with(|address| address.decision));
    let button = move |step: DecisionStep, name: &'static str, id: &'static str, title: &'static str| {
        let to = Memo::new(move |_| {
            let from = open.get();
            store.on_beat(|shown| next_with_path(shown, from, step))
        });
        let go = move |_| {
            if let Some(to) = to.get_untracked() {
                store.address.update(|address| address.decision = Some(to));
            }
        };
        view! { <button class="plain" data-testid=id title=title disabled=move || to.get().is_none() on:click=go>{name}</button> }
    };
    let decided = Memo::new(move |_| {
        let id = open.get()?;
        store.on_beat(|cluster| cluster.decisions().get(id).cloned())
    });
    view! {
        <p class="side-actions" role="group" aria-label="Latest decisions with a path">
            {button(DecisionStep::Older, "‹ Older", "decision-older", "The decision before it that names blocks")}
            {button(DecisionStep::Newer, "Newer ›", "decision-newer", "The next decision that names blocks")}
            {button(DecisionStep::Latest, "Latest", "decision-latest", "The latest decision that names blocks")}
            <Show when=move || open.get().is_some()>
                <button class="plain" data-testid="painted-close" on:click=move |_| store.address.update(|address| address.decision = None)>"Hide"</button>
            </Show>
        </p>
        {move || match (open.get(), decided.get()) {
            (None, _) => view! {
                <p class="caption" data-testid="decision-none">{NONE_OPEN}</p>
            },
            (Some(id), None) => {
                view! { <p class="caption" data-testid="decision-none">{gone_text(id)}</p> }
            }
            (Some(_), Some(decided)) => view! { <One tree decided/> },
        }}
    }
}

#[component]
fn One(tree: TreeView, decided: DecisionEntry) -> impl IntoView {
    let store = tree.store;
    let id = decided.decision.id;
    let OpenDecision { head, cost_gap, lanes, more, why, is_partial, request } = OpenDecision::of(&decided);
    let lanes = lanes.map(|lanes| view! { <Lanes store lanes/> });
    let note = move || {
        let choice = tree.choice.get();
        tree.painted.description.with(|description| path_note(&choice, description))
    };
    let to_ledger =
        move |_| store.address.update(|address| *address = address.with_decision(Panel::Decisions, id));
    view! {
        <h3 class="side-title" data-testid="decision-head">{head}</h3>
        <p class="side-margin" data-testid="decision-margin">{cost_gap}</p>
        {lanes}
        {more.map(|more| view! { <p class="caption">{more}</p> })}
        <p class="caption" data-testid="decision-why">{why}</p>
        {is_partial.then(|| view! { <p class="partial-note" data-testid="decision-partial">{ON_PARTIAL_TREE}</p> })}
        <p class="caption" role="status" data-testid="painted">{note}</p>
        {request.map(|request| view! { <p class="caption duel-request">{request}</p> })}
        <p class="side-actions"><button class="plain" on:click=to_ledger>"Open in Decisions"</button></p>
    }
}

/// Every candidate over the same prompt: what it had cached, what it would have computed, its load; the winner first.
#[component]
fn Lanes(store: Store, lanes: LaneTable) -> impl IntoView {
    let LaneTable { prompt, lanes } = lanes;
    let lane = |lane: CandidateLane| {
        let worker = lane.worker;
        let part = |(width, class): (Option<String>, &'static str)| {
            width.map(|width| view! { <i class=class style=format!("width:{width}")></i> })
        };
        let parts = lane.parts.into_iter().zip(["device", "lower", "computed"]).map(part).collect_view();
        let colour = move || format!("--c:var({})", token(worker.slot(), store.worker_slots()));
        let wins = lane.is_chosen.then(|| view! { <span class="mark-word chosen">"wins"</span> });
        view! {
            <tr class:chosen=lane.is_chosen style=move || colour() data-testid="tree-candidate" data-worker=label(worker) data-depth=lane.device.to_string()
                data-computed=lane.computed.map(|blocks| blocks.to_string()) data-load=lane.load.to_string() data-cost=lane.cost.to_string()>
                <th scope="row"><Chip store worker/> {wins}</th>
                <td class="duel-picture" aria-hidden="true">
                    <span class="duel-prompt">{parts}</span>
                    <span class="duel-load"><i style=format!("width:{}", lane.load_width)></i></span>
                </td>
                <td><i class="duel-key device" aria-hidden="true"></i>{lane.cached_text}" cached"</td>
                <td><i class="duel-key computed" aria-hidden="true"></i>{lane.computed_text}" computed"</td>
                <td><i class="duel-key load" aria-hidden="true"></i>{lane.load_text}" load"</td>
                <td class="duel-cost" title=lane.sum><b>{lane.cost_text}</b>{lane.beyond_text}</td>
            </tr>
        }
    };
    let lanes = lanes.into_iter().map(lane).collect_view();
    view! {
        <table class="duel" data-testid="duel" data-prompt=prompt.to_string()>
            <thead class="hidden"><tr>
                <th scope="col">"Worker"</th>
                <th scope="col">"Prompt"</th>
                <th scope="col">"Cached blocks"</th>
                <th scope="col">"Blocks to compute"</th>
                <th scope="col">"Blocks of active requests"</th>
                <th scope="col">"Cost, blocks"</th>
            </tr></thead>
            <tbody>{lanes}</tbody>
        </table>
    }
}
