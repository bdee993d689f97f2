//! The tree of the panel of changes: every block that either of two moments has, coloured by what became of it, and what the
//! colours mean.

use leptos::prelude::*;
use radixscope_icicle::palette::label;
use radixscope_insight::changes::BlockChange;
use radixscope_model::id::WorkerIx;
use radixscope_panels::tree::ChangeKey;

use super::breadcrumb::Breadcrumb;
use super::stage;
use super::state::{TreePlacement, TreeView};
use crate::store::Store;
use crate::view::changes::ChangesSignal;
use crate::view::control::view;
use crate::view::pools::TreePools;

/// Picture and legend of what is compared.
#[component]
pub(in crate::view) fn ChangedTree(store: Store, dark: Memo<bool>, compared: ChangesSignal) -> impl IntoView {
    let tree = TreeView::new(TreePlacement::Changes, store, dark);
    let keys = move || {
        compared.track();
        BlockChange::ALL
            .into_iter()
            .filter_map(move |change| ChangeKey::of(change, store.changed_blocks(change)))
    };
    let key = |ChangeKey { id, name, title, count }: ChangeKey| {
        view! {
            <span title=title>
                <i class=format!("key changes-{id}") aria-hidden="true"></i>
                <b data-testid=format!("changes-blocks-{id}")>{count}</b>" "{name}
            </span>
        }
    };
    let picked = move || {
        let worker: WorkerIx = store.picked()?;
        Some(view! { <span class="tl-note">"of "{label(worker)}" alone"</span> })
    };
    view! {
        <Breadcrumb tree><TreePools store/></Breadcrumb>
        <div class="icicle-box"><stage::Canvas tree/></div>
        <div class="tree-legend" role="group" aria-label="Legend" data-testid="changes-legend">
            <span>"Distinct blocks of A or B:"</span>
            {move || keys().map(key).collect_view()}
            {move || picked()}
        </div>
    }
}
