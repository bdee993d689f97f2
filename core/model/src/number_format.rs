//! Numbers as people write them, the same in server and page.

/// A dash where a number is not known: never 0.
pub const UNKNOWN: &str = "–";

/// All digits, in groups of three: `12,345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number as text, `≥ ` before it if it is a lower bound.
pub fn bound(number: String, is_lower_bound: bool) -> String {
    if is_lower_bound { format!("≥ {number}") } else { number }
}

/// `1 block`, `2 blocks`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// A share 0 … 1 in percent.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 1.0 { "<1 %".to_owned() } else { format!("{} %", percent.round() as u64) }
}

/// A length of time of `ms` milliseconds with two to three digits that count: `0.42 ms`, `24 ms`, `610 ms`, `1.24 s`,
/// `12.4 s`, `480 s`.
pub fn duration(ms: f64) -> String {
    let (value, unit) = if ms < 999.5 { (ms, "ms") } else { (ms / 1_000.0, "s") };
    format!("{} {unit}", digits(value))
}

/// A number with up to three digits that count and no zeros behind the point: `0.42`, `1.9`, `24`, `1,240`.
pub fn digits(value: f64) -> String {
    let places = match value.abs() {
        v if v >= 99.95 => return count(value.round().max(0.0) as u64),
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.places$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

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

/// Time of day `HH:MM:SS`, `zone_ms` east of Greenwich.
pub fn clock(unix_ms: u64, zone_ms: i64) -> String {
    let s = unix_ms.saturating_add_signed(zone_ms) / 1000 % 86_400;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

/// The end of an id, enough to distinguish workers by eye.
pub fn tail(id: u64) -> String {
    if id < 1_000_000 { id.to_string() } else { format!("…{:05}", id % 100_000) }
}

#[cfg(test)]
mod tests {
    use super::{count, digits, duration};

    #[test]
    fn times_have_the_digits_that_count() {
        let written =
            [0.0, 0.416, 1.9, 24.0, 24.26, 610.4, 999.4, 999.6, 1_240.0, 12_400.0, 480_000.0].map(duration);
        let wanted = [
            "0 ms", "0.42 ms", "1.9 ms", "24 ms", "24.3 ms", "610 ms", "999 ms", "1 s", "1.24 s", "12.4 s",
            "480 s",
        ];
        assert_eq!(written, wanted);
        assert_eq!([100.0, 12_345.6].map(digits), ["100", "12,346"]);
    }

    #[test]
    fn thousands_are_parted_by_commas() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }
}
