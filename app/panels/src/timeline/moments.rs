//! Which moment is shown where another one is asked for, and what is said where there is none.

use radixscope_insight::time_range::TimeSpan;
use radixscope_model::id::Millis;

use super::REAL_TIME;
use crate::time_zone::TimeZone;

/// What to do before blocks of a worker can be stepped to.
pub const SELECT_FIRST: &str = "Select a worker first: click its row or press its number";

/// The moment that is shown for `at`, of those `retained`, and why it is another one; empty: it is the same.
pub fn nearest(at: Millis, retained: TimeSpan, zone: TimeZone) -> (Millis, String) {
    let fault = if at < retained.from {
        let from = zone.time_of_day(retained.from);
        format!("That moment is no longer retained: the first that is retained is shown, {from}")
    } else if at > retained.until {
        let until = zone.time_of_day(retained.until);
        format!("That moment is still to come: the latest is shown, {until}")
    } else {
        String::new()
    };
    (at.clamp(retained.from, retained.until), fault)
}

/// The moment so many milliseconds after `at`, or before; at the ends it stays.
pub fn stepped(at: Millis, ms: i64, retained: TimeSpan) -> Millis {
    Millis(at.0.saturating_add_signed(ms)).clamp(retained.from, retained.until)
}

/// The moment that is shown after `passed_ms` of the reader's time at `speed` quarters of real time; `None`: the present, which `at` has
/// reached.
pub fn played(at: Millis, passed_ms: f64, speed: u32, retained: Option<TimeSpan>) -> Option<Millis> {
    let at = Millis(at.0 + (passed_ms * f64::from(speed) / f64::from(REAL_TIME)) as u64);
    Some(at).filter(|at| retained.is_some_and(|retained| *at < retained.until))
}

/// Where nothing more is to be stepped to: the entry of [`STEPS`](super::STEPS) that was chosen.
pub fn nothing_retained(is_forward: bool, step: usize) -> String {
    let side = if is_forward { "later" } else { "earlier" };
    let what = ["decision", "finding or worker change", "block of this worker"];
    format!("No {side} {} is retained", what.get(step).unwrap_or(&"moment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETAINED: TimeSpan = TimeSpan { from: Millis(60_000), until: Millis(120_000) };

    #[test]
    fn a_moment_outside_of_what_is_retained_becomes_the_nearest_one_and_says_so() {
        let shown = |ms| nearest(Millis(ms), RETAINED, TimeZone::default());
        assert_eq!(shown(90_000), (Millis(90_000), String::new()));
        let early = "That moment is no longer retained: the first that is retained is shown, 00:01:00";
        assert_eq!(shown(1_000), (Millis(60_000), early.to_owned()));
        let late = "That moment is still to come: the latest is shown, 00:02:00";
        assert_eq!(shown(121_000), (Millis(120_000), late.to_owned()));
    }

    #[test]
    fn steps_stay_at_the_ends() {
        let to = |ms, by| stepped(Millis(ms), by, RETAINED).0;
        assert_eq!([to(90_000, -1_000), to(90_000, 10_000)], [89_000, 100_000]);
        assert_eq!([to(60_500, -1_000), to(115_000, 10_000)], [60_000, 120_000]);
    }

    #[test]
    fn it_plays_at_its_speed_and_ends_live() {
        let after = |speed| played(Millis(90_000), 1_000.0, speed, Some(RETAINED)).map(|at| at.0);
        assert_eq!([after(1), after(REAL_TIME), after(64)], [Some(90_250), Some(91_000), Some(106_000)]);
        assert_eq!(after(256), None, "past the end");
        assert_eq!(played(Millis(90_000), 1_000.0, REAL_TIME, None), None, "nothing is retained any more");
    }

    #[test]
    fn what_is_not_found_is_named_with_its_side() {
        assert_eq!(nothing_retained(true, 0), "No later decision is retained");
        assert_eq!(nothing_retained(false, 1), "No earlier finding or worker change is retained");
        assert_eq!(nothing_retained(false, 2), "No earlier block of this worker is retained");
    }
}
