//! What is under the pointer, beside the pointer.

use leptos::html;
use leptos::prelude::*;
use radixscope_insight::changes::{BlockChange, ChangeTree};
use radixscope_model::id::WorkerIx;

use super::block::BlockSummary;
use super::state::{Hovered, Narrow, TreePlacement, TreeView};
use crate::format;
use crate::view::chip::Chip;
use crate::view::control::view;

/// Workers named one by one.
const NAMED: usize = 8;
/// From the pointer to the text, CSS pixels.
const AWAY_PX: f64 = 14.0;

/// Follows the pointer. Nothing in it can be pointed at, and screen readers have another text.
#[component]
pub(super) fn Tip(tree: TreeView, frame: NodeRef<html::Div>) -> impl IntoView {
    let place = move || {
        let Some(((x, y), frame)) = tree.pointer.get().zip(frame.get()) else { return String::new() };
        let (width, height) = (f64::from(frame.client_width()), f64::from(frame.client_height()));
        // On the side of the pointer where there is more room.
        let across = if x > width / 2.0 {
            format!("right:{}px", (width - x + AWAY_PX).round() as i64)
        } else {
            format!("left:{}px", (x + AWAY_PX).round() as i64)
        };
        let down = if y > height / 2.0 {
            format!("bottom:{}px", (height - y + AWAY_PX).round() as i64)
        } else {
            format!("top:{}px", (y + AWAY_PX).round() as i64)
        };
        format!("{across};{down}")
    };
    let text = move || match tree.hovered.get()? {
        Hovered::Block(_) => tree.pointed.get().map(|block| view! { <Block tree block/> }),
        Hovered::NarrowBoxes(narrow) => Some(view! { <Many tree narrow/> }),
    };
    view! {
        <Show when=move || tree.hovered.with(Option::is_some) && tree.pointer.with(Option::is_some)>
            <div class="tree-tip" style=move || place() aria-hidden="true" data-testid="tree-tip">{move || text()}</div>
        </Show>
    }
}

#[component]
fn Block(tree: TreeView, block: BlockSummary) -> impl IntoView {
    let store = tree.store;
    let named = move |owners: &[WorkerIx]| {
        let chips = owners.iter().take(NAMED).map(|&worker| view! { <Chip store worker/> }).collect_view();
        let more = owners.len().saturating_sub(NAMED);
        let more = (more > 0).then(|| format!("and {}", format::plural(more as u64, "more", "more")));
        view! { {chips}{more} }
    };
    let after = named(&block.owners);
    let owners = match &block.before {
        Some(before) => {
            let word = |owners: &[WorkerIx]| owners.is_empty().then_some("no worker");
            let (was, is) = (word(before), word(&block.owners));
            view! { "At A on " {named(before)}{was} " · at B on " {after}{is} }
        }
        None => {
            let no_worker = block.owners.is_empty().then_some("no worker: evicted parent of cached blocks");
            view! { "Cached on " {after}{no_worker} }
        }
    };
    let evicted = block.is_evicted.then_some(", evicted since");
    let tokens = block.tokens_of().map(|tokens| format!(", tokens {tokens}"));
    view! {
        <p><b>"Block " {format::count(block.position.into())}</b>{tokens}</p>
        <p class="tip-owners">{owners}{evicted}</p>
        <p class="quiet">
            {format::plural(block.len.into(), "block", "blocks")} " in this box, "
            {format::count(block.blocks.into())} " with all below"
        </p>
    }
}

/// What is known of neighbours that are too narrow to be distinguished.
#[component]
pub(super) fn Many(tree: TreeView, narrow: Narrow) -> impl IntoView {
    let many = tree.store.workers.get() > 64;
    let text =
        if tree.form == TreePlacement::Changes { changed_text(narrow) } else { many_text(narrow, many) };
    view! {
        <p><b>{text}</b></p>
        <p class="quiet">"Too narrow to separate: zoom in to see them"</p>
    }
}

/// `37 boxes, 1,204 blocks: kept, stored`.
fn changed_text(narrow: Narrow) -> String {
    let changes: Vec<&str> = ChangeTree::in_bits(narrow.workers).map(BlockChange::as_str).collect();
    let boxes = format::plural(narrow.boxes.into(), "box", "boxes");
    format!("{boxes}, {}: {}", format::plural(narrow.blocks.into(), "block", "blocks"), changes.join(", "))
}

/// `37 boxes, 1,204 blocks, 3 workers`. Of more than 64 workers the mask knows only the first.
fn many_text(narrow: Narrow, beyond_mask: bool) -> String {
    let workers = u64::from(narrow.workers.count_ones());
    let more = if beyond_mask { " or more" } else { "" };
    let hits = (narrow.hits > 0).then(|| format!(", {}", format::plural(narrow.hits.into(), "hit", "hits")));
    format!(
        "{}, {}, {}{more}{}",
        format::plural(narrow.boxes.into(), "box", "boxes"),
        format::plural(narrow.blocks.into(), "block", "blocks"),
        format::plural(workers, "worker", "workers"),
        hits.unwrap_or_default()
    )
}
