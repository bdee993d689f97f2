//! Numbers as text: fixed in shape, so that nothing jumps when they change. Knows no panel and no unit of its own.

/// A dash where a number is not known: never 0.
pub const UNKNOWN: &str = "–";

pub use radixscope_model::number_format::{count, percent, plural};

/// At most five characters: `999`, `12.3k`, `1.2M`.
pub fn short(n: u64) -> String {
    const STEPS: [(u64, &str); 4] =
        [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    // From 10,000 on: four digits are read as fast as a unit.
    if n < 10_000 {
        return count(n);
    }
    let (step, unit) = STEPS.into_iter().find(|&(step, _)| n >= step).unwrap_or((1, ""));
    let tenths = n / (step / 10);
    if tenths >= 1000 {
        format!("{}{unit}", tenths / 10)
    } else {
        format!("{}.{}{unit}", tenths / 10, tenths % 10)
    }
}

/// Events per second: one decimal below ten, none above.
pub fn rate(per_second: f64) -> String {
    if per_second <= 0.0 {
        "0".to_owned()
    } else if per_second < 0.05 {
        "<0.1".to_owned()
    } else if per_second < 9.95 {
        format!("{per_second:.1}")
    } else {
        short(per_second.round() as u64)
    }
}

/// A share 0 … 1 with two decimals.
pub fn share(share: f64) -> String {
    format!("{share:.2}")
}

/// A share 0 … 1 as a width for style sheets.
pub fn width(share: f64) -> String {
    format!("{:.1}%", share.clamp(0.0, 1.0) * 100.0)
}

/// How long ago, coarse: `now`, `12 s`, `3 min`, `5 h`, `2 d`.
pub fn age(ms: u64) -> String {
    match ms / 1000 {
        0..=1 => "now".to_owned(),
        s @ 2..=99 => format!("{s} s"),
        s @ 100..=5999 => format!("{} min", s / 60),
        s @ 6000..=172_799 => format!("{} h", s / 3600),
        s => format!("{} d", s / 86_400),
    }
}

/// The same in a sentence.
pub fn ago(ms: u64) -> String {
    match age(ms) {
        now if now == "now" => "just now".to_owned(),
        age => format!("{age} ago"),
    }
}

/// Time of day `HH:MM:SS`, `zone_ms` east of Greenwich.
pub fn clock(unix_ms: u64, zone_ms: i64) -> String {
    let s = unix_ms.saturating_add_signed(zone_ms) / 1000 % 86_400;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// A lag by two clocks: `12 ms`, `3.4 s`; below 0 the clocks disagree.
pub fn lag(ms: i64) -> String {
    match ms {
        i64::MIN..=-1 => "<0 ms".to_owned(),
        0..=999 => format!("{ms} ms"),
        1000..=99_999 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => age(ms.unsigned_abs()),
    }
}

/// Sixteen hexadecimal digits.
pub fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The end of an id, enough to tell workers apart by eye.
pub fn tail(id: u64) -> String {
    if id < 1_000_000 { id.to_string() } else { format!("…{:05}", id % 100_000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn short_counts_fit_five_characters() {
        assert_eq!([9_999, 12_345, 999_949, 1_234_567].map(short), ["9,999", "12.3k", "999k", "1.2M"]);
        assert!(
            [10_000, 99_999, 100_000, 999_999, 123_456_789, 99_999_999_999]
                .iter()
                .all(|&n| short(n).len() <= 5)
        );
    }

    #[test]
    fn a_rate_above_zero_never_reads_as_zero() {
        assert_eq!(
            [0.0, 0.01, 0.4, 9.94, 12.4, 1234.0].map(rate),
            ["0", "<0.1", "0.4", "9.9", "12", "1,234"]
        );
    }

    #[test]
    fn shares_keep_their_digits() {
        assert_eq!([0.0, 0.005, 0.5, 0.996, 1.0].map(share), ["0.00", "0.01", "0.50", "1.00", "1.00"]);
        assert_eq!([0.0, 0.004, 0.239, 1.0].map(percent), ["0 %", "<1 %", "24 %", "100 %"]);
        assert_eq!([-1.0, 0.1234, 7.0].map(width), ["0.0%", "12.3%", "100.0%"]);
    }

    #[test]
    fn ages_are_coarse() {
        assert_eq!(
            [0, 1999, 2000, 99_000, 100_000, 7_200_000].map(age),
            ["now", "now", "2 s", "99 s", "1 min", "2 h"]
        );
        assert_eq!(ago(500), "just now");
        assert_eq!(ago(5000), "5 s ago");
    }

    #[test]
    fn the_time_of_day_follows_the_zone() {
        assert_eq!(clock(1_700_000_000_000, 0), "22:13:20");
        assert_eq!(clock(1_700_000_000_000, 7_200_000), "00:13:20");
        assert_eq!(clock(1_700_000_000_000, -3_600_000), "21:13:20");
    }

    #[test]
    fn lags_keep_their_unit() {
        assert_eq!([-3, 0, 999, 1234, 200_000].map(lag), ["<0 ms", "0 ms", "999 ms", "1.2 s", "3 min"]);
    }

    #[test]
    fn ids_are_told_apart_by_their_end() {
        assert_eq!(tail(u64::MAX), "…51615");
        assert_eq!([42, 999_999, 1_000_007].map(tail), ["42", "999999", "…00007"]);
        assert_eq!(hex(255), "00000000000000ff");
    }
}
