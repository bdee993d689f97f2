//! Where in the tree we are, and the way up.

use leptos::prelude::*;
use radixscope_icicle::camera::Goal;
use radixscope_icicle::crumb::Crumb;

use super::state::TreeView;
use crate::format;
use crate::view::control::view;

/// Boxes that are named at the path's beginning, and at its end.
const FIRST: usize = 1;
const LAST: usize = 3;

/// The path from everything to what spans the window; at its right whatever the panel adds.
#[component]
pub(super) fn Breadcrumb(tree: TreeView, children: Children) -> impl IntoView {
    let store = tree.store;
    let size = Memo::new(move |_| store.on_beat(|cluster| cluster.block_tokens()));
    let items = move || {
        let path = tree.path.get();
        let n = path.len();
        let left_out = n.saturating_sub(FIRST + LAST);
        let size = size.get();
        let item = |(at, crumb): (usize, Crumb)| view! { <Item tree crumb size is_last=at + 1 == n/> };
        let (first, rest) = path.split_at(n.min(FIRST));
        let first: Vec<_> = first.iter().copied().enumerate().map(item).collect();
        let last: Vec<_> =
            rest.iter().copied().enumerate().skip(left_out).map(|(i, c)| item((i + FIRST, c))).collect();
        let dots = (left_out > 0).then(|| {
            let title = format!("{} between", format::plural(left_out as u64, "box", "boxes"));
            view! { <li><span title=title.clone() aria-label=title>"…"</span></li> }
        });
        (first, dots, last)
    };
    // Above the axis, so that its numbers have a unit.
    let unit = move || {
        let choice = tree.choice.get();
        let text = if size.get().is_some() { "tokens" } else { "blocks" };
        (!choice.table && !choice.lanes).then(|| {
            view! { <span class="axis-head" title=format!("Down: {text} into the prompt") data-testid="axis-unit">{text}</span> }
        })
    };
    view! {
        <div class="path">
            {move || unit()}
            <nav aria-label="Path in the tree">
                <ol data-testid="path">
                    <li><button class="plain" aria-current=move || tree.path.with(Vec::is_empty).then_some("true")
                        on:click=move |_| tree.look_at(Goal::All)>"All prompts"</button></li>
                    {move || items()}
                </ol>
            </nav>
            <span class="spacer"></span>
            {children()}
        </div>
    }
}

#[component]
fn Item(tree: TreeView, crumb: Crumb, size: Option<u32>, is_last: bool) -> impl IntoView {
    let tokens = size.map(|size| {
        let token = u64::from(crumb.position) * u64::from(size);
        view! { <span class="quiet">" token " {format::count(token)}</span> }
    });
    let title = format!("Zoom to block {} and what is below it: hash {}", crumb.position, crumb.hash);
    view! {
        <li><button class="plain" title=title aria-current=is_last.then_some("true")
            on:click=move |_| tree.look_at(Goal::Block(crumb))>{crumb.to_text()}{tokens}</button></li>
    }
}
