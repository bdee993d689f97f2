//! Prometheus' text format, as far as the simulated processes write it.

use std::fmt;
use std::fmt::Write as _;

/// Microseconds, printed as seconds without trailing zeros.
pub(super) struct Micros(pub(super) u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, mut rest, mut digits) = (self.0 / 1_000_000, self.0 % 1_000_000, 6);
        if rest == 0 {
            return write!(f, "{seconds}");
        }
        while rest.is_multiple_of(10) {
            rest /= 10;
            digits -= 1;
        }
        write!(f, "{seconds}.{rest:0digits$}")
    }
}

/// The two lines before a family's samples.
pub(super) fn metric_family(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// A family with one sample.
pub(super) fn single(
    text: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    labels: &str,
    value: impl fmt::Display,
) {
    metric_family(text, name, kind, help);
    let _ = if labels.is_empty() {
        writeln!(text, "{name} {value}")
    } else {
        writeln!(text, "{name}{{{labels}}} {value}")
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_are_printed_as_seconds() {
        for (us, text) in [(0, "0"), (1, "0.000001"), (1_500_000, "1.5"), (60_000_000, "60")] {
            assert_eq!(Micros(us).to_string(), text);
        }
    }
}
