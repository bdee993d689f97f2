//! Distributions known by buckets: counts, means and quantiles, each quantile with the bucket it lies in.

/// Samples by bucket.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    bounds: Vec<f64>,
    counts: Vec<u64>,
    sum: f64,
}

/// A quantile of a distribution that is known by buckets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quantile {
    /// As if samples lay evenly in their bucket, as Prometheus computes it; the lower bound where the bucket has no
    /// upper one.
    pub estimate: f64,
    /// The true value is above this; for the first bucket 0.
    pub lower: f64,
    /// The true value is at most this; `None`: above every bound.
    pub upper: Option<f64>,
}

impl Distribution {
    /// No samples. `bounds` are finite and ascend.
    pub fn empty(bounds: &[f64]) -> Self {
        Self { bounds: bounds.to_vec(), counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// Adds samples by bucket, the last one above every bound, and their sum.
    pub fn add(&mut self, counts: impl IntoIterator<Item = u64>, sum: f64) {
        for (known, more) in self.counts.iter_mut().zip(counts) {
            *known = known.saturating_add(more);
        }
        self.sum += sum;
    }

    /// Adds the samples of another one with the same bounds; of others it takes nothing and says so.
    pub fn merge(&mut self, other: &Self) -> bool {
        let same = self.bounds == other.bounds;
        if same {
            self.add(other.counts.iter().copied(), other.sum);
        }
        same
    }

    /// Samples.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Sum of the samples.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Mean of the samples; `None` without one.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum / count as f64)
    }

    /// Share of samples that are at most `limit`, 0 to 1, where the bucket that holds `limit` is taken to be filled
    /// evenly. `None` without a sample.
    pub fn share_within(&self, limit: f64) -> Option<f64> {
        let count = self.count();
        let mut within = 0.0;
        let mut lower = 0.0;
        for (at, &bound) in self.bounds.iter().enumerate() {
            if bound <= limit {
                within += self.counts[at] as f64;
            } else {
                let part =
                    if bound > lower { ((limit - lower) / (bound - lower)).clamp(0.0, 1.0) } else { 0.0 };
                within += self.counts[at] as f64 * part;
                break;
            }
            lower = bound;
        }
        (count > 0).then(|| within / count as f64)
    }

    /// The value that the share `q`, 0 to 1, of the samples does not exceed. `None` without a sample.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = q.clamp(0.0, 1.0) * count as f64;
        let mut below = 0.0;
        for (at, &in_bucket) in self.counts.iter().enumerate() {
            let reached = below + in_bucket as f64;
            if in_bucket > 0 && reached >= rank {
                let lower = if at == 0 {
                    0.0_f64.min(self.bounds.first().copied().unwrap_or(0.0))
                } else {
                    self.bounds[at - 1]
                };
                let upper = self.bounds.get(at).copied();
                let part = ((rank - below) / in_bucket as f64).clamp(0.0, 1.0);
                let estimate = upper.map_or(lower, |upper| lower + (upper - lower) * part);
                return Some(Quantile { estimate, lower, upper });
            }
            below = reached;
        }
        None
    }
}
