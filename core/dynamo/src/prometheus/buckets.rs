//! A histogram as it comes: cumulative buckets in any order, one set for each set of labels.

use super::{DecodeError, Reason};
use radixscope_model::record::{Histogram, HistogramKind};

/// Most finite bounds of a histogram.
const MAX_BOUNDS: usize = 64;

/// What was read of a histogram so far, summed over labels.
#[derive(Default)]
pub(super) struct Buckets {
    /// Finite upper bounds with the samples at or below them.
    below: Vec<(f64, u64)>,
    /// Samples in the bucket without a bound.
    all: Option<u64>,
    count: Option<u64>,
    sum: Option<f64>,
}

/// Which of a histogram's series a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HistogramSeries {
    Bucket,
    Sum,
    Count,
}

impl HistogramSeries {
    /// Takes a histogram's name apart.
    pub(super) fn of(name: &str) -> Option<(&str, Self)> {
        let part = |suffix, part| name.strip_suffix(suffix).map(|base| (base, part));
        part("_bucket", Self::Bucket)
            .or_else(|| part("_sum", Self::Sum))
            .or_else(|| part("_count", Self::Count))
    }
}

impl Buckets {
    /// Takes a value that is finite and not negative. `le` is the label of a bucket.
    pub(super) fn take(
        &mut self,
        part: HistogramSeries,
        le: Option<&str>,
        value: f64,
    ) -> Result<(), DecodeError> {
        if part == HistogramSeries::Sum {
            self.sum = Some(self.sum.unwrap_or(0.0) + value);
            return Ok(());
        }
        let wrong = |text: String| DecodeError::new(Reason::WrongType, text);
        let more = super::whole(value).ok_or_else(|| wrong(format!("{value} samples in a bucket")))?;
        let add = |sum: &mut Option<u64>| *sum = Some(sum.unwrap_or(0).saturating_add(more));
        if part == HistogramSeries::Count {
            add(&mut self.count);
            return Ok(());
        }
        let Some(le) = le else {
            return Err(DecodeError::new(Reason::MissingField, "a bucket without the label le"));
        };
        let bound: f64 = le.parse().map_err(|_| wrong(format!("{le:?} is no bound of a bucket")))?;
        if bound == f64::INFINITY {
            add(&mut self.all);
        } else if !bound.is_finite() {
            return Err(wrong(format!("{le:?} is no bound of a bucket")));
        } else if let Some((_, below)) = self.below.iter_mut().find(|(known, _)| *known == bound) {
            *below = below.saturating_add(more);
        } else if self.below.len() == MAX_BOUNDS {
            let text = format!("a histogram of more than {MAX_BOUNDS} buckets");
            return Err(DecodeError::new(Reason::TooLarge, text));
        } else {
            self.below.push((bound, more));
        }
        Ok(())
    }

    /// The histogram, if what came makes one.
    pub(super) fn finish(mut self, kind: HistogramKind) -> Result<Histogram, DecodeError> {
        let missing =
            |what: &str| DecodeError::new(Reason::MissingField, format!("{kind:?}: {what} is missing"));
        let all = self.all.ok_or_else(|| missing("the bucket +Inf"))?;
        let sum = self.sum.ok_or_else(|| missing("the sum"))?;
        self.below.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut counts = Vec::with_capacity(self.below.len() + 1);
        let mut reached = 0;
        for below in self.below.iter().map(|(_, below)| *below).chain([all]) {
            let Some(in_bucket) = below.checked_sub(reached) else {
                let text = format!("{kind:?}: a bucket holds less than the one below it");
                return Err(DecodeError::new(Reason::Malformed, text));
            };
            counts.push(in_bucket);
            reached = below;
        }
        if self.count.is_some_and(|count| count != all) {
            let text = format!("{kind:?}: the count is not that of the buckets");
            return Err(DecodeError::new(Reason::Malformed, text));
        }
        let bounds: Vec<f64> = self.below.iter().map(|(bound, _)| *bound).collect();
        Ok(Histogram { kind, bounds, counts, sum })
    }
}
