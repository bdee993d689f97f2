//! The prefix tree: what stands in its place while no block is known.

use radixscope_insight::view_context::ViewContext;
use radixscope_model::number_format::plural;
use radixscope_state::cluster::WorkerState;

use super::EmptyText;

/// Its heading.
pub const TITLE: &str = "Prefix tree";

/// Why the tree of the pool drawn has no block, by what was received.
pub fn empty(shown: &ViewContext<'_>) -> EmptyText {
    if let Some(received) = events_without_blocks(shown) {
        return EmptyText {
            id: "tree-hollow",
            head: "Workers publish events, but none that stores a block",
            paragraphs: vec![
                received.into(),
                "Engine and Dynamo then most often disagree on the block size: compare the engine's tokens per block with the \
                 worker's `--block-size` or `--kv-block-size`."
                    .into(),
            ],
        };
    }
    if shown.decodes_silently() {
        return EmptyText::new(
            "tree-decodes",
            "Decode workers publish no KV events here",
            "The KV cache of a prompt is transferred to them by the prefill workers, and the router does not ask what is cached on \
             decode workers. The prefix tree is that of the prefill pool.",
        );
    }
    EmptyText::new(
        "tree-empty",
        "No cached block known yet",
        "Blocks appear as workers publish KV events. Blocks that a worker stored before this server began to listen come with its \
         own response: `--tree-dumps auto` asks for it, at endpoints that `--discovery` or a frontend in `--prometheus` names. No \
         events at all: enable `--kv-events-config` (vLLM) or `--publish-events-and-metrics` (TensorRT-LLM), and prefix caching in \
         the engine.",
    )
}

/// Events were received, and none says what is stored (reference §9.1).
fn events_without_blocks(shown: &ViewContext<'_>) -> Option<String> {
    let workers = || shown.drawn_workers().filter_map(|worker| shown.cluster.worker(worker));
    let sum = |of: fn(&WorkerState) -> u64| -> u64 { workers().map(of).sum() };
    let (empty, unknown) = (sum(|w| w.empty_stores_total), sum(|w| w.unknown_removed_total));
    (empty + unknown > 0 && sum(|w| w.stored_total) == 0).then(|| {
        format!(
            "Received: {} without a block, {} of blocks that were never stored.",
            plural(empty, "stored event", "stored events"),
            plural(unknown, "removal", "removals")
        )
    })
}
