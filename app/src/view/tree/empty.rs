//! What stands in the place of a tree without a block: why there is none, and which setting would fill it.

use leptos::prelude::*;
use radixscope_state::cluster::WorkerState;

use crate::format;
use crate::store::{Store, ViewContext};
use crate::view::control::view;
use crate::view::figure::{Empty, prose};

/// The reason in the words of what was received.
#[component]
pub(super) fn EmptyTree(store: Store) -> impl IntoView {
    // Events come but store nothing: the reason is another one than no events.
    let hollow = Memo::new(move |_| store.on_beat(hollow_events));
    let decodes = Memo::new(move |_| store.on_beat(|shown| shown.decodes_silently()));
    view! {
        <Show when=move || store.ready()
            fallback=|| view! { <Empty id="tree-wait" head="Waiting for the server's state"/> }>
            <Show when=move || hollow.get().is_some() fallback=move || if decodes.get() { Decodes().into_any() } else { NoEvents().into_any() }>
                <Empty id="tree-hollow" head="Workers publish events, but none that stores a block">
                    <p>{move || hollow.get()}</p>
                    {prose(
                        "Engine and Dynamo then most often disagree on the block size: compare the engine's tokens per block with \
                         the worker's `--block-size` or `--kv-block-size`."
                    )}
                </Empty>
            </Show>
        </Show>
    }
}

#[component]
fn Decodes() -> impl IntoView {
    view! {
        <Empty id="tree-decodes" head="Decode workers publish no KV events here">
            {prose(
                "The KV cache of a prompt is transferred to them by the prefill workers, and the router does not ask what is cached \
                 on decode workers. The prefix tree is that of the prefill pool."
            )}
        </Empty>
    }
}

#[component]
fn NoEvents() -> impl IntoView {
    view! {
        <Empty id="tree-empty" head="No cached block known yet">
            {prose(
                "Blocks appear as workers publish KV events. Blocks that a worker stored before this server began to listen come \
                 with its own answer: `--tree-dumps auto` asks for it, at endpoints that `--discovery` or a frontend in \
                 `--prometheus` names. No events at all: enable `--kv-events-config` (vLLM) or `--publish-events-and-metrics` \
                 (TensorRT-LLM), and prefix caching in the engine."
            )}
        </Empty>
    }
}

/// In figures: events that say nothing of what is stored (reference §9.1). `None` where there are none such.
fn hollow_events(shown: &ViewContext<'_>) -> Option<String> {
    let workers = || shown.drawn_workers().filter_map(|worker| shown.cluster.worker(worker));
    let sum = |of: fn(&WorkerState) -> u64| -> u64 { workers().map(of).sum() };
    let (empty, unknown) = (sum(|w| w.empty_stores_total), sum(|w| w.unknown_removed_total));
    (empty + unknown > 0 && sum(|w| w.stored_total) == 0).then(|| {
        format!(
            "Received: {} without a block, {} of blocks that were never stored.",
            format::plural(empty, "stored event", "stored events"),
            format::plural(unknown, "removal", "removals")
        )
    })
}
