//! The tree: an icicle on canvas, with what belongs around it. The canvas itself is in `scene`.

pub(crate) mod details;
pub(crate) mod moves;
mod paint;
mod scene;

use leptos::html;
use leptos::prelude::*;
use radixscope_state::cluster::{Cluster, WorkerState};
use radixscope_state::tree::forest::Order;
use web_sys::{KeyboardEvent, MouseEvent, PointerEvent};

use super::figure::{Empty, Figure, PanelHead};
use super::resize;
use crate::draw::crumb::Crumb;
use crate::format;
use crate::store::Store;
use crate::url::Panel;
use details::{Detail, DetailBar};
use moves::Move;
pub use paint::{Canvas, Painted, Painter};
use scene::Scene;

/// Everything about the view of the tree that the reader chooses.
#[derive(Clone, Copy)]
struct Look {
    scene: StoredValue<Option<Scene>, LocalStorage>,
    /// Boxes from the top to the one zoomed to.
    zoom: RwSignal<Vec<Crumb>>,
    /// The box that the keyboard is on.
    focus: RwSignal<Option<Crumb>>,
    /// Pointer over the canvas, device pixels.
    pointer: RwSignal<Option<(f64, f64)>>,
    /// What the detail bar tells.
    detail: RwSignal<Option<Detail>>,
    painted: Painted,
    painter: Option<Painter>,
    /// The size of the canvas changed.
    resized: RwSignal<u32>,
}

/// The panel.
#[component]
pub(super) fn TreePanel(store: Store, dark: Signal<bool>, painter: Option<Painter>) -> impl IntoView {
    let look = Look {
        scene: StoredValue::new_local(None),
        zoom: RwSignal::new(Vec::new()),
        focus: RwSignal::new(None),
        pointer: RwSignal::new(None),
        detail: RwSignal::new(None),
        painted: Painted { words: RwSignal::new(String::new()), end: RwSignal::new(String::new()) },
        painter,
        resized: RwSignal::new(0),
    };
    let totals = Memo::new(move |_| store.on_beat(|c| c.tree().totals()));
    let nodes = Signal::derive(move || {
        if store.heard() { format::count(totals.get().nodes) } else { format::UNKNOWN.to_owned() }
    });
    let shared = Signal::derive(move || match totals.get() {
        t if t.nodes == 0 => format::UNKNOWN.to_owned(),
        t => format::percent(t.shared as f64 / t.nodes as f64),
    });
    let unattached = Memo::new(move |_| totals.get().unattached);
    let empty = Memo::new(move |_| totals.get().nodes == 0);
    view! {
        <section class="panel tree" aria-labelledby="tree-title" data-testid="tree-panel">
            <PanelHead store panel=Panel::Tree title="Prefix tree">
                <Show when=move || unattached.get() != 0>
                    <Figure id="unattached" label="unattached" value=Signal::derive(move || format::count(unattached.get()))
                        title="Blocks whose parent was never heard of. They wait for it outside the picture"/>
                </Show>
                <Figure id="nodes" label="distinct blocks" value=nodes title="Distinct blocks in the tree, held by at least one worker"/>
                <Figure id="shared" label="shared" value=shared title="Distinct blocks held by two workers or more"/>
            </PanelHead>
            <Path store look/>
            {painter.map(|painter| (painter.note)(store, look.painted))}
            <div class="icicle-box">
                <Icicle store dark look/>
                <Show when=move || empty.get()><EmptyTree store/></Show>
            </div>
            <DetailBar store detail=look.detail/>
        </section>
    }
}

/// Where in the tree we are, and the way up.
#[component]
fn Path(store: Store, look: Look) -> impl IntoView {
    let depth = Memo::new(move |_| look.zoom.with(Vec::len));
    let order = Memo::new(move |_| store.address.with(|a| a.order == Order::Stable));
    let toggle_order = move |_| {
        store
            .address
            .update(|a| a.order = if a.order == Order::Stable { Order::LeftHeavy } else { Order::Stable });
    };
    view! {
        <div class="path">
            <nav aria-label="Path in the tree">
                <ol data-testid="path">
                    <li><button class="plain" aria-current=move || (depth.get() == 0).then_some("true") on:click=move |_| look.zoom.set(Vec::new())>"All prompts"</button></li>
                    {move || {
                        let crumbs = look.zoom.get();
                        let n = crumbs.len();
                        // The way down can be long: its beginning and its end tell where we are.
                        let skipped = n.saturating_sub(4);
                        let item = |(i, crumb): (usize, Crumb)| view! {
                            <li><button class="plain" aria-current=(i + 1 == n).then_some("true")
                                on:click=move |_| look.zoom.update(|z| z.truncate(i + 1))>{crumb.words()}</button></li>
                        };
                        let dots = (skipped > 0).then(|| view! { <li aria-hidden="true">"…"</li> });
                        (dots, crumbs.into_iter().enumerate().skip(skipped).map(item).collect_view())
                    }}
                </ol>
            </nav>
            <span class="spacer"></span>
            <Show when=move || depth.get() != 0>
                <button class="plain" data-testid="up" on:click=move |_| look.zoom.update(|z| { z.pop(); })>"Up"</button>
            </Show>
            <button class="plain quiet" data-testid="order" on:click=toggle_order title="How siblings are ordered: largest left, or each in its fixed place">
                {move || if order.get() { "Order: fixed" } else { "Order: largest left" }}
            </button>
        </div>
    }
}

#[component]
fn Icicle(store: Store, dark: Signal<bool>, look: Look) -> impl IntoView {
    let frame = NodeRef::<html::Div>::new();
    let below = NodeRef::<html::Canvas>::new();
    let above = NodeRef::<html::Canvas>::new();
    Effect::new(move |_| {
        let (Some(frame), Some(below), Some(above)) = (frame.get(), below.get(), above.get()) else { return };
        look.scene.set_value(Scene::new(&below, &above));
        resize::observe(&frame, move || look.resized.update(|n| *n += 1));
    });
    scene::keep_drawn(store, dark, look, frame);
    let at = move |event: &PointerEvent| scene::device_point(&frame, event);
    let click = move |event: MouseEvent| {
        if let Some(point) = scene::device_point(&frame, &event) {
            moves::click(store, look, point);
        }
    };
    let key = move |event: KeyboardEvent| {
        if let Some(to) = Move::of(&event.key())
            && !event.ctrl_key()
            && !event.meta_key()
            && !event.alt_key()
            && moves::make(store, look, to)
        {
            event.prevent_default();
        }
    };
    let hash = move || look.detail.with(|d| d.as_ref().map(|d| d.hash.to_string()));
    let hover = move || look.pointer.get().and_then(|_| hash());
    view! {
        <div class="icicle" id="tree" node_ref=frame tabindex="0" role="application" aria-roledescription="icicle"
            aria-label="Prefix tree. Arrow keys move between boxes, Enter zooms, Escape goes up, Home shows everything."
            aria-describedby="tree-said" data-testid="tree" data-hover-hash=hover
            data-focus-hash=move || look.focus.with(|f| f.map(|f| f.hash.to_string()))
            data-path-end=look.painted.end
            data-zoom=move || look.zoom.with(|z| z.last().map(|c| c.hash.to_string()))
            on:pointermove=move |event| look.pointer.set(at(&event))
            on:pointerleave=move |_| look.pointer.set(None)
            on:click=click on:keydown=key>
            <canvas node_ref=below class="below" aria-hidden="true"></canvas>
            <canvas node_ref=above class="above" aria-hidden="true"></canvas>
        </div>
        <p id="tree-said" class="hidden" aria-live="polite" data-testid="tree-said">
            {move || look.focus.get().and_then(|_| look.detail.with(|d| d.as_ref().map(|d| d.sentence(store))))}
        </p>
    }
}

#[component]
pub(crate) fn EmptyTree(store: Store) -> impl IntoView {
    // Events come but store nothing: the reason is another one than no events.
    let hollow = Memo::new(move |_| store.on_beat(hollow_events));
    view! {
        <Show when=move || store.ready()
            fallback=|| view! { <Empty id="tree-wait" head="Waiting for the server's state"/> }>
            <Show when=move || hollow.get().is_some() fallback=NoEvents>
                <Empty id="tree-hollow" head="Workers publish events, but none that stores a block">
                    <p>{move || hollow.get()}</p>
                    <p>
                        "Engine and Dynamo then most often disagree on the block size: compare the engine's tokens per
                        block with the worker's "<code>"--block-size"</code>" or "<code>"--kv-block-size"</code>"."
                    </p>
                </Empty>
            </Show>
        </Show>
    }
}

#[component]
fn NoEvents() -> impl IntoView {
    view! {
        <Empty id="tree-empty" head="No cached block known yet">
            <p>
                "Blocks appear as workers publish KV events. A worker that stored its blocks before this server began
                to listen shows them as they are stored again. No events at all: enable "
                <code>"--kv-events-config"</code> " (vLLM) or " <code>"--publish-events-and-metrics"</code>
                " (TensorRT-LLM), and prefix caching in the engine."
            </p>
        </Empty>
    }
}

/// In figures: events that say nothing of what is stored (reference §9.1). `None` where there are none such.
fn hollow_events(cluster: &Cluster) -> Option<String> {
    let sum = |of: fn(&WorkerState) -> u64| -> u64 { cluster.workers().iter().map(of).sum() };
    let (empty, unknown) = (sum(|w| w.empty_stores_total), sum(|w| w.unknown_removed_total));
    (empty + unknown > 0 && sum(|w| w.stored_total) == 0).then(|| {
        format!(
            "Heard: {} without a block, {} of blocks that were never stored.",
            format::plural(empty, "stored event", "stored events"),
            format::plural(unknown, "removal", "removals")
        )
    })
}
