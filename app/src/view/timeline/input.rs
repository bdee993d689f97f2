//! Pointer and keyboard on the timeline.

use leptos::prelude::*;
use radixscope_panels::timeline::{REAL_TIME, zoomed};
use wasm_bindgen::JsCast;
use web_sys::{HtmlElement, KeyboardEvent, PointerEvent, WheelEvent};

use super::TimelineView;
use crate::store::Store;
use crate::time_range::TimeSpan;
use crate::url::Panel;

/// A step of an arrow key, and of one with Shift.
const STEP_MS: (i64, i64) = (1_000, 10_000);
/// A wheel's travel that makes the part drawn e times as long, CSS pixels.
const WHEEL_PX_PER_E: f64 = 400.0;

impl TimelineView {
    /// Where the pointer is: a share of the width.
    fn pointed(self, client_x: i32) -> Option<f64> {
        let rect = self.field.get_untracked()?.get_bounding_client_rect();
        Some(((f64::from(client_x) - rect.left()) / rect.width().max(1.0)).clamp(0.0, 1.0))
    }

    pub(super) fn press(self, event: &PointerEvent) {
        if event.button() != 0 {
            return;
        }
        if let Some(field) = self.field.get_untracked() {
            let _ = field.set_pointer_capture(event.pointer_id());
        }
        if event.shift_key() {
            let at = self.pointed(event.client_x());
            self.brush.set(at.map(|at| (at, at)));
        } else {
            self.drag(event);
        }
    }

    pub(super) fn drag(self, event: &PointerEvent) {
        let Some(at) = self.pointed(event.client_x()).filter(|_| event.buttons() & 1 == 1) else { return };
        if let Some((from, _)) = self.brush.get_untracked() {
            self.brush.set(Some((from, at)));
        } else if let Some(span) = untrack(|| self.span()) {
            self.store.speed.set(0);
            self.store.drag(span.at(at));
        }
    }

    pub(super) fn release(self, event: &PointerEvent) {
        self.store.rest();
        let Some((from, _)) = self.brush.get_untracked() else { return };
        self.brush.set(None);
        if let (Some(to), Some(span)) = (self.pointed(event.client_x()), untrack(|| self.span()))
            && from != to
        {
            self.zoom.set(Some(span.part(from, to)));
        }
    }

    pub(super) fn wheel(self, event: &WheelEvent) {
        let (Some(at), Some(span), Some(all)) =
            (self.pointed(event.client_x()), untrack(|| self.span()), self.store.history_span())
        else {
            return;
        };
        event.prevent_default();
        self.zoom.set(zoomed(all, span, at, (event.delta_y() / WHEEL_PX_PER_E).exp()));
    }
}

/// Takes the keys of time, unless what has the focus takes them itself; says whether it did.
pub(crate) fn key(store: Store, key: &str, event: &KeyboardEvent) -> bool {
    let is_back = store.at.get_untracked() != 0;
    if matches!(key, "l" | "L") {
        if is_back {
            store.back_to_live();
        }
        return is_back;
    }
    // What can have the focus has a use for these keys of its own; the timeline's is this one.
    let focused = event.target().and_then(|target| target.dyn_into::<HtmlElement>().ok());
    if focused
        .is_some_and(|element| element.tab_index() >= 0 && !element.class_list().contains("moments-field"))
    {
        return false;
    }
    // The list of decisions is paused by the same key while it is live.
    let is_of_list = !is_back && store.address.with_untracked(|address| address.panel == Panel::Decisions);
    let step = if event.shift_key() { STEP_MS.1 } else { STEP_MS.0 };
    match key {
        " " if !is_of_list => store.play_or_pause(REAL_TIME),
        "ArrowLeft" => store.step_by(-step),
        "ArrowRight" if is_back => store.step_by(step),
        "Home" if is_back => {
            if let Some(TimeSpan { from, .. }) = store.history_span() {
                store.go(from);
            }
        }
        "End" if is_back => store.back_to_live(),
        _ => return false,
    }
    true
}
