//! Wheel, pointers and keys of the picture: what each does is computed from plain events; here it is done.

use leptos::html;
use leptos::prelude::*;
use radixscope_icicle::camera::Goal;
use radixscope_panels::tree::{
    Click, Hands, Leave, Looked, Move, PointerMove, StagePlace, Steer, TreeKey, Wheel, WheelCommand,
    WheelUnit, box_at, step, zoom_step as zoom_by,
};
use web_sys::{KeyboardEvent, MouseEvent, PointerEvent, WheelEvent};

use super::state::{TreePlacement, TreeView};
use crate::draw::annotations::GUTTER;

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

    /// The picture as it stands.
    fn on_stage<T>(self, look: impl FnOnce(&StagePlace<'_>) -> T) -> T {
        let frame = self.frame.get_untracked();
        let size = frame.map(|frame| (f64::from(frame.client_width()), f64::from(frame.client_height())));
        self.tree.lanes.with_value(|lanes| {
            look(&StagePlace::of(size.unwrap_or((GUTTER + 1.0, 1.0)), GUTTER, lanes.as_ref()))
        })
    }

    /// The place of an event as shares of the window.
    fn share(self, event: &MouseEvent) -> (f64, f64) {
        let at = self.place(event);
        self.on_stage(|stage| stage.share(at))
    }

    pub(super) fn wheel(self, event: &WheelEvent) {
        if self.tree.form == TreePlacement::Overview {
            // It scrolls the page.
            return;
        }
        event.prevent_default();
        let wheel = Wheel {
            by: (event.delta_x(), event.delta_y()),
            unit: match event.delta_mode() {
                WheelEvent::DOM_DELTA_LINE => WheelUnit::Line,
                WheelEvent::DOM_DELTA_PAGE => WheelUnit::Page,
                _ => WheelUnit::Pixel,
            },
            has_ctrl: event.ctrl_key(),
            has_shift: event.shift_key(),
            has_alt: event.alt_key(),
            at: self.place(event),
        };
        match self.on_stage(|stage| wheel.command(stage)) {
            WheelCommand::Steer(steer) => self.steer(steer),
            WheelCommand::ScrollLanes(by) => {
                self.tree.scrolled.update(|scrolled| *scrolled = (*scrolled + by).max(0.0));
            }
        }
    }

    fn steer(self, steer: Steer) {
        self.tree.steer(|camera| steer.apply(camera));
    }

    pub(super) fn down(self, event: &PointerEvent) {
        if event.button() != 0 || self.tree.form == TreePlacement::Overview {
            return;
        }
        let at = self.place(event);
        self.hands.update_value(|hands| hands.down(event.pointer_id(), at));
    }

    pub(super) fn moved(self, event: &PointerEvent) {
        let at = self.place(event);
        self.tree.pause_by_pointer(true);
        let moved = self.on_stage(|stage| {
            self.hands.try_update_value(|hands| hands.moved(event.pointer_id(), at, stage))
        });
        match moved {
            None | Some(PointerMove::Rests) => {}
            Some(PointerMove::Hovers) => {
                self.tree.pointer.set(Some(at));
                self.tree.redraw_soon();
            }
            Some(PointerMove::Drags { begins, pan, zoom }) => {
                if begins {
                    self.dragging.set(true);
                    if let Some(frame) = self.frame.get_untracked() {
                        // It fails for a pointer that is gone already.
                        let _ = frame.set_pointer_capture(event.pointer_id());
                    }
                }
                self.tree.pointer.set(None);
                self.tree.steer(|camera| {
                    pan.apply(camera);
                    zoom.into_iter().for_each(|zoom| zoom.apply(camera));
                });
            }
        }
    }

    /// A pointer went up, or was taken away by the browser.
    pub(super) fn up(self, event: &PointerEvent) {
        if self.hands.try_update_value(|hands| hands.up(event.pointer_id())) == Some(true) {
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
        if self.hands.with_value(Hands::is_dragging) {
            return;
        }
        let (tree, place, at) = (self.tree, self.place(event), self.share(event));
        let announced = tree.seen.get_value().filter(|(then, _)| *then == place).and_then(|(_, what)| what);
        let click = looked(tree, |looked| {
            tree.store
                .with_tree(|mirror, forest| Click::of(tree.form, at, announced, looked, (mirror, forest)))
        });
        match click.unwrap_or(Click::Nothing) {
            Click::Nothing => {}
            Click::Steer(steer) => self.steer(steer),
            Click::Select(block) => tree.selected.set(block),
            Click::ZoomTo(crumb) => {
                tree.selected.set(None);
                tree.look_at(Goal::Block(crumb));
            }
            Click::Leave => {
                tree.selected.set(None);
                leave(tree);
            }
        }
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
        let (at, region) = (self.share(event), self.tree.camera.with_value(|camera| camera.region()));
        let hit = self.tree.store.with_tree(|tree, forest| box_at(at, region, (tree, forest)));
        if let Some(crumb) = hit.flatten() {
            self.tree.go_to(crumb);
        }
    }

    pub(super) fn key(self, event: &KeyboardEvent) {
        if event.ctrl_key() || event.meta_key() || event.alt_key() {
            return;
        }
        let is_done = match TreeKey::of(event.key().as_str()) {
            None => false,
            Some(TreeKey::Zoom(steps)) => zoom_step(self.tree, steps),
            Some(TreeKey::Move(to)) => self.make(to),
        };
        if is_done {
            event.prevent_default();
        }
    }

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

/// What the picture shows, and what of it is selected.
fn looked<T>(view: TreeView, look: impl FnOnce(&Looked<'_>) -> T) -> T {
    let (goal, region, heading) =
        view.camera.with_value(|camera| (camera.goal(), camera.region(), camera.heading()));
    let selected = view.selected.get_untracked();
    view.path.with_untracked(|path| look(&Looked { goal, region, heading, path, selected }))
}

/// Zooms by so many steps around what is selected, if it is seen, else around the middle.
pub(super) fn zoom_step(view: TreeView, steps: i32) -> bool {
    let steer = looked(view, |looked| {
        let of_tree = view.store.with_tree(|tree, forest| zoom_by(steps, looked, Some((tree, forest))));
        of_tree.unwrap_or_else(|| zoom_by(steps, looked, None))
    });
    view.steer(|camera| steer.apply(camera));
    true
}

/// Makes a move; `false` if there was nothing to do, so that the key keeps its ordinary meaning.
fn make(view: TreeView, to: Move) -> bool {
    match to {
        Move::Home => view.look_at(Goal::All),
        Move::Out => return leave(view),
        Move::Enter => match view.selected.get_untracked() {
            Some(crumb) => view.go_to(crumb),
            None => return false,
        },
        Move::Above | Move::Below | Move::Left | Move::Right => {
            let next =
                looked(view, |looked| view.store.with_tree(|tree, forest| step(to, looked, (tree, forest))));
            // Brings the next box into sight.
            if let Some((crumb, place)) = next.flatten() {
                view.pointer.set(None);
                view.selected.set(Some(crumb));
                view.steer(|camera| camera.reveal(place));
            }
        }
    }
    true
}

/// One level up; where everything is seen, lets go of the selection, then of the worker picked out.
pub(super) fn leave(view: TreeView) -> bool {
    let is_picked = view.store.address.with_untracked(|address| address.worker.is_some());
    match looked(view, |looked| Leave::of(looked, is_picked)) {
        None => return false,
        Some(Leave::LookAt(goal)) => view.look_at(goal),
        Some(Leave::Deselect) => view.selected.set(None),
        Some(Leave::Unpick) => view.store.address.update(|address| address.worker = None),
    }
    true
}
