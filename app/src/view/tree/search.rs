//! One field that finds a block, a worker or a decision by what the reader has at hand. What a text may mean and what the
//! state has of it is core's; this shows it and goes there.

use std::time::Duration;

use leptos::html;
use leptos::prelude::*;
use radixscope_panels::tree::{SearchKey, SearchResult, SearchResults, Way};
use web_sys::KeyboardEvent;

use super::state::TreeView;
use crate::keys;
use crate::view::control::view;

/// How long a text must stand before it is looked for: a tokens hash is looked for in the whole tree.
const REST: Duration = Duration::from_millis(150);
/// Id of the field, for the key that moves the focus there.
const FIELD: &str = "tree-search";

/// The field and its list.
#[component]
pub(super) fn Search(tree: TreeView) -> impl IntoView {
    let store = tree.store;
    let field = NodeRef::<html::Input>::new();
    let text = RwSignal::new(String::new());
    let results = RwSignal::new(None::<SearchResults>);
    let at = RwSignal::new(0usize);
    let is_open = RwSignal::new(false);
    let waiting = StoredValue::new(None::<TimeoutHandle>);
    let look_from = move |from: usize| {
        if let Some(timer) = waiting.try_update_value(Option::take).flatten() {
            timer.clear();
        }
        let now = text.get_untracked();
        let found =
            (!now.trim().is_empty()).then(|| store.peek(|cluster| SearchResults::of(cluster, &now, from)));
        let pool = store.pools.get_untracked().pool;
        tree.found.set(found.as_ref().map(|found| found.blocks(pool)).unwrap_or_default());
        tree.redraw_soon();
        at.set(0);
        results.set(found);
    };
    let look = move || look_from(0);
    let beside = move |is_next| results.with_untracked(|results| results.as_ref()?.beside(is_next));
    let turn = move |is_next| beside(is_next).map(look_from).is_some();
    let typed = move |event| {
        text.set(event_target_value(&event));
        is_open.set(true);
        if let Some(timer) = waiting.try_update_value(Option::take).flatten() {
            timer.clear();
        }
        waiting.set_value(set_timeout_with_handle(look, REST).ok());
    };
    on_cleanup(move || {
        if let Some(timer) = waiting.try_update_value(Option::take).flatten() {
            timer.clear();
        }
    });
    let go = move |way: Way| {
        match way {
            Way::Block(pool, crumb) => tree.go_in(pool, crumb),
            // Picking twice lets go, and who searches wants it picked.
            Way::Worker(ix)
                if store.address.with_untracked(|a| a.worker)
                    != store.peek(|c| c.worker(ix).map(|w| w.id)) =>
            {
                if let Some(pool) = store.peek(|shown| shown.pool_of(ix).filter(|&pool| !shown.has(pool))) {
                    store.show_pool(pool);
                }
                store.pick(ix);
            }
            Way::Worker(_) => {}
            Way::Decision(id) => store.address.update(|address| address.decision = Some(id)),
            Way::Nowhere => return,
        }
        is_open.set(false);
    };
    let key = move |event: KeyboardEvent| {
        let key = results.with_untracked(|results| {
            SearchKey::of(event.key().as_str(), results.as_ref(), at.get_untracked(), is_open.get_untracked())
        });
        match key {
            None => return,
            Some(SearchKey::Mark(to)) => {
                at.set(to);
                is_open.set(true);
            }
            Some(SearchKey::Open) => is_open.set(true),
            Some(SearchKey::Turn { is_next, marks_last }) => {
                if turn(is_next) && marks_last {
                    let lines = results.with_untracked(|a| a.as_ref().map_or(0, |a| a.lines.len()));
                    at.set(lines.saturating_sub(1));
                }
            }
            Some(SearchKey::Go) => {
                let is_fresh = results
                    .with_untracked(|a| a.as_ref().is_some_and(|a| a.text == text.get_untracked().trim()));
                if !is_fresh {
                    look();
                }
                is_open.set(true);
                let way = results
                    .with_untracked(|a| a.as_ref()?.lines.get(at.get_untracked()).map(|line| line.way));
                way.into_iter().for_each(go);
            }
            Some(SearchKey::Close) => is_open.set(false),
            Some(SearchKey::Leave) => {
                text.set(String::new());
                look();
                keys::focus("tree");
            }
        }
        event.prevent_default();
        event.stop_propagation();
    };
    let handle = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "/" && !keys::is_elsewhere(&event) {
            keys::focus(FIELD);
            event.prevent_default();
        }
    });
    on_cleanup(move || handle.remove());
    let is_shown = Memo::new(move |_| is_open.get() && results.with(Option::is_some));
    let active = move || {
        (is_shown.get() && results.with(|a| a.as_ref().is_some_and(|a| !a.lines.is_empty())))
            .then(|| format!("found-{}", at.get()))
    };
    view! {
        <div class="search" role="search">
            <input id=FIELD node_ref=field type="search" class="search-field" data-testid="tree-search" spellcheck="false" autocomplete="off"
                placeholder="Search  /" title="Block hash or tokens hash (decimal, signed or 0x…) or four digits of one, worker (W3, id, id/rank), #decision, request id"
                aria-label="Search the tree: block hash, tokens hash, worker, decision or request id"
                role="combobox" aria-expanded=move || is_shown.get().to_string() aria-controls="found" aria-autocomplete="list"
                aria-activedescendant=move || active()
                prop:value=text on:input=typed on:keydown=key
                on:focus=move |_| is_open.set(true) on:blur=move |_| is_open.set(false)/>
            <div class="found-list" class:shown=move || is_shown.get()>
                <p class="caption" role="status" data-testid="found-summary">{move || results.with(|a| a.as_ref().map(SearchResults::summary))}</p>
                <p class="found-turn" class:shown=move || results.with(|a| a.as_ref().is_some_and(SearchResults::is_part))>
                    {[(false, "found-previous", "Previous"), (true, "found-next", "Next")].map(|(is_next, id, name)| view! {
                        <button type="button" class="plain" tabindex="-1" data-testid=id
                            disabled=move || results.with(|a| a.as_ref().and_then(|a| a.beside(is_next)).is_none())
                            on:mousedown=|event| event.prevent_default() on:click=move |_| { turn(is_next); }>{name}</button>
                    })}
                </p>
                <div id="found" role="listbox" aria-label="Found">
                    {move || results.with(|a| a.as_ref().map(|a| groups(a, at, go)))}
                </div>
            </div>
        </div>
    }
}

/// The results, those of a kind together.
fn groups(
    results: &SearchResults,
    at: RwSignal<usize>,
    go: impl Fn(Way) + Copy + Send + Sync + 'static,
) -> AnyView {
    let option = move |(i, line): (usize, SearchResult)| {
        let way = line.way;
        // Pressing must not take the focus from the field, or the list would close before the click.
        view! {
            <div role="option" id=format!("found-{i}") class="found-line" data-testid="found"
                aria-selected=move || (at.get() == i).to_string() aria-disabled=(way == Way::Nowhere).then_some("true")
                on:mousedown=|event| event.prevent_default() on:mousemove=move |_| if at.get_untracked() != i { at.set(i) }
                on:click=move |_| go(way)>
                <b>{line.main}</b> " " <span class="quiet">{line.more}</span>
            </div>
        }
    };
    let group = |(name, lines): (&'static str, Vec<(usize, &SearchResult)>)| {
        let lines = lines.into_iter().map(|(i, line)| option((i, line.clone()))).collect_view();
        view! {
            <div role="group" aria-label=name>
                <p class="found-group" aria-hidden="true">{name}</p>
                {lines}
            </div>
        }
    };
    results.groups().into_iter().map(group).collect_view().into_any()
}
