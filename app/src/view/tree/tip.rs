//! What is under the pointer, beside the pointer.

use leptos::html;
use leptos::prelude::*;
use radixscope_model::id::WorkerIx;
use radixscope_panels::tree::tip_place;

use super::state::{BlockSummary, Hovered, Narrow, TreePlacement, TreeView};
use crate::format;
use crate::view::chip::Chip;
use crate::view::control::view;

/// Workers named one by one.
const NAMED: usize = 8;
/// Follows the pointer. Nothing in it can be pointed at, and screen readers have another text.
#[component]
pub(super) fn Tip(tree: TreeView, frame: NodeRef<html::Div>) -> impl IntoView {
    let place = move || {
        let Some(((x, y), frame)) = tree.pointer.get().zip(frame.get()) else { return String::new() };
        tip_place((x, y), (f64::from(frame.client_width()), f64::from(frame.client_height())))
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
    let text = match tree.form {
        TreePlacement::Changes => narrow.to_text_of_changes(),
        TreePlacement::Page | TreePlacement::Overview => narrow.to_text(tree.store.workers.get() > 64),
    };
    view! {
        <p><b>{text}</b></p>
        <p class="quiet">"Too narrow to separate: zoom in to see them"</p>
    }
}
