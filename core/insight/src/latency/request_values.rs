//! Single requests, and what they show of all requests of a window: exact where nearly all of them are known, a range
//! where fewer are.

use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::range::Range;
use radixscope_model::record::Counter;
use radixscope_state::cluster::{Cluster, ProcessState};

use super::Quantity;
use super::times::{Times, TimingSource, frontends};

/// Share of the requests that must be known one by one for their figure to go before the histograms'.
const COVERS: f64 = 0.95;
/// Requests that waited this long for their first token are still found, milliseconds.
const LONGEST_WAIT_MS: u64 = 60_000;
/// A frontend's older scrape does not count for the number of requests in a window.
const STALE_MS: u64 = 30_000;

/// Values of requests within a window, in no order, and how many requests are missing.
pub(super) struct RequestValues {
    pub(super) values: Vec<f64>,
    /// Requests of the window whose value is not known.
    missing: u64,
    /// Whether frontends' counters say how many there were; else it is the decisions that ended.
    is_counted: bool,
    pub(super) source: TimingSource,
    window: (Millis, Millis),
}

impl RequestValues {
    /// Of all requests, or of those routed to one worker: their number is only known from decisions. `None`: no request
    /// has the quantity.
    pub(super) fn of(
        cluster: &Cluster,
        quantity: Quantity,
        only: Option<WorkerIx>,
        until: Millis,
        window_ms: u64,
    ) -> Option<Self> {
        let nominal = (Millis(until.0.saturating_sub(window_ms)), until);
        let is_measured = is_measured(cluster, quantity)?;
        let has_counters = is_measured && quantity != Quantity::InputTokens && only.is_none();
        let counted = if has_counters { counted(cluster, nominal) } else { None };
        // The counter's own window, from scrape to scrape: else the requests since the last scrape would seem too many.
        let window = counted.map_or(nominal, |counted| counted.window);
        let holds = |at: Millis| window.0 < at && at <= window.1;
        let (mut values, mut all) = (Vec::new(), 0);
        let is_meant = |worker| only.is_none_or(|only| only == worker);
        let reached = reached(cluster, quantity, until, window_ms);
        for decided in reached.filter(|decided| is_meant(decided.decision.worker)) {
            let single = quantity.of(decided);
            if let Some(single) =
                single.filter(|single| single.is_measured == is_measured && holds(single.at))
            {
                values.push(single.value);
            }
            let at = quantity.counts_at(decided, is_measured);
            all += u64::from(at.is_some_and(holds));
        }
        // The worker of a request without a decision is unknown.
        let without = cluster.requests().newest_first().filter(|_| only.is_none());
        for ended in without.filter(|ended| holds(ended.ended_ms)) {
            let single = quantity.of_ended(ended).filter(|single| single.is_measured == is_measured);
            values.extend(single.map(|single| single.value));
            all += 1;
        }
        let all = counted.map_or(all, |counted| counted.ended);
        let missing = all.saturating_sub(values.len() as u64);
        let source = if is_measured { TimingSource::Measured } else { TimingSource::Derived };
        Some(Self { values, missing, is_counted: counted.is_some(), source, window })
    }

    /// Whether they are nearly all requests of the window. Where no frontend counts requests, the samples of its histogram
    /// tell how many there were, if there is one.
    pub(super) fn covers(&self, histogram_samples: Option<u64>) -> bool {
        let known = self.values.len() as f64;
        let all = histogram_samples.filter(|_| !self.is_counted).unwrap_or(0) as f64;
        self.source == TimingSource::Measured && known >= COVERS * all.max(known + self.missing as f64)
    }

    /// Their percentiles: exact over those that are known if they are nearly all, with their share beside it. Where more are
    /// missing, from all of these below to all of them above.
    pub(super) fn times(mut self) -> Times {
        self.values.sort_by(f64::total_cmp);
        let missing = if self.covers(None) { 0 } else { self.missing };
        let at = |q: f64| {
            let range = bounds(&self.values, missing, q)?;
            // A time between choice and first token leaves out what the frontend does before, a queue included.
            Some(if self.source == TimingSource::Derived { Range::between(range.low(), None) } else { range })
        };
        let quantiles = || Some([at(0.5)?, at(0.95)?, at(0.99)?]);
        Times {
            quantiles: quantiles(),
            samples: self.values.len() as u64,
            of: self.values.len() as u64 + self.missing,
            source: self.source,
            window: self.window,
        }
    }
}

/// Whether frontends measured the quantity themselves, as far as requests have it; `None`: none has.
fn is_measured(cluster: &Cluster, quantity: Quantity) -> Option<bool> {
    let mut is_known = None;
    let of_decisions = cluster.decisions().newest_first().map(|decided| quantity.of(decided));
    let of_ended = cluster.requests().newest_first().map(|ended| quantity.of_ended(ended));
    for single in of_decisions.chain(of_ended) {
        match single {
            Some(single) if single.is_measured => return Some(true),
            Some(_) => is_known = Some(false),
            None => {}
        }
    }
    is_known
}

/// Decisions that may have a value in the window. A response ends long after its choice, so that all that are kept may.
fn reached(
    cluster: &Cluster,
    quantity: Quantity,
    until: Millis,
    window_ms: u64,
) -> impl Iterator<Item = &radixscope_state::cluster::DecisionEntry> {
    let reach = match quantity {
        Quantity::InputTokens => window_ms + LONGEST_WAIT_MS,
        _ => u64::MAX,
    };
    cluster.decisions().newest_first().take_while(move |decided| until.since(decided.at_ms) <= reach)
}

/// Requests that ended, by the frontends' own counters.
#[derive(Clone, Copy)]
struct Counted {
    ended: u64,
    /// Scrapes between which they were counted; of several frontends the mean, as none of them names its requests.
    window: (Millis, Millis),
}

fn counted(cluster: &Cluster, (after, until): (Millis, Millis)) -> Option<Counted> {
    let counts = |process: &ProcessState| {
        let rise = |counter| process.counted_since(counter, after);
        let (ok, failed) = (rise(Counter::RequestsOk), rise(Counter::RequestsFailed));
        (ok.is_some() || failed.is_some()).then(|| ok.unwrap_or(0.0) + failed.unwrap_or(0.0))
    };
    let (mut ended, mut from, mut to, mut frontends_counting) = (0.0, 0, 0, 0);
    for process in frontends(cluster).filter(|process| until.since(process.last_ms) <= STALE_MS) {
        let Some(rise) = counts(process) else { continue };
        let (began, last) = process.covered(after);
        ended += rise;
        from += began.0;
        to += last.0;
        frontends_counting += 1;
    }
    (frontends_counting > 0).then(|| Counted {
        ended: ended.round().max(0.0) as u64,
        window: (Millis(from / frontends_counting), Millis(to / frontends_counting)),
    })
}

/// The share `q` of `values`, which ascend, and of `missing` more that may be anything: exact by nearest rank where none
/// is missing, else from all of them below to all of them above. `None` without a value.
fn bounds(values: &[f64], missing: u64, q: f64) -> Option<Range> {
    let known = values.len();
    let missing = usize::try_from(missing).ok()?;
    let rank = (q * (known + missing) as f64).ceil().max(1.0) as usize;
    values.first()?;
    let low = rank.checked_sub(missing + 1).and_then(|at| values.get(at)).copied().unwrap_or(0.0);
    Some(Range::between(low, values.get(rank - 1).copied()))
}

/// Median, 95th and 99th percentile of all values there are; `None` of none.
pub(super) fn exact(mut values: Vec<f64>) -> Option<[Range; 3]> {
    values.sort_by(f64::total_cmp);
    let at = |q: f64| bounds(&values, 0, q);
    Some([at(0.5)?, at(0.95)?, at(0.99)?])
}

/// The share `q` of some values by nearest rank; `None` of none.
pub(super) fn nearest_rank(values: impl Iterator<Item = f64>, q: f64) -> Option<Range> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    bounds(&values, 0, q)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_hold_whatever_the_missing_ones_are() {
        let known: Vec<f64> = (1..=95).map(f64::from).collect();
        assert_eq!(bounds(&known, 0, 0.5), Some(Range::exact(48.0)));
        assert_eq!(bounds(&known, 5, 0.95), Some(Range::between(90.0, Some(95.0))));
        assert_eq!(bounds(&known, 5, 0.99), Some(Range::between(94.0, None)), "the slowest may be missing");
        assert_eq!(bounds(&[], 5, 0.5), None);
        assert_eq!(bounds(&[7.0], 100, 0.5), Some(Range::between(0.0, None)));
    }
}
