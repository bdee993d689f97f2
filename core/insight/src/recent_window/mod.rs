//! The last seconds of live traffic as figures that baselines know, each with its source and its samples. A pure reading of
//! the state: exact where nearly all requests are known one by one, else a range by the frontends' histograms.

mod counts;
mod lengths;
#[cfg(test)]
mod tests;
mod times;

pub use lengths::{Lengths, lengths};

use crate::baseline::{ByFigure, Figure, Window};
use crate::latency::{covered_s, frontends, merged};
use radixscope_model::id::Millis;
use radixscope_model::range::Range;
use radixscope_model::record::{Gauge, HistogramKind};
use radixscope_state::cluster::{Cluster, Distribution, ProcessState, RATE_BUCKET_MS};

/// Where a figure comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureSource {
    /// Histograms and counters of the frontends' metrics; quantiles are known to their bucket.
    Scraped,
    /// Each request, as its frontend measured it.
    Requests,
    /// Each request, by the times at which its steps were reported.
    Derived,
    /// Each decision, by the router's own count.
    Decisions,
}

impl FigureSource {
    /// Name on screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Scraped => "frontends' metrics",
            Self::Requests => "request traces",
            Self::Derived => "times of requests' events",
            Self::Decisions => "router's decisions",
        }
    }
}

/// With fewer requests that ended, their durations are too few to estimate how many were in flight.
const MIN_ENDED: u64 = 30;
/// For so many mean durations a frontend must have been scraped, for the same reason: before that, what ended is only what was
/// short.
const MIN_DURATIONS: f64 = 3.0;

/// How the requests in flight are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConcurrencySource {
    /// Time spent in all requests that ended, over the window: their mean number in flight.
    Durations,
    /// The most at once on each worker in each second, summed over the workers: never below the mean, and above it by some
    /// 10 to 20 %, because workers are not at their most at one moment.
    WorkersMax,
    /// The frontends' gauges at this moment, no mean.
    Gauges,
}

impl ConcurrencySource {
    /// Name on screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Durations => "mean in flight: sum of durations ÷ window",
            Self::WorkersMax => "upper bound: max in flight per worker and second, summed over workers",
            Self::Gauges => "frontends' gauges at this moment",
        }
    }
}

/// Live figures with their sources.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecentFigures {
    /// Figures and samples. Its concurrency is 0 where that is not known.
    pub window: Window,
    /// Where each known figure comes from.
    pub sources: ByFigure<Option<FigureSource>>,
    /// Mean requests in flight, or what stands for it, and how they are known.
    pub concurrency: Option<(f64, ConcurrencySource)>,
}

/// The `ms` milliseconds before `now`, at most [`radixscope_state::cluster::SCRAPE_WINDOW_MS`].
pub fn live(cluster: &Cluster, now: Millis, ms: u64) -> RecentFigures {
    let span = WindowView { cluster, now, ms };
    let mut figures = ByFigure::default();
    let mut samples = ByFigure::default();
    let mut sources = ByFigure::default();
    for (figure, known) in times::times(&span).into_iter().chain(counts::counts(&span)) {
        if let Some(SourcedFigure { value, samples: count, source }) = known.filter(|known| {
            known.value.high().unwrap_or(known.value.low()).is_finite() && figure.allows(known.value.low())
        }) {
            figures.set(figure, Some(value));
            samples.set(figure, count);
            sources.set(figure, Some(source));
        }
    }
    let concurrency = span.concurrency();
    let window =
        Window { concurrency: concurrency.map_or(0.0, |(mean, _)| mean), duration_ms: ms, figures, samples };
    RecentFigures { window, sources, concurrency }
}

/// A figure.
#[derive(Clone, Copy)]
struct SourcedFigure {
    /// In the figure's unit.
    value: Range,
    samples: u64,
    source: FigureSource,
}

impl SourcedFigure {
    fn exact(value: f64, samples: u64, source: FigureSource) -> Self {
        Self { value: Range::exact(value), samples, source }
    }
}

type Pair = (Figure, Option<SourcedFigure>);

/// What is looked at.
struct WindowView<'c> {
    cluster: &'c Cluster,
    now: Millis,
    ms: u64,
}

impl WindowView<'_> {
    fn after(&self) -> Millis {
        Millis(self.now.0.saturating_sub(self.ms))
    }

    fn holds(&self, at: Millis) -> bool {
        at > self.after() && at <= self.now
    }

    /// The scraped samples of `kind` of all frontends; `None` without one.
    fn scraped(&self, kind: HistogramKind) -> Option<Distribution> {
        let (sum, _) =
            merged(self.cluster, kind, |process, kind| process.distribution(kind, self.after(), self.now))?;
        (sum.count() > 0).then_some(sum)
    }

    /// Each frontend's figures for each second that its scrapes cover, summed; `None`: not reported.
    fn per_s(&self, of: impl Fn(&ProcessState) -> Option<f64>) -> Option<f64> {
        let each = frontends(self.cluster).filter_map(|process| {
            let seconds = covered_s(process, self.after());
            (seconds > 0.0).then_some(of(process)? / seconds)
        });
        each.reduce(|sum, more| sum + more)
    }

    fn concurrency(&self) -> Option<(f64, ConcurrencySource)> {
        use ConcurrencySource::{Durations, Gauges, WorkersMax};
        let mean = self.in_flight_by_durations().map(|mean| (mean, Durations));
        mean.or_else(|| Some((self.workers_max()?, WorkersMax))).or_else(|| Some((self.gauges()?, Gauges)))
    }

    fn gauges(&self) -> Option<f64> {
        let gauges = frontends(self.cluster).filter_map(|process| process.gauge(Gauge::InFlightRequests));
        gauges.reduce(|sum, more| sum + more).filter(|&sum| sum > 0.0)
    }

    /// The mean over the full seconds in which requests of any worker are known, see [`ConcurrencySource::WorkersMax`].
    fn workers_max(&self) -> Option<f64> {
        let end = self.now.0 / RATE_BUCKET_MS;
        let workers = || self.cluster.workers().iter();
        let at = |second| {
            let known = workers().filter_map(move |worker| worker.in_flight.most_in(second));
            known.map(u64::from).reduce(|sum, more| sum + more)
        };
        let known: Vec<u64> = (end.saturating_sub(self.ms / RATE_BUCKET_MS)..end).filter_map(at).collect();
        let mean = known.iter().sum::<u64>() as f64 / known.len().max(1) as f64;
        (mean > 0.0).then_some(mean)
    }

    /// By Little's law: time spent in requests that ended in the window, over its length. `None` also where too few ended, or
    /// frontends have been scraped for too short a time: what is still in flight is not in the sum, which then is far below
    /// the mean.
    fn in_flight_by_durations(&self) -> Option<f64> {
        let durations =
            |process: &ProcessState| process.distribution(HistogramKind::Duration, self.after(), self.now);
        let (mut ended, mut spent_s, mut least_known_s) = (0, 0.0, f64::INFINITY);
        for (process, durations) in frontends(self.cluster).filter_map(|it| Some((it, durations(it)?))) {
            ended += durations.count();
            spent_s += durations.sum();
            let known_s = covered_s(process, Millis(0));
            // One that was not scraped in the window has no data.
            if covered_s(process, self.after()) > 0.0 {
                least_known_s = least_known_s.min(known_s);
            }
        }
        let is_enough = ended >= MIN_ENDED && least_known_s >= MIN_DURATIONS * spent_s / ended as f64;
        let mean = self.per_s(|process| Some(durations(process)?.sum())).filter(|_| is_enough)?;
        (mean > 0.0).then_some(mean)
    }
}
