//! When widgets look again: once per drawn frame, numbers no faster than they can be read, nothing while hidden.

use std::time::Duration;

use leptos::prelude::*;

use super::Store;

/// Shortest time between two updates of numbers. Faster is flicker; slower is felt.
const BEAT_MS: f64 = 150.0;

/// What is already on its way.
#[derive(Default)]
pub(super) struct Pace {
    frame_requested: bool,
    beat_requested: bool,
    last_beat_ms: f64,
}

impl Store {
    /// The state changed, or time passed: widgets will look again soon.
    pub(super) fn changed(self) {
        if document().hidden() {
            return;
        }
        let was_requested =
            self.live.try_update_value(|live| std::mem::replace(&mut live.pace.frame_requested, true));
        if was_requested == Some(false) {
            request_animation_frame(move || self.draw());
        }
    }

    /// Numbers follow at once: the state is another one, and panels must not speak of two at a time.
    pub(super) fn beat_now(self) {
        self.live.update_value(|live| live.pace.last_beat_ms = now_ms());
        self.beat.update(|b| *b += 1);
    }

    /// Shows the present state after the page was hidden.
    pub fn shown_again(self) {
        self.changed();
    }

    fn draw(self) {
        let now = now_ms();
        let due = self.live.try_update_value(|live| {
            live.pace.frame_requested = false;
            let due = now - live.pace.last_beat_ms >= BEAT_MS;
            if due {
                live.pace.last_beat_ms = now;
                return Some(true);
            }
            (!std::mem::replace(&mut live.pace.beat_requested, true)).then_some(false)
        });
        self.version.update(|v| *v += 1);
        match due.flatten() {
            Some(true) => self.beat.update(|b| *b += 1),
            Some(false) => set_timeout(move || self.late_beat(), Duration::from_millis(BEAT_MS as u64)),
            None => {}
        }
    }

    fn late_beat(self) {
        self.live.update_value(|live| {
            live.pace.beat_requested = false;
            live.pace.last_beat_ms = now_ms();
        });
        self.beat.update(|b| *b += 1);
    }
}

/// Milliseconds since the page was opened.
pub(crate) fn now_ms() -> f64 {
    window().performance().map_or(0.0, |performance| performance.now())
}
