//! The tree: as a panel that fills the page, with everything to find one's way in it, and as one of the overview's.
//!
//! # How it works
//!
//! The parts share one handle (`state::TreeView`): what the address says, the camera, what is selected and hovered.
//! Whatever changes asks for a frame; a frame updates the forest, moves the camera, rasters only if a pixel could
//! differ, and writes texts and outlines over them. What appears and fades has a canvas of its own over the picture, which is drawn
//! without it; requests in flight are elements (`lights`) that the browser moves. The camera has a goal: everything, a block that it
//! follows, or where a hand has put it. A free camera remembers the boxes over its middle that are at least half as
//! wide as the window and moves with the deepest of them, so that what is looked at stays where it is while blocks
//! come and go beside it. The wheel zooms both axes around the pointer, downward by a power such that both come to
//! their closest together. Those who hear the page are informed of the selection and, once the camera rests, of what it
//! shows; a live tree alone says nothing. The forest is maintained as long as any panel needs it: a panel says so before
//! the one it follows is gone.

mod breadcrumb;
mod brush;
mod changes;
mod decision;
mod decision_path;
mod empty;
mod grid;
mod input;
mod kiosk;
mod lanes;
mod legend;
mod lights;
mod lists;
mod minimap;
mod overview;
mod paused;
mod redundancy;
mod save;
mod search;
mod selected;
mod session_paths;
mod side;
mod speech;
mod stage;
mod state;
mod tip;
mod toolbar;

use leptos::prelude::*;
use radixscope_panels::tree::{distinct_blocks, shown_of};
use radixscope_state::tree::Totals;

use crate::format;
use crate::store::Store;
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::{Figure, PanelHead};
use crate::view::pools::TreePools;
pub(super) use changes::ChangedTree;
use empty::EmptyTree;
pub(super) use kiosk::KioskTree;
pub(super) use overview::OverviewTree;
pub use overview::OverviewTreeView;
use state::{TreePlacement, TreeView};

/// The panel.
#[component]
pub fn TreePanel(store: Store, dark: Memo<bool>) -> impl IntoView {
    let tree = TreeView::new(TreePlacement::Page, store, dark);
    decision::follow(tree);
    selected::begin_at(tree);
    let totals = Memo::new(move |_| store.on_beat(|c| c.tree().totals()));
    let hidden = Memo::new(move |_| totals.get().hidden);
    let empty = Memo::new(move |_| totals.get().nodes == 0);
    let is_table = Memo::new(move |_| tree.choice.with(|choice| choice.table));
    view! {
        <section class="panel tree tree-full" aria-labelledby="tree-title" data-testid="tree-panel">
            <PanelHead store panel=Panel::Tree title="Prefix tree">
                <TreePools store/>
                <BlockFigures store totals/>
                <Show when=move || hidden.get() != 0>
                    <Figure id="tree-hidden" label="cached blocks shown, coldest hidden" value=Memo::new(move |_| shown_of(totals.get()))
                        title="Cached blocks: those in the tree, of all. The tree is full, so what was stored longest ago is hidden"/>
                </Show>
                <redundancy::HeadFigures store/>
            </PanelHead>
            <toolbar::Toolbar tree/>
            <toolbar::HitsNote tree/>
            <breadcrumb::Breadcrumb tree>
                <paused::PausedNote tree/>
                <span class="showing quiet" data-testid="tree-showing">{tree.showing}</span>
            </breadcrumb::Breadcrumb>
            <div class="tree-body">
                <div class="icicle-box" class:below-device=move || store.pools.get().tier.is_some()>
                    <Show when=move || tree.choice.get().lanes && !is_table.get()><lanes::Heads tree/></Show>
                    {move || if is_table.get() { view! { <grid::TreeGrid tree/> } } else { view! { <stage::Canvas tree/> } }}
                    <Show when=move || empty.get()><EmptyTree store/></Show>
                    <Show when=move || !empty.get()><toolbar::NoHits tree/></Show>
                </div>
                <aside class="tree-side" aria-label="Details and lists"><side::Side tree/></aside>
            </div>
            <legend::Legend tree/>
        </section>
    }
}

/// How many blocks there are: waiting for their parent, and in the tree.
#[component]
fn BlockFigures(store: Store, totals: Memo<Totals>) -> impl IntoView {
    let nodes = Memo::new(move |_| distinct_blocks(totals.get(), store.has_kv_events()));
    let unattached = Memo::new(move |_| totals.get().unattached);
    view! {
        <Show when=move || unattached.get() != 0>
            <Figure id="unattached" label="unattached" value=Memo::new(move |_| format::count(unattached.get()))
                title="Blocks whose parent was never received. They are not drawn until it is"/>
        </Show>
        <Figure id="nodes" label="distinct blocks" value=nodes title="Distinct blocks in the tree, cached on at least one worker"/>
    }
}
