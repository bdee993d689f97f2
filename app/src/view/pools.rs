//! The pools: which of them every panel shows, and what a named one is called.

use leptos::prelude::*;
use radixscope_panels::pools::{self, PoolOption, TreePool};

use crate::store::Store;
use crate::view::control::view;
use crate::view_context::PoolQuery;

/// Chooses the pool that every panel shows. Only where there are several.
#[component]
pub(super) fn PoolSwitch(store: Store) -> impl IntoView {
    let options = Memo::new(move |_| {
        let only = store.pools.get().only;
        store.labels.with(|labels| pools::options(labels, only))
    });
    let is_choice = Memo::new(move |_| options.with(|all| !all.is_empty()));
    let chosen = Memo::new(move |_| {
        options.with(|all| all.iter().find(|option| option.is_chosen).map(|option| option.name.clone()))
    });
    let choose = move |event| {
        let pools = pools::chosen(event_target_value(&event));
        store.address.update(|address| address.pools = pools);
    };
    // Options stay the same elements when another one is chosen.
    let names = Memo::new(move |_| {
        let name = |option: PoolOption| (option.name, option.text);
        options.get().into_iter().map(name).collect::<Vec<_>>()
    });
    let option = move |(name, text): (String, String)| {
        let key = name.clone();
        let is_it = move || chosen.with(|chosen| chosen.as_ref() == Some(&key));
        view! { <option value=name title=text.clone() selected=is_it>{text.clone()}</option> }
    };
    view! {
        <Show when=move || is_choice.get()>
            <label class="pool-switch">
                <span>"Pool"</span>
                <select data-testid="pool-switch" on:change=choose prop:value=move || chosen.get().unwrap_or_default()
                    title="Workers of one component of one namespace: those that a router chooses among. Every panel shows the selected pool">
                    <option value="" selected=move || chosen.with(Option::is_none)>"All pools"</option>
                    {move || names.get().into_iter().map(option).collect_view()}
                </select>
            </label>
        </Show>
    }
}

/// In the tree's heading: whose tree is drawn, and the way to the others with how much of theirs is shared.
#[component]
pub(super) fn TreePools(store: Store) -> impl IntoView {
    let all =
        Memo::new(move |_| store.labels.with(|labels| store.on_beat(|shown| TreePool::all(shown, labels))));
    // What is shared changes all the time; the elements stay.
    let ordered = Memo::new(move |_| {
        let without_figures = |of: TreePool| TreePool { shared: of.shared.map(|_| String::new()), ..of };
        all.get().into_iter().map(without_figures).collect::<Vec<_>>()
    });
    let one = move |TreePool { pool, name, title, shared }: TreePool| {
        if shared.is_none() {
            return view! { <b title=title data-testid="tree-pool">{name}</b> };
        }
        let shared =
            move || all.with(|all| all.iter().find(|of| of.pool == pool).and_then(|of| of.shared.clone()));
        view! {
            <button class="plain" title=format!("Show the tree of {title}") data-testid="tree-pool-other"
                on:click=move |_| store.show_pool(pool)>
                {name} " " <span class="quiet">{shared}</span>
            </button>
        }
    };
    view! {
        <Show when=move || ordered.with(|all| !all.is_empty())>
            <span class="tree-pools" role="group" aria-label="Pool whose tree is drawn" data-testid="tree-pools">
                {move || ordered.get().into_iter().map(one).collect_view()}
            </span>
        </Show>
    }
}

/// What stands in the address and no pool has, as text.
pub(super) fn unknown_pool(store: Store) -> Option<String> {
    let query = store.address.with(|address| address.pools.clone());
    if !store.ready() || query == PoolQuery::default() {
        return None;
    }
    store.on_beat(|shown| pools::unknown(shown, &query))
}
