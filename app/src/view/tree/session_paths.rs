//! The session that is chosen on the tree: the blocks of its latest requests, outlined in the colour of the worker that each ran on, with
//! its number where its cached blocks end.
//!
//! By hand, as a decision's path is.

use std::collections::BTreeMap;

use radixscope_export::panel::session::requests;
use radixscope_icicle::palette::label;
use radixscope_icicle::viewport::Rect;
use radixscope_panels::tree::session_text;
use radixscope_state::cluster::DecisionEntry;

use super::decision_path::{Canvas, Tag, draw_tags, rects};
use crate::store::ViewContext;

/// Requests that are outlined at most: the latest.
const REQUESTS: usize = 32;

/// Paints, and gives what it is as text.
pub(super) fn paint(cluster: &ViewContext<'_>, canvas: &Canvas<'_>, session: &str) -> String {
    let all = requests(cluster.cluster, session);
    let mut tags: BTreeMap<u64, Tag> = BTreeMap::new();
    let mut seen = 0;
    canvas.surface.label_font();
    // The latest lie above those before them.
    for (at, decided) in all.iter().enumerate().skip(all.len().saturating_sub(REQUESTS)) {
        let Some(boxes) = boxes_of(cluster, canvas, decided) else { continue };
        let worker = decided.decision.worker;
        seen += 1;
        let colour = canvas.palette.worker(worker.slot());
        for rect in boxes.iter().filter(|rect| canvas.has_in_sight(rect)) {
            canvas.surface.outline(*rect, canvas.palette.ground, 5.0, 0.0);
            canvas.surface.outline(*rect, colour, 2.5, 0.0);
        }
        let Some(last) = boxes.last().filter(|last| canvas.has_in_sight(last)) else { continue };
        let text = format!("{} on {}", at + 1, label(worker));
        // One label for requests that end at the same block: the latest.
        let tag = Tag { beside: *last, at: last.bottom, text, worker: Some(worker) };
        tags.insert(last.left.to_bits() ^ last.bottom.to_bits().rotate_left(32), tag);
    }
    draw_tags(canvas, &tags.into_values().collect::<Vec<_>>());
    session_text(session, all.len(), seen)
}

/// The boxes of a request's prompt that are still there, from the top.
fn boxes_of(cluster: &ViewContext<'_>, canvas: &Canvas<'_>, decided: &DecisionEntry) -> Option<Vec<Rect>> {
    let end = decided.decision.path?;
    if cluster.pool_of(end.worker) != Some(cluster.pool) || cluster.tier.is_some() {
        return None;
    }
    let node = cluster.tree().find(cluster.slot(end.worker)?, end.block_hash)?;
    rects(canvas, node, cluster.tree().position(node) + 1)
}
