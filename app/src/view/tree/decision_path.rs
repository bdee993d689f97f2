//! A decision on the tree: the path of its prompt, where it ended, how far each candidate held it, and what was gone behind it.
//!
//! By hand: it lies on the boxes of the tree, on the tree's own canvas.

use leptos::prelude::*;
use radixscope_export::panel::not_reused::{self, Ghost};
use radixscope_icicle::palette::{Palette, ink, label};
use radixscope_icicle::viewport::{Rect, Viewport, keep_apart};
use radixscope_model::id::{DecisionId, WorkerIx};
use radixscope_panels::tree::{
    Bracket, DecisionPath, brackets, end_label, no_path_text, path_text, unattached_text,
};
use radixscope_state::cluster::DecisionEntry;
use radixscope_state::tree::NodeId;
use radixscope_state::tree::forest::Forest;

use super::session_paths;
use crate::draw::surface::Surface;
use crate::store::{Store, ViewContext};
use crate::view::control::view;

/// Distance of labels, CSS pixels.
const LABEL_GAP: f64 = 17.0;
/// Height of a ghost at least, its width where nothing of its prompt is there, and its dashes, CSS pixels.
const LEAST_GHOST: f64 = 6.0;
const GHOST_WIDTH: f64 = 40.0;
const GHOST_DASH: f64 = 4.0;

/// What is painted with.
pub(super) struct Canvas<'a> {
    /// The canvas.
    pub surface: &'a Surface,
    /// Where on it what stands.
    pub view: Viewport,
    /// The boxes.
    pub forest: &'a Forest,
    /// Colours.
    pub palette: &'a Palette,
}

impl Canvas<'_> {
    /// Whether any of a box is to be seen.
    pub(super) fn has_in_sight(&self, rect: &Rect) -> bool {
        let (right, bottom) = (f64::from(self.view.width), f64::from(self.view.height));
        rect.right >= 0.0 && rect.left <= right && rect.bottom >= 0.0 && rect.top <= bottom
    }
}

/// What was painted; empty where nothing was.
#[derive(Clone, Copy)]
pub(super) struct Painted {
    /// As text, for everybody.
    pub description: RwSignal<String>,
    /// Label at the end of the path.
    pub end: RwSignal<String>,
}

impl Painted {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { description: RwSignal::new(String::new()), end: RwSignal::new(String::new()) }
    }
}

/// Paints what is known of the open decision, else the requests of the session that is chosen (empty: none), or clears the texts.
pub(super) fn paint(
    cluster: &ViewContext<'_>,
    canvas: &Canvas<'_>,
    (id, session): (Option<DecisionId>, &str),
    painted: Painted,
) {
    let (description, end) = match id {
        Some(id) => path_of(cluster, canvas, id),
        None if session.is_empty() => Default::default(),
        None => (session_paths::paint(cluster, canvas, session), String::new()),
    };
    for (signal, now) in [(painted.description, description), (painted.end, end)] {
        if signal.with_untracked(|before| *before != now) {
            signal.set(now);
        }
    }
}

/// Says what is painted, and hides it.
#[component]
pub(super) fn Note(store: Store, painted: Painted) -> impl IntoView {
    let hide = move |_| {
        store.address.update(|address| match address.decision.take() {
            Some(_) => {}
            None => address.session.clear(),
        });
    };
    view! {
        <Show when=move || painted.description.with(|description| !description.is_empty())>
            <p class="painted" role="status" data-testid="painted">
                <span>{painted.description}</span>
                <button class="plain" data-testid="painted-close" on:click=hide>"Hide"</button>
            </p>
        </Show>
    }
}

/// Paints, and gives what it is as text and the label at its end.
fn path_of(cluster: &ViewContext<'_>, canvas: &Canvas<'_>, id: DecisionId) -> (String, String) {
    let without = |description: String| (description, String::new());
    let (decided, node) = match DecisionPath::of(cluster, id) {
        DecisionPath::None(why) => return without(why),
        DecisionPath::NoBlock(decided) => {
            // Nothing of the prompt is left to stand below: a column of its own.
            let right = f64::from(canvas.view.width);
            let place = Rect { left: right - GHOST_WIDTH * canvas.view.scale, right, top: 0.0, bottom: 0.0 };
            let tag = draw_ghost(canvas, not_reused::ghost(decided, label).as_ref(), place);
            if let Some(tag) = &tag {
                draw_tags(canvas, std::slice::from_ref(tag));
            }
            return without(no_path_text(id, tag.as_ref().map(|tag| tag.text.as_str())));
        }
        DecisionPath::EndsAt(decided, node) => (decided, node),
    };
    let ghost = not_reused::ghost(decided, label);
    let depth = cluster.tree().position(node) + 1;
    let Some(rects) = rects(canvas, node, depth) else { return without(unattached_text(id)) };
    let is_in_sight = |rect: &&Rect| canvas.has_in_sight(rect);
    for &rect in rects.iter().filter(is_in_sight) {
        canvas.surface.outline(rect, canvas.palette.ground, 5.0, 0.0);
    }
    for &rect in rects.iter().filter(is_in_sight) {
        canvas.surface.outline(rect, canvas.palette.focus, 2.5, 0.0);
    }
    let last = rects.last().copied().filter(|last| is_in_sight(&last));
    let depth = u64::from(depth);
    let end_label = end_label(id, depth);
    if let Some(last) = last {
        canvas.surface.label_font();
        let mut tags = draw_brackets(canvas, decided, &rects, last);
        let at = last.bottom + LABEL_GAP * canvas.view.scale;
        tags.push(Tag { beside: last, at, text: end_label.clone(), worker: None });
        tags.extend(rects.last().and_then(|last| draw_ghost(canvas, ghost.as_ref(), *last)));
        draw_tags(canvas, &tags);
    }
    let description = path_text(decided, depth, ghost.as_ref().map(|ghost| ghost.label.as_str()));
    (description, end_label)
}

/// Draws blocks that were gone below the box that they followed, and gives their label.
fn draw_ghost(canvas: &Canvas<'_>, ghost: Option<&Ghost>, above: Rect) -> Option<Tag> {
    let ghost = ghost?;
    let top = canvas.view.y(f64::from(ghost.depth));
    let least = top + LEAST_GHOST * canvas.view.scale;
    let bottom = canvas.view.y(f64::from(ghost.depth) + f64::from(ghost.blocks)).max(least);
    let rect = Rect { top, bottom, ..above };
    if !canvas.has_in_sight(&rect) {
        return None;
    }
    canvas.surface.outline(rect, canvas.palette.ground, 4.0, 0.0);
    canvas.surface.outline(rect, canvas.palette.text, 2.0, GHOST_DASH);
    let at = (top + bottom.min(f64::from(canvas.view.height))) / 2.0;
    Some(Tag { beside: rect, at, text: ghost.label.clone(), worker: None })
}

/// The boxes along the path to `node` on the canvas, from the top, the last one as far as the path goes.
pub(super) fn rects(canvas: &Canvas<'_>, node: NodeId, depth: u32) -> Option<Vec<Rect>> {
    let forest = canvas.forest;
    let end = forest.chain_of(node)?;
    let mut rects: Vec<Rect> = forest.up(end).map(|id| canvas.view.rect_of(forest, id)).collect();
    if let Some(last) = rects.first_mut() {
        last.bottom = canvas.view.y(f64::from(depth));
    }
    rects.reverse();
    Some(rects)
}

/// A label of a path.
pub(super) struct Tag {
    /// The box that it is about.
    pub beside: Rect,
    /// Where its middle wants to be, device pixels from the top.
    pub at: f64,
    /// What it says.
    pub text: String,
    /// Whose colour it has.
    pub worker: Option<WorkerIx>,
}

/// A bracket at each depth that a candidate held. Gives their labels, from the top down.
fn draw_brackets(canvas: &Canvas<'_>, decided: &DecisionEntry, rects: &[Rect], last: Rect) -> Vec<Tag> {
    let scale = canvas.view.scale;
    let mut tags = Vec::new();
    for Bracket { depth, worker, text } in brackets(decided) {
        let y = canvas.view.y(f64::from(depth)).min(last.bottom);
        // The bracket is on the box that ends at or below this depth.
        let on = rects.iter().find(|rect| rect.bottom >= y).copied().unwrap_or(last);
        let colour = canvas.palette.worker(worker.slot());
        let (thick, arm) = (3.0 * scale, 6.0 * scale);
        let (left, right) = (on.left - arm, on.right.max(on.left + arm) + arm);
        canvas.surface.fill(Rect { left, right, top: y - thick, bottom: y }, colour);
        for x in [left, right - thick] {
            canvas.surface.fill(Rect { left: x, right: x + thick, top: y - thick - arm, bottom: y }, colour);
        }
        tags.push(Tag { beside: Rect { left, right, ..on }, at: y, text, worker: Some(worker) });
    }
    tags
}

/// Labels beside the path, each at the side where there is room, none on another one.
pub(super) fn draw_tags(canvas: &Canvas<'_>, tags: &[Tag]) {
    let (surface, scale) = (canvas.surface, canvas.view.scale);
    let mut heights: Vec<f64> = tags.iter().map(|tag| tag.at).collect();
    let (edge, bottom) = (8.0 * scale, f64::from(canvas.view.height));
    keep_apart(&mut heights, LABEL_GAP * scale, edge, bottom - edge);
    for (tag, y) in tags.iter().zip(heights) {
        let width = surface.measure(&tag.text) + 8.0 * scale;
        let room = f64::from(canvas.view.width);
        let right = tag.beside.right.max(0.0) + 6.0 * scale;
        let left = tag.beside.left - width;
        let x =
            if right + width <= room { right } else { left.max(4.0 * scale).min((room - width).max(0.0)) };
        let ground = tag.worker.map_or(canvas.palette.text, |worker| canvas.palette.worker(worker.slot()));
        surface.plate(&tag.text, x, y, ground);
        surface.text(&tag.text, x, y, ink(ground));
    }
}
