//! A histogram as Prometheus counts it, with whole numbers alone.

use std::fmt::Write as _;

use super::text::Micros;

/// Upper bounds of the buckets, as they are printed and as they are compared.
pub(super) type Bounds = [(&'static str, u64)];

/// Observations, counted by bucket.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    bounds: &'static Bounds,
    /// Observations in each bucket alone; the last one is above every bound.
    counts: Vec<u64>,
    sum: u64,
    is_time: bool,
}

impl Histogram {
    /// Of times in microseconds, printed in seconds.
    pub(super) fn of_times(bounds: &'static Bounds) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0, is_time: true }
    }

    /// Of tokens.
    pub(super) fn of_tokens(bounds: &'static Bounds) -> Self {
        Self { is_time: false, ..Self::of_times(bounds) }
    }

    pub(super) fn observe(&mut self, value: u64, times: u64) {
        let at = self.bounds.partition_point(|&(_, most)| most < value);
        self.counts[at] += times;
        self.sum += value * times;
    }

    /// The lines of the series `name` with `labels`, without braces.
    pub(super) fn write(&self, text: &mut String, name: &str, labels: &str) {
        let mut below = 0;
        let bounds = self.bounds.iter().map(|&(le, _)| le).chain(["+Inf"]);
        // Writing to a String cannot fail.
        for (le, count) in bounds.zip(&self.counts) {
            below += count;
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{le}\"}} {below}");
        }
        let _ = if self.is_time {
            writeln!(text, "{name}_sum{{{labels}}} {}", Micros(self.sum))
        } else {
            writeln!(text, "{name}_sum{{{labels}}} {}", self.sum)
        };
        let _ = writeln!(text, "{name}_count{{{labels}}} {below}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up_and_a_bound_belongs_to_its_bucket() {
        let mut histogram = Histogram::of_times(&[("0", 0), ("0.01", 10_000), ("1", 1_000_000)]);
        for (value, times) in [(10_000, 2), (10_001, 1), (2_000_000, 1)] {
            histogram.observe(value, times);
        }
        let mut text = String::new();
        histogram.write(&mut text, "t", "m=\"x\"");
        assert_eq!(
            text,
            "t_bucket{m=\"x\",le=\"0\"} 0\nt_bucket{m=\"x\",le=\"0.01\"} 2\nt_bucket{m=\"x\",le=\"1\"} 3\n\
             t_bucket{m=\"x\",le=\"+Inf\"} 4\nt_sum{m=\"x\"} 2.030001\nt_count{m=\"x\"} 4\n"
        );
    }
}
