//! What it costs that workers hold the same blocks: in all, and below the selected block.

use leptos::prelude::*;
use radixscope_panels::tree::{CopiesFigures, CopiesRow, CopiesTable};
use radixscope_state::redundancy::{BlockSize, Redundancy};

use super::state::TreeView;
use crate::store::Store;
use crate::url::Panel;
use crate::view::control::view;
use crate::view::figure::TrustedFigure;

/// Copies in all.
fn in_all(store: Store) -> Memo<Redundancy> {
    Memo::new(move |_| store.on_beat(|cluster| Redundancy::from(cluster.tree().totals())))
}

/// Figures for the panel's head.
#[component]
pub(super) fn HeadFigures(store: Store) -> impl IntoView {
    let all = in_all(store);
    let figures = Memo::new(move |_| CopiesFigures::of(all.get()));
    let of = move |part: fn(&CopiesFigures) -> String| Memo::new(move |_| figures.with(part));
    view! {
        <TrustedFigure store id="shared" label="shared" value=of(|all| all.shared.clone()) title=of(|all| all.shared_title.clone())/>
        <TrustedFigure store id="copies" label="of cached blocks are duplicates" value=of(|all| all.copies.clone()) title=of(|all| all.copies_title.clone())/>
    }
}

/// The section.
#[component]
pub(super) fn Copies(tree: TreeView, size: Memo<BlockSize>) -> impl IntoView {
    let store = tree.store;
    let all = in_all(store);
    let below = Memo::new(move |_| {
        let crumb = tree.selected.get()?;
        store.on_beat(|_| ());
        let of = store.look(|cluster, _| cluster.tree().prefix(crumb.node(cluster.tree())?));
        Some(Redundancy::from(&of.flatten()?))
    });
    let trust = Memo::new(move |_| store.on_beat(|shown| shown.trust()));
    let table = Memo::new(move |_| {
        let (all, below, size) = (all.get(), below.get(), size.get());
        trust.with(|trust| CopiesTable::of(all, below, size, trust))
    });
    let row = |CopiesRow { id, name, all, below }: CopiesRow| {
        view! {
            <tr>
                <th scope="row">{name}</th>
                <td data-testid=format!("{id}-all")>{all}</td>
                <td data-testid=format!("{id}-below")>{below}</td>
            </tr>
        }
    };
    view! {
        <table class="copies-table">
            <thead><tr><td></td><th scope="col">"Whole tree"</th><th scope="col">"Selected prefix"</th></tr></thead>
            <tbody>{move || table.get().rows.into_iter().map(row).collect_view()}</tbody>
        </table>
        <p class="caption" data-testid="copies-sentence">{move || table.with(|table| table.sentence.clone())}</p>
        <p class="caption">"A duplicate lets another worker serve the prefix without recomputing it; it also takes memory from other blocks."</p>
        <Show when=move || table.with(|table| table.are_bytes_unknown)>
            <p class="caption" data-testid="bytes-unknown">
                "Bytes per block are unknown: no event reports the model's shape. "
                <button class="plain" on:click=move |_| store.address.update(|address| address.panel = Panel::Memory)>"Choose the model in Memory's calculator"</button>
            </p>
        </Show>
    }
}
