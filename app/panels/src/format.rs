//! Numbers as text: fixed in shape, so that nothing jumps when they change. Knows no panel and no unit of its own. And workers' names.

use radixscope_model::id::{Worker, WorkerId, WorkerIx};
pub use radixscope_model::number_format::{UNKNOWN, bound, clock, count, percent, plural, rate, short, tail};

/// A share 0 … 1 with two decimals.
pub fn share(share: f64) -> String {
    format!("{share:.2}")
}

/// A share 0 … 1 in percent with one decimal: `81.1 %`.
pub fn tenths(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A share 0 … 1 as a width for style sheets.
pub fn width(share: f64) -> String {
    format!("{:.1}%", share.clamp(0.0, 1.0) * 100.0)
}

/// A text with labels (`W1`) in the place of workers' names (`worker 7/0`), as far as the worker is known.
pub fn labelled(text: &str, known: impl Fn(Worker) -> Option<WorkerIx>) -> String {
    const NAME: &str = "worker ";
    let mut parts = text.split(NAME);
    let mut labelled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != '/').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let id = name.split_once('/').and_then(|(id, dp_rank)| {
            Some(Worker { id: WorkerId(id.parse().ok()?), dp_rank: dp_rank.parse().ok()? })
        });
        match id.and_then(&known) {
            Some(worker) => labelled += &worker.to_string(),
            None => labelled.extend([NAME, name]),
        }
        labelled += rest;
    }
    labelled
}

/// The finite decimal number that `text` is.
pub fn decimal(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
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
    fn ids_are_distinguished_by_their_end() {
        assert_eq!(tail(u64::MAX), "…51615");
        assert_eq!([42, 999_999, 1_000_007].map(tail), ["42", "999999", "…00007"]);
        assert_eq!(hex(255), "00000000000000ff");
    }

    #[test]
    fn names_of_workers_become_labels_and_no_others() {
        let seventh = Worker { id: WorkerId(7), dp_rank: 1 };
        let labelled = |text| labelled(text, |id| (id == seventh).then_some(WorkerIx(1)));
        assert_eq!(labelled("Left: worker 7/1, worker 7/10"), "Left: W2, worker 7/10");
        assert_eq!(labelled("worker 7/1"), "W2");
        assert_eq!(labelled("worker 7/10 and worker 7/1: 3"), "worker 7/10 and W2: 3");
        assert_eq!(labelled("KV events were lost"), "KV events were lost");
    }
}
