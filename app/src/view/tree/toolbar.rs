//! What the picture is made of: widths, order, colours, view; and the zoom.

use leptos::prelude::*;
use radixscope_icicle::camera::Goal;
use radixscope_icicle::visible;
use radixscope_model::record::Tier;
use radixscope_state::tree::forest::{Order, Width};

use super::input::zoom_step;
use super::state::{Choice, Heat, TreeView, key};
use crate::format;
use crate::store::TIER_KEY;
use crate::view::control::view;
use crate::view::figure::Empty;
use crate::view::hint::HintList;

/// One of several, of which exactly one is chosen.
#[derive(Clone, Copy)]
struct ToolbarSegment {
    /// For tests and for the browser's name of the group.
    id: &'static str,
    label: &'static str,
    title: &'static str,
    is_on: fn(&Choice) -> bool,
    choose: fn(TreeView),
}

const WIDTHS: [ToolbarSegment; 2] = [
    ToolbarSegment {
        id: "width-blocks",
        label: "Blocks",
        title: "A box is as wide as the blocks in it and below it",
        is_on: |choice| choice.arrangement.width == Width::Blocks,
        choose: |tree| set(tree, key::WIDTH, None),
    },
    ToolbarSegment {
        id: "width-hits",
        label: "Hits, 5 min",
        title: "A box is as wide as the requests of the last 5 minutes that were sent to a worker on which its first block was cached",
        is_on: |choice| choice.arrangement.width == Width::Hits,
        choose: |tree| set(tree, key::WIDTH, Some("hits")),
    },
];

const ORDERS: [ToolbarSegment; 2] = [
    ToolbarSegment {
        id: "order-size",
        label: "Largest left",
        title: "Siblings by width: what matters most stands left, and places change as widths do",
        is_on: |choice| choice.arrangement.order == Order::LeftHeavy,
        choose: |tree| tree.store.address.update(|address| address.order = Order::LeftHeavy),
    },
    ToolbarSegment {
        id: "order-stable",
        label: "Fixed",
        title: "Siblings by their hash: a box keeps its neighbours whatever happens",
        is_on: |choice| choice.arrangement.order == Order::Stable,
        choose: |tree| tree.store.address.update(|address| address.order = Order::Stable),
    },
];

const COLOURS: [ToolbarSegment; 5] = [
    ToolbarSegment {
        id: "heat-owner",
        label: "Worker",
        title: "The colour of the one worker on which a box is cached; where it is on several, deeper for more",
        is_on: |choice| choice.heat == Heat::Owner,
        choose: |tree| set(tree, key::HEAT, None),
    },
    ToolbarSegment {
        id: "heat-recency",
        label: "Recency",
        title: "When a worker last stored, or a request last used, a block of the box",
        is_on: |choice| choice.heat == Heat::Recency,
        choose: |tree| set(tree, key::HEAT, Some(Heat::Recency.as_str())),
    },
    ToolbarSegment {
        id: "heat-hits",
        label: "Hits",
        title: "Requests of the last 5 minutes that were sent to a worker on which the box was cached",
        is_on: |choice| choice.heat == Heat::Hits,
        choose: |tree| set(tree, key::HEAT, Some(Heat::Hits.as_str())),
    },
    ToolbarSegment {
        id: "heat-owners",
        label: "Replica count",
        title: "On how many workers the box is cached",
        is_on: |choice| choice.heat == Heat::Owners,
        choose: |tree| set(tree, key::HEAT, Some(Heat::Owners.as_str())),
    },
    ToolbarSegment {
        id: "heat-sessions",
        label: "Session",
        title: "The session whose requests found the box cached, by the retained decisions: colours for the eight with most requests",
        is_on: |choice| choice.heat == Heat::Sessions,
        choose: |tree| set(tree, key::HEAT, Some(Heat::Sessions.as_str())),
    },
];

const VIEWS: [ToolbarSegment; 3] = [
    ToolbarSegment {
        id: "view-icicle",
        label: "Icicle",
        title: "One picture of all workers' blocks",
        is_on: |choice| !choice.lanes && !choice.table,
        choose: |tree| set_view(tree, false, false),
    },
    ToolbarSegment {
        id: "view-lanes",
        label: "Lanes",
        title: "One picture a worker, the same prefix at the same place in each",
        is_on: |choice| choice.lanes && !choice.table,
        choose: |tree| set_view(tree, true, false),
    },
    ToolbarSegment {
        id: "view-table",
        label: "Table",
        title: "The same as a list that can be unfolded",
        is_on: |choice| choice.table,
        choose: |tree| set_view(tree, false, true),
    },
];

fn set(tree: TreeView, key: &'static str, value: Option<&'static str>) {
    tree.store.address.update(|address| address.set_other(key, value));
}

fn set_view(tree: TreeView, lanes: bool, table: bool) {
    tree.store.address.update(|address| {
        address.set_other(key::LANES, lanes.then_some("1"));
        address.set_other(key::TABLE, table.then_some("1"));
    });
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
            <Segments tree name="Width" of=WIDTHS.to_vec()/>
            <Segments tree name="Order" of=ORDERS.to_vec()/>
            <Segments tree name="Colour" of=COLOURS.to_vec()/>
            <Segments tree name="View" of=VIEWS.to_vec()/>
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
fn Segments(tree: TreeView, name: &'static str, of: Vec<ToolbarSegment>) -> impl IntoView {
    let one = move |segment: ToolbarSegment| {
        let is_on = Memo::new(move |_| (segment.is_on)(&tree.choice.get()));
        view! {
            <label title=segment.title class:on=is_on>
                <input type="radio" name=format!("tree-{name}") data-testid=segment.id prop:checked=is_on
                    on:change=move |_| (segment.choose)(tree)/>
                {segment.label}
            </label>
        }
    };
    view! {
        <div class="seg-group" role="radiogroup" aria-label=name>
            <span class="seg-name" aria-hidden="true">{name}</span>
            <span class="seg">{of.into_iter().map(one).collect_view()}</span>
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
        if requests == 0 {
            return "No hit is known in the last 5 minutes, so hits rank nothing".to_owned();
        }
        tree.store.on_beat(|_| ());
        let left_out = tree.store.with_tree(|mirror, forest| {
            let all = forest.sums().blocks;
            let is_hits = forest.arrangement().width == Width::Hits;
            let without = if is_hits { visible::without_hit(mirror, forest) } else { 0 };
            let (blocks, of) = (format::count(without.into()), format::count(all.into()));
            (without > 0)
                .then(|| format!(". {blocks} of {of} blocks are in boxes without a hit and are hidden"))
        });
        let requests = format::plural(requests.into(), "request", "requests");
        let left_out = left_out.flatten().unwrap_or_default();
        format!("Hits of the last 5 minutes, from {requests} whose cached blocks are known{left_out}")
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
