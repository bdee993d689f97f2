//! Distributions known by buckets: counts, means and quantiles, each quantile with the bucket it lies in.

use serde::Serialize;

use radixscope_model::range::Range;

/// Samples by bucket.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    bounds: Vec<f64>,
    counts: Vec<u64>,
    sum: f64,
}

/// A quantile of a distribution that is known by buckets.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quantile {
    /// As if samples lay evenly in their bucket, as Prometheus computes it; the lower bound where the bucket has no
    /// upper one.
    pub estimate: f64,
    /// The true value is above this; for the first bucket 0.
    pub lower: f64,
    /// The true value is at most this; `None`: above every bound.
    pub upper: Option<f64>,
}

impl Quantile {
    /// The bucket as a range: what is known of the value.
    pub const fn range(&self) -> Range {
        Range::in_bucket(self.lower, self.upper)
    }
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

    /// Adds the samples of another one with the same bounds; samples with other bounds are refused.
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

    /// Samples above `limit`: at least so many, and at most so many. They differ where `limit` lies inside a bucket.
    pub fn above(&self, limit: f64) -> (u64, u64) {
        let (mut least, mut most) = (0u64, 0u64);
        for (at, &count) in self.counts.iter().enumerate() {
            // A bucket takes in its upper bound, and not its lower one.
            if at > 0 && self.bounds[at - 1] >= limit {
                least = least.saturating_add(count);
            }
            if self.bounds.get(at).is_none_or(|&bound| bound > limit) {
                most = most.saturating_add(count);
            }
        }
        (least, most)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(bounds: &[f64], counts: &[u64], sum: f64) -> Distribution {
        let mut all = Distribution::empty(bounds);
        all.add(counts.iter().copied(), sum);
        all
    }

    #[test]
    fn quantiles_are_those_of_prometheus() {
        let all = of(&[1.0, 2.0, 4.0], &[2, 6, 2, 0], 18.0);
        let estimate = |q| all.quantile(q).map(|quantile| quantile.estimate);
        // Rank 5 of 10: the third of six samples between 1 and 2.
        assert_eq!(estimate(0.5), Some(1.5));
        assert_eq!(estimate(0.1), Some(0.5));
        // Rank 9: the first of two between 2 and 4.
        assert_eq!(estimate(0.9), Some(3.0));
        assert_eq!(all.quantile(0.9), Some(Quantile { estimate: 3.0, lower: 2.0, upper: Some(4.0) }));
        assert_eq!((all.count(), all.mean()), (10, Some(1.8)));
    }

    #[test]
    fn above_every_bound_only_the_lower_end_is_known() {
        let all = of(&[1.0], &[1, 9], 100.0);
        assert_eq!(all.quantile(0.5), Some(Quantile { estimate: 1.0, lower: 1.0, upper: None }));
    }

    #[test]
    fn what_lies_in_a_bucket_that_the_limit_cuts_may_be_on_either_side() {
        let all = of(&[1.0, 2.0, 4.0], &[2, 6, 2, 1], 18.0);
        assert_eq!(
            [0.0, 1.0, 1.5, 4.0, 9.0].map(|limit| all.above(limit)),
            [(9, 11), (9, 9), (3, 9), (1, 1), (0, 1)]
        );
    }

    #[test]
    fn of_no_samples_nothing_is_known() {
        let none = Distribution::empty(&[1.0]);
        assert_eq!((none.quantile(0.5), none.above(1.0), none.mean()), (None, (0, 0), None));
    }

    #[test]
    fn distributions_with_other_bounds_are_not_added() {
        let mut all = of(&[1.0], &[1, 1], 2.0);
        assert!(!all.merge(&of(&[2.0], &[5, 5], 9.0)));
        assert!(all.merge(&of(&[1.0], &[2, 0], 1.0)));
        assert_eq!((all.count(), all.sum()), (4, 3.0));
    }

    /// Ascending bounds and a count for each bucket.
    fn distributions() -> impl Strategy<Value = Distribution> {
        let steps = prop::collection::vec((0.001f64..1_000.0, 0u64..1_000), 1..20);
        (steps, 0u64..1_000, prop::bool::ANY).prop_map(|(steps, above, from_zero)| {
            let mut bounds = if from_zero { vec![0.0] } else { Vec::new() };
            let mut counts = if from_zero { vec![0] } else { Vec::new() };
            let mut bound = 0.0;
            for (step, count) in steps {
                bound += step;
                bounds.push(bound);
                counts.push(count);
            }
            counts.push(above);
            of(&bounds, &counts, 1.0)
        })
    }

    proptest! {
        #[test]
        fn an_estimate_lies_in_its_bucket_and_rises_with_the_share(all in distributions(), a in 0.0f64..=1.0, b in 0.0f64..=1.0) {
            let (low, high) = (all.quantile(a.min(b)), all.quantile(a.max(b)));
            prop_assert_eq!(low.is_some(), all.count() > 0);
            for quantile in [low, high].into_iter().flatten() {
                prop_assert!(quantile.lower <= quantile.estimate);
                prop_assert!(quantile.upper.is_none_or(|upper| quantile.estimate <= upper));
            }
            prop_assert!(low.zip(high).is_none_or(|(low, high)| low.estimate <= high.estimate));
        }

        #[test]
        fn fewer_samples_are_above_a_higher_limit(all in distributions(), a in 0.0f64..30_000.0, b in 0.0f64..30_000.0) {
            let (low, high) = (all.above(a.min(b)), all.above(a.max(b)));
            prop_assert!(low.0 <= low.1 && low.1 <= all.count());
            prop_assert!(high.0 <= low.0 && high.1 <= low.1);
        }
    }
}
