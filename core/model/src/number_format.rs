//! Numbers as people write them, the same in server and page.

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
