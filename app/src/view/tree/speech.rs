//! The text for screen readers: the selected block, and what the camera shows once it has come to rest.

use std::time::Duration;

use leptos::prelude::*;
use radixscope_icicle::viewport::Region;
use radixscope_state::tree::forest::{Forest, Width};

use super::block::BlockSummary;
use super::state::TreeView;
use crate::format;
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
        detail.flatten().map(|detail| detail.sentence(tree.store))
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

/// Which part of the tree is shown.
pub(super) fn showing(region: Region, forest: &Forest, block_tokens: Option<u32>) -> String {
    let all = Region::all(forest);
    let (from, to) = (region.top.max(0.0).floor(), region.bottom.min(all.bottom).ceil());
    let share = ((region.x1.min(all.x1) - region.x0.max(0.0)) / all.x1).clamp(0.0, 1.0);
    let tokens = block_tokens.map(|size| {
        let at = |position: f64| format::count(position as u64 * u64::from(size));
        format!(", tokens {}–{}", at(from), at(to))
    });
    let unit = match forest.arrangement().width {
        Width::Blocks => "the tree's blocks",
        Width::Hits => "the hits",
    };
    format!(
        "Blocks {}–{} of the prompt{}, {} of {unit} across",
        format::count(from as u64),
        format::count(to as u64),
        tokens.unwrap_or_default(),
        percent(share),
    )
}

/// A share with a digit more where it is small.
fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.095 {
        let percent = share * 100.0;
        if percent < 0.05 { "<0.1 %".to_owned() } else { format!("{percent:.1} %") }
    } else {
        format::percent(share)
    }
}
