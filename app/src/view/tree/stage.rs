//! The canvas: drawn whenever something that is drawn changed, at most once a frame.

use leptos::html;
use leptos::prelude::*;
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::palette::Palette;
use radixscope_icicle::raster::{Drawn, Pixels};
use radixscope_icicle::viewport::{Region, Viewport};
use radixscope_model::id::{DecisionId, Seq, WorkerIx};
use radixscope_panels::tree::{How, goal_text, path_to, showing};
use radixscope_state::tree::forest::{ChainId, Forest};
use web_sys::HtmlElement;

use super::brush::Brush;
use super::decision_path;
use super::input::Input;
use super::lights::{self, LightsOnStage};
use super::minimap::Minimap;
use super::speech::Speech;
use super::state::{BlockSummary, Choice, Hovered, TreePlacement, TreeView};
use super::tip::Tip;
use crate::draw::annotations::GUTTER;
use crate::draw::surface::Surface;
use crate::store::{ViewContext, now_ms};
use crate::theme;
use crate::view::control::view;
use crate::view::resize;
use crate::view_context::DrawnTree;

/// Everything that pixels are made of.
#[derive(Clone, PartialEq)]
struct DrawnFrame {
    /// Of what is drawn, and of the present.
    revisions: (u64, u64),
    region: Region,
    palette_of: (bool, usize),
    choice: Choice,
    how: How,
    size: (u32, u32),
}

/// Everything that texts and outlines over the pixels are made of.
#[derive(Clone, PartialEq)]
struct AnnotatedFrame {
    pointer: Option<(f64, f64)>,
    selected: Option<Crumb>,
    found: Vec<Crumb>,
    /// The decision or session whose path is outlined, and the state that it is outlined by.
    path: Option<(Option<DecisionId>, String, Seq)>,
}

impl AnnotatedFrame {
    fn of(tree: TreeView, cluster: &ViewContext<'_>) -> Self {
        let path = tree.store.address.with_untracked(|address| {
            let is_open = address.decision.is_some() || !address.session.is_empty();
            is_open.then(|| (address.decision, address.session.clone(), cluster.seq()))
        });
        Self { pointer: tree.pointer.get(), selected: tree.selected.get(), found: tree.found.get(), path }
    }
}

/// What is on the canvas.
struct Stage {
    surface: Surface,
    /// The device pixels of a CSS pixel that the surface was last fitted at; `None`: sizes may have changed since.
    fitted_at: Option<f64>,
    palette: Palette,
    palette_of: Option<(bool, usize)>,
    pixels: Pixels,
    drawn: Drawn,
    made: Option<DrawnFrame>,
    annotated: Option<AnnotatedFrame>,
    /// What was found under the pointer, until it is published.
    under_pointer: Option<UnderPointer>,
    /// Whose tree that is: the brush of another begins anew.
    of: Option<DrawnTree>,
    brush: Brush,
    lights: LightsOnStage,
    /// Where the boxes of the last frame stand.
    view: Option<Viewport>,
    /// When the texts around the picture were last updated.
    described_ms: f64,
}

/// While the camera moves, texts and attributes follow it at this pace: each change of them makes the browser compute styles and
/// layout anew.
const TEXTS_EVERY_MS: f64 = 250.0;

/// The picture.
#[component]
pub(super) fn Canvas(tree: TreeView) -> impl IntoView {
    let frame = NodeRef::<html::Div>::new();
    let picture = NodeRef::<html::Canvas>::new();
    let axis = NodeRef::<html::Canvas>::new();
    let overlay = NodeRef::<html::Canvas>::new();
    let stage = StoredValue::new_local(None::<Stage>);
    let is_page = tree.form == TreePlacement::Page;
    let is_whole = tree.form != TreePlacement::Overview;
    let minimap = is_page.then(|| Minimap::new(tree));
    tree.store.keep_forest();
    Effect::new(move |_| {
        let (Some(frame), Some(picture), Some(axis), Some(overlay)) =
            (frame.get(), picture.get(), axis.get(), overlay.get())
        else {
            return;
        };
        stage.set_value(Surface::new(&picture, Some(&axis), Some(&overlay)).map(|surface| Stage {
            surface,
            fitted_at: None,
            palette: Palette::default(),
            palette_of: None,
            pixels: Pixels::default(),
            drawn: Drawn::default(),
            made: None,
            annotated: None,
            under_pointer: None,
            of: None,
            brush: Brush::default(),
            lights: LightsOnStage::default(),
            view: None,
            described_ms: f64::NEG_INFINITY,
        }));
        let resized = move || {
            stage.try_update_value(|stage| {
                if let Some(stage) = stage {
                    stage.fitted_at = None;
                }
            });
            tree.redraw_soon();
        };
        resize::observe(&frame, resized);
        // The axis takes more of the frame where its text is larger.
        resize::observe(&picture, resized);
    });
    // Whatever changes, the picture is drawn once, with the next frame.
    Effect::new(move |_| {
        tree.dark.track();
        tree.choice.track();
        tree.selected.track();
        tree.found.track();
        tree.scrolled.track();
        tree.store.address.track();
        tree.store.on_frame(|_| ());
        tree.redraw_soon();
    });
    Effect::new(move |_| {
        tree.redraw.track();
        let Some(frame) = frame.get() else { return };
        untrack(|| draw(tree, stage, minimap, &frame));
    });
    // What moves over the picture, and nothing of the picture.
    Effect::new(move |_| {
        tree.overlay.track();
        let goes_on = stage.try_update_value(|stage| stage.as_mut().is_some_and(|stage| stage.overlay(tree)));
        if goes_on == Some(true) {
            tree.overlay_in_a_step();
        }
    });
    let input = Input::new(tree, frame);
    on_cleanup(move || tree.resume());
    let pointed =
        move |part: fn(&BlockSummary) -> String| move || tree.pointed.with(|block| block.as_ref().map(part));
    let workers = move || {
        let id = |&worker: &WorkerIx| Some(tree.store.peek(|c| c.worker(worker).map(|w| w.id))?.to_string());
        let ids = |block: &BlockSummary| block.owners.iter().filter_map(id).collect::<Vec<_>>().join(" ");
        tree.pointed.with(|block| block.as_ref().map(ids))
    };
    view! {
        <div class="icicle" class:stage=is_whole id="tree" node_ref=frame tabindex="0" role="application" aria-roledescription="icicle"
            aria-label="Prefix tree. Arrow keys move between boxes, Enter zooms to one, Escape goes up and lets changes in, plus and minus zoom, Home shows everything."
            aria-describedby="tree-status" data-testid="tree" class:dragging=input.dragging
            data-hover-hash=pointed(|block| block.hash.to_string()) data-hover-workers=move || workers()
            data-hover-blocks=pointed(|block| (block.blocks - block.above).to_string())
            data-path-end=tree.painted.end
            data-focus-hash=move || tree.selected.with(|s| s.map(|s| s.hash.to_string()))
            on:wheel=move |event| input.wheel(&event)
            on:focus=move |_| input.focused() on:blur=move |_| tree.pause_by_focus(false)
            on:pointerdown=move |event| input.down(&event) on:pointermove=move |event| input.moved(&event)
            on:pointerup=move |event| input.up(&event) on:pointercancel=move |event| input.up(&event)
            on:pointerleave=move |_| input.left()
            on:click=move |event| input.click(&event) on:dblclick=move |event| input.double_click(&event)
            on:keydown=move |event| input.key(&event)>
            <canvas node_ref=picture class="picture" aria-hidden="true"></canvas>
            <canvas node_ref=axis class="axis" aria-hidden="true"></canvas>
            <canvas node_ref=overlay class="overlay" aria-hidden="true"></canvas>
            <lights::Layer tree/>
        </div>
        {minimap.map(Minimap::view)}
        {is_whole.then(|| view! { <Tip tree frame/> })}
        <Speech tree/>
    }
}

fn draw(
    tree: TreeView,
    stage: StoredValue<Option<Stage>, LocalStorage>,
    minimap: Option<Minimap>,
    frame: &HtmlElement,
) {
    let (dark, picked, choice) = (tree.dark.get(), tree.store.picked(), tree.choice.get());
    tree.store.keep_tree_changes();
    tree.store.on_tree_frame(choice.arrangement, |cluster, forest| {
        stage.update_value(|stage| {
            let Some(stage) = stage else { return };
            stage.fit(frame);
            let palette_of = (dark, cluster.workers().slots());
            if stage.palette_of != Some(palette_of) {
                stage.palette = Palette::read(theme::token, dark, palette_of.1);
                stage.palette_of = Some(palette_of);
            }
            let of = (cluster.pool, cluster.tier);
            if stage.of.replace(of) != Some(of) {
                (stage.brush, stage.made) = (Brush::default(), None);
                stage.lights.begin();
                minimap.inspect(|minimap| minimap.begin());
            }
            let still = theme::less_motion();
            let moved =
                tree.camera.try_update_value(|camera| camera.step(cluster.tree(), forest, now_ms(), still));
            let Some((region, goes_on)) = moved else { return };
            let Some(view) = stage.view(region) else { return };
            let is_moving = stage.made.as_ref().is_some_and(|made| made.region != region);
            let seen = (cluster, forest);
            let scrolled = tree.scrolled.get();
            let how = stage.brush.how(tree.store, seen, (choice, picked, dark), &stage.surface, scrolled);
            if how.sessions.is_some() {
                let coloured = stage.brush.coloured_sessions();
                if tree.sessions.with_untracked(|before| before != coloured) {
                    tree.sessions.set(coloured.to_vec());
                }
            }
            tree.lanes.set_value(how.lanes.as_ref().map(|lanes| lanes.in_css(view.scale)));
            let is_painted = stage.paint(seen, &view, how.clone(), choice);
            let annotated = Some(AnnotatedFrame::of(tree, cluster));
            // Most of what is received changes nothing that is drawn.
            let is_new = is_painted || stage.annotated != annotated;
            stage.annotated = annotated;
            stage.brush.take_changes(forest, goes_on);
            stage.view = Some(view);
            stage.lights.update(tree, seen, &view, how.lanes.as_ref());
            if stage.overlay(tree) {
                tree.overlay_in_a_step();
            }
            if is_new {
                stage.surface.put(&stage.pixels);
                stage.under_pointer = Some(stage.annotate(tree, seen, &view, &how));
            }
            if let Some(minimap) = minimap {
                minimap.draw(cluster.tree(), forest, &stage.palette, palette_of, how.replicas, region);
            }
            if !is_moving || now_ms() - stage.described_ms >= TEXTS_EVERY_MS {
                stage.described_ms = now_ms();
                if let Some(under_pointer) = stage.under_pointer.take() {
                    under_pointer.publish(tree, seen);
                }
                mark(tree, region, frame);
                describe(tree, cluster, forest, region);
                minimap.inspect(|minimap| minimap.name_window());
            } else {
                tree.redraw_in_a_step();
            }
            if goes_on {
                tree.redraw_soon();
            }
        });
    });
}

impl Stage {
    /// Fits the canvases to the frame if its size may have changed: to ask for it makes the browser lay out the page at once.
    fn fit(&mut self, frame: &HtmlElement) {
        let ratio = window().device_pixel_ratio();
        if self.fitted_at.replace(ratio) == Some(ratio) {
            return;
        }
        // A canvas of another size is empty.
        if self.surface.fit(f64::from(frame.client_width()), f64::from(frame.client_height()), GUTTER) {
            self.made = None;
        }
    }

    fn view(&self, region: Region) -> Option<Viewport> {
        let (width, height) = self.surface.size;
        (width > 0 && height > 0).then_some(Viewport { region, width, height, scale: self.surface.scale })
    }

    /// The pixels: boxes. Says whether they are others than before.
    fn paint(
        &mut self,
        (cluster, forest): (&ViewContext<'_>, &Forest),
        view: &Viewport,
        how: How,
        choice: Choice,
    ) -> bool {
        let Some(palette_of) = self.palette_of else { return false };
        let (region, size) = (view.region, self.surface.size);
        let live = || cluster.live_tree().forest().map_or(0, Forest::revision);
        let now = cluster.changes.map_or_else(live, |changes| changes.version);
        let made =
            Some(DrawnFrame { revisions: (forest.revision(), now), region, palette_of, choice, how, size });
        if self.made == made {
            return false;
        }
        let Some(DrawnFrame { how, .. }) = &made else { return false };
        self.drawn = self.brush.raster(how, cluster, view, &self.palette, &mut self.pixels);
        self.made = made;
        true
    }

    /// What moves over the picture: what appears and fades, and requests in flight. Says whether that goes on.
    fn overlay(&mut self, tree: TreeView) -> bool {
        let (Some(view), Some(made)) = (self.view, &self.made) else { return false };
        let fades = self.brush.fade(&self.surface, made.how.lanes.as_ref(), &view, &self.palette);
        self.lights.go_on(tree) | fades
    }

    /// What lies over the pixels: texts and outlines. Gives what is under the pointer.
    fn annotate(
        &mut self,
        tree: TreeView,
        (cluster, forest): (&ViewContext<'_>, &Forest),
        view: &Viewport,
        how: &How,
    ) -> UnderPointer {
        let (surface, palette, mirror) = (&self.surface, &self.palette, cluster.tree());
        self.brush.draw_text(how, surface, (cluster, forest), view, palette, &self.drawn);
        let outline = |id: ChainId, colour, width: f64, dash: f64| {
            for place in how.places(mirror, forest, view, id) {
                surface.outline(place, colour, width, dash);
            }
        };
        let pointer = tree.pointer.get().and_then(|at| self.on_tree(view, at));
        let under = pointer.and_then(|at| how.hovered((mirror, forest), view, &self.drawn, at));
        let (hovered, box_under) = under.map_or((None, None), |(hovered, of)| (Some(hovered), of));
        for crumb in tree.found.get() {
            if let Some(id) = crumb.chain(mirror) {
                outline(id, palette.text, 2.0, 4.0);
            }
        }
        if let Some((id, _)) = box_under {
            outline(id, palette.text, 1.5, 0.0);
        }
        if let Some(crumb) = tree.selected.get()
            && let Some(id) = crumb.chain(mirror)
        {
            outline(id, palette.ground, 4.0, 0.0);
            outline(id, palette.focus, 2.5, 0.0);
        }
        // A path belongs to all workers at once: lanes have no place for it. And it is one of a single moment.
        let has_path =
            !tree.choice.with_untracked(|choice| choice.lanes) && tree.form != TreePlacement::Changes;
        let open = tree.store.address.with_untracked(|address| (address.decision, address.session.clone()));
        let (decision, session) = if has_path { open } else { Default::default() };
        let canvas = decision_path::Canvas { surface, view: *view, forest, palette };
        decision_path::paint(cluster, &canvas, (decision, &session), tree.painted);
        tree.seen.set_value(tree.pointer.get().map(|at| (at, hovered)));
        UnderPointer { hovered, block: box_under }
    }

    /// A place of the pointer in device pixels of the tree; `None` over the axis.
    fn on_tree(&self, view: &Viewport, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        let x = x * view.scale - f64::from(self.surface.gutter);
        (x >= 0.0).then_some((x, y * view.scale))
    }
}

/// What the pointer is on: the box and the position in it if it is one.
struct UnderPointer {
    hovered: Option<Hovered>,
    block: Option<(ChainId, u32)>,
}

impl UnderPointer {
    /// Gives it to the text beside the pointer.
    fn publish(self, tree: TreeView, (cluster, forest): (&ViewContext<'_>, &Forest)) {
        let detail = self.block.map(|(id, position)| BlockSummary::of(cluster, forest, id, position));
        set_if_new(tree.hovered, self.hovered);
        set_if_new(tree.pointed, detail);
    }
}

/// Gives the panel's other parts what the camera shows: path and window, as text.
fn describe(tree: TreeView, cluster: &ViewContext<'_>, forest: &Forest, region: Region) {
    let goal = tree.camera.with_value(|camera| camera.goal());
    let path = path_to(goal, region, (cluster.tree(), forest));
    set_if_new(tree.path, path);
    set_if_new(tree.showing, showing(region, forest, cluster.block_tokens()));
}

/// Writes on the element what the camera shows, for whoever reads it from outside.
fn mark(tree: TreeView, region: Region, frame: &HtmlElement) {
    let set = |name: &str, value: &str| {
        if frame.get_attribute(name).as_deref() != Some(value) {
            let _ = frame.set_attribute(name, value);
        }
    };
    let zoom = goal_text(tree.camera.with_value(|camera| camera.goal()));
    set("data-zoom", &zoom);
    let Region { x0, x1, top, bottom } = region;
    set("data-region", &format!("{x0:.3} {x1:.3} {top:.3} {bottom:.3}"));
}

fn set_if_new<T: PartialEq + Send + Sync + 'static>(signal: RwSignal<T>, now: T) {
    if signal.with_untracked(|before| *before != now) {
        signal.set(now);
    }
}
