//! The tree of the panel of changes: every block that either of two moments has, coloured by what became of it, and what the
//! colours mean.

use leptos::prelude::*;
use radixscope_icicle::palette::label;
use radixscope_insight::changes::BlockChange;
use radixscope_model::id::WorkerIx;

use super::breadcrumb::Breadcrumb;
use super::stage;
use super::state::{TreePlacement, TreeView};
use crate::format;
use crate::store::Store;
use crate::view::changes::ChangesSignal;
use crate::view::control::view;
use crate::view::pools::TreePools;

/// What each colour says in full.
const SAYS: [&str; 5] = [
    "The same workers hold it at A and at B",
    "Workers stored it between A and B, and none evicted it",
    "Workers evicted it between A and B, and none stored it",
    "A worker evicted it and another one stored it between A and B",
    "The selected worker holds it neither at A nor at B",
];

/// Picture and legend of what is compared.
#[component]
pub(in crate::view) fn ChangedTree(store: Store, dark: Memo<bool>, compared: ChangesSignal) -> impl IntoView {
    let tree = TreeView::new(TreePlacement::Changes, store, dark);
    let counts = move || {
        compared.track();
        BlockChange::ALL.map(|change| (change, store.changed_blocks(change)))
    };
    let key = |(change, count): (BlockChange, u64)| {
        let name = change.as_str();
        let text = match change {
            BlockChange::Elsewhere => "not on the selected worker",
            _ => name,
        };
        // Only where a worker is selected is there any.
        (change != BlockChange::Elsewhere || count > 0).then(|| {
            view! {
                <span title=SAYS[change as usize]>
                    <i class=format!("key changes-{name}") aria-hidden="true"></i>
                    <b data-testid=format!("changes-blocks-{name}")>{format::count(count)}</b>" "{text}
                </span>
            }
        })
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
            {move || counts().into_iter().filter_map(key).collect_view()}
            {move || picked()}
        </div>
    }
}
