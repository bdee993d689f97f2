//! The pools: which of them every panel shows, and what a named one is called.

use leptos::prelude::*;
use radixscope_insight::completeness::Trust;
use radixscope_model::id::PoolIx;

use crate::format;
use crate::store::Store;
use crate::view::control::view;
use crate::view_context::{PoolLabel, PoolQuery};

/// Chooses the pool that every panel shows. Only where there are several.
#[component]
pub(super) fn PoolSwitch(store: Store) -> impl IntoView {
    let labels = store.labels;
    let only = Memo::new(move |_| store.pools.get().only);
    let name = move || {
        let only = only.get();
        labels.with(|all| all.iter().find(|label| Some(label.pool) == only).map(|label| label.name.clone()))
    };
    let choose = move |event| {
        let chosen = event_target_value(&event);
        let pool = (!chosen.is_empty()).then_some(chosen);
        store.address.update(|address| address.pools = PoolQuery { pool, model: None });
    };
    let option = move |label: PoolLabel| {
        let is_it = move || only.get() == Some(label.pool);
        let text = label.to_text();
        view! { <option value=label.name title=text.clone() selected=move || is_it()>{text.clone()}</option> }
    };
    view! {
        <Show when=move || labels.with(|all| !all.is_empty())>
            <label class="pool-switch">
                <span>"Pool"</span>
                <select data-testid="pool-switch" on:change=choose prop:value=move || name().unwrap_or_default()
                    title="Workers of one component of one namespace: those that a router chooses among. Every panel shows the selected pool">
                    <option value="" selected=move || only.get().is_none()>"All pools"</option>
                    {move || labels.get().into_iter().map(option).collect_view()}
                </select>
            </label>
        </Show>
    }
}

/// In the tree's heading: whose tree is drawn, and the way to the others with how much of theirs is shared.
#[component]
pub(super) fn TreePools(store: Store) -> impl IntoView {
    let labels = store.labels;
    let drawn = Memo::new(move |_| store.pool());
    let shared = move |pool: PoolIx| {
        let (totals, trust) =
            store.on_beat(|shown| (shown.cluster.tree(pool).totals(), Trust::of(shown.cluster, pool)));
        match totals.nodes {
            _ if trust.withheld().is_some() => "incomplete".to_owned(),
            0 => "no block".to_owned(),
            nodes => format!("{} shared", format::percent(totals.shared as f64 / nodes as f64)),
        }
    };
    let one = move |label: PoolLabel| {
        let pool = label.pool;
        let title = label.to_text();
        if drawn.get() == pool {
            let text = format!("Pool {}", label.short);
            return view! { <b title=title data-testid="tree-pool">{text}</b> };
        }
        view! {
            <button class="plain" title=format!("Show the tree of {title}") data-testid="tree-pool-other"
                on:click=move |_| store.show_pool(pool)>
                {label.short} " " <span class="quiet">{move || shared(pool)}</span>
            </button>
        }
    };
    let ordered = move || {
        let mut all = labels.get();
        all.sort_by_key(|label| label.pool != drawn.get());
        all.into_iter().map(one).collect_view()
    };
    view! {
        <Show when=move || labels.with(|all| all.len() > 1)>
            <span class="tree-pools" role="group" aria-label="Pool whose tree is drawn" data-testid="tree-pools">{move || ordered()}</span>
        </Show>
    }
}

/// What stands in the address and no pool has, as text.
pub(super) fn unknown_pool(store: Store) -> Option<String> {
    let query = store.address.with(|address| address.pools.clone());
    if !store.ready() || query == PoolQuery::default() {
        return None;
    }
    store.on_beat(|shown| {
        // Before any worker is known every name is unknown.
        let known: Vec<String> =
            shown.pool_list().into_iter().filter_map(|at| Some(shown.pool(at)?.name())).collect();
        let (key, value) = query.find(shown.cluster).err().filter(|_| !known.is_empty())?;
        Some(format!(
            "{key}={value} in the address is invalid: there are the pools {}; all pools are shown",
            known.join(", ")
        ))
    })
}
