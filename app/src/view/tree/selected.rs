//! The selected block, or the one under the pointer, in all its particulars.

use leptos::prelude::*;
use radixscope_model::id::{BlockHash, Millis};
use radixscope_panels::tree::{Detail, HOLDERS, Subject, head, linked_block};
use radixscope_state::redundancy::BlockSize;

use super::side;
use super::state::{TreeView, key};
use crate::format;
use crate::store::Store;
use crate::view::clipboard::CopyButton;
use crate::view::control::view;

/// Begins at the block that a link names, and keeps the address at the one that is selected, so that the page's address is
/// such a link.
pub(super) fn begin_at(tree: TreeView) {
    let store = tree.store;
    let named = store.address.with_untracked(|address| address.other(key::BLOCK));
    let wanted = StoredValue::new(named.and_then(|hash| hash.parse().ok()).map(BlockHash));
    Effect::new(move |_| {
        let selected = tree.selected.get();
        if let Some(hash) = wanted.get_value().filter(|_| selected.is_none()) {
            store.on_beat(|_| ());
            // The state or its forest may not be there yet.
            let found = store.look(|shown, _| linked_block(shown, hash));
            if store.ready()
                && let Some(found) = found
            {
                wanted.set_value(None);
                if let Some(crumb) = found {
                    tree.go_to(crumb);
                }
            }
            return;
        }
        wanted.set_value(None);
        let hash = selected.map(|crumb| crumb.hash.to_string());
        if store.address.with_untracked(|address| address.other(key::BLOCK)) != hash {
            store.address.update(|address| address.set_other(key::BLOCK, hash.as_deref()));
        }
    });
}

/// A part of what is known of the block; the type's own nothing where there is none. Tracked.
fn part<T: Default>(shown: Memo<Subject>, of: impl FnOnce(&Detail) -> T) -> T {
    shown.with(|shown| shown.block().map(of)).unwrap_or_default()
}

/// The details.
#[component]
pub(super) fn Details(tree: TreeView, size: Memo<BlockSize>) -> impl IntoView {
    let store = tree.store;
    let shown = Memo::new(move |_| {
        let is_selected = tree.selected.with(Option::is_some);
        let Some(crumb) = Subject::crumb(tree.selected.get(), tree.hovered.get()) else {
            return Subject::Nothing;
        };
        store.on_beat(|_| ());
        let detail = store.look(|shown, forest| Detail::of(shown, forest, crumb)).flatten();
        Subject::of(crumb, is_selected, detail)
    });
    let is_block = Memo::new(move |_| shown.with(|shown| shown.block().is_some()));
    let head = move || head(tree.selected.with(Option::is_some));
    view! {
        <section class="side-block" aria-label="Block" data-testid="block-details"
            data-hash=move || part(shown, |d| Some(d.crumb.hash.to_string()))>
            <Show when=move || is_block.get() fallback=move || view! { <Other tree shown/> }>
                <header>
                    <h3>{move || head()}</h3>
                    <Show when=move || tree.selected.get().is_some()>
                        <button class="plain quiet" data-testid="block-let-go" on:click=move |_| tree.selected.set(None)>"Clear"</button>
                    </Show>
                </header>
                <Rows store shown size/>
                <Actions tree shown/>
            </Show>
        </section>
    }
}

#[component]
fn Other(tree: TreeView, shown: Memo<Subject>) -> impl IntoView {
    move || match shown.with(Subject::evicted_text) {
        Some(text) => view! {
            <header><h3>"Selected block"</h3>
                <button class="plain quiet" data-testid="block-let-go" on:click=move |_| tree.selected.set(None)>"Clear"</button></header>
            <p class="caption" data-testid="block-gone">{text}</p>
        },
        None => view! {
            <header><h3>"Block"</h3></header>
            <p class="caption" data-testid="block-none">
                "Point at a box to see its block here, click it to keep it, or search with " <kbd>"/"</kbd> ": hashes, workers, age, hits and the memory of the copies below it."
            </p>
        },
    }
}

/// Lines of figures that stay where they are while the figures change.
#[component]
fn Rows(store: Store, shown: Memo<Subject>, size: Memo<BlockSize>) -> impl IntoView {
    let text = move |of: fn(&Detail) -> String| Memo::new(move |_| part(shown, of));
    let age = move |of: fn(&Detail) -> Millis| {
        Memo::new(move |_| {
            let now = store.on_beat(|_| store.now_ms());
            part(shown, |d| format::ago(now.since(of(d))))
        })
    };
    let owners = Memo::new(move |_| part(shown, |d| d.owners.clone()));
    let names = Memo::new(move |_| part(shown, Detail::names_text));
    let holders = Memo::new(move |_| {
        let workers = store.drawn.with(Vec::len);
        part(shown, |d| d.holders_text(workers))
    });
    let place = Memo::new(move |_| {
        let tokens = size.get().tokens;
        part(shown, |d| d.position_text(tokens))
    });
    let copies = Memo::new(move |_| {
        let size = size.get();
        part(shown, |d| d.copies_text(size))
    });
    view! {
        <dl class="block-facts">
            <Hash name="Block hash" id="block-hash" copy=["Copy the block hash in decimal", "Copy the block hash in hexadecimal"]
                value=Memo::new(move |_| part(shown, |d| d.crumb.hash.0))/>
            <Show when=move || names.with(|names| !names.is_empty())>
                <div class="wide"><dt>"Named differently"</dt><dd class="names" data-testid="block-names">
                    {move || names.get().into_iter().map(|(worker, hash)| view! {
                        <span>{worker} " " <span class="mono">{hash}</span></span>
                    }).collect_view()}
                </dd></div>
            </Show>
            <Hash name="Tokens hash" id="block-tokens" copy=["Copy the tokens hash in decimal", "Copy the tokens hash in hexadecimal"]
                value=Memo::new(move |_| part(shown, |d| d.crumb.tokens.0))/>
            <Fact name="Position" id="block-position" title="From 0, in its prompt" value=place/>
            <Fact name="Box" id="block-chain" title="Blocks with one successor each and the same workers are one box"
                value=text(Detail::box_text)/>
            <div class="wide"><dt>"Cached on"</dt><dd data-testid="block-owners">
                {move || owners.with(|owners| side::chips(store, owners, HOLDERS))} <span class="quiet">{holders}</span>
            </dd></div>
            <Fact name="First stored" id="block-first" title="Since it is in the tree" value=age(|d| d.first_stored)/>
            <Fact name="Last stored" id="block-last" title="By any of its workers" value=age(|d| d.last_stored)/>
            <Fact name="Last used" id="block-used" title="When a worker last stored, or a request last used, a block of this box or below" value=age(|d| d.last_used)/>
            <Fact name="Hits" id="block-hits" title="Requests of the last 5 min that found this block cached, of those of which it is known" value=text(Detail::hits_text)/>
            <Fact name="Children" id="block-children" title="Blocks that follow this one" value=text(Detail::children_text)/>
            <Fact name="Subtree" id="block-subtree" title="Cached blocks at and below this one" value=text(Detail::subtree_text)/>
            <Fact name="Deepest" id="block-depth" title="Position of the deepest block at or below this one" value=text(Detail::deepest_text)/>
            <Fact name="Shared" id="block-shared" title="Blocks at and below this one that are cached on two workers or more" value=text(Detail::shared_text)/>
            <Fact name="Duplicate blocks" id="block-copies" title="Blocks of memory with a copy of another worker's block, at and below this one" value=copies/>
        </dl>
    }
}

#[component]
fn Fact(name: &'static str, id: &'static str, title: &'static str, value: Memo<String>) -> impl IntoView {
    view! { <div title=title><dt>{name}</dt><dd data-testid=id>{value}</dd></div> }
}

/// A hash in both forms, each to be copied.
#[component]
fn Hash(name: &'static str, id: &'static str, copy: [&'static str; 2], value: Memo<u64>) -> impl IntoView {
    let hex = move || format!("0x{}", format::hex(value.get()));
    let copies =
        if id == "block-hash" { ["copy-hash", "copy-hash-hex"] } else { ["copy-tokens", "copy-tokens-hex"] };
    let hex_id = format!("{id}-hex");
    view! {
        <div class="wide"><dt>{name}</dt>
            <dd class="hash"><span class="mono" data-testid=id>{move || value.get().to_string()}</span>
                <CopyButton label="Copy" id=copies[0] name=copy[0] text=move || value.get_untracked().to_string()/></dd>
            <dd class="hash"><span class="mono quiet" data-testid=hex_id>{move || hex()}</span>
                <CopyButton label="Copy" id=copies[1] name=copy[1] text=move || format!("0x{}", format::hex(value.get_untracked()))/></dd>
        </div>
    }
}

#[component]
fn Actions(tree: TreeView, shown: Memo<Subject>) -> impl IntoView {
    let crumb = move || shown.with_untracked(|shown| shown.block().map(|d| d.crumb));
    let above = Memo::new(move |_| part(shown, |d| d.above));
    view! {
        <p class="side-actions">
            <button class="plain" data-testid="block-zoom" on:click=move |_| if let Some(crumb) = crumb() { tree.go_to(crumb) }>"Zoom here"</button>
            <button class="plain" data-testid="block-parent" disabled=move || above.get().is_none()
                on:click=move |_| if let Some(above) = above.get_untracked() { tree.selected.set(Some(above)) }>"Select the box above"</button>
        </p>
    }
}
