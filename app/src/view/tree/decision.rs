//! The open decision beside the tree: as text, with its candidates over the same prompt, and the way to the next one.

use leptos::prelude::*;
use radixscope_export::panel::duel::{Duel, DuelLane};
use radixscope_icicle::camera::Goal;
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::palette::{label, token};
use radixscope_model::id::DecisionId;
use radixscope_router::explain::Short;
use radixscope_state::cluster::DecisionEntry;

use super::state::TreeView;
use crate::format::{self, UNKNOWN};
use crate::store::{Store, ViewContext};
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
        let other = store.peek(|shown| {
            let end = shown.decisions().get(id)?.decision.path?;
            shown.pool_of(end.worker).filter(|&pool| pool != shown.pool && shown.only.is_none())
        });
        if let Some(pool) = other {
            return store.show_pool(pool);
        }
        let end = store.look(|cluster, _| end_of(cluster, id));
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

/// The last block of a decision's path that is still there.
fn end_of(cluster: &ViewContext<'_>, id: DecisionId) -> Option<Crumb> {
    let (tree, path) = (cluster.live_tree(), cluster.decisions().get(id)?.decision.path?);
    let slot = cluster.slot(path.worker)?;
    let node = tree.find(slot, path.block_hash).filter(|&node| tree.is_attached(node))?;
    Some(Crumb::at(tree, node, tree.position(node)))
}

/// Which way from the open decision.
#[derive(Clone, Copy)]
enum DecisionStep {
    Older,
    Newer,
    Latest,
}

/// The next decision in this direction that names blocks of the pool drawn.
fn next(cluster: &ViewContext<'_>, from: Option<DecisionId>, step: DecisionStep) -> Option<DecisionId> {
    let has_path = |d: &&DecisionEntry| {
        d.decision.path.is_some_and(|end| cluster.pool_of(end.worker) == Some(cluster.pool))
    };
    let mut paths = cluster.decisions().newest_first().filter(has_path).map(|d| d.decision.id);
    match (step, from) {
        (DecisionStep::Latest, _) | (_, None) => paths.next(),
        (DecisionStep::Older, Some(from)) => paths.find(|&id| id < from),
        (DecisionStep::Newer, Some(from)) => paths.rev().find(|&id| id > from),
    }
}

/// The tab.
#[component]
pub(super) fn DecisionOnTree(tree: TreeView) -> impl IntoView {
    let store = tree.store;
    let open = Memo::new(move |_| store.address.with(|address| address.decision));
    let button = move |step: DecisionStep, name: &'static str, id: &'static str, title: &'static str| {
        let to = Memo::new(move |_| {
            let from = open.get();
            store.on_beat(|cluster| next(cluster, from, step)).filter(|&id| Some(id) != from)
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
                <p class="caption" data-testid="decision-none">"No decision is open. Open the latest one with a known prompt here, any other one in Decisions or by search. Its path is outlined, with a bracket where each candidate's cached part ends."</p>
            },
            (Some(id), None) => {
                let text = format!("Decision {id} is no longer retained, or was not received yet.");
                view! { <p class="caption" data-testid="decision-none">{text}</p> }
            }
            (Some(_), Some(decided)) => view! { <One tree decided/> },
        }}
    }
}

#[component]
fn One(tree: TreeView, decided: DecisionEntry) -> impl IntoView {
    let store = tree.store;
    let id = decided.decision.id;
    let (chosen, is_partial) = (decided.decision.worker, decided.partial);
    let duel = Duel::of(&decided);
    let left_out = duel.as_ref().map_or(0, |duel| duel.left_out);
    let duel = duel.map(|duel| view! { <Lanes store duel/> });
    let more = (left_out > 0)
        .then(|| format!("{} with a higher cost are under Decisions.", format::count(left_out as u64)));
    let prompt = decided
        .decision
        .isl_blocks
        .map_or(UNKNOWN.to_owned(), |blocks| format::plural(blocks, "block", "blocks"));
    let head = format!("#{id}, prompt of {prompt}");
    let request = decided.decision.request_id.as_ref().map(|request| format!("Request {request}"));
    let cost_gap = format!("{} {}", label(chosen), decided.cost_gap_text(label));
    let to_ledger =
        move |_| store.address.update(|address| *address = address.with_decision(Panel::Decisions, id));
    view! {
        <h3 class="side-title" data-testid="decision-head">{head}</h3>
        <p class="side-margin" data-testid="decision-margin">{cost_gap}</p>
        {duel}
        {more.map(|more| view! { <p class="caption">{more}</p> })}
        <p class="caption" data-testid="decision-why">{decided.why(label)}</p>
        {is_partial.then(|| view! { <p class="partial-note" data-testid="decision-partial">{ON_PARTIAL_TREE}</p> })}
        <p class="caption" role="status" data-testid="painted">{move || match tree.choice.get() {
            choice if choice.table => "The table shows no path: choose Icicle to see it.".to_owned(),
            choice if choice.lanes => "Lanes show no path: choose Icicle to see it.".to_owned(),
            _ => tree.painted.description.get(),
        }}</p>
        {request.map(|request| view! { <p class="caption duel-request">{request}</p> })}
        <p class="side-actions"><button class="plain" on:click=to_ledger>"Open in Decisions"</button></p>
    }
}

/// Every candidate over the same prompt: what it had cached, what it would have computed, its load; the winner first.
#[component]
fn Lanes(store: Store, duel: Duel) -> impl IntoView {
    let share = |part: f64, whole: f64| format::width(if whole > 0.0 { part / whole } else { 0.0 });
    let prompt = duel.prompt;
    let lane = |lane: DuelLane| {
        let DuelLane { worker, device, lower, computed, load, cost, beyond_chosen, is_chosen, sum } = lane;
        let part = |class: &'static str, blocks: u64| {
            let width = share(blocks as f64, prompt as f64);
            (blocks > 0).then(|| view! { <i class=class style=format!("width:{width}")></i> })
        };
        let parts = [part("device", device), part("lower", lower), part("computed", computed.unwrap_or(0))];
        let colour = move || format!("--c:var({})", token(worker.slot(), store.worker_slots()));
        let beyond = (!is_chosen).then(|| {
            let sign = if beyond_chosen < 0.0 { '−' } else { '+' };
            format!(" {sign}{}", Short(tenth(beyond_chosen.abs())))
        });
        let lower_text = (lower > 0).then(|| format!("+{}", format::count(lower)));
        let computed_text = computed.map_or(UNKNOWN.to_owned(), format::count);
        view! {
            <tr class:chosen=is_chosen style=move || colour() data-testid="tree-candidate" data-worker=label(worker) data-depth=device.to_string()
                data-computed=computed.map(|blocks| blocks.to_string()) data-load=load.to_string() data-cost=cost.to_string()>
                <th scope="row"><Chip store worker/> {is_chosen.then(|| view! { <span class="mark-word chosen">"wins"</span> })}</th>
                <td class="duel-picture" aria-hidden="true">
                    <span class="duel-prompt">{parts}</span>
                    <span class="duel-load"><i style=format!("width:{}", share(load, duel.most_load))></i></span>
                </td>
                <td><i class="duel-key device" aria-hidden="true"></i>{format::count(device)}{lower_text}" cached"</td>
                <td><i class="duel-key computed" aria-hidden="true"></i>{computed_text}" computed"</td>
                <td><i class="duel-key load" aria-hidden="true"></i>{Short(tenth(load)).to_string()}" load"</td>
                <td class="duel-cost" title=sum><b>{Short(tenth(cost)).to_string()}</b>{beyond}</td>
            </tr>
        }
    };
    let lanes = duel.lanes.into_iter().map(lane).collect_view();
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

/// With one decimal.
fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
