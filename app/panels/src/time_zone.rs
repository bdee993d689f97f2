//! The reader's time zone, which the page asks the browser for once: times of day in models are written in it.

use radixscope_model::id::Millis;

use crate::format;

/// Milliseconds east of Greenwich.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimeZone(pub i64);

impl TimeZone {
    /// `08:41:08`.
    pub fn time_of_day(self, at: Millis) -> String {
        format::clock(at.0, self.0)
    }
}

impl std::fmt::Display for TimeZone {
    /// `UTC+01:00`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let minutes = self.0 / 60_000;
        let sign = if minutes < 0 { '−' } else { '+' };
        write!(f, "UTC{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_written_in_the_readers_zone() {
        let zone = TimeZone(-(3 * 60 + 30) * 60_000);
        assert_eq!(zone.time_of_day(Millis(12 * 3_600_000)), "08:30:00");
        assert_eq!(zone.to_string(), "UTC−03:30");
        assert_eq!(TimeZone::default().to_string(), "UTC+00:00");
    }
}
