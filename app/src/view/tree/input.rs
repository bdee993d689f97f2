//! Wheel, pointers and keys into movements of the camera and the selection.

use leptos::html;
use leptos::prelude::*;
use radixscope_icicle::camera::{Axes, Goal};
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::viewport::Region;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{ChainId, Forest};
use web_sys::{KeyboardEvent, MouseEvent, PointerEvent, WheelEvent};

use super::moves::{Move, first_wide, is_held, neighbour};
use super::state::{Hovered, TreePlacement, TreeView};
use crate::draw::annotations::GUTTER;

/// A pointer that moves farther than this while it is down drags and does not click, CSS pixels.
const DRAG_FROM: f64 = 4.0;
/// A wheel's notch of this many pixels zooms by e.
const WHEEL_PX_PER_E: f64 = 480.0;
/// The same for a pinch on a trackpad, which the browser tells as a wheel with Ctrl in small steps.
const PINCH_PX_PER_E: f64 = 100.0;
/// One event of a wheel zooms no more than this.
const MOST_E: f64 = 0.7;
/// One press of a button or a key zooms by this.
const STEP: f64 = 1.8;
/// A click on what is too narrow to be distinguished zooms in by this.
const INTO_RUN: f64 = 4.0;
/// A line of a wheel that counts in lines, CSS pixels.
const LINE_PX: f64 = 33.0;

/// What pointers that are down are doing.
#[derive(Clone, Default)]
pub(super) struct Hands {
    /// Id and last place of each pointer that is down.
    down: Vec<(i32, (f64, f64))>,
    /// Where the first went down.
    began: (f64, f64),
    is_dragging: bool,
}

/// The listeners of the picture.
#[derive(Clone, Copy)]
pub(super) struct Input {
    tree: TreeView,
    frame: NodeRef<html::Div>,
    hands: StoredValue<Hands>,
    /// Whether the picture is being dragged.
    pub dragging: RwSignal<bool>,
}

impl Input {
    pub(super) fn new(tree: TreeView, frame: NodeRef<html::Div>) -> Self {
        Self { tree, frame, hands: StoredValue::new(Hands::default()), dragging: RwSignal::new(false) }
    }

    /// Place of an event within the picture, CSS pixels, the axis included.
    fn place(self, event: &MouseEvent) -> (f64, f64) {
        let rect = self.frame.get_untracked().map(|frame| frame.get_bounding_client_rect());
        let (left, top) = rect.map_or((0.0, 0.0), |rect| (rect.left(), rect.top()));
        (f64::from(event.client_x()) - left, f64::from(event.client_y()) - top)
    }

    /// Width and height of the picture, or of one of its lanes, without the axis, CSS pixels.
    fn size(self) -> (f64, f64) {
        let frame = self.frame.get_untracked();
        let size = frame.map(|frame| (f64::from(frame.client_width()), f64::from(frame.client_height())));
        let lane = self.tree.lanes.get_value().map(|lanes| lanes.height);
        size.map_or((1.0, 1.0), |(width, height)| {
            ((width - GUTTER).max(1.0), lane.unwrap_or(height).max(1.0))
        })
    }

    /// The same place as shares of the window.
    fn share(self, (x, y): (f64, f64)) -> (f64, f64) {
        let (width, height) = self.size();
        let down = self.tree.lanes.get_value().map_or(y / height, |lanes| lanes.share(y));
        (((x - GUTTER) / width).clamp(0.0, 1.0), down.clamp(0.0, 1.0))
    }

    pub(super) fn wheel(self, event: &WheelEvent) {
        if self.tree.form == TreePlacement::Overview {
            // It scrolls the page.
            return;
        }
        event.prevent_default();
        let line = match event.delta_mode() {
            WheelEvent::DOM_DELTA_LINE => LINE_PX,
            WheelEvent::DOM_DELTA_PAGE => self.size().1,
            _ => 1.0,
        };
        let (dx, dy) = (event.delta_x() * line, event.delta_y() * line);
        let sideways = if event.shift_key() && dx == 0.0 { dy } else { dx };
        if !event.ctrl_key() && (event.shift_key() || dx.abs() > dy.abs()) {
            // Sideways there are drags and keys; the lanes below have but this.
            if event.shift_key() && self.tree.lanes.get_value().is_some() {
                return self.tree.scrolled.update(|scrolled| *scrolled = (*scrolled + sideways).max(0.0));
            }
            let width = self.size().0;
            return self.tree.steer(|camera| camera.pan(sideways / width, 0.0));
        }
        let per_e = if event.ctrl_key() { PINCH_PX_PER_E } else { WHEEL_PX_PER_E };
        let axes = if event.alt_key() { Axes::Across } else { Axes::Both };
        let at = self.share(self.place(event));
        let factor = (-dy / per_e).clamp(-MOST_E, MOST_E).exp();
        self.tree.steer(|camera| camera.zoom(factor, at, axes, false));
    }

    pub(super) fn down(self, event: &PointerEvent) {
        if event.button() != 0 || self.tree.form == TreePlacement::Overview {
            return;
        }
        let at = self.place(event);
        self.hands.update_value(|hands| {
            if hands.down.is_empty() {
                (hands.began, hands.is_dragging) = (at, false);
            }
            hands.down.push((event.pointer_id(), at));
        });
    }

    pub(super) fn moved(self, event: &PointerEvent) {
        let at = self.place(event);
        self.tree.pause_by_pointer(true);
        let mut hands = self.hands.get_value();
        let before = hands.clone();
        let Some(mine) = hands.down.iter_mut().find(|(id, _)| *id == event.pointer_id()) else {
            self.tree.pointer.set(Some(at));
            self.tree.redraw_soon();
            return;
        };
        mine.1 = at;
        let far = (at.0 - hands.began.0).hypot(at.1 - hands.began.1);
        if !hands.is_dragging && (far > DRAG_FROM || hands.down.len() > 1) {
            hands.is_dragging = true;
            self.dragging.set(true);
            if let Some(frame) = self.frame.get_untracked() {
                // It fails for a pointer that is gone already.
                let _ = frame.set_pointer_capture(event.pointer_id());
            }
        }
        if hands.is_dragging {
            let (width, height) = self.size();
            let ((x, y), apart) = pinch(&hands.down);
            let ((x_before, y_before), apart_before) = pinch(&before.down);
            let at = self.share((x, y));
            self.tree.pointer.set(None);
            self.tree.steer(|camera| {
                camera.pan((x_before - x) / width, (y_before - y) / height);
                if let (Some(now), Some(before)) = (apart, apart_before) {
                    camera.zoom(now / before, at, Axes::Both, false);
                }
            });
        }
        self.hands.set_value(hands);
    }

    /// A pointer went up, or was taken away by the browser.
    pub(super) fn up(self, event: &PointerEvent) {
        self.hands.update_value(|hands| hands.down.retain(|(id, _)| *id != event.pointer_id()));
        if self.hands.with_value(|hands| hands.down.is_empty()) {
            self.dragging.set(false);
        }
    }

    pub(super) fn left(self) {
        self.tree.pointer.set(None);
        self.tree.pause_by_pointer(false);
        self.tree.redraw_soon();
    }

    /// Selects the block that was clicked, or nothing; in the overview, zooms to its box. Where a pointer rests, that is
    /// the block that was announced.
    pub(super) fn click(self, event: &MouseEvent) {
        if self.hands.with_value(|hands| hands.is_dragging) {
            return;
        }
        let place = self.place(event);
        let at = self.share(place);
        let status_text =
            self.tree.seen.get_value().filter(|(then, _)| *then == place).and_then(|(_, what)| what);
        if let Some(Hovered::NarrowBoxes(_)) = status_text {
            return self.tree.steer(|camera| camera.zoom(INTO_RUN, at, Axes::Both, true));
        }
        if self.tree.form == TreePlacement::Overview {
            return self.zoom_or_leave(at);
        }
        let hit = self.tree.store.with_tree(|tree, forest| {
            let (crumb, id) = match status_text {
                Some(Hovered::Block(crumb)) => (crumb, crumb.chain(tree)?),
                _ => {
                    let (id, position) = under(self.tree, forest, at)?;
                    (Crumb::at(tree, tree.block_at(forest.chain(id), position), position), id)
                }
            };
            is_held(tree, forest, id).then_some(crumb)
        });
        self.tree.selected.set(hit.flatten());
    }

    /// The keyboard has come to the tree: a click gives it the focus too, but holds nothing.
    pub(super) fn focused(self) {
        let is_keyed =
            self.frame.get_untracked().is_some_and(|frame| frame.matches(":focus-visible") == Ok(true));
        self.tree.pause_by_focus(is_keyed);
    }

    /// Zooms to the whole box that was clicked twice.
    pub(super) fn double_click(self, event: &MouseEvent) {
        if self.tree.form == TreePlacement::Overview {
            return;
        }
        let at = self.share(self.place(event));
        if let Some(crumb) = self.box_at(at) {
            self.tree.go_to(crumb);
        }
    }

    /// Zooms to the box at shares of the window; from the one that is zoomed to already, goes up.
    fn zoom_or_leave(self, at: (f64, f64)) {
        let Some(crumb) = self.box_at(at) else { return };
        let goal = self.tree.camera.with_value(|camera| camera.goal());
        self.tree.selected.set(None);
        if goal == Goal::Block(crumb) {
            leave(self.tree);
        } else {
            self.tree.look_at(Goal::Block(crumb));
        }
    }

    /// The box at shares of the window, if somebody holds it.
    fn box_at(self, at: (f64, f64)) -> Option<Crumb> {
        let hit = self.tree.store.with_tree(|tree, forest| {
            let (id, _) = under(self.tree, forest, at)?;
            is_held(tree, forest, id).then(|| Crumb::of(tree, forest, id))
        });
        hit.flatten()
    }

    pub(super) fn key(self, event: &KeyboardEvent) {
        if event.ctrl_key() || event.meta_key() || event.alt_key() {
            return;
        }
        let is_done = match event.key().as_str() {
            "+" | "=" => zoom_step(self.tree, 1),
            "-" => zoom_step(self.tree, -1),
            key => Move::of(key).is_some_and(|to| self.make(to)),
        };
        if is_done {
            event.prevent_default();
        }
    }
}

impl Input {
    /// Makes a move. A box that a key leads to is held; Escape lets go.
    fn make(self, to: Move) -> bool {
        let is_done = make(self.tree, to);
        match to {
            Move::Out => self.tree.resume(),
            _ => self.tree.pause_by_focus(true),
        }
        is_done
    }
}

/// Zooms by so many steps around what is selected, if it is seen, else around the middle.
pub(super) fn zoom_step(view: TreeView, steps: i32) -> bool {
    let at = view.store.with_tree(|tree, forest| {
        let region = view.camera.with_value(|camera| camera.heading())?;
        let crumb = view.selected.get_untracked()?;
        let own = own_place(forest, crumb.chain(tree)?);
        let at = (
            ((own.x0 + own.x1) / 2.0 - region.x0) / (region.x1 - region.x0),
            (f64::from(crumb.position) + 0.5 - region.top) / (region.bottom - region.top),
        );
        [at.0, at.1].into_iter().all(|share| (0.0..=1.0).contains(&share)).then_some(at)
    });
    let at = at.flatten().unwrap_or((0.5, 0.5));
    view.steer(|camera| camera.zoom(STEP.powi(steps), at, Axes::Both, true));
    true
}

fn home(view: TreeView) -> bool {
    view.look_at(Goal::All);
    true
}

/// Makes a move; `false` if there was nothing to do, so that the key keeps its ordinary meaning.
fn make(view: TreeView, to: Move) -> bool {
    match to {
        Move::Home => home(view),
        Move::Out => leave(view),
        Move::Enter => match view.selected.get_untracked() {
            Some(crumb) => {
                view.go_to(crumb);
                true
            }
            None => false,
        },
        Move::Above | Move::Below | Move::Left | Move::Right => step(view, to),
    }
}

/// One level up; where everything is seen, lets go of the selection, then of the worker picked out.
pub(super) fn leave(view: TreeView) -> bool {
    let goal = view.camera.with_value(|camera| camera.goal());
    if goal != Goal::All {
        let path = view.path.get_untracked();
        let above = match goal {
            Goal::Block(at) => path.into_iter().rev().find(|crumb| crumb.position < at.position),
            Goal::All | Goal::Free | Goal::Path(_) => path.last().copied(),
        };
        view.look_at(above.map_or(Goal::All, Goal::Block));
    } else if view.selected.get_untracked().is_some() {
        view.selected.set(None);
    } else if view.store.address.with_untracked(|address| address.worker.is_some()) {
        view.store.address.update(|address| address.worker = None);
    } else {
        return false;
    }
    true
}

/// Selects the next box in a direction, and brings it into sight.
fn step(view: TreeView, to: Move) -> bool {
    let next = view.store.with_tree(|tree, forest| {
        let selected = view.selected.get_untracked().and_then(|crumb| crumb.chain(tree));
        let next = match selected {
            Some(at) => next_held(tree, forest, at, to)?,
            None => first_seen(view, tree, forest)?,
        };
        Some((Crumb::of(tree, forest, next), own_place(forest, next)))
    });
    if let Some((crumb, place)) = next.flatten() {
        view.pointer.set(None);
        view.selected.set(Some(crumb));
        view.steer(|camera| camera.reveal(place));
    }
    true
}

/// Boxes that are cached nowhere are skipped: they cannot be found again once the tree changes.
fn next_held(tree: &Tree, forest: &Forest, from: ChainId, to: Move) -> Option<ChainId> {
    let mut at = neighbour(forest, from, to)?;
    while !is_held(tree, forest, at) {
        at = neighbour(forest, at, to)?;
    }
    Some(at)
}

/// What the keyboard begins with: the box looked at, else the leftmost one that is seen.
fn first_seen(view: TreeView, tree: &Tree, forest: &Forest) -> Option<ChainId> {
    let deepest = view.path.with_untracked(|path| path.last().and_then(|crumb| crumb.chain(tree)));
    deepest.or_else(|| {
        let region = view.camera.with_value(|camera| camera.heading())?;
        let seen = forest.at(region.x0.max(0.0), region.top.max(0.0));
        seen.filter(|&id| is_held(tree, forest, id)).or_else(|| first_wide(forest, None))
    })
}

/// The box itself, without what is below it.
fn own_place(forest: &Forest, id: ChainId) -> Region {
    let chain = forest.chain(id);
    Region { bottom: f64::from(chain.end()), ..Region::of(forest, id, chain.position) }
}

/// The box and block position under shares of the window.
pub(super) fn under(view: TreeView, forest: &Forest, (across, down): (f64, f64)) -> Option<(ChainId, u32)> {
    let r = view.camera.with_value(|camera| camera.region())?;
    at(forest, r.x0 + across * (r.x1 - r.x0), r.top + down * (r.bottom - r.top))
}

/// The box over `x` units and its block at a position.
pub(super) fn at(forest: &Forest, x: f64, position: f64) -> Option<(ChainId, u32)> {
    if x < 0.0 || position < 0.0 {
        return None;
    }
    Some((forest.at(x, position)?, position as u32))
}

/// Middle of the pointers that are down, and how far apart the first two are.
fn pinch(down: &[(i32, (f64, f64))]) -> ((f64, f64), Option<f64>) {
    match down {
        [] => ((0.0, 0.0), None),
        [(_, at)] => (*at, None),
        [(_, a), (_, b), ..] => {
            let apart = (a.0 - b.0).hypot(a.1 - b.1).max(1.0);
            (((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0), Some(apart))
        }
    }
}
