//! The time that charts show, as the address has it: `from` and `to` as Grafana writes them, relative to now or Unix
//! milliseconds. Pure; knows no chart.

use std::fmt::{Display, Formatter, Result};

use radixscope_model::id::Millis;
use radixscope_state::cluster::HISTORY_S;

/// A moment as the address names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimePoint {
    /// So many seconds before now.
    Ago(u64),
    /// A fixed one.
    At(Millis),
}

impl TimePoint {
    /// `now`, `now-90s`, `now-15m`, `now-1h`, `now-1d`, or Unix milliseconds.
    pub fn parse(text: &str) -> Option<Self> {
        let Some(ago) = text.strip_prefix("now") else {
            return text.parse().ok().filter(|ms| *ms <= MOST_MS).map(|ms| Self::At(Millis(ms)));
        };
        if ago.is_empty() {
            return Some(Self::Ago(0));
        }
        let ago = ago.strip_prefix('-')?;
        let unit = ago.chars().last()?;
        let (_, unit_s) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        let count: u64 = ago.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(unit_s).filter(|s| *s < MOST_MS / 1_000).map(Self::Ago)
    }

    fn at(self, now: Millis) -> Millis {
        match self {
            Self::Ago(seconds) => Millis(now.0.saturating_sub(seconds * 1_000)),
            Self::At(at) => at,
        }
    }
}

/// The last moment that JavaScript has a date for.
const MOST_MS: u64 = 8_640_000_000_000_000;
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

impl Display for TimePoint {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Self::At(at) => write!(f, "{}", at.0),
            Self::Ago(0) => f.write_str("now"),
            Self::Ago(seconds) => {
                let whole = UNITS.into_iter().find(|(_, unit_s)| seconds % unit_s == 0);
                let (name, unit_s) = whole.unwrap_or(('s', 1));
                write!(f, "now-{}{name}", seconds / unit_s)
            }
        }
    }
}

/// What `from` and `to` say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeRange {
    /// Its begin.
    pub from: TimePoint,
    /// Its end.
    pub to: TimePoint,
}

impl Default for TimeRange {
    fn default() -> Self {
        Self::last(300)
    }
}

impl TimeRange {
    /// The last so many seconds.
    pub const fn last(seconds: u64) -> Self {
        Self { from: TimePoint::Ago(seconds), to: TimePoint::Ago(0) }
    }

    /// A stretch that stays where it is.
    pub const fn fixed(span: TimeSpan) -> Self {
        Self { from: TimePoint::At(span.from), to: TimePoint::At(span.until) }
    }

    /// Whether its begin lies before its end, as far as that does not depend on now.
    pub const fn is_forward(self) -> bool {
        match (self.from, self.to) {
            (TimePoint::Ago(from), TimePoint::Ago(to)) => from > to,
            (TimePoint::At(from), TimePoint::At(to)) => from.0 < to.0,
            _ => true,
        }
    }

    /// The stretch that it means at `now`: a second at least, and no longer than what is retained.
    pub fn span(self, now: Millis) -> TimeSpan {
        let until = self.to.at(now);
        let from = self.from.at(now).0.min(until.0.saturating_sub(1_000));
        TimeSpan { from: Millis(from.max(until.0.saturating_sub(HISTORY_S * 1_000))), until }
    }
}

/// A stretch of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeSpan {
    /// Its begin.
    pub from: Millis,
    /// Its end.
    pub until: Millis,
}

impl TimeSpan {
    /// Where a moment lies in it: 0 at its begin, 1 at its end.
    pub fn share(self, at: Millis) -> f64 {
        (at.0 as f64 - self.from.0 as f64) / (self.until.since(self.from).max(1)) as f64
    }

    /// The moment at a share of it.
    pub fn at(self, share: f64) -> Millis {
        Millis(self.from.0 + (self.until.since(self.from) as f64 * share.clamp(0.0, 1.0)) as u64)
    }

    /// The part between two shares of it, in whole seconds and at least `MIN_PART_MS` long.
    pub fn part(self, one: f64, other: f64) -> Self {
        let at = |share: f64| self.at(share).0 / 1_000 * 1_000;
        let from = at(one.min(other));
        Self { from: Millis(from), until: Millis(at(one.max(other)).max(from + MIN_PART_MS)) }
    }
}

/// A shorter stretch has too few values to see anything.
const MIN_PART_MS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_they_are_read() {
        for text in ["now", "now-5m", "now-90s", "now-1h", "now-2d", "1800000000000"] {
            assert_eq!(TimePoint::parse(text).map(|moment| moment.to_string()).as_deref(), Some(text));
        }
        assert_eq!(TimePoint::parse("now-300s"), Some(TimePoint::Ago(300)));
        for text in [
            "",
            "soon",
            "now+5m",
            "now-",
            "now-5",
            "now-5y",
            "now/d",
            "now-99999999999999999999d",
            "-1",
            "5m",
        ] {
            assert_eq!(TimePoint::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_is_never_longer_than_what_is_kept_and_never_empty() {
        let now = Millis(1_800_000_000_000);
        let span = TimeRange::last(300).span(now);
        assert_eq!((span.from.0, span.until), (now.0 - 300_000, now));
        assert_eq!(TimeRange::last(86_400).span(now).from.0, now.0 - HISTORY_S * 1_000);
        let later = TimeRange { from: TimePoint::At(Millis(now.0 + 5_000)), to: TimePoint::Ago(0) };
        assert_eq!(later.span(now).from.0, now.0 - 1_000);
        assert!(!TimeRange { from: TimePoint::Ago(0), to: TimePoint::Ago(300) }.is_forward());
    }

    #[test]
    fn a_part_of_a_range_is_whole_seconds() {
        let span = TimeSpan { from: Millis(1_000_000), until: Millis(1_300_000) };
        assert_eq!(span.share(Millis(1_150_000)), 0.5);
        assert_eq!(span.part(0.9, 0.5), TimeSpan { from: Millis(1_150_000), until: Millis(1_270_000) });
        assert_eq!(span.part(0.5, 0.501).until.0, 1_160_000);
    }
}
