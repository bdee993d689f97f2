//! The whole tree as a strip above the picture, with the window marked in it and a funnel from there to the picture below: where one is
//! at a glance. It stands below the path, whose boxes it shows in their place. The mark can be dragged.
//!
//! By hand, with the tree's own rasteriser: ECharts has no icicle, and its treemap no order by prefix.

use std::time::Duration;

use leptos::prelude::*;
use leptos::{html, svg};
use radixscope_icicle::palette::{Palette, ReplicaScale};
use radixscope_icicle::raster::{ByOwner, Pixels, raster};
use radixscope_icicle::viewport::{Region, Viewport};
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::Forest;
use web_sys::PointerEvent;

use super::state::TreeView;
use crate::draw::surface::Surface;
use crate::store::now_ms;
use crate::view::control::view;

/// A live tree is drawn small no more often than this.
const EVERY_MS: f64 = 500.0;

/// What it was drawn from.
#[derive(Clone, Copy, PartialEq)]
struct DrawnMinimap {
    revision: u64,
    palette_of: (bool, usize),
    replicas: ReplicaScale,
    size: (u32, u32),
}

/// What is kept between frames.
#[derive(Default)]
struct Small {
    surface: Option<Surface>,
    pixels: Pixels,
    made: Option<DrawnMinimap>,
    made_ms: f64,
    /// Whether it will be drawn once that is due.
    is_scheduled: bool,
    /// The whole tree when it was last seen.
    all: Option<Region>,
    /// The window that is marked, and the whole in which it is.
    marked: Option<(Region, Region)>,
}

/// Handle to the small picture.
#[derive(Clone, Copy)]
pub(super) struct Minimap {
    tree: TreeView,
    small: StoredValue<Small, LocalStorage>,
    canvas: NodeRef<html::Canvas>,
    window: NodeRef<html::I>,
    funnel: NodeRef<svg::Path>,
    dragging: RwSignal<bool>,
}

impl Minimap {
    pub(super) fn new(tree: TreeView) -> Self {
        Self {
            tree,
            small: StoredValue::new_local(Small::default()),
            canvas: NodeRef::new(),
            window: NodeRef::new(),
            funnel: NodeRef::new(),
            dragging: RwSignal::new(false),
        }
    }

    pub(super) fn view(self) -> impl IntoView {
        let Self { tree, small, canvas, window, funnel, dragging } = self;
        Effect::new(move |_| {
            let Some(canvas) = canvas.get() else { return };
            small.update_value(|small| {
                small.surface = Surface::new(&canvas, None, None);
                (small.made, small.marked) = (None, None);
            });
            tree.redraw_soon();
        });
        let down = move |event: PointerEvent| {
            event.stop_propagation();
            dragging.set(true);
            if let Some(canvas) = canvas.get_untracked() {
                let _ = canvas.set_pointer_capture(event.pointer_id());
            }
            self.centre(&event);
        };
        let moved = move |event: PointerEvent| {
            if dragging.get_untracked() {
                self.centre(&event);
            }
        };
        // Keys and the bar above do the same for those who do not point.
        view! {
            <div class="minimap" aria-hidden="true" data-testid="minimap" title="The whole tree: click or drag to move the window">
                <div class="minimap-all" on:pointerdown=down on:pointermove=moved
                    on:pointerup=move |_| dragging.set(false) on:pointercancel=move |_| dragging.set(false)>
                    <canvas node_ref=canvas></canvas>
                    <i class="minimap-window" node_ref=window data-testid="minimap-window"></i>
                </div>
                <svg class="minimap-funnel" viewBox="0 0 100 10" preserveAspectRatio="none"><path node_ref=funnel></path></svg>
            </div>
        }
    }

    fn centre(self, event: &PointerEvent) {
        let (Some(canvas), Some(all)) =
            (self.canvas.get_untracked(), self.small.with_value(|small| small.all))
        else {
            return;
        };
        let rect = canvas.get_bounding_client_rect();
        let across = (f64::from(event.client_x()) - rect.left()) / rect.width().max(1.0);
        let down = (f64::from(event.client_y()) - rect.top()) / rect.height().max(1.0);
        self.tree.steer(|camera| camera.centre_on(across * all.x1, down * all.bottom));
    }

    /// Another tree is drawn from now on.
    pub(super) fn begin(self) {
        self.small.update_value(|small| (small.made, small.marked) = (None, None));
    }

    /// Draws the tree if that is due, and the frame.
    pub(super) fn draw(
        self,
        tree: &Tree,
        forest: &Forest,
        palette: &Palette,
        palette_of: (bool, usize),
        replicas: ReplicaScale,
        region: Region,
    ) {
        self.small.update_value(|small| {
            let all = Region::all(forest);
            small.all = Some(all);
            let Small { surface: Some(surface), pixels, made, made_ms, is_scheduled, .. } = small else {
                return;
            };
            if let Some(canvas) = self.canvas.get_untracked() {
                surface.fit(f64::from(canvas.client_width()), f64::from(canvas.client_height()), 0.0);
            }
            let (width, height) = surface.size;
            if width == 0 || height == 0 {
                return;
            }
            let view = Viewport { region: all, width, height, scale: surface.scale };
            let now = DrawnMinimap { revision: forest.revision(), palette_of, replicas, size: surface.size };
            if *made != Some(now) {
                let wait_ms = EVERY_MS - (now_ms() - *made_ms);
                let is_live = made.is_some_and(|made| DrawnMinimap { revision: now.revision, ..made } == now);
                if is_live && wait_ms > 0.0 {
                    if !std::mem::replace(is_scheduled, true) {
                        set_timeout(
                            move || self.tree.redraw_soon(),
                            Duration::from_millis(wait_ms as u64 + 1),
                        );
                    }
                } else {
                    *is_scheduled = false;
                    raster(tree, &view, palette, &ByOwner { palette, picked: None, replicas }, pixels);
                    surface.put(pixels);
                    (*made, *made_ms) = (Some(now), now_ms());
                }
            }
            if small.marked.replace((region, all)) != Some((region, all)) {
                self.mark(region, all);
            }
        });
    }

    /// Marks the window in the whole.
    fn mark(self, region: Region, all: Region) {
        let (Some(window), Some(funnel)) = (self.window.get_untracked(), self.funnel.get_untracked()) else {
            return;
        };
        let percent = |at: f64, whole: f64| (at / whole.max(f64::MIN_POSITIVE) * 100.0).clamp(0.0, 100.0);
        let (left, right) = (percent(region.x0, all.x1), percent(region.x1, all.x1));
        let (top, bottom) = (percent(region.top, all.bottom), percent(region.bottom, all.bottom));
        let (width, height) = (right - left, bottom - top);
        let style = format!("left:{left:.3}%;width:{width:.3}%;top:{top:.3}%;height:{height:.3}%");
        let _ = window.set_attribute("style", &style);
        let _ = funnel.set_attribute("d", &format!("M{left:.3} 0H{right:.3}L100 10H0Z"));
    }
}
