//! The prefix tree.

use std::sync::Arc;

use radixscope_insight::view_context::ViewContext;
use radixscope_model::number_format::plural;
use radixscope_state::cluster::WorkerState;

use super::chart_area::{Area, ChartArea, Empty};
use super::{Body, Content, PanelRequest, as_of, notes, of_what};
use crate::tree::{self, TreeSnapshot};

struct Tree {
    picture: Arc<TreeSnapshot>,
    shown: tree::DrawOptions,
}

pub(super) fn content(
    shown: &ViewContext<'_>,
    picture: Option<Arc<TreeSnapshot>>,
    asked: &PanelRequest,
) -> Content {
    let Some(picture) = picture else { return Content::empty("Prefix tree", "No tree", empty_text(shown)) };
    let of = of_what(shown, asked);
    let notes = notes(shown, asked.kind);
    let drawing = tree::DrawOptions {
        workers: asked.worker.map(|worker| vec![worker]),
        width_px: asked.width_px,
        height_px: asked.height_px,
        is_dark: asked.is_dark,
        at: format!("{}{}", as_of(picture.at_ms()), of.replace(" · ", ", ")),
        note: (!notes.is_empty()).then(|| notes.join(". ")),
        empty: empty_text(shown),
        ..tree::DrawOptions::default()
    };
    Content::new("Prefix tree", String::new(), Tree { picture, shown: drawing })
}

impl Body for Tree {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        match self.picture.svg(&self.shown) {
            Ok(svg) => paper.whole = Some(svg),
            // Only a root can be missing, and none is asked for.
            Err(error) => Empty { head: error.to_string(), text: String::new() }.draw(paper, area),
        }
    }
}

/// Why there may be no tree, in the words of the page.
pub(super) fn empty_text(shown: &ViewContext<'_>) -> String {
    if shown.decodes_silently() {
        return "Decode workers publish no KV events here. The KV cache of a prompt is transferred to them by the prefill \
                workers, and the router does not ask what is cached on decode workers."
            .to_owned();
    }
    let workers = || shown.drawn_workers().filter_map(|worker| shown.cluster.worker(worker));
    let sum = |of: fn(&WorkerState) -> u64| -> u64 { workers().map(of).sum() };
    let (empty, unknown) = (sum(|w| w.empty_stores_total), sum(|w| w.unknown_removed_total));
    if empty + unknown > 0 && sum(|w| w.stored_total) == 0 {
        return format!(
            "Workers publish events, but none that stores a block. Received: {} without a block, {} of blocks that were never \
             stored. Engine and Dynamo then most often disagree on the block size: compare the engine's tokens per block with \
             the worker's --block-size or --kv-block-size.",
            plural(empty, "stored event", "stored events"),
            plural(unknown, "removal", "removals")
        );
    }
    "No cached block known yet. Blocks appear as workers publish KV events. No events at all: enable --kv-events-config (vLLM) \
     or --publish-events-and-metrics (TensorRT-LLM), and prefix caching in the engine. Blocks stored before this server began \
     to listen come with --tree-dumps auto."
        .to_owned()
}
