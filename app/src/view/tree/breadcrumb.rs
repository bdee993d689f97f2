//! Where in the tree we are, and the way up.

use leptos::prelude::*;
use radixscope_icicle::camera::Goal;
use radixscope_panels::tree::{PathBar, PathItem, axis_unit};

use super::state::TreeView;
use crate::view::control::view;

/// The path from everything to what spans the window; at its right whatever the panel adds.
#[component]
pub(super) fn Breadcrumb(tree: TreeView, children: Children) -> impl IntoView {
    let store = tree.store;
    let size = Memo::new(move |_| store.on_beat(|cluster| cluster.block_tokens()));
    let items = move || {
        let PathBar { first, between, last } = tree.path.with(|path| PathBar::of(path, size.get()));
        let of =
            |items: Vec<PathItem>| items.into_iter().map(|item| view! { <Item tree item/> }).collect_view();
        let dots =
            between.map(|title| view! { <li><span title=title.clone() aria-label=title>"…"</span></li> });
        (of(first), dots, of(last))
    };
    // Above the axis, so that its numbers have a unit.
    let unit = move || {
        axis_unit(&tree.choice.get(), size.get()).map(|text| {
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
fn Item(tree: TreeView, item: PathItem) -> impl IntoView {
    let (crumb, title) = (item.crumb, item.title());
    let token = item.token.map(|token| view! { <span class="quiet">" token " {token}</span> });
    view! {
        <li><button class="plain" title=title aria-current=item.is_last.then_some("true")
            on:click=move |_| tree.look_at(Goal::Block(crumb))>{crumb.to_text()}{token}</button></li>
    }
}
