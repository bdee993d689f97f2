//! One line of the exposition text. Quoting, escapes and numbers are the library's; that a bad line costs no other one
//! is ours, so it gets line by line what it would take whole.

use std::borrow::Cow;

use prometheus_scraper::borrowed::{LabelPair, MetricValue};
use prometheus_scraper::owned::Number;
use prometheus_scraper::text::{TextFormat, parse_family};

use super::{DecodeError, Reason};

/// Longest line that is read, in bytes.
const MAX_LINE_BYTES: usize = 16 * 1024;
/// Most labels of a line.
const MAX_LABELS: usize = 64;
/// What a fault quotes of a line, in characters.
const QUOTED_CHARS: usize = 80;

/// One value of one metric.
pub(super) struct Sample<'t> {
    pub(super) name: Cow<'t, str>,
    labels: Vec<LabelPair<'t>>,
    pub(super) value: f64,
}

impl Sample<'_> {
    /// A label's value; an empty one is as good as none.
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        let label = self.labels.iter().find(|label| label.name == name && !label.value.is_empty());
        label.map(|label| &*label.value)
    }
}

/// A line that was not understood.
pub(super) struct BadLine<'t> {
    pub(super) error: DecodeError,
    /// Which metric it was about, if that much could be read.
    pub(super) name: Option<&'t str>,
}

/// Reads a line without its line feed. `None`: a comment, or nothing.
pub(super) fn read(line: &[u8]) -> Result<Option<Sample<'_>>, BadLine<'_>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(None);
    }
    if line.len() > MAX_LINE_BYTES {
        let text = format!("a line of {} bytes; at most {MAX_LINE_BYTES} are read", line.len());
        return Err(BadLine { error: DecodeError::new(Reason::TooLarge, text), name: name_of(line) });
    }
    let bad = |reason, what: &str| {
        let text: String = String::from_utf8_lossy(line).chars().take(QUOTED_CHARS).collect();
        BadLine { error: DecodeError::new(reason, format!("{what}: {text:?}")), name: name_of(line) }
    };
    let text = std::str::from_utf8(line).map_err(|_| bad(Reason::Malformed, "not UTF-8"))?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let family = parse_family(text, TextFormat::Prometheus)
        .map_err(|_| bad(Reason::Malformed, "not a line of metrics"))?;
    let Some(metric) = family.metric.into_iter().next() else { return Ok(None) };
    if metric.label.len() > MAX_LABELS {
        return Err(bad(Reason::TooLarge, "too many labels"));
    }
    let value = match metric.value {
        MetricValue::Untyped(Number::Int(value)) => value as f64,
        MetricValue::Untyped(Number::Float(value)) => value,
        // Types stand in comments, which the library does not see.
        _ => return Ok(None),
    };
    Ok(Some(Sample { name: family.name, labels: metric.label, value }))
}

/// The name at the beginning of a line, whatever follows it.
fn name_of(line: &[u8]) -> Option<&str> {
    let end = line.iter().position(|&byte| !is_of_name(byte)).unwrap_or(line.len());
    std::str::from_utf8(&line[..end]).ok().filter(|name| !name.is_empty())
}

/// Whether a byte may be in the name of a metric.
pub(super) fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Option<(String, f64)> {
        read(line.as_bytes()).ok().flatten().map(|sample| (sample.name.into_owned(), sample.value))
    }

    #[test]
    fn a_line_is_a_name_labels_a_value_and_perhaps_a_time() {
        for (line, name, value) in [
            ("up 1", "up", 1.0),
            ("vllm:kv_cache_usage_perc{engine=\"0\"} 0.25", "vllm:kv_cache_usage_perc", 0.25),
            ("x{a=\"b\",} 1e3 1700000000000", "x", 1000.0),
            ("x +Inf\r", "x", f64::INFINITY),
        ] {
            assert_eq!(one(line), Some((name.to_owned(), value)), "{line}");
        }
        assert!(one("x NaN").is_some_and(|(_, value)| value.is_nan()));
        assert_eq!(one("# TYPE x counter"), None);
    }

    #[test]
    fn labels_hold_commas_braces_and_escapes() {
        let line = r#"x{model="a,b}c=\"d\"\\",le="0.5"} 3"#;
        let Ok(Some(sample)) = read(line.as_bytes()) else { panic!("not read") };
        assert_eq!(sample.label("model"), Some(r#"a,b}c="d"\"#));
        assert_eq!(sample.label("le"), Some("0.5"));
    }

    #[test]
    fn a_bad_line_keeps_its_worker() {
        for line in ["x_total{a=\"b} 3", "x_total three", "x_total"] {
            let Err(bad) = read(line.as_bytes()) else { panic!("{line} was read") };
            assert_eq!((bad.error.reason, bad.name), (Reason::Malformed, Some("x_total")), "{line}");
        }
        let long = format!("x{{a=\"{}\"}} 1", "b".repeat(MAX_LINE_BYTES));
        assert!(read(long.as_bytes()).is_err_and(|bad| bad.error.reason == Reason::TooLarge));
    }
}
