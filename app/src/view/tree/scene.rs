//! What is on the tree's canvas right now, and drawing it anew when something changed.

use std::time::Duration;

use leptos::html;
use leptos::prelude::*;
use radixscope_core::cluster::Cluster;
use radixscope_core::id::{BlockHash, TokensHash, WorkerIx};
use radixscope_core::tree::forest::{Arrangement, ChainId, Forest};
use radixscope_core::tree::{NodeId, Tree};
use web_sys::HtmlCanvasElement;

use super::details;
use super::{Canvas, Look};
use crate::draw::palette::{Palette, Pattern, blend, ink, label};
use crate::draw::raster::{ByOwner, Drawn, Labelled, MAX_TICKS, Pixels, raster};
use crate::draw::surface::Surface;
use crate::draw::viewport::{Region, Viewport, marks};
use crate::format;
use crate::store::{Store, now_ms};
use crate::theme;

/// Width of the axis, CSS pixels.
const GUTTER: f64 = 46.0;
/// How long a zoom takes.
const ZOOM_MS: f64 = 220.0;
/// Distance of the axis's marks, CSS pixels.
const MARK_GAP: f64 = 36.0;

/// A box by what stays when the tree changes: its first block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Crumb {
    /// Engine's hash of the block.
    pub hash: BlockHash,
    tokens: TokensHash,
    /// Position of the block.
    pub position: u32,
}

impl Crumb {
    /// Of a box.
    pub(super) fn of(tree: &Tree, forest: &Forest, id: ChainId) -> Self {
        let chain = forest.chain(id);
        Self {
            hash: tree.block_hash(chain.first),
            tokens: tree.tokens_hash(chain.first),
            position: chain.position,
        }
    }

    /// For the path.
    pub(super) fn words(self) -> String {
        format!("block {}", format::count(u64::from(self.position)))
    }

    /// The node it names now.
    fn node(self, tree: &Tree) -> Option<NodeId> {
        tree.find_any(self.hash).filter(|&n| tree.is_attached(n) && tree.tokens_hash(n) == self.tokens)
    }

    /// The box that its block is in now.
    pub(super) fn chain(self, tree: &Tree) -> Option<ChainId> {
        tree.forest()?.chain_of(self.node(tree)?)
    }
}

struct Journey {
    from: Region,
    began_ms: f64,
}

/// Everything that pixels are made of.
#[derive(Clone, Copy, PartialEq)]
struct Made {
    revision: u64,
    region: Region,
    picked: Option<WorkerIx>,
    palette_of: (bool, usize),
    size: (u32, u32),
}

/// The canvas and what is on it.
pub(super) struct Scene {
    surface: Surface,
    palette: Palette,
    palette_of: Option<(bool, usize)>,
    pixels: Pixels,
    drawn: Drawn,
    shown: Option<Region>,
    zoomed_to: Option<Crumb>,
    journey: Option<Journey>,
    /// What the pixels were made of.
    made: Option<Made>,
}

impl Scene {
    /// Over two canvases.
    pub(super) fn new(below: &HtmlCanvasElement, above: &HtmlCanvasElement) -> Option<Self> {
        Some(Self {
            surface: Surface::new(below, above)?,
            palette: Palette::default(),
            palette_of: None,
            pixels: Pixels::default(),
            drawn: Drawn::default(),
            shown: None,
            zoomed_to: None,
            journey: None,
            made: None,
        })
    }

    /// The box and block position under a device pixel.
    pub(super) fn under(&self, forest: &Forest, (x, y): (f64, f64)) -> Option<(ChainId, u32)> {
        let (across, position) = self.viewport()?.under(x - f64::from(self.surface.gutter), y);
        Some((forest.at(across, position)?, position as u32))
    }

    /// What another layer is painted with.
    fn canvas<'a>(&'a self, forest: &'a Forest) -> Option<Canvas<'a>> {
        let view = self.viewport()?;
        Some(Canvas { surface: &self.surface, view, forest, palette: &self.palette })
    }

    fn viewport(&self) -> Option<Viewport> {
        let (width, height) = self.surface.size;
        (width > 0 && height > 0).then_some(Viewport {
            region: self.shown?,
            width,
            height,
            scale: self.surface.scale,
        })
    }

    /// Where the view should be, and is on the way to. Says whether it still moves.
    fn travel(&mut self, tree: &Tree, forest: &Forest, zoom: Option<Crumb>) -> bool {
        let target = zoom.and_then(|crumb| Some(Region::of(forest, crumb.chain(tree)?, crumb.position)));
        let target = target.unwrap_or_else(|| Region::all(forest));
        if zoom != self.zoomed_to {
            self.zoomed_to = zoom;
            let moves = !theme::less_motion() && self.shown.is_some();
            self.journey = self.shown.filter(|_| moves).map(|from| Journey { from, began_ms: now_ms() });
        }
        let share =
            self.journey.as_ref().map_or(1.0, |j| ((now_ms() - j.began_ms) / ZOOM_MS).clamp(0.0, 1.0));
        // Ease out: fast away, gently in.
        let eased = 1.0 - (1.0 - share).powi(3);
        self.shown = Some(self.journey.as_ref().map_or(target, |j| j.from.towards(target, eased)));
        if share >= 1.0 {
            self.journey = None;
        }
        self.journey.is_some()
    }

    fn paint(&mut self, tree: &Tree, forest: &Forest, picked: Option<WorkerIx>) {
        let (Some(view), Some(palette_of)) = (self.viewport(), self.palette_of) else { return };
        let (region, size) = (view.region, self.surface.size);
        let made = Made { revision: forest.revision(), region, picked, palette_of, size };
        if self.made == Some(made) {
            return;
        }
        let fills = ByOwner { palette: &self.palette, picked };
        self.drawn = raster(tree, &view, &self.palette, &fills, &mut self.pixels);
        self.surface.put(&self.pixels);
        self.made = Some(made);
    }

    /// Text, axis, outlines.
    fn annotate(
        &self,
        tree: &Tree,
        forest: &Forest,
        picked: Option<WorkerIx>,
        focus: Option<ChainId>,
        hover: Option<ChainId>,
        block_tokens: Option<u32>,
    ) {
        let Some(view) = self.viewport() else { return };
        let surface = &self.surface;
        surface.clear_above();
        surface.font(600);
        for labelled in &self.drawn.labelled {
            self.write_label(tree, forest, labelled, picked);
        }
        surface.font(400);
        if forest.width() > 0 {
            self.write_axis(&view, block_tokens);
        }
        if let Some(id) = hover {
            surface.outline(view.rect_of(forest, id), self.palette.text, 1.5, 0.0);
        }
        if let Some(id) = focus {
            surface.outline(view.rect_of(forest, id), self.palette.ground, 4.0, 0.0);
            surface.outline(view.rect_of(forest, id), self.palette.focus, 2.5, 0.0);
        }
    }

    fn write_label(&self, tree: &Tree, forest: &Forest, labelled: &Labelled, picked: Option<WorkerIx>) {
        let chain = forest.chain(labelled.id);
        let owners = tree.chain_owners(chain);
        let len =
            if chain.len > 1 { format!("×{}", format::count(u64::from(chain.len))) } else { String::new() };
        let names = match owners.len() {
            0 => "held by nobody".to_owned(),
            n if n > MAX_TICKS => format!("{n} workers"),
            _ => owners.iter().map(label).collect::<Vec<_>>().join(" "),
        };
        let few = format!("{} workers", owners.len());
        let scale = self.surface.scale;
        let room = labelled.rect.right - labelled.rect.left - 10.0 * scale;
        let candidates = [format!("{names} {len}"), format!("{few} {len}"), len, names];
        let text =
            candidates.iter().map(|t| t.trim()).find(|t| !t.is_empty() && self.surface.measure(t) <= room);
        let Some(text) = text else { return };
        let strong = ink(labelled.fill.colour);
        let dimmed = picked.is_some_and(|picked| !owners.contains(picked));
        let colour = if dimmed { blend(labelled.fill.colour, strong, 0.75) } else { strong };
        let ticks = if owners.len() > 1 { 5.0 * scale } else { 0.0 };
        let y = labelled.rect.top + ticks + 9.0 * scale;
        if y + 5.0 * scale <= labelled.rect.bottom {
            let x = labelled.rect.left + 5.0 * scale;
            if labelled.fill.pattern != Pattern::Plain {
                self.surface.plate(text, x, y, labelled.fill.colour);
            }
            self.surface.text(text, x, y, colour, false);
        }
    }

    fn write_axis(&self, view: &Viewport, block_tokens: Option<u32>) {
        let scale = self.surface.scale;
        let height = f64::from(view.height);
        let region = view.region;
        for mark in marks(region.top, region.bottom, height, MARK_GAP * scale) {
            let y = view.y(mark as f64);
            self.surface.tick(y.min(height - scale), self.palette.quiet);
            let text = match block_tokens {
                Some(tokens) => format::short(mark * u64::from(tokens)),
                None => format::short(mark),
            };
            // Not `clamp`, which panics where there is no room, and brings the formatting of fractions for saying so.
            let y = y.min(height - 7.0 * scale).max(7.0 * scale);
            self.surface.text(&text, -8.0 * scale, y, self.palette.quiet, true);
        }
    }
}

/// Draws whenever something that is drawn changed.
pub(super) fn keep_drawn(store: Store, dark: Signal<bool>, look: Look, frame: NodeRef<html::Div>) {
    let animate = RwSignal::new(0u32);
    Effect::new(move |_| {
        animate.track();
        look.resized.track();
        let (dark, picked, focus, pointer) =
            (dark.get(), store.picked(), look.focus.get(), look.pointer.get());
        let (zoom, (order, decision)) = (look.zoom.get(), store.address.with(|a| (a.order, a.decision)));
        let arrangement = Arrangement { order, ..Arrangement::default() };
        store.on_tree_frame(arrangement, |cluster, forest| {
            look.scene.update_value(|scene| {
                let (Some(scene), Some(frame)) = (scene.as_mut(), frame.get_untracked()) else { return };
                scene.surface.fit(f64::from(frame.client_width()), f64::from(frame.client_height()), GUTTER);
                let palette_of = (dark, cluster.workers().len());
                if scene.palette_of != Some(palette_of) {
                    scene.palette = Palette::read(theme::token, dark, palette_of.1);
                    scene.palette_of = Some(palette_of);
                }
                let tree = cluster.tree();
                if zoom.last().is_some_and(|crumb| crumb.chain(tree).is_none()) {
                    leave_what_is_gone(look, tree);
                }
                if scene.travel(tree, forest, zoom.last().copied()) {
                    request_animation_frame(move || animate.update(|n| *n += 1));
                }
                scene.paint(tree, forest, picked);
                let focused = focus.and_then(|crumb| Some((crumb.chain(tree)?, crumb.position)));
                let hovered = pointer.and_then(|p| scene.under(forest, p));
                let (focused_box, hovered_box) = (focused.map(|f| f.0), hovered.map(|h| h.0));
                scene.annotate(tree, forest, picked, focused_box, hovered_box, block_tokens(cluster));
                if let (Some(painter), Some(canvas)) = (look.painter, scene.canvas(forest)) {
                    (painter.paint)(cluster, &canvas, decision, look.painted);
                }
                let detail =
                    hovered.or(focused).map(|(id, position)| details::of(cluster, forest, id, position));
                if look.detail.with_untracked(|before| *before != detail) {
                    look.detail.set(detail);
                }
            });
        });
    });
    on_cleanup(move || store.no_tree_frames());
}

/// Boxes from the top to `id`.
pub(super) fn path_to(tree: &Tree, forest: &Forest, id: ChainId) -> Vec<Crumb> {
    let mut path: Vec<Crumb> = forest.up(id).map(|id| Crumb::of(tree, forest, id)).collect();
    path.reverse();
    path
}

/// Goes up to the nearest box of the path that still exists.
fn leave_what_is_gone(look: Look, tree: &Tree) {
    let left = look
        .zoom
        .with_untracked(|zoom| zoom.iter().rposition(|c| c.chain(tree).is_some()).map_or(0, |i| i + 1));
    set_timeout(move || look.zoom.update(|zoom| zoom.truncate(left)), Duration::ZERO);
}

/// Tokens per block, if every worker that says says the same.
pub(super) fn block_tokens(cluster: &Cluster) -> Option<u32> {
    let mut sizes = cluster.workers().iter().filter_map(|w| w.block_size_tokens);
    let first = sizes.next()?;
    sizes.all(|size| size == first).then_some(first)
}

/// A pointer's place on the canvas in device pixels.
pub(super) fn device_point(frame: &NodeRef<html::Div>, event: &web_sys::MouseEvent) -> Option<(f64, f64)> {
    let rect = frame.get_untracked()?.get_bounding_client_rect();
    let scale = window().device_pixel_ratio();
    Some((
        (f64::from(event.client_x()) - rect.left()) * scale,
        (f64::from(event.client_y()) - rect.top()) * scale,
    ))
}
