//! What has just come into the tree grows in from the top of its box, what was just removed stays as a ghost that fades. Knows no canvas
//! and no clock.
//!
//! It lies above the picture, which shows the present alone: whatever happens here, nothing of it stays.

use std::collections::VecDeque;

use radixscope_model::id::Slot;
use radixscope_state::tree::forest::{Change, ChangeKind, Holder};

use crate::lanes::Lanes;
use crate::palette::{Palette, Rgb};
use crate::viewport::{Rect, Viewport};

/// How long what is new takes to be there, ms.
const APPEARS_MS: f64 = 400.0;
/// How long the outline of removed blocks takes to vanish, ms: long enough for an eye that looked elsewhere.
const VANISHES_MS: f64 = 1_500.0;
/// How much of its colour a ghost has within its outline when it begins.
const GHOST_BODY: f64 = 0.35;
/// Changes shown at a time, so that a storm of them costs no more than a breeze; of more, the oldest end at once.
const MOST: usize = 512;
/// Narrower or lower boxes are not shown, device pixels.
const LEAST: f64 = 1.5;
/// Width of the bright edge of what is new, CSS pixels.
const EDGE: f64 = 2.0;

struct Fading {
    change: Change,
    born_ms: f64,
}

/// A rectangle to be laid over the picture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Veil {
    /// Where, device pixels.
    pub rect: Rect,
    /// Which colour.
    pub colour: Rgb,
    /// How much of it, 0 … 1.
    pub opacity: f64,
    /// Its outline alone.
    pub is_outline: bool,
}

/// What is fading now.
#[derive(Default)]
pub struct Fadings {
    alive: VecDeque<Fading>,
    /// The forest update whose changes were taken last.
    revision: u64,
}

impl Fadings {
    /// Takes the changes of the forest update with this revision, once.
    pub fn add(&mut self, revision: u64, changes: &[Change], now_ms: f64) {
        if std::mem::replace(&mut self.revision, revision) == revision {
            return;
        }
        for &change in changes.iter().take(MOST) {
            if self.alive.len() == MOST {
                self.alive.pop_front();
            }
            self.alive.push_back(Fading { change, born_ms: now_ms });
        }
    }

    /// Nothing fades any more, and the changes of this update do not begin to.
    pub fn stop(&mut self, revision: u64) {
        self.revision = revision;
        self.alive.clear();
    }

    /// Lets go what is over. Says whether anything still fades.
    pub fn go_on(&mut self, now_ms: f64) -> bool {
        self.alive.retain(|fading| now_ms - fading.born_ms < lasts_ms(fading.change.kind));
        !self.alive.is_empty()
    }

    /// The veils to lay over the picture, or over its lanes: there only what one worker holds is shown.
    pub fn veils(
        &self,
        view: &Viewport,
        lanes: Option<&Lanes>,
        palette: &Palette,
        now_ms: f64,
        mut lay: impl FnMut(Veil),
    ) {
        let inner = lanes.map_or(*view, |lanes| lanes.lane_view(view));
        for Fading { change, born_ms } in &self.alive {
            let rect = inner.rect(change.x0, change.width, change.top, change.bottom);
            if rect.right - rect.left < LEAST || rect.bottom - rect.top < LEAST {
                continue;
            }
            let placed = match (lanes, change.holder) {
                (Some(lanes), Holder::One(worker)) => lanes.place(view, worker, rect),
                (Some(_), _) => None,
                (None, _) => Some(rect),
            };
            let Some(rect) = placed.and_then(|rect| visible(rect, view)) else { continue };
            let left = (1.0 - (now_ms - born_ms) / lasts_ms(change.kind)).clamp(0.0, 1.0);
            match change.kind {
                ChangeKind::Removed => {
                    let colour = colour(palette, change.holder);
                    // Fast at first, so that what is gone is soon not taken for what is there.
                    let opacity = GHOST_BODY * left * left;
                    lay(Veil { rect, colour, opacity, is_outline: false });
                    lay(Veil { rect, colour, opacity: left, is_outline: true });
                }
                ChangeKind::Appeared => {
                    // What has not grown yet is still ground; its edge goes down with the growth.
                    let front = rect.bottom - (rect.bottom - rect.top) * left * left;
                    let cover = Rect { top: front, ..rect };
                    lay(Veil { rect: cover, colour: palette.ground, opacity: 1.0, is_outline: false });
                    let edge = Rect { bottom: rect.bottom.min(front + EDGE * view.scale), ..cover };
                    lay(Veil { rect: edge, colour: palette.text, opacity: left, is_outline: false });
                }
            }
        }
    }
}

const fn lasts_ms(kind: ChangeKind) -> f64 {
    match kind {
        ChangeKind::Appeared => APPEARS_MS,
        ChangeKind::Removed => VANISHES_MS,
    }
}

fn colour(palette: &Palette, holder: Holder) -> Rgb {
    match holder {
        Holder::NoWorker => palette.evicted_parent,
        Holder::One(Slot(worker)) => palette.worker(Slot(worker)),
        Holder::Several => palette.shared,
    }
}

/// The part of a rectangle on the surface.
fn visible(rect: Rect, view: &Viewport) -> Option<Rect> {
    let inside = rect.within(f64::from(view.width), f64::from(view.height));
    (inside.left < inside.right && inside.top < inside.bottom).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::palette;
    use crate::viewport::Region;

    const VIEW: Viewport = Viewport {
        region: Region { x0: 0.0, x1: 100.0, top: 0.0, bottom: 50.0 },
        width: 100,
        height: 50,
        scale: 1.0,
    };

    fn change(kind: ChangeKind, x0: f64, width: f64) -> Change {
        Change { x0, width, top: 10, bottom: 20, kind, holder: Holder::One(Slot(1)) }
    }

    fn veils(fadings: &Fadings, lanes: Option<&Lanes>, now_ms: f64) -> Vec<Veil> {
        let mut veils = Vec::new();
        fadings.veils(&VIEW, lanes, &palette(), now_ms, |veil| veils.push(veil));
        veils
    }

    #[test]
    fn what_is_new_grows_in_and_what_is_gone_stays_as_a_ghost_for_a_while() {
        let mut fadings = Fadings::default();
        let changes = [change(ChangeKind::Appeared, 0.0, 10.0), change(ChangeKind::Removed, 50.0, 10.0)];
        fadings.add(1, &changes, 1000.0);
        let now = veils(&fadings, None, 1200.0);
        let p = palette();
        let gone = p.worker(Slot(1));
        assert_eq!(now.iter().map(|v| v.colour).collect::<Vec<_>>(), [p.ground, p.text, gone, gone]);
        assert_eq!(now[0].rect, Rect { left: 0.0, top: 17.5, right: 10.0, bottom: 20.0 }, "at half its time");
        assert_eq!(now[2].rect, Rect { left: 50.0, top: 10.0, right: 60.0, bottom: 20.0 });
        assert_eq!([now[2].is_outline, now[3].is_outline], [false, true]);
        assert!(now[0].opacity == 1.0 && now[2].opacity < now[3].opacity && now[3].opacity < 1.0);
    }

    #[test]
    fn everything_ends() {
        let mut fadings = Fadings::default();
        fadings.add(
            1,
            &[change(ChangeKind::Appeared, 0.0, 10.0), change(ChangeKind::Removed, 0.0, 10.0)],
            0.0,
        );
        assert!(fadings.go_on(APPEARS_MS));
        assert_eq!(veils(&fadings, None, APPEARS_MS).len(), 2);
        assert!(!fadings.go_on(VANISHES_MS));
        assert!(veils(&fadings, None, VANISHES_MS).is_empty());
    }

    #[test]
    fn an_update_is_taken_once_and_not_at_all_after_a_stop() {
        let mut fadings = Fadings::default();
        let changes = [change(ChangeKind::Removed, 0.0, 10.0)];
        fadings.add(1, &changes, 0.0);
        fadings.add(1, &changes, 10.0);
        assert_eq!(veils(&fadings, None, 10.0).len(), 2);
        fadings.stop(2);
        fadings.add(2, &changes, 20.0);
        assert!(!fadings.go_on(20.0) && veils(&fadings, None, 20.0).is_empty());
    }

    #[test]
    fn a_storm_costs_no_more_than_its_bound() {
        let mut fadings = Fadings::default();
        let changes = [change(ChangeKind::Removed, 0.0, 10.0); 200];
        (1..=10).for_each(|revision| fadings.add(revision, &changes, f64::from(revision as u32)));
        let now = veils(&fadings, None, 10.0);
        assert_eq!(now.len(), 2 * MOST);
        assert!(now[2 * MOST - 1].opacity > now[1].opacity, "the latest are retained");
    }

    #[test]
    fn what_is_hardly_seen_or_outside_is_not_shown() {
        let mut fadings = Fadings::default();
        let changes =
            [(0.0, 1.4), (100.0, 10.0), (-20.0, 15.0)].map(|(x0, w)| change(ChangeKind::Removed, x0, w));
        fadings.add(1, &changes, 0.0);
        assert!(veils(&fadings, None, 0.0).is_empty());
    }

    #[test]
    fn in_lanes_it_fades_in_the_lane_of_its_worker() {
        let mut fadings = Fadings::default();
        fadings.add(1, &[change(ChangeKind::Removed, 0.0, 10.0)], 0.0);
        let lanes = Lanes { workers: (0..2).map(Slot).collect(), height: 25.0, scrolled: 0.0 };
        let veil = veils(&fadings, Some(&lanes), 0.0)[0];
        assert!(veil.rect.top > 25.0 && veil.rect.bottom < 50.0, "{veil:?}");
    }
}
