//! Latency of the last minute over all frontends: exact where requests tell it one by one, else by buckets, with what is
//! certain of a percentile.

use super::View;
use super::peers::scraped;
use crate::cluster::{Decided, Distribution, Quantile};
use crate::id::Millis;
use crate::record::{HistogramKind, ProcessRole};
use crate::words;

/// The window, milliseconds.
pub(super) const WINDOW_MS: u64 = 60_000;
/// Fewer samples have no 95th percentile.
pub(super) const MIN_SAMPLES: u64 = 50;
/// Said where nothing tells latencies.
pub(super) const MISSING: &str = "No frontend is scraped, and no log or trace tells latencies; give one with --prometheus \
    NAME=http://HOST:8000/metrics";

/// A latency.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Time to first token.
    Ttft,
    /// Time between output tokens.
    Tpot,
}

/// What is known of it.
pub(super) struct Latency {
    /// Samples in the window.
    pub(super) samples: u64,
    /// Where from.
    pub(super) source: &'static str,
    /// Median, milliseconds.
    pub(super) p50: Quantile,
    /// 95th percentile, milliseconds.
    pub(super) p95: Quantile,
    values: Values,
}

enum Values {
    Exact(Vec<f64>),
    Buckets(Distribution),
}

/// How the 95th percentile stands to a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Against {
    /// Certainly not above.
    Within,
    /// Certainly above.
    Above,
    /// The bucket that it lies in reaches from below the target to above it.
    Unclear,
}

impl Latency {
    /// Of the last minute; `None`: nothing tells.
    pub(super) fn of(view: &View<'_>, kind: Kind) -> Option<Self> {
        let exact = exact(view, kind);
        if exact.len() as u64 >= MIN_SAMPLES {
            return Self::from_exact(exact);
        }
        let from_buckets = histogram(view, kind.histogram(), WINDOW_MS).and_then(Self::from_buckets);
        from_buckets.or_else(|| Self::from_exact(exact))
    }

    fn from_exact(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let at = |q: f64| {
            let rank = (q * values.len() as f64).ceil() as usize;
            let value = *values.get(rank.saturating_sub(1))?;
            Some(Quantile { estimate: value, lower: value, upper: Some(value) })
        };
        let (p50, p95) = (at(0.5)?, at(0.95)?);
        let source = "requests one by one";
        Some(Self { samples: values.len() as u64, source, p50, p95, values: Values::Exact(values) })
    }

    fn from_buckets(buckets: Distribution) -> Option<Self> {
        let ms = |q: Quantile| Quantile {
            estimate: q.estimate * 1e3,
            lower: q.lower * 1e3,
            upper: q.upper.map(|upper| upper * 1e3),
        };
        let (p50, p95) = (ms(buckets.quantile(0.5)?), ms(buckets.quantile(0.95)?));
        let source = "frontends' histograms";
        Some(Self { samples: buckets.count(), source, p50, p95, values: Values::Buckets(buckets) })
    }

    /// How it stands to a target, milliseconds.
    pub(super) fn against(&self, target_ms: f64) -> Against {
        // A value on the target is not above it, and a bucket takes in its upper bound.
        let is_exact = self.p95.upper == Some(self.p95.lower);
        if self.p95.upper.is_some_and(|upper| upper <= target_ms) {
            Against::Within
        } else if self.p95.lower >= target_ms || is_exact {
            Against::Above
        } else {
            Against::Unclear
        }
    }

    /// Share of the samples above a target in milliseconds, 0 to 1.
    pub(super) fn share_above(&self, target_ms: f64) -> f64 {
        match &self.values {
            Values::Exact(values) => {
                values.iter().filter(|&&v| v > target_ms).count() as f64 / values.len().max(1) as f64
            }
            Values::Buckets(buckets) => 1.0 - buckets.share_within(target_ms / 1e3).unwrap_or(1.0),
        }
    }
}

impl Kind {
    /// In figures' names.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::Tpot => "TPOT",
        }
    }

    const fn histogram(self) -> HistogramKind {
        match self {
            Self::Ttft => HistogramKind::Ttft,
            Self::Tpot => HistogramKind::Itl,
        }
    }

    /// Of one request, milliseconds.
    fn of(self, decided: &Decided) -> Option<f64> {
        match self {
            Self::Ttft => decided.time_to_first_token_ms().map(|(ms, _)| ms),
            Self::Tpot => decided.progress.itl_us.map(|us| us as f64 / 1e3),
        }
    }
}

/// Values of requests whose first token came within the window.
fn exact(view: &View<'_>, kind: Kind) -> Vec<f64> {
    let value = |decided: &Decided| {
        let (to_first, _) = decided.time_to_first_token_ms()?;
        let first = Millis(decided.decided_ms().0.saturating_add(to_first as u64));
        (view.now.since(first) <= WINDOW_MS).then(|| kind.of(decided)).flatten()
    };
    // Requests that waited long were chosen before the window.
    view.decisions(2 * WINDOW_MS).filter_map(value).collect()
}

/// A distribution over all frontends that use the same buckets; `None`: none offers it.
pub(super) fn histogram(view: &View<'_>, kind: HistogramKind, ms: u64) -> Option<Distribution> {
    let after = Millis(view.now.0.saturating_sub(ms));
    let each = scraped(view, ProcessRole::Frontend).filter_map(|p| p.distribution(kind, after, view.now));
    let mut sum: Option<Distribution> = None;
    for one in each {
        match &mut sum {
            // Frontends of two versions: those like the first one count.
            Some(sum) => _ = sum.merge(&one),
            None => sum = Some(one),
        }
    }
    sum
}

/// A percentile with its bucket: `1,520 (above 1,000, at most 2,200)`.
pub(super) fn in_words(quantile: &Quantile) -> String {
    let round = |ms: f64| words::count(ms.round() as u64);
    match quantile.upper {
        Some(upper) if upper == quantile.lower => round(quantile.estimate),
        Some(upper) => {
            format!(
                "{} (above {}, at most {})",
                round(quantile.estimate),
                round(quantile.lower),
                round(upper)
            )
        }
        None => format!("above {}", round(quantile.lower)),
    }
}
