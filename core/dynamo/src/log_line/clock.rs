//! RFC 3339, exactly as far as log lines need it.

/// Microseconds of Unix time of `2026-11-20T18:06:54.428894Z`, or with an offset such as `+01:00`; digits beyond
/// microseconds are cut.
pub(super) fn unix_us(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't'])?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let at_zone = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at(at_zone);
    let (time, fraction) =
        time.split_once('.').map_or((time, None), |(time, fraction)| (time, Some(fraction)));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    // 60 is a leap second.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let minutes = (days(year, month, day)? * 24 + hour) * 60 + minute - offset_minutes(zone)?;
    Some((minutes * 60 + second) * 1_000_000 + fraction.map_or(Some(0), micros)?)
}

/// Numbers of exactly so many digits, joined by `separator`.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut found = [0; N];
    for (place, digits) in found.iter_mut().zip(digits) {
        *place = number(parts.next().filter(|part| part.len() == digits)?)?;
    }
    parts.next().is_none().then_some(found)
}

/// A number of digits alone: no sign.
fn number(text: &str) -> Option<i64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

fn micros(fraction: &str) -> Option<i64> {
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digit = |at| fraction.as_bytes().get(at).map_or(0, |b: &u8| i64::from(b - b'0'));
    Some((0..6).fold(0, |value, at| value * 10 + digit(at)))
}

fn offset_minutes(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let [hours, minutes] = numbers(zone.get(1..)?, ':', [2, 2])?;
    let east = hours * 60 + minutes;
    (hours < 24 && minutes < 60).then_some(if zone.starts_with('-') { -east } else { east })
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    let index = usize::try_from(month).ok().filter(|month| (1..=12).contains(month))?;
    let in_month = before[index] - before[index - 1] + i64::from(leap && month == 2);
    if !(1..=in_month).contains(&day) {
        return None;
    }
    // Leap days of the years before this one; the first year is 0, which was one.
    let past = year - 1;
    let leap_days = past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) + 1;
    const DAYS_OF_YEARS_BEFORE_1970: i64 = 719_528;
    let in_year = before[index - 1] + i64::from(leap && month > 2) + day - 1;
    Some(year * 365 + leap_days + in_year - DAYS_OF_YEARS_BEFORE_1970)
}

#[cfg(test)]
mod tests {
    use super::unix_us;

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
