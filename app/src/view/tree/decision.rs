//! The open decision beside the tree: as text, with every candidate's depth and cost, and the way to the next one.

use leptos::prelude::*;
use radixscope_icicle::camera::Goal;
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::palette::label;
use radixscope_model::id::DecisionId;
use radixscope_router::explain::Short;
use radixscope_state::cluster::DecisionEntry;

use super::state::TreeView;
use crate::format::{self, UNKNOWN};
use crate::store::ViewContext;
use crate::url::Panel;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::ledger::ON_PARTIAL_TREE;

/// Candidates listed at most: the cheapest.
const CANDIDATES: usize = 24;

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
    let mut candidates = decided.decision.candidates.to_vec();
    candidates.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(a.worker.cmp(&b.worker)));
    let left_out = candidates.len().saturating_sub(CANDIDATES);
    let line = |c: radixscope_model::record::Candidate| {
        let is_chosen = c.worker == chosen;
        view! {
            <tr class:chosen=is_chosen data-testid="tree-candidate" data-worker=label(c.worker) data-depth=c.overlap_blocks>
                <th scope="row"><Chip store worker=c.worker/> {is_chosen.then_some(" chosen")}</th>
                <td>{format::count(c.overlap_blocks.into())}</td>
                <td>{Short((c.cost * 10.0).round() / 10.0).to_string()}</td>
            </tr>
        }
    };
    let table = (!candidates.is_empty()).then(|| {
        view! {
            <table class="copies-table">
                <thead><tr><th scope="col">"Worker"</th><th scope="col">"Cached, blocks"</th><th scope="col">"Cost, blocks"</th></tr></thead>
                <tbody>{candidates.into_iter().take(CANDIDATES).map(line).collect_view()}</tbody>
            </table>
        }
    });
    let more = (left_out > 0)
        .then(|| format!("{} with a higher cost are under Decisions.", format::count(left_out as u64)));
    let prompt = decided
        .decision
        .isl_blocks
        .map_or(UNKNOWN.to_owned(), |blocks| format::plural(blocks, "block", "blocks"));
    let head = format!(
        "#{id}, prompt of {prompt}{}",
        decided.decision.request_id.as_ref().map_or(String::new(), |request| format!(", request {request}"))
    );
    let cost_gap = format!("{} {}", label(chosen), decided.cost_gap_text(label));
    let to_ledger =
        move |_| store.address.update(|address| *address = address.with_decision(Panel::Decisions, id));
    view! {
        <h3 class="side-title" data-testid="decision-head">{head}</h3>
        <p class="caption" role="status" data-testid="painted">{move || match tree.choice.get() {
            choice if choice.table => "The table shows no path: choose Icicle to see it.".to_owned(),
            choice if choice.lanes => "Lanes show no path: choose Icicle to see it.".to_owned(),
            _ => tree.painted.description.get(),
        }}</p>
        <p class="side-margin" data-testid="decision-margin">{cost_gap}</p>
        <p class="caption">{decided.why(label)}</p>
        {is_partial.then(|| view! { <p class="partial-note" data-testid="decision-partial">{ON_PARTIAL_TREE}</p> })}
        {table}
        {more.map(|more| view! { <p class="caption">{more}</p> })}
        <p class="side-actions"><button class="plain" on:click=to_ledger>"Open in Decisions"</button></p>
    }
}
