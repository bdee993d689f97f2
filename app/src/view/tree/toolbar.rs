//! What the picture is made of: widths, order, colours, view; and the zoom.

use leptos::prelude::*;
use radixscope_icicle::camera::Goal;
use radixscope_model::record::Tier;
use radixscope_panels::tree::{CONTROLS, Segment, Segments, hits_note};
use radixscope_state::tree::forest::Width;

use super::input::zoom_step;
use super::state::TreeView;
use crate::store::TIER_KEY;
use crate::view::control::view;
use crate::view::figure::Empty;
use crate::view::hint::HintList;

fn set(tree: TreeView, key: &'static str, value: Option<&'static str>) {
    tree.store.address.update(|address| address.set_other(key, value));
}

/// The controls above the picture.
#[component]
pub(super) fn Toolbar(tree: TreeView) -> impl IntoView {
    let is_all = Memo::new(move |_| {
        tree.redraw.track();
        tree.camera.with_value(|camera| camera.goal()) == Goal::All
    });
    view! {
        <div class="tree-tools">
            {CONTROLS.map(|of| view! { <SegmentGroup tree of/> }).into_iter().collect_view()}
            <Tiers tree/>
            <span class="spacer"></span>
            <div class="seg-group" role="group" aria-label="Zoom">
                <span class="seg zoom">
                    <button title="Zoom out (−)" aria-label="Zoom out" data-testid="zoom-out" disabled=is_all
                        on:click=move |_| { zoom_step(tree, -1); }>"−"</button>
                    <button title="Zoom in (+)" aria-label="Zoom in" data-testid="zoom-in"
                        on:click=move |_| { zoom_step(tree, 1); }>"+"</button>
                    <button title="Show everything (Home)" data-testid="zoom-fit" disabled=is_all
                        on:click=move |_| tree.look_at(Goal::All)>"Fit"</button>
                </span>
            </div>
        </div>
    }
}

#[component]
fn SegmentGroup(tree: TreeView, of: Segments) -> impl IntoView {
    let name = of.name;
    let one = move |segment: &'static Segment| {
        let is_on = Memo::new(move |_| (segment.is_on)(&tree.choice.get()));
        view! {
            <label title=segment.title class:on=is_on>
                <input type="radio" name=format!("tree-{name}") data-testid=segment.id prop:checked=is_on
                    on:change=move |_| tree.store.address.update(segment.choose)/>
                {segment.label}
            </label>
        }
    };
    view! {
        <div class="seg-group" role="radiogroup" aria-label=name>
            <span class="seg-name" aria-hidden="true">{name}</span>
            <span class="seg">{of.all.iter().map(one).collect_view()}</span>
        </div>
    }
}

/// Which tier of the cache is drawn, where anything is held below the device.
#[component]
fn Tiers(tree: TreeView) -> impl IntoView {
    let store = tree.store;
    let below = Memo::new(move |_| store.on_beat(|shown| shown.tiers()));
    let one = move |tier: Option<Tier>| {
        let is_on = Memo::new(move |_| store.pools.get().tier == tier);
        let (id, label) = tier.map_or(("device", "Device"), |tier| (tier.as_str(), tier.label()));
        view! {
            <label class:on=is_on title="Blocks cached in this tier. The blocks before them that are on the device only lead to them">
                <input type="radio" name="tree-tier" data-testid=format!("tier-{id}") prop:checked=is_on
                    on:change=move |_| set(tree, TIER_KEY, tier.map(Tier::as_str))/>
                {label}
            </label>
        }
    };
    view! {
        <Show when=move || !below.get().is_empty()>
            <div class="seg-group" role="radiogroup" aria-label="Tier">
                <span class="seg-name" aria-hidden="true">"Tier"</span>
                <span class="seg">{move || std::iter::once(None).chain(below.get().into_iter().map(Some)).map(one).collect_view()}</span>
            </div>
        </Show>
    }
}

/// What is not in the picture because widths or colours are hits.
#[component]
pub(super) fn HitsNote(tree: TreeView) -> impl IntoView {
    let needs = Memo::new(move |_| tree.choice.get().needs_hits());
    let known = Memo::new(move |_| if needs.get() { tree.known_requests() } else { 0 });
    let note = Memo::new(move |_| {
        let requests = known.get();
        tree.store.on_beat(|_| ());
        let of_tree = tree.store.with_tree(|mirror, forest| hits_note(requests, Some((mirror, forest))));
        of_tree.unwrap_or_else(|| hits_note(requests, None))
    });
    view! {
        <Show when=move || needs.get() && tree.store.ready()>
            <p class="tree-note quiet" data-testid="tree-hits-note">{note}</p>
        </Show>
    }
}

/// Stands in for the picture where its widths are hits and none are known.
#[component]
pub(super) fn NoHits(tree: TreeView) -> impl IntoView {
    let hint = Memo::new(move |_| tree.store.on_beat(|cluster| cluster.decisions_hint()));
    let is_missing = Memo::new(move |_| {
        let choice = tree.choice.get();
        let is_wanted = choice.arrangement.width == Width::Hits && !choice.table;
        is_wanted && tree.known_requests() == 0 && tree.store.ready()
    });
    view! {
        <Show when=move || is_missing.get()>
            <Empty id="tree-no-hits" head="No hit is known of the last 5 minutes">
                <p>
                    "A hit is a request that the router sent to a worker on which the beginning of its prompt was
                    cached. It takes routing decisions that report the worker and the prompt's blocks."
                </p>
                {move || hint.get().map(|hint| view! { <HintList hint/> })}
            </Empty>
        </Show>
    }
}
