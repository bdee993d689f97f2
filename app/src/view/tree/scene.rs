//! What is on the tree's canvas right now, and drawing it anew when something changed.

use std::time::Duration;

use leptos::html;
use leptos::prelude::*;
use radixscope_model::id::WorkerIx;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Arrangement, ChainId, Forest};
use web_sys::HtmlCanvasElement;

use super::details;
use super::{Canvas, Look};
use crate::draw::crumb::Crumb;
use crate::draw::palette::Palette;
use crate::draw::raster::{ByOwner, Drawn, Pixels, raster};
use crate::draw::surface::Surface;
use crate::draw::viewport::{Region, Viewport};
use crate::draw::words::{self, GUTTER};
use crate::store::{Store, now_ms};
use crate::theme;

/// How long a zoom takes.
const ZOOM_MS: f64 = 220.0;

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
        let fills = ByOwner { palette: &self.palette, picked };
        words::labels(surface, tree, forest, &self.drawn.labelled, &fills, picked);
        if forest.width() > 0 {
            words::axis(surface, &view, &self.palette, block_tokens);
        }
        if let Some(id) = hover {
            surface.outline(view.rect_of(forest, id), self.palette.text, 1.5, 0.0);
        }
        if let Some(id) = focus {
            surface.outline(view.rect_of(forest, id), self.palette.ground, 4.0, 0.0);
            surface.outline(view.rect_of(forest, id), self.palette.focus, 2.5, 0.0);
        }
    }
}

/// Draws whenever something that is drawn changed.
pub(super) fn keep_drawn(store: Store, dark: Signal<bool>, look: Look, frame: NodeRef<html::Div>) {
    store.keep_forest();
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
                scene.annotate(tree, forest, picked, focused_box, hovered_box, cluster.block_tokens());
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

/// A pointer's place on the canvas in device pixels.
pub(super) fn device_point(frame: &NodeRef<html::Div>, event: &web_sys::MouseEvent) -> Option<(f64, f64)> {
    let rect = frame.get_untracked()?.get_bounding_client_rect();
    let scale = window().device_pixel_ratio();
    Some((
        (f64::from(event.client_x()) - rect.left()) * scale,
        (f64::from(event.client_y()) - rect.top()) * scale,
    ))
}
