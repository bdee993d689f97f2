//! What it costs that workers hold the same blocks: in all, and below the selected block.

use leptos::prelude::*;
use radixscope_state::redundancy::{BlockSize, Redundancy, gib};

use super::state::TreeView;
use crate::format::{self, UNKNOWN};
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
pub(super) fn CopiesFigures(store: Store) -> impl IntoView {
    let all = in_all(store);
    let share = move |of: fn(&Redundancy) -> Option<f64>| percent(all.with(of));
    let shared_title = Memo::new(move |_| {
        all.with(|all| {
            format!(
                "{} of {} distinct blocks are cached on two workers or more",
                format::count(all.shared),
                format::count(all.blocks)
            )
        })
    });
    let copies_title = Memo::new(move |_| {
        all.with(|all| {
            format!(
                "{} of {} cached blocks are duplicates of another worker's",
                format::count(all.copies),
                format::count(all.held())
            )
        })
    });
    view! {
        <TrustedFigure store id="shared" label="shared" value=Memo::new(move |_| share(Redundancy::shared_share)) title=shared_title/>
        <TrustedFigure store id="copies" label="of cached blocks are duplicates" value=Memo::new(move |_| share(Redundancy::copies_share)) title=copies_title/>
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
    let is_withheld = move || trust.with(|trust| trust.withheld().is_some());
    let row = move |name: &'static str, id: &'static str, of: fn(Redundancy, BlockSize) -> String| {
        let is_shown = move || id == "distinct" || !is_withheld();
        let cell = move |from: Option<Redundancy>| {
            from.filter(|_| is_shown()).map_or(UNKNOWN.to_owned(), |from| of(from, size.get()))
        };
        view! {
            <tr>
                <th scope="row">{name}</th>
                <td data-testid=format!("{id}-all")>{move || cell(Some(all.get()))}</td>
                <td data-testid=format!("{id}-below")>{move || cell(below.get())}</td>
            </tr>
        }
    };
    view! {
        <table class="copies-table">
            <thead><tr><td></td><th scope="col">"Whole tree"</th><th scope="col">"Selected prefix"</th></tr></thead>
            <tbody>
                {row("Distinct blocks", "distinct", |of, _| format::count(of.blocks))}
                {row("On several workers", "several", |of, _| format!("{}, {}", format::count(of.shared), percent(of.shared_share())))}
                {row("Duplicate blocks", "copies-blocks", |of, _| format::count(of.copies))}
                {row("Share of memory", "copies-share", |of, _| percent(of.copies_share()))}
                {row("In tokens", "copies-tokens", |of, size| size.tokens(of.copies).map_or(UNKNOWN.to_owned(), format::count))}
                {row("In GiB", "copies-bytes", |of, size| size.bytes(of.copies).map_or(UNKNOWN.to_owned(), gib))}
            </tbody>
        </table>
        <p class="caption" data-testid="copies-sentence">{move || match below.get() {
            _ if is_withheld() => trust.with(|trust| format!("Withheld: {}.", trust.withheld().unwrap_or_default())),
            Some(below) => format!("Selected prefix: {}", below.sentence(size.get())),
            None => all.get().sentence(size.get()),
        }}</p>
        <p class="caption">"A duplicate lets another worker serve the prefix without recomputing it; it also takes memory from other blocks."</p>
        <Show when=move || size.get().bytes_per_token.is_none()>
            <p class="caption" data-testid="bytes-unknown">
                "Bytes per block are unknown: no event reports the model's shape. "
                <button class="plain" on:click=move |_| store.address.update(|address| address.panel = Panel::Memory)>"Choose the model in Memory's calculator"</button>
            </p>
        </Show>
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or(UNKNOWN.to_owned(), format::percent)
}
