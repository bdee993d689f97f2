//! Percentiles of one quantity over a window, from every source that reports it: what panels, rules and the API show,
//! compare and colour. A percentile is a [`Range`]; a histogram knows it by its bucket.

use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::{count, plural};
use radixscope_model::range::{Range, TargetComparison};
use radixscope_model::record::{HistogramKind, ProcessRole};
use radixscope_state::cluster::{Cluster, Distribution, ProcessState};

use super::request_values::RequestValues;
use super::{Quantity, WINDOW_MS};

/// Fewer samples have no 95th percentile.
pub const MIN_SAMPLES: u64 = 50;

/// Where figures come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TimingSource {
    /// The histograms of these processes: known by bucket.
    Histograms {
        /// Their names.
        processes: Vec<String>,
        /// Processes whose buckets have other bounds and that are therefore not in it.
        left_out: Vec<String>,
    },
    /// Single requests by logs and traces, as the frontend measured them.
    Measured,
    /// The difference of two times that were received: from the decision on, so that it is at least as long.
    Derived,
}

impl TimingSource {
    /// For people.
    pub fn to_text(&self) -> String {
        match self {
            Self::Histograms { processes, left_out } => {
                let without = if left_out.is_empty() {
                    String::new()
                } else {
                    format!(", without {}, whose buckets differ", left_out.join(", "))
                };
                format!("histogram of {}{without}", processes.join(", "))
            }
            Self::Measured => "per request, as the frontend measured it".to_owned(),
            Self::Derived => {
                "per request, decision → first token: a lower bound, the frontend's work before is not in it"
                    .to_owned()
            }
        }
    }
}

/// Percentiles of one quantity from one source.
#[derive(Clone, PartialEq, Debug)]
pub struct Times {
    /// Where from.
    pub source: TimingSource,
    /// Samples in the window.
    pub samples: u64,
    /// Samples that there were, known or not, as far as anybody counts them; of a histogram the same.
    pub of: u64,
    /// Median, 95th and 99th percentile; `None` without a sample.
    pub quantiles: Option<[Range; 3]>,
    /// What it is taken over: after the first, up to the second. Of scraped processes from scrape to scrape.
    pub window: (Millis, Millis),
}

impl Times {
    /// How the 95th percentile compares to `target`; unknown also with fewer than [`MIN_SAMPLES`] samples.
    pub fn standing(&self, target: f64) -> TargetComparison {
        match self.quantiles {
            Some([_, p95, _]) if self.samples >= MIN_SAMPLES => p95.against(target),
            _ => TargetComparison::Unknown,
        }
    }

    /// What the figure is of: `208 of 209 requests`, `209 samples`.
    pub fn share_text(&self) -> String {
        let (one, many) = match self.source {
            TimingSource::Histograms { .. } => ("sample", "samples"),
            TimingSource::Measured | TimingSource::Derived => ("request", "requests"),
        };
        match self.of > self.samples {
            true => format!("{} of {}", count(self.samples), plural(self.of, one, many)),
            false => plural(self.samples, one, many),
        }
    }

    /// How the 95th percentile compares to `target`, as text.
    pub fn standing_text(&self, quantity: Quantity, target: f64) -> String {
        match self.standing(target) {
            TargetComparison::Within => "✓ within target".to_owned(),
            TargetComparison::Above => "◆ above target".to_owned(),
            TargetComparison::Unknown => match self.why_unknown(quantity, target) {
                Some(why) if self.samples < MIN_SAMPLES => why,
                _ => format!(
                    "target {} lies within this range: above or within is unknown",
                    quantity.to_text(target)
                ),
            },
        }
    }

    /// Why [`standing`](Self::standing) is unknown, as text; `None` where it is not.
    pub fn why_unknown(&self, quantity: Quantity, target: f64) -> Option<String> {
        if self.standing(target) != TargetComparison::Unknown {
            return None;
        }
        let Some([_, p95, _]) = self.quantiles.filter(|_| self.samples >= MIN_SAMPLES) else {
            return Some(format!("no data: {} of at least {MIN_SAMPLES} samples", self.samples));
        };
        let (range, target) = (quantity.range_text(&p95), quantity.to_text(target));
        Some(format!("{range}, target {target} lies within this range: above or within is unknown"))
    }
}

/// Share of samples above a target over the session.
#[derive(Clone, PartialEq, Debug)]
pub struct Burn {
    /// Where from.
    pub source: TimingSource,
    /// Samples above the target: at least so many, at most so many. They differ where the target lies inside a bucket.
    pub over: (u64, u64),
    /// All samples.
    pub samples: u64,
    /// Since when.
    pub since_ms: Millis,
}

/// The figure of the last [`WINDOW_MS`] before `now`: the one that is shown, compared and coloured everywhere. `None`:
/// not reported for a sample.
pub fn figure(cluster: &Cluster, quantity: Quantity, now: Millis) -> Option<Times> {
    latest(cluster, quantity, now).into_iter().find(|times| times.samples > 0)
}

/// Percentiles over the last [`WINDOW_MS`] before `now`, from every source that reports the quantity, the best one first:
/// single requests if they are nearly all of those that the frontends count, else histograms. Empty: not reported.
pub fn latest(cluster: &Cluster, quantity: Quantity, now: Millis) -> Vec<Times> {
    within(cluster, quantity, now, WINDOW_MS)
}

/// The same over the last `window_ms`.
pub fn within(cluster: &Cluster, quantity: Quantity, now: Millis, window_ms: u64) -> Vec<Times> {
    let singles = RequestValues::of(cluster, quantity, None, now, window_ms);
    let after = Millis(now.0.saturating_sub(window_ms));
    let buckets = merged(cluster, quantity.histogram(), |p, kind| p.distribution(kind, after, now));
    let in_buckets = buckets.as_ref().map(|(sum, _)| sum.count());
    let covers = singles.as_ref().is_some_and(|singles| singles.covers(in_buckets));
    let buckets = buckets.map(|(sum, source)| Times {
        samples: sum.count(),
        of: sum.count(),
        quantiles: of_buckets(&sum, quantity.scale()),
        window: scraped(cluster, &source, after).unwrap_or((after, now)),
        source,
    });
    let singles = singles.map(RequestValues::times);
    if covers {
        singles.into_iter().chain(buckets).collect()
    } else {
        buckets.into_iter().chain(singles).collect()
    }
}

/// How many samples there are and where they are from: of the figure that is shown, and of the one beside it.
pub fn source_text(all: &[Times], quantity: Quantity) -> String {
    let one = |times: &Times| format!("{}, {}", times.share_text(), times.source.to_text());
    let Some(first) = all.first() else { return String::new() };
    let other = all.get(1).map_or(String::new(), |times| {
        let p95 =
            times.quantiles.map_or(String::new(), |all| format!(", p95 {}", quantity.range_text(&all[1])));
        format!(". To check it: {}{p95}", one(times))
    });
    format!("{}{other}.", one(first))
}

/// Between which scrapes the histograms of a source counted.
fn scraped(cluster: &Cluster, source: &TimingSource, after: Millis) -> Option<(Millis, Millis)> {
    let TimingSource::Histograms { processes, .. } = source else { return None };
    let of = frontends(cluster).filter(|process| processes.contains(&process.name));
    of.map(|process| process.covered(after))
        .reduce(|(from, to), (began, last)| (from.min(began), to.max(last)))
}

/// Percentiles over single requests, within `window_ms` before `until`. `None`: not reported for any.
pub fn requests(cluster: &Cluster, quantity: Quantity, until: Millis, window_ms: u64) -> Option<Times> {
    RequestValues::of(cluster, quantity, None, until, window_ms).map(RequestValues::times)
}

/// The same of the requests that were routed to one worker.
pub fn requests_of(
    cluster: &Cluster,
    quantity: Quantity,
    worker: WorkerIx,
    until: Millis,
    window_ms: u64,
) -> Option<Times> {
    RequestValues::of(cluster, quantity, Some(worker), until, window_ms).map(RequestValues::times)
}

/// Share of the samples of the last [`WINDOW_MS`] before `now` that were above `target`, 0 to 1, by a source that
/// [`latest`] gave; a range where the target lies inside a bucket or requests are missing. `None` without a sample.
pub fn share_above(
    cluster: &Cluster,
    quantity: Quantity,
    now: Millis,
    target: f64,
    source: &TimingSource,
) -> Option<Range> {
    let (least, most, of) = if matches!(source, TimingSource::Histograms { .. }) {
        let after = Millis(now.0.saturating_sub(WINDOW_MS));
        let (sum, _) = merged(cluster, quantity.histogram(), |p, kind| p.distribution(kind, after, now))?;
        let (least, most) = sum.above(target / quantity.scale());
        (least, most, sum.count())
    } else {
        let singles = RequestValues::of(cluster, quantity, None, now, WINDOW_MS)?;
        let above = singles.values.iter().filter(|&&value| value > target).count() as u64;
        (above, above, singles.values.len() as u64)
    };
    (of > 0).then(|| Range::between(least as f64 / of as f64, Some(most as f64 / of as f64)))
}

/// How many samples of the session were above `target`: by histograms, which have all of them, else by the single requests
/// that are retained.
pub fn burn(cluster: &Cluster, quantity: Quantity, target: f64) -> Option<Burn> {
    let of_histograms = || {
        let (sum, source) = merged(cluster, quantity.histogram(), ProcessState::session)?;
        let since_ms = frontends(cluster).map(|p| p.first_ms).min()?;
        Some(Burn { source, over: sum.above(target / quantity.scale()), samples: sum.count(), since_ms })
    };
    let of_requests = || {
        let decisions = cluster.decisions();
        let of_decisions = decisions.newest_first().filter_map(|decided| quantity.of(decided));
        let of_ended = cluster.requests().newest_first().filter_map(|ended| quantity.of_ended(ended));
        let each: Vec<_> = of_decisions.chain(of_ended).collect();
        let since_ms = each.iter().map(|single| single.at).min()?;
        let is_measured = each.iter().all(|single| single.is_measured);
        let source = if is_measured { TimingSource::Measured } else { TimingSource::Derived };
        let over = each.iter().filter(|single| single.value > target).count() as u64;
        Some(Burn { source, over: (over, over), samples: each.len() as u64, since_ms })
    };
    of_histograms().filter(|burn| burn.samples > 0).or_else(of_requests)
}

pub(super) fn of_buckets(sum: &Distribution, scale: f64) -> Option<[Range; 3]> {
    let at = |q: f64| sum.quantile(q).map(|quantile| quantile.range().times(scale));
    Some([at(0.5)?, at(0.95)?, at(0.99)?])
}

/// Percentiles over the last `window_ms` before `now` by the engines' own histograms: from when a request reached its engine. `None`:
/// no engine's metrics have it.
pub fn engines(cluster: &Cluster, quantity: Quantity, now: Millis, window_ms: u64) -> Option<Times> {
    let after = Millis(now.0.saturating_sub(window_ms));
    let (sum, source) =
        sum_of(engine_processes(cluster), |engine| engine.distribution(quantity.histogram(), after, now))?;
    let quantiles = of_buckets(&sum, quantity.scale());
    Some(Times { source, samples: sum.count(), of: sum.count(), quantiles, window: (after, now) })
}

/// What the processes that see whole requests say, added up. A worker sees its own part of a request only. `None`: no
/// process offers it.
pub fn merged(
    cluster: &Cluster,
    kind: HistogramKind,
    of: impl Fn(&ProcessState, HistogramKind) -> Option<Distribution>,
) -> Option<(Distribution, TimingSource)> {
    sum_of(frontends(cluster), |process| of(process, kind))
}

/// What `processes` say, added up. `None`: none offers it.
pub(super) fn sum_of<'a>(
    processes: impl Iterator<Item = &'a ProcessState>,
    of: impl Fn(&ProcessState) -> Option<Distribution>,
) -> Option<(Distribution, TimingSource)> {
    let mut sum: Option<Distribution> = None;
    let (mut names, mut left_out) = (Vec::new(), Vec::new());
    for process in processes {
        let Some(one) = of(process) else { continue };
        let is_in = match &mut sum {
            Some(sum) => sum.merge(&one),
            none => {
                *none = Some(one);
                true
            }
        };
        if is_in { &mut names } else { &mut left_out }.push(process.name.clone());
    }
    sum.map(|sum| (sum, TimingSource::Histograms { processes: names, left_out }))
}

/// Processes that run requests.
pub(super) fn engine_processes(cluster: &Cluster) -> impl Iterator<Item = &ProcessState> {
    cluster.processes().iter().filter(|process| process.role == ProcessRole::Worker)
}

/// Processes that take requests or route them.
pub(crate) fn frontends(cluster: &Cluster) -> impl Iterator<Item = &ProcessState> {
    cluster.processes().iter().filter(|process| process.role != ProcessRole::Worker)
}
