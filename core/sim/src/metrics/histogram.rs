//! A histogram as Prometheus counts it, with whole numbers alone.

use std::fmt::Write as _;

use super::text::Micros;

/// Observations, counted by bucket.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    /// Upper bounds of the buckets, ascending.
    bounds: &'static [u64],
    /// Observations in each bucket alone; the last one is above every bound.
    counts: Vec<u64>,
    sum: u64,
    is_time: bool,
}

impl Histogram {
    /// Of times in microseconds, printed in seconds.
    pub(super) fn of_times(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0, is_time: true }
    }

    /// Of tokens.
    pub(super) fn of_tokens(bounds: &'static [u64]) -> Self {
        Self { is_time: false, ..Self::of_times(bounds) }
    }

    /// Of shares in millionths, by steps of a twentieth.
    pub(super) fn of_shares() -> Self {
        const TWENTIETHS: &[u64] = &{
            let mut bounds = [0; 21];
            let mut at = 0;
            while at < bounds.len() {
                bounds[at] = at as u64 * 50_000;
                at += 1;
            }
            bounds
        };
        Self::of_times(TWENTIETHS)
    }

    /// Observations.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Counts what another one with the same buckets counted, too.
    pub(super) fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(here, there)| *here += there);
        self.sum += other.sum;
    }

    /// One with the same buckets that counted nothing yet.
    pub(super) fn anew(&self) -> Self {
        Self { is_time: self.is_time, ..Self::of_times(self.bounds) }
    }

    pub(super) fn observe(&mut self, value: u64, times: u64) {
        let at = self.bounds.partition_point(|&most| most < value);
        self.counts[at] += times;
        self.sum += value * times;
    }

    /// The lines of the series `name` with `labels`, without braces.
    pub(super) fn write(&self, text: &mut String, name: &str, labels: &str) {
        let mut below = 0;
        let printed = |value: u64| if self.is_time { Micros(value).to_string() } else { value.to_string() };
        let bounds = self.bounds.iter().map(|&most| printed(most)).chain(["+Inf".to_owned()]);
        // Writing to a String cannot fail.
        for (le, count) in bounds.zip(&self.counts) {
            below += count;
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{le}\"}} {below}");
        }
        let _ =
            writeln!(text, "{name}_sum{{{labels}}} {}\n{name}_count{{{labels}}} {below}", printed(self.sum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up_and_a_bound_belongs_to_its_bucket() {
        let mut histogram = Histogram::of_times(&[0, 10_000, 1_000_000]);
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
