//! The whole tree as a strip above the picture, with the window marked in it and a funnel from there to the picture below: where one is
//! at a glance. It stands below the path, whose boxes it shows in their place. The mark can be dragged.
//!
//! By hand, with the tree's own rasteriser: ECharts has no icicle, and its treemap no order by prefix.

use std::time::Duration;

use leptos::html;
use leptos::prelude::*;
use radixscope_icicle::palette::{Palette, ReplicaScale};
use radixscope_icicle::raster::{ByOwner, Pixels, raster};
use radixscope_icicle::viewport::{Region, Viewport};
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::Forest;
use web_sys::PointerEvent;

use super::state::TreeView;
use crate::draw::map_mark::{MapMark, Window};
use crate::draw::surface::Surface;
use crate::store::now_ms;
use crate::view::control::view;
use crate::view::resize;

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
    mark: Option<MapMark>,
    pixels: Pixels,
    made: Option<DrawnMinimap>,
    made_ms: f64,
    /// Whether it will be drawn once that is due.
    is_scheduled: bool,
    /// The whole tree when it was last seen.
    all: Option<Region>,
    /// The window that is marked, of what size the map is, and in which colours.
    marked: Option<Marked>,
    /// The window that the element names.
    named: Option<Window>,
    /// Sizes of the canvas and of the mark's, CSS pixels; `None`: they may have changed since they were read.
    sizes: Option<[(f64, f64); 2]>,
}

/// What a mark was drawn from.
#[derive(Clone, Copy, PartialEq)]
struct Marked {
    window: Window,
    size: (f64, f64),
    palette_of: (bool, usize),
}

/// Handle to the small picture.
#[derive(Clone, Copy)]
pub(super) struct Minimap {
    tree: TreeView,
    small: StoredValue<Small, LocalStorage>,
    canvas: NodeRef<html::Canvas>,
    mark: NodeRef<html::Canvas>,
    map: NodeRef<html::Div>,
    dragging: RwSignal<bool>,
}

impl Minimap {
    pub(super) fn new(tree: TreeView) -> Self {
        Self {
            tree,
            small: StoredValue::new_local(Small::default()),
            canvas: NodeRef::new(),
            mark: NodeRef::new(),
            map: NodeRef::new(),
            dragging: RwSignal::new(false),
        }
    }

    pub(super) fn view(self) -> impl IntoView {
        let Self { tree, small, canvas, mark, map, dragging } = self;
        Effect::new(move |_| {
            let (Some(canvas), Some(mark)) = (canvas.get(), mark.get()) else { return };
            small.update_value(|small| {
                (small.surface, small.mark) = (Surface::new(&canvas, None, None), MapMark::new(&mark));
                (small.made, small.marked) = (None, None);
            });
            let resized = move || {
                small.try_update_value(|small| small.sizes = None);
                tree.redraw_soon();
            };
            resize::observe(&canvas, resized);
            resize::observe(&mark, resized);
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
            <div class="minimap" aria-hidden="true" data-testid="minimap" node_ref=map title="The whole tree: click or drag to move the window">
                <div class="minimap-all" on:pointerdown=down on:pointermove=moved
                    on:pointerup=move |_| dragging.set(false) on:pointercancel=move |_| dragging.set(false)>
                    <canvas node_ref=canvas></canvas>
                </div>
                <canvas class="minimap-mark" node_ref=mark></canvas>
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

    /// Draws the tree if that is due, and the mark.
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
            let [size, mark_size] = *small.sizes.get_or_insert_with(|| self.sizes());
            let Small { surface: Some(surface), pixels, made, made_ms, is_scheduled, .. } = small else {
                return;
            };
            surface.fit(size.0, size.1, 0.0);
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
            self.mark(small, mark_size, (region, all), palette, palette_of);
        });
    }

    /// To ask for them makes the browser lay out the page at once.
    fn sizes(self) -> [(f64, f64); 2] {
        [self.canvas, self.mark].map(|canvas| {
            canvas.get_untracked().map_or((0.0, 0.0), |canvas| {
                (f64::from(canvas.client_width()), f64::from(canvas.client_height()))
            })
        })
    }

    /// Marks the window in the whole.
    fn mark(
        self,
        small: &mut Small,
        size: (f64, f64),
        (region, all): (Region, Region),
        palette: &Palette,
        palette_of: (bool, usize),
    ) {
        let Some(mark) = &small.mark else { return };
        let share = |at: f64, whole: f64| (at / whole.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let window = Window {
            left: share(region.x0, all.x1),
            right: share(region.x1, all.x1),
            top: share(region.top, all.bottom),
            bottom: share(region.bottom, all.bottom),
        };
        let marked = Some(Marked { window, size, palette_of });
        if small.marked != marked {
            mark.draw(size, window, palette);
            small.marked = marked;
        }
    }

    /// Names the window that is marked, for whoever reads the page from outside: when the camera stands, and now and then on its way.
    pub(super) fn name_window(self) {
        self.small.update_value(|small| {
            let window = small.marked.map(|marked| marked.window);
            if small.named != window
                && let (Some(map), Some(Window { left, right, top, bottom })) =
                    (self.map.get_untracked(), window)
            {
                let _ =
                    map.set_attribute("data-window", &format!("{left:.4} {right:.4} {top:.4} {bottom:.4}"));
                small.named = window;
            }
        });
    }
}
