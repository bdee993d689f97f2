//! What is on the tree's canvas right now, and drawing it anew when something changed.

use std::time::Duration;

use leptos::html;
use leptos::prelude::*;
use radixscope_core::cluster::Cluster;
use radixscope_core::id::{BlockHash, TokensHash, WorkerIx};
use radixscope_core::tree::layout::{ChainBox, Layout, Order};
use radixscope_core::tree::{NodeId, Tree};
use web_sys::HtmlCanvasElement;

use super::details;
use super::{Canvas, Look};
use crate::draw::palette::{Palette, Pattern, blend, ink, label};
use crate::draw::raster::{Labelled, MAX_TICKS, Pixels, raster};
use crate::draw::surface::Surface;
use crate::draw::viewport::{Region, Viewport, marks};
use crate::format;
use crate::store::{Store, now_ms};
use crate::theme;

/// Width of the axis, CSS pixels.
const GUTTER: f64 = 46.0;
/// How long a zoom takes.
const ZOOM_MS: f64 = 220.0;
/// A layout may take at most this share of the time: a tree of a million blocks is laid out less often.
const LAYOUT_SHARE: f64 = 0.2;
/// Distance of the axis's marks, CSS pixels.
const MARK_GAP: f64 = 36.0;

/// A box by what stays when the tree changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Crumb {
    /// Engine's hash of its first block.
    pub hash: BlockHash,
    tokens: TokensHash,
    position: u32,
}

impl Crumb {
    /// Of a box.
    pub(super) fn of(b: &ChainBox) -> Self {
        Self { hash: b.first_hash, tokens: b.first_tokens, position: b.position }
    }

    /// For the path.
    pub(super) fn words(self) -> String {
        format!("block {}", format::count(u64::from(self.position)))
    }

    /// The node it names now.
    fn node(self, tree: &Tree) -> Option<NodeId> {
        tree.find_any(self.hash).filter(|&n| tree.is_attached(n) && tree.tokens_hash(n) == self.tokens)
    }
}

/// What the layout was made of.
#[derive(Clone, Copy, PartialEq)]
struct Made {
    digest: u64,
    order: Order,
    cut: Option<NodeId>,
}

struct Journey {
    from: Region,
    began_ms: f64,
}

/// Everything that pixels are made of.
#[derive(Clone, Copy, PartialEq)]
struct Drawn {
    made: Made,
    region: Region,
    picked: Option<WorkerIx>,
    palette_of: (bool, usize),
    size: (u32, u32),
}

/// The canvas and what is on it.
pub(super) struct Scene {
    surface: Surface,
    pub layout: Layout,
    made: Option<Made>,
    made_at_ms: f64,
    cost_ms: f64,
    late_layout: bool,
    palette: Palette,
    palette_of: Option<(bool, usize)>,
    pixels: Pixels,
    labelled: Vec<Labelled>,
    shown: Option<Region>,
    zoomed_to: Option<Crumb>,
    journey: Option<Journey>,
    /// What the pixels were made of.
    drawn: Option<Drawn>,
}

impl Scene {
    /// Over two canvases.
    pub(super) fn new(below: &HtmlCanvasElement, above: &HtmlCanvasElement) -> Option<Self> {
        Some(Self {
            surface: Surface::new(below, above)?,
            layout: Layout::default(),
            made: None,
            made_at_ms: 0.0,
            cost_ms: 0.0,
            late_layout: false,
            palette: Palette::default(),
            palette_of: None,
            pixels: Pixels::default(),
            labelled: Vec::new(),
            shown: None,
            zoomed_to: None,
            journey: None,
            drawn: None,
        })
    }

    /// Whether the nodes in the layout are those of the tree.
    pub(super) fn is_fresh(&self, cluster: &Cluster) -> bool {
        self.made.is_some_and(|made| made.digest == cluster.tree().digest())
    }

    /// The box and block position under a device pixel.
    pub(super) fn under(&self, (x, y): (f64, f64)) -> Option<(usize, u32)> {
        let (across, position) = self.viewport()?.under(x - f64::from(self.surface.gutter), y);
        let index = self.layout.at(across, position)?;
        Some((index, position as u32))
    }

    /// Index of a box.
    pub(super) fn index_of(&self, crumb: Crumb) -> Option<usize> {
        let boxes = self.layout.boxes();
        boxes.iter().position(|b| {
            b.first_tokens == crumb.tokens && b.position == crumb.position && b.first_hash == crumb.hash
        })
    }

    /// Boxes from the top to `index`.
    pub(super) fn path_to(&self, index: usize) -> Vec<Crumb> {
        let boxes = self.layout.boxes();
        let up = std::iter::successors(Some(index), |&i| boxes[i].parent.map(|p| p as usize));
        let mut path: Vec<Crumb> = up.map(|i| Crumb::of(&boxes[i])).collect();
        path.reverse();
        path
    }

    /// What another layer is painted with.
    fn canvas(&self) -> Option<Canvas<'_>> {
        let view = self.viewport()?;
        Some(Canvas { surface: &self.surface, view, layout: &self.layout, palette: &self.palette })
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

    /// Lays the tree out if it changed. `None`: it is too early to do so again; come back after this time.
    fn lay_out(&mut self, tree: &Tree, order: Order, cut: Option<NodeId>) -> Option<Duration> {
        let wanted = Made { digest: tree.digest(), order, cut };
        if self.made == Some(wanted) {
            return None;
        }
        let now = now_ms();
        let rest = self.cost_ms / LAYOUT_SHARE - (now - self.made_at_ms);
        let same_view = self.made.is_some_and(|made| (made.order, made.cut) == (order, cut));
        if same_view && rest > 0.0 {
            return Some(Duration::from_millis(rest.ceil() as u64));
        }
        self.layout = Layout::new(tree, order, cut.as_slice());
        self.made = Some(wanted);
        self.made_at_ms = now_ms();
        self.cost_ms = self.made_at_ms - now;
        None
    }

    /// Where the view should be, and is on the way to. Says whether it still moves.
    fn travel(&mut self, zoom: Option<Crumb>, node: Option<NodeId>) -> bool {
        let target =
            node.and_then(|n| self.layout.beginning_with(n)).map(|i| Region::of(&self.layout.boxes()[i]));
        let target = target.unwrap_or_else(|| Region::all(&self.layout));
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

    fn paint(&mut self, picked: Option<WorkerIx>) {
        let (Some(view), Some(made), Some(palette_of)) = (self.viewport(), self.made, self.palette_of) else {
            return;
        };
        let drawn = Drawn { made, region: view.region, picked, palette_of, size: self.surface.size };
        if self.drawn == Some(drawn) {
            return;
        }
        self.labelled = raster(&self.layout, &view, &self.palette, picked, &mut self.pixels);
        self.surface.put(&self.pixels);
        self.drawn = Some(drawn);
    }

    /// Text, axis, outlines.
    fn annotate(
        &self,
        picked: Option<WorkerIx>,
        focus: Option<usize>,
        hover: Option<usize>,
        block_tokens: Option<u32>,
    ) {
        let Some(view) = self.viewport() else { return };
        let surface = &self.surface;
        surface.clear_above();
        surface.font(600);
        for labelled in &self.labelled {
            self.write_label(labelled, picked);
        }
        surface.font(400);
        self.write_axis(&view, block_tokens);
        let boxes = self.layout.boxes();
        if let Some(b) = hover.and_then(|i| boxes.get(i)) {
            surface.outline(view.rect(b), self.palette.text, 1.5, 0.0);
        }
        if let Some(b) = focus.and_then(|i| boxes.get(i)) {
            surface.outline(view.rect(b), self.palette.ground, 4.0, 0.0);
            surface.outline(view.rect(b), self.palette.focus, 2.5, 0.0);
        }
    }

    fn write_label(&self, labelled: &Labelled, picked: Option<WorkerIx>) {
        let Some(b) = self.layout.boxes().get(labelled.index) else { return };
        let owners = self.layout.owners(b);
        let len = if b.len > 1 { format!("×{}", format::count(u64::from(b.len))) } else { String::new() };
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
        let strong = ink(labelled.colour);
        let dimmed = picked.is_some_and(|picked| !owners.contains(picked));
        let colour = if dimmed { blend(labelled.colour, strong, 0.75) } else { strong };
        let ticks = if owners.len() > 1 { 5.0 * scale } else { 0.0 };
        let y = labelled.rect.top + ticks + 9.0 * scale;
        if y + 5.0 * scale <= labelled.rect.bottom {
            let x = labelled.rect.left + 5.0 * scale;
            if owners.len() == 1 && owners.iter().any(|w| Pattern::of(w) != Pattern::Plain) {
                self.surface.plate(text, x, y, labelled.colour);
            }
            self.surface.text(text, x, y, colour, false);
        }
    }

    fn write_axis(&self, view: &Viewport, block_tokens: Option<u32>) {
        let scale = self.surface.scale;
        if self.layout.boxes().is_empty() {
            return;
        }
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
        store.on_frame(|cluster| {
            look.scene.update_value(|scene| {
                let (Some(scene), Some(frame)) = (scene.as_mut(), frame.get_untracked()) else { return };
                scene.surface.fit(f64::from(frame.client_width()), f64::from(frame.client_height()), GUTTER);
                let palette_of = (dark, cluster.workers().len());
                if scene.palette_of != Some(palette_of) {
                    scene.palette = Palette::read(theme::token, dark, palette_of.1);
                    scene.palette_of = Some(palette_of);
                }
                let tree = cluster.tree();
                let node = zoom.last().and_then(|crumb| crumb.node(tree));
                if node.is_none() && !zoom.is_empty() {
                    leave_what_is_gone(look, tree);
                }
                if let Some(wait) = scene.lay_out(tree, order, node)
                    && !std::mem::replace(&mut scene.late_layout, true)
                {
                    set_timeout(
                        move || {
                            look.scene.update_value(|s| s.iter_mut().for_each(|s| s.late_layout = false));
                            animate.update(|n| *n += 1);
                        },
                        wait,
                    );
                }
                if scene.travel(zoom.last().copied(), node) {
                    request_animation_frame(move || animate.update(|n| *n += 1));
                }
                scene.paint(picked);
                let focused = focus.and_then(|f| scene.index_of(f));
                let hovered = pointer.and_then(|p| scene.under(p));
                scene.annotate(picked, focused, hovered.map(|h| h.0), block_tokens(cluster));
                if let (Some(painter), Some(canvas)) = (look.painter, scene.canvas()) {
                    (painter.paint)(cluster, &canvas, decision, look.painted);
                }
                let told = hovered.or_else(|| focused.map(|i| (i, scene.layout.boxes()[i].position)));
                let detail = told.and_then(|(i, position)| details::of(cluster, scene, i, position));
                if look.detail.with_untracked(|before| *before != detail) {
                    look.detail.set(detail);
                }
            });
        });
    });
}

/// Goes up to the nearest box of the path that still exists.
fn leave_what_is_gone(look: Look, tree: &Tree) {
    let left = look
        .zoom
        .with_untracked(|zoom| zoom.iter().rposition(|c| c.node(tree).is_some()).map_or(0, |i| i + 1));
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
