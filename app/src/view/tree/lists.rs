//! Prefixes worth a look, the largest or the most used first. A line moves the camera to its prefix.

use leptos::prelude::*;
use radixscope_panels::tree::{EmptyList, LINES, LIST_HOLDERS, ListedBox, PrefixList, Ranked};

use super::side;
use super::state::TreeView;
use crate::store::now_ms;
use crate::view::control::view;
use crate::view::hint::HintList;
use crate::view_context::DrawnTree;

/// Shortest time between two computations: a list that moves faster cannot be clicked.
const PACE_MS: f64 = 1_000.0;

/// A list.
#[component]
pub(super) fn List(tree: TreeView, by: Ranked) -> impl IntoView {
    let store = tree.store;
    let most = RwSignal::new(LINES);
    let computed = StoredValue::new((f64::NEG_INFINITY, (0, DrawnTree::default())));
    let lines = Memo::new(move |before: Option<&PrefixList>| {
        let most = most.get();
        let wanted = (most, store.pools.get().drawn());
        store.on_beat(|_| ());
        let (at, what) = computed.get_value();
        match before {
            Some(before) if now_ms() - at < PACE_MS && what == wanted && !before.lines.is_empty() => {
                before.clone()
            }
            _ => {
                computed.set_value((now_ms(), wanted));
                store.look(|shown, forest| PrefixList::of(shown, forest, by, most)).unwrap_or_default()
            }
        }
    });
    let keys = Memo::new(move |_| {
        lines.with(|l| l.lines.iter().map(|line| (line.crumb.hash, line.crumb.tokens)).collect::<Vec<_>>())
    });
    let row = move |key| {
        let line = Memo::new(move |before: Option<&Option<ListedBox>>| {
            let now = lines
                .with(|l| l.lines.iter().find(|line| (line.crumb.hash, line.crumb.tokens) == key).cloned());
            now.or_else(|| before.cloned().flatten())
        });
        view! { <Row tree by line lines/> }
    };
    let is_empty = Memo::new(move |_| lines.with(|l| l.lines.is_empty()));
    let is_cut = Memo::new(move |_| lines.with(|list| list.can_grow(most.get())));
    let head = move || lines.with(|list| list.head(by));
    let list_id = if by == Ranked::Largest { "list-largest" } else { "list-hottest" };
    view! {
        <Show when=move || !is_empty.get() fallback=move || view! { <Nothing tree by lines/> }>
            <p class="caption">{move || head()}</p>
            <ol class="prefixes" data-testid=list_id>
                <For each=move || keys.get() key=|key| *key children=row/>
            </ol>
            <Show when=move || is_cut.get()>
                <button class="plain" data-testid="list-more" on:click=move |_| most.update(|n| *n += LINES)>"More"</button>
            </Show>
        </Show>
    }
}

#[component]
fn Row(tree: TreeView, by: Ranked, line: Memo<Option<ListedBox>>, lines: Memo<PrefixList>) -> impl IntoView {
    let store = tree.store;
    let go = move |_| {
        if let Some(line) = line.get_untracked() {
            tree.go_to(line.crumb);
        }
    };
    let text = move |of: fn(&PrefixList, Ranked, &ListedBox) -> String| {
        move || line.with(|line| line.as_ref().map(|line| lines.with(|lines| of(lines, by, line))))
    };
    let is_on = move || line.with(|line| line.as_ref().map(|line| line.crumb) == tree.selected.get());
    let owners = Memo::new(move |_| {
        line.with(|line| line.as_ref().map(|line| line.owners.clone())).unwrap_or_default()
    });
    let bar = move || text(PrefixList::bar)().unwrap_or_else(|| "--share:".to_owned());
    let hint = text(|_, _, line| line.title());
    view! {
        <li>
            <button class="prefix" data-testid="prefix" data-hash=move || line.with(|l| l.as_ref().map(|l| l.crumb.hash.to_string()))
                aria-current=move || is_on().then_some("true") title=hint style=bar on:click=go>
                <span class="p-line">
                    <span class="p-main">{text(PrefixList::main_text)}</span>
                    <span class="p-quiet">{text(|_, _, line| line.place())}</span>
                </span>
                <span class="p-line">
                    <span class="p-quiet">{text(PrefixList::other_text)}</span>
                    <span class="p-owners">{move || owners.with(|owners| side::chips(store, owners, LIST_HOLDERS))}</span>
                </span>
            </button>
        </li>
    }
}

#[component]
fn Nothing(tree: TreeView, by: Ranked, lines: Memo<PrefixList>) -> impl IntoView {
    let of = Memo::new(move |_| lines.with(|list| (list.requests, list.blocks)));
    move || {
        let (requests, blocks) = of.get();
        let hint = || tree.store.peek(|shown| shown.decisions_hint());
        match EmptyList::of(by, requests, blocks, hint) {
            EmptyList::Text(text) => view! { <p class="caption" data-testid="list-empty">{text}</p> },
            EmptyList::Hint(text, hint) => view! {
                <div class="caption hot-unknown" data-testid="list-empty">
                    <p>{text}</p>
                    <HintList hint/>
                </div>
            },
        }
    }
}
