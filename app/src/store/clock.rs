//! When widgets look again: once per drawn frame, numbers no faster than they can be read, nothing while hidden.

use std::time::Duration;

use leptos::prelude::*;

use super::Store;
use crate::tasks;

/// Shortest time between two updates of numbers. Faster is flicker; slower is felt.
const BEAT_MS: f64 = 150.0;
/// The longest, on a machine that needs long for one.
const SLOWEST_BEAT_MS: f64 = 1_000.0;
/// Updates follow each other after at least so many times what one takes: the rest is for frames and the reader's hands.
const REST: f64 = 6.0;

/// What is already on its way.
#[derive(Default)]
pub(super) struct Pace {
    frame_requested: bool,
    beat_requested: bool,
    last_beat_ms: f64,
    /// What the last update took with layout and painting.
    beat_took_ms: f64,
}

impl Pace {
    /// Time from one update of numbers to the next.
    fn beat_ms(&self) -> f64 {
        (self.beat_took_ms * REST).clamp(BEAT_MS, SLOWEST_BEAT_MS)
    }
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
        tasks::all_at_once();
        self.beat.update(|b| *b += 1);
    }

    /// Shows the present state after the page was hidden.
    pub fn shown_again(self) {
        self.changed();
    }

    fn draw(self) {
        let now = now_ms();
        let wait_ms = self.live.try_update_value(|live| {
            live.pace.frame_requested = false;
            let wait_ms = live.pace.last_beat_ms + live.pace.beat_ms() - now;
            if wait_ms <= 0.0 {
                live.pace.last_beat_ms = now;
                return Some(None);
            }
            (!std::mem::replace(&mut live.pace.beat_requested, true)).then_some(Some(wait_ms))
        });
        self.version.update(|v| *v += 1);
        match wait_ms.flatten() {
            Some(None) => set_timeout(move || self.beat_in_task(), Duration::ZERO),
            Some(Some(wait_ms)) => {
                let in_time = move || {
                    self.live.try_update_value(|live| live.pace.beat_requested = false);
                    self.changed();
                };
                set_timeout(in_time, Duration::from_secs_f64(wait_ms / 1_000.0));
            }
            None => {}
        }
    }

    /// An update of numbers in a task of its own, since the frame's has layout and painting to do, and how long both take.
    fn beat_in_task(self) {
        let began_ms = now_ms();
        self.beat.update(|b| *b += 1);
        // Due after all effects of the update.
        leptos::task::spawn_local(async move {
            let effects_ms = now_ms() - began_ms;
            request_animation_frame(move || {
                let began_ms = now_ms();
                let painted = move || {
                    let took_ms = effects_ms + now_ms() - began_ms;
                    self.live.try_update_value(|live| live.pace.beat_took_ms = took_ms);
                };
                set_timeout(painted, Duration::ZERO);
            });
        });
    }
}

/// Milliseconds since the page was opened.
pub(crate) fn now_ms() -> f64 {
    window().performance().map_or(0.0, |performance| performance.now())
}
