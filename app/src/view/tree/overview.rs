//! The tree as one of the overview's panels: the same picture and the same camera, with a path above it and one bar below
//! it in place of tools, lists and details.

use leptos::prelude::*;
use radixscope_panels::tree::shared_text;
use radixscope_state::tree::forest::Order;

use super::breadcrumb::Breadcrumb;
use super::empty::EmptyTree;
use super::legend::Replicas;
use super::paused::PausedNote;
use super::state::{BlockSummary, Hovered, TreePlacement, TreeView};
use super::{BlockFigures, decision_path, input, stage, tip};
use crate::format;
use crate::store::Store;
use crate::url::Panel;
use crate::view::chip::{Chip, key_colours};
use crate::view::control::view;
use crate::view::figure::{PanelHead, TrustedFigure};
use crate::view::lazy::{AfterFigures, LazyView};
use crate::view::pools::TreePools;

/// Owners named in the bar; more would make it grow. All are named in its title and to those who hear the page.
const OWNERS: usize = 3;

/// The panel. Its picture is a chunk of its own, which comes after the first figures.
#[component]
pub(in crate::view) fn OverviewTree(store: Store, dark: Memo<bool>) -> impl IntoView {
    let totals = Memo::new(move |_| store.on_beat(|c| c.tree().totals()));
    let shared = Memo::new(move |_| shared_text(totals.get()));
    view! {
        <section class="panel tree" aria-labelledby="tree-title" data-testid="tree-panel">
            <PanelHead store panel=Panel::Tree title="Prefix tree">
                <TreePools store/>
                <BlockFigures store totals/>
                <TrustedFigure store id="shared" label="shared" value=shared title="Distinct blocks cached on two workers or more"/>
            </PanelHead>
            <AfterFigures of=LazyView::OverviewTree store dark/>
        </section>
    }
}

/// What stands below the panel's head.
#[component]
pub fn OverviewTreeView(store: Store, dark: Memo<bool>) -> impl IntoView {
    let tree = TreeView::new(TreePlacement::Overview, store, dark);
    let empty = Memo::new(move |_| store.on_beat(|c| c.tree().totals().nodes == 0));
    view! {
        <Breadcrumb tree><PausedNote tree/><Tools tree/></Breadcrumb>
        <decision_path::Note store painted=tree.painted/>
        <div class="icicle-box">
            <stage::Canvas tree/>
            <Show when=move || empty.get()><EmptyTree store/></Show>
        </div>
        <DetailBar tree empty/>
    }
}

/// The way up, and how siblings are ordered.
#[component]
fn Tools(tree: TreeView) -> impl IntoView {
    let store = tree.store;
    let is_fixed = Memo::new(move |_| store.address.with(|a| a.order == Order::Stable));
    let toggle_order = move |_| {
        store
            .address
            .update(|a| a.order = if a.order == Order::Stable { Order::LeftHeavy } else { Order::Stable });
    };
    view! {
        <Show when=move || tree.path.with(|path| !path.is_empty())>
            <button class="plain" data-testid="up" on:click=move |_| { input::leave(tree); }>"Up"</button>
        </Show>
        <button class="plain quiet" data-testid="order" on:click=toggle_order title="How siblings are ordered: largest left, or each in its fixed place">
            {move || if is_fixed.get() { "Order: fixed" } else { "Order: largest left" }}
        </button>
    }
}

/// What is under the pointer, else what is selected, else what the colours mean. It keeps its height, so that nothing
/// jumps.
#[component]
fn DetailBar(tree: TreeView, empty: Memo<bool>) -> impl IntoView {
    let store = tree.store;
    let selected = Memo::new(move |_| {
        let crumb = tree.selected.get()?;
        store.on_beat(|_| ());
        let block = store.look(|cluster, forest| {
            Some(BlockSummary::of(cluster, forest, crumb.chain(cluster.tree())?, crumb.position))
        });
        block.flatten()
    });
    let narrow = Memo::new(move |_| match tree.hovered.get() {
        Some(Hovered::NarrowBoxes(narrow)) => Some(narrow),
        Some(Hovered::Block(_)) | None => None,
    });
    let block = Memo::new(move |_| tree.pointed.get().or_else(|| selected.get()));
    view! {
        <div class="detail" data-testid="tree-detail">
            {move || match (narrow.get(), block.get()) {
                (Some(narrow), _) => view! { <tip::Many tree narrow/> },
                (None, Some(block)) => view! { <Block store block/> },
                (None, None) if empty.get() => ().into_any(),
                (None, None) => view! { <Legend store/> },
            }}
        </div>
    }
}

#[component]
fn Block(store: Store, block: BlockSummary) -> impl IntoView {
    let (place, all, hash_name) = (block.place(), block.owner_labels(), block.hash_name());
    let touched = block.touched;
    let age = Memo::new(move |_| {
        let now = store.on_beat(|_| store.now_ms());
        format::ago(now.since(touched))
    });
    let (named, more) = block.named_owners(OWNERS);
    let owners = named.iter().map(|&worker| view! { <Chip store worker/> }).collect_view();
    let no_worker = block.owners.is_empty().then_some("no worker");
    let evicted = block.is_evicted.then_some("evicted since");
    view! {
        <dl>
            <div class="w-owners" title=all><dt>"Cached on"</dt><dd>{owners}{more}{no_worker}{evicted}</dd></div>
            <div class="w-place"><dt>"Position"</dt><dd>{place}</dd></div>
            <div><dt>"Chain"</dt><dd>{format::count(u64::from(block.len))}</dd></div>
            <div><dt>"Subtree"</dt><dd>{format::count(u64::from(block.blocks))}</dd></div>
            <div class="w-age"><dt>"Last stored"</dt><dd>{age}</dd></div>
            <div class="w-hash"><dt>{hash_name}</dt>
                <dd class="mono"><span data-testid="detail-hash">{block.hash.to_string()}</span><span class="quiet">{format::hex(block.hash.0)}</span></dd></div>
            <div class="w-tokens"><dt>"Tokens hash"</dt><dd class="mono">{block.tokens.to_string()}</dd></div>
        </dl>
    }
}

#[component]
fn Legend(store: Store) -> impl IntoView {
    let unit =
        Memo::new(move |_| if store.on_beat(|c| c.block_tokens().is_some()) { "tokens" } else { "blocks" });
    view! {
        <p class="legend" style=move || key_colours(store)>
            <span><i class="key one"></i>"On one worker"</span>
            <Replicas store what="workers, one tick each"/>
            <span>"Down: " {unit} ", ×: blocks"</span>
            <span class="how">"Point at a box for its blocks and workers, click it to zoom in, Esc zooms out"</span>
        </p>
    }
}
