//! Times of log lines: in RFC 3339, and as SGLang's gateway writes them.

use std::fmt::Write as _;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Microseconds of Unix time of `2026-11-20T18:06:54.428894Z`, or with an offset such as `+01:00`; digits beyond
/// microseconds are cut.
pub(super) fn unix_us(text: &str) -> Option<i64> {
    // Most words that are asked about are no times; and a date alone, with a space behind it, is none either.
    if !matches!(text.as_bytes().get("2026-11-20".len()), Some(b'T' | b't')) {
        return None;
    }
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    // A leap second is given as the last nanosecond of the one before it: nothing else that is written ends in it.
    let nanos = at.unix_timestamp_nanos() + i128::from(text.contains(":60"));
    i64::try_from(nanos.div_euclid(1_000)).ok()
}

/// Microseconds of Unix time of `2026-11-20 18:06:54`, in UTC, with or without a fraction.
pub(super) fn utc_us(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ')?;
    let mut whole = String::with_capacity(text.len() + 1);
    write!(whole, "{date}T{time}Z").ok()?;
    unix_us(&whole)
}

#[cfg(test)]
mod tests {
    use super::{unix_us, utc_us};

    #[test]
    fn a_time_without_a_zone_is_utc() {
        assert_eq!(utc_us("2026-11-20 18:06:54"), Some(1_795_198_014_000_000));
        assert_eq!(utc_us("2026-11-20 18:06:54.25"), Some(1_795_198_014_250_000));
        for text in ["", " ", "2026-11-20", "2026-11-20 18:06", "2026-11-20 18:06:54+01:00", "DEBUG x"] {
            assert_eq!(utc_us(text), None, "{text}");
        }
    }

    #[test]
    fn known_moments_are_exact() {
        for (text, us) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.000001Z", 1),
            ("1969-12-31T23:59:59.999999Z", -1),
            ("2000-02-29T12:00:00Z", 951_825_600_000_000),
            ("2026-11-20T18:06:54.428894Z", 1_795_198_014_428_894),
            ("2026-11-20T19:06:54.428894+01:00", 1_795_198_014_428_894),
            ("2026-11-20T12:36:54.428894-05:30", 1_795_198_014_428_894),
            ("2026-11-20T18:06:54.428894999Z", 1_795_198_014_428_894),
            ("2026-11-20T18:06:54.4Z", 1_795_198_014_400_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000_000),
            ("0000-01-01T00:00:00Z", -62_167_219_200_000_000),
            ("9999-12-31T23:59:59Z", 253_402_300_799_000_000),
        ] {
            assert_eq!(unix_us(text), Some(us), "{text}");
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut last = unix_us("1899-12-31T00:00:00Z").unwrap();
        for year in 1900..2101 {
            for month in 1..=12 {
                for day in 1..=31 {
                    if let Some(at) = unix_us(&format!("{year}-{month:02}-{day:02}T00:00:00Z")) {
                        assert_eq!(at - last, 86_400_000_000, "{year}-{month}-{day}");
                        last = at;
                    }
                }
            }
        }
        assert_eq!(last, unix_us("2100-12-31T00:00:00Z").unwrap());
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "T",
            "2026-11-20",
            "2026-11-20T",
            "2026-11-20T18:06:54",
            "2026-11-20 18:06:54Z",
            "2026-13-20T18:06:54Z",
            "2026-02-29T18:06:54Z",
            "2026-11-31T18:06:54Z",
            "2026-11-00T18:06:54Z",
            "2026-11-20T24:06:54Z",
            "2026-11-20T18:60:54Z",
            "2026-11-20T18:06:61Z",
            "2026-11-20T18:06:54.Z",
            "2026-11-20T18:06:54.x1Z",
            "2026-11-20T18:06:54+1:00",
            "2026-11-20T18:06:54+25:00",
            "2026-11-20T18:06:54Zx",
            "+026-11-20T18:06:54Z",
            "2026-11-20T18:06:54ZZ",
            "2026-1é-20T18:06:54Z",
            "2026-11-20T18:06:54é",
        ] {
            assert_eq!(unix_us(text), None, "{text}");
        }
    }
}
