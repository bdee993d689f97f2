//! The clock: the only place that reads the system time, in the unit of records.
//!
//! The time of records must not follow a clock that is set wrong for a moment, by hand, by a virtual machine or by a bad time server: time
//! in a state does not run backwards, so that after a moment an hour ahead it would stand for an hour. A step of the clock counts once it
//! has lasted.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use radixscope_model::id::Millis;

/// A difference of more than this is a step of the clock; smaller corrections are followed at once.
const STEP_MS: u64 = 2_000;
/// A step is followed once it has lasted so long.
const LASTS_MS: u64 = 30_000;

/// A clock that stands still goes on so many times slower: whoever waits for the next second's work still sees it done.
const STANDS_STILL: u64 = 1_000;

/// Where the clock stands still; empty in all but demos.
static STILL: OnceLock<RwLock<Still>> = OnceLock::new();

/// Now, as Unix milliseconds.
pub(crate) fn now() -> Millis {
    let real_ms = real_ms();
    let still = STILL.get().map(|still| *still.read().unwrap_or_else(PoisonError::into_inner));
    Millis(still.map_or(real_ms, |still| still.read(real_ms)))
}

/// From here on it is `at`, and hardly any time passes.
pub(crate) fn stand_still(at: Millis) {
    let still = Still { at_ms: at.0, since_ms: real_ms() };
    let set = STILL.get_or_init(|| RwLock::new(still));
    *set.write().unwrap_or_else(PoisonError::into_inner) = still;
}

/// A time at which the clock stands still, and the system's time since when.
#[derive(Clone, Copy)]
struct Still {
    at_ms: u64,
    since_ms: u64,
}

impl Still {
    fn read(self, real_ms: u64) -> u64 {
        self.at_ms + real_ms.saturating_sub(self.since_ms) / STANDS_STILL
    }
}

fn real_ms() -> u64 {
    static CLOCK: LazyLock<(Instant, Clock)> = LazyLock::new(|| (Instant::now(), Clock::at(system_ms())));
    let (began, clock) = &*CLOCK;
    let running_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    clock.read(system_ms(), running_ms)
}

fn system_ms() -> u64 {
    // A clock before 1970 is read as 1970.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The system's time without short steps. All milliseconds; read by many threads at once.
struct Clock {
    /// The system's time when the process began, as the clock has it that is followed.
    began_ms: AtomicI64,
    /// How long the process had run when a step was first seen; `u64::MAX`: there is none.
    step_since_ms: AtomicU64,
}

impl Clock {
    fn at(system_ms: u64) -> Self {
        Self { began_ms: AtomicI64::new(system_ms.cast_signed()), step_since_ms: AtomicU64::new(u64::MAX) }
    }

    /// The time when the system says `system_ms` and the process has run for `running_ms`.
    fn read(&self, system_ms: u64, running_ms: u64) -> u64 {
        let began_ms = system_ms.cast_signed().wrapping_sub(running_ms.cast_signed());
        let followed_ms = self.began_ms.load(Ordering::Relaxed);
        if began_ms.abs_diff(followed_ms) <= STEP_MS {
            // Clocks are corrected all the time.
            if began_ms != followed_ms {
                self.began_ms.store(began_ms, Ordering::Relaxed);
            }
            if self.step_since_ms.load(Ordering::Relaxed) != u64::MAX {
                self.step_since_ms.store(u64::MAX, Ordering::Relaxed);
            }
            return system_ms;
        }
        let since_ms = self.step_since_ms.fetch_min(running_ms, Ordering::Relaxed).min(running_ms);
        if running_ms - since_ms < LASTS_MS {
            return followed_ms.wrapping_add(running_ms.cast_signed()).cast_unsigned();
        }
        self.began_ms.store(began_ms, Ordering::Relaxed);
        self.step_since_ms.store(u64::MAX, Ordering::Relaxed);
        system_ms
    }
}

/// A random number, for jitter and run ids. Ids that must not be guessed are in `random`.
pub(crate) fn random() -> u64 {
    use std::hash::BuildHasher;
    // Each `RandomState` has different keys.
    std::collections::hash_map::RandomState::new().hash_one(now().0)
}

#[cfg(test)]
mod tests {
    use super::{Clock, LASTS_MS, Still};

    const BEGAN: u64 = 1_800_000_000_000;

    #[test]
    fn a_clock_that_stands_still_goes_on_a_thousand_times_slower() {
        let still = Still { at_ms: BEGAN + 5_000, since_ms: BEGAN + 9_000 };
        let read = |after_ms: u64| still.read(BEGAN + after_ms) - BEGAN;
        assert_eq!([8_000, 9_000, 9_999, 69_000].map(read), [5_000, 5_000, 5_000, 5_060]);
    }
    const HOUR: u64 = 3_600_000;

    #[test]
    fn the_systems_time_is_followed() {
        let clock = Clock::at(BEGAN);
        // Ten milliseconds a second too slow: a second in 100 s, and no step.
        for s in 0..1_000 {
            assert_eq!(clock.read(BEGAN + s * 990, s * 1_000), BEGAN + s * 990);
        }
    }

    #[test]
    fn a_step_that_does_not_last_is_not_seen() {
        for wrong in [BEGAN + HOUR, BEGAN - HOUR, BEGAN + 60_000, 0] {
            let clock = Clock::at(BEGAN);
            assert_eq!(clock.read(BEGAN + 1_000, 1_000), BEGAN + 1_000);
            for ms in (1_000..LASTS_MS).step_by(500) {
                assert_eq!(clock.read(wrong + ms, ms), BEGAN + ms, "{ms} ms after it was set to {wrong}");
            }
            assert_eq!(clock.read(BEGAN + LASTS_MS, LASTS_MS), BEGAN + LASTS_MS, "set right again");
            // Another one begins anew.
            assert_eq!(clock.read(wrong + 60_000, 60_000), BEGAN + 60_000);
            assert_eq!(clock.read(wrong + 80_000, 80_000), BEGAN + 80_000);
        }
    }

    #[test]
    fn a_step_that_lasts_is_followed() {
        for right in [BEGAN + HOUR, BEGAN - HOUR] {
            let clock = Clock::at(BEGAN);
            assert_eq!(clock.read(right + 5_000, 5_000), BEGAN + 5_000);
            assert_eq!(clock.read(right + 5_000 + LASTS_MS, 5_000 + LASTS_MS), right + 5_000 + LASTS_MS);
            assert_eq!(clock.read(right + 90_000, 90_000), right + 90_000);
        }
    }
}
