//! The tree at full size, with everything to find one's way in it.

mod camera;
mod decision;
mod details;
mod grid;
mod lists;
mod redundancy;
mod save;
mod search;
mod side;
mod stage;
mod state;

use leptos::prelude::*;

use super::super::figure::{Figure, PanelHead};
use super::super::tree::EmptyTree;
use crate::format;
use crate::store::Store;
use crate::url::Panel;
use state::TreeView;

/// The panel.
#[component]
pub(super) fn TreePanel(store: Store, dark: Signal<bool>) -> impl IntoView {
    let tree = TreeView::new(store, dark);
    let totals = Memo::new(move |_| store.on_beat(|c| c.tree().totals()));
    let nodes = Signal::derive(move || {
        if store.heard() { format::count(totals.get().nodes) } else { format::UNKNOWN.to_owned() }
    });
    decision::follow(tree);
    let empty = Memo::new(move |_| totals.get().nodes == 0);
    view! {
        <section class="panel tree" aria-labelledby="tree-title" data-testid="tree-panel">
            <PanelHead store panel=Panel::Tree title="Prefix tree">
                <Figure id="nodes" label="distinct blocks" value=nodes title="Distinct blocks in the tree, held by at least one worker"/>
                <redundancy::CopiesFigures store/>
            </PanelHead>
            <div class="path"><search::Search tree/><span class="spacer"></span><save::Save tree/></div>
            <div class="tree-body">
            <div class="icicle-box">
                {move || if tree.choice.with(|choice| choice.table) { view! { <grid::TreeGrid tree/> }.into_any() } else { view! { <stage::Canvas tree/> }.into_any() }}
                <Show when=move || empty.get()><EmptyTree store/></Show>
            </div>
            <aside class="tree-side" aria-label="About the tree"><side::Side tree/></aside>
            </div>
        </section>
    }
}
