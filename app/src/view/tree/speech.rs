//! The text for screen readers: the selected block, and what the camera shows once it has come to rest.

use std::time::Duration;

use leptos::prelude::*;

use super::state::{BlockSummary, TreeView};
use crate::view::control::view;

/// After this long without another movement the place of the camera is announced.
const REST: Duration = Duration::from_millis(600);

/// The text for `aria-describedby`.
#[component]
pub(super) fn Speech(tree: TreeView) -> impl IntoView {
    let block = Memo::new(move |_| {
        let crumb = tree.selected.get()?;
        let detail = tree.store.look(|cluster, forest| {
            Some(BlockSummary::of(cluster, forest, crumb.chain(cluster.tree())?, crumb.position))
        });
        detail.flatten().map(|detail| detail.sentence(tree.store.now_ms()))
    });
    // Only after a movement: what a live tree does to the window would be a stream of texts.
    let place = RwSignal::new(String::new());
    let last = StoredValue::new(0);
    Effect::new(move |_| {
        tree.redraw.track();
        let moves = tree.camera.with_value(|camera| camera.moves());
        if last.get_value() == moves {
            return;
        }
        last.set_value(moves);
        set_timeout(
            move || {
                if last.try_get_value() == Some(moves) {
                    place.set(tree.showing.get_untracked());
                }
            },
            REST,
        );
    });
    view! {
        <p id="tree-status" class="hidden" aria-live="polite" data-testid="tree-status">
            {move || block.get().map(|block| format!("{block}. "))}{place}
        </p>
    }
}
