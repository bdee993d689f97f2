//! Quantiles of one quantity over a window, from every source that tells it, and how they stand to a target.

use crate::cluster::{Cluster, Decided, Distribution, ProcessState};
use crate::id::Millis;
use crate::record::{Ended, HistogramKind, ProcessRole};
use crate::words;

use super::WINDOW_MS;

/// Share of the target from which a value is close to it.
const CLOSE_SHARE: f64 = 0.9;
/// Share of the histograms' samples that requests told one by one must make up to be taken before them.
const ENOUGH_EXACT: f64 = 0.9;
/// Requests that waited this long for their first token are still found, milliseconds.
const LONGEST_WAIT_MS: u64 = 60_000;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quantity {
    /// Time to first token, milliseconds.
    Ttft,
    /// Time between output tokens, milliseconds: of each gap by histograms, the mean of each request by logs.
    Tpot,
    /// Prompt lengths, tokens.
    InputTokens,
    /// Answer lengths, tokens.
    OutputTokens,
    /// The router's work on one request, milliseconds (≥ 1.0).
    RouterOverhead,
    /// Whole requests, from choice to end, milliseconds.
    EndToEnd,
}

impl Quantity {
    /// Every quantity that has targets or a place of its own; whole requests are only compared.
    pub const ALL: [Self; 5] =
        [Self::Ttft, Self::Tpot, Self::InputTokens, Self::OutputTokens, Self::RouterOverhead];

    pub(super) const fn histogram(self) -> HistogramKind {
        match self {
            Self::Ttft => HistogramKind::Ttft,
            Self::Tpot => HistogramKind::Itl,
            Self::InputTokens => HistogramKind::InputTokens,
            Self::OutputTokens => HistogramKind::OutputTokens,
            Self::RouterOverhead => HistogramKind::RouterOverheadMs,
            Self::EndToEnd => HistogramKind::Duration,
        }
    }

    /// What a histogram's values are multiplied with: Dynamo's are in seconds but for the router's.
    pub(super) const fn scale(self) -> f64 {
        match self {
            Self::Ttft | Self::Tpot | Self::EndToEnd => 1_000.0,
            Self::InputTokens | Self::OutputTokens | Self::RouterOverhead => 1.0,
        }
    }

    /// A value in words, with its unit.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Ttft | Self::Tpot | Self::RouterOverhead | Self::EndToEnd => words::duration(value),
            Self::InputTokens | Self::OutputTokens => format!("{} tokens", words::digits(value.round())),
        }
    }

    /// Of one request: when it was known, its value, and whether the frontend measured it itself.
    pub(super) fn of(self, decided: &Decided) -> Option<(Millis, f64, bool)> {
        if decided.decision.dispatched == Some(false) {
            return None;
        }
        let first = decided.time_to_first_token_ms();
        let progress = &decided.progress;
        let ended = progress.ended_ms.unwrap_or(decided.decided_ms());
        match self {
            Self::Ttft => {
                let (ms, measured) = first?;
                Some((Millis(decided.decided_ms().0.saturating_add(ms as u64)), ms, measured))
            }
            Self::Tpot => Some((ended, progress.itl_us? as f64 / 1_000.0, true)),
            Self::InputTokens => Some((decided.decided_ms(), decided.decision.isl_tokens? as f64, true)),
            Self::OutputTokens => Some((ended, progress.output_tokens? as f64, true)),
            Self::EndToEnd => {
                let ended = progress.ended_ms?;
                Some((ended, ended.since(decided.decided_ms()) as f64, false))
            }
            Self::RouterOverhead => None,
        }
    }

    /// The same of a request of which no decision is known; its frontend measured all of it.
    fn of_ended(self, request: &Ended) -> Option<(Millis, f64, bool)> {
        let ms = |us: u64| us as f64 / 1_000.0;
        let (at, progress) = (request.ended_ms, &request.progress);
        match self {
            Self::Ttft => {
                let first = progress.ttft_us?;
                let before_end = request.elapsed_us.map_or(0, |all| all.saturating_sub(first) / 1_000);
                Some((Millis(at.0.saturating_sub(before_end)), ms(first), true))
            }
            Self::Tpot => Some((at, ms(progress.itl_us?), true)),
            Self::InputTokens => Some((at, request.isl_tokens? as f64, true)),
            Self::OutputTokens => Some((at, progress.output_tokens? as f64, true)),
            Self::EndToEnd => Some((at, ms(request.elapsed_us?), true)),
            Self::RouterOverhead => None,
        }
    }
}

/// Where figures come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The histograms of these processes: known by bucket.
    Histograms {
        /// Their names.
        processes: Vec<String>,
        /// Processes whose buckets have other bounds and that are therefore not in it.
        left_out: Vec<String>,
    },
    /// Requests told one by one by logs and traces, as the frontend measured them.
    Measured,
    /// The difference of two times that were told.
    Told,
}

impl Source {
    /// For people.
    pub fn words(&self) -> String {
        match self {
            Self::Histograms { processes, left_out } => {
                let without = if left_out.is_empty() {
                    String::new()
                } else {
                    format!(", without {}, whose buckets differ", left_out.join(", "))
                };
                format!("histogram of {}{without}", processes.join(", "))
            }
            Self::Measured => "requests one by one, as the frontend measured them".to_owned(),
            Self::Told => "requests one by one, from the times of choice and first token".to_owned(),
        }
    }
}

/// A value, exact or known by its bucket.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reading {
    /// The value, or the best guess.
    pub value: f64,
    /// The bucket that it lies in: above the first, at most the second; no second: above every bound. `None`: exact.
    pub bucket: Option<(f64, Option<f64>)>,
}

impl Reading {
    /// `612 ms`, or `≈ 612 ms (470 ms–1 s)`.
    pub fn words(&self, quantity: Quantity) -> String {
        let value = quantity.words(self.value);
        match self.bucket {
            None => value,
            Some((lower, Some(upper))) => {
                format!("≈ {value} ({}–{})", quantity.words(lower), quantity.words(upper))
            }
            Some((lower, None)) => format!("above {}", quantity.words(lower)),
        }
    }

    /// How it stands to `target`.
    pub fn standing(&self, target: f64) -> Standing {
        if self.value > target {
            Standing::Over
        } else if self.value >= CLOSE_SHARE * target {
            Standing::Close
        } else {
            Standing::Inside
        }
    }

    /// Whether the bucket reaches from below `target` to above it, so that the standing is a guess.
    pub fn is_unsure(&self, target: f64) -> bool {
        self.bucket.is_some_and(|(lower, upper)| lower < target && upper.is_none_or(|upper| upper > target))
    }
}

/// How a value stands to its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Below 90 % of it.
    Inside,
    /// From 90 % of it to it.
    Close,
    /// Above it.
    Over,
}

impl Standing {
    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Close => "close",
            Self::Over => "over",
        }
    }
}

/// Quantiles of one quantity from one source.
#[derive(Clone, PartialEq, Debug)]
pub struct Times {
    /// Where from.
    pub source: Source,
    /// Samples in the window.
    pub samples: u64,
    /// Median, 95th and 99th percentile; `None` without a sample.
    pub quantiles: Option<[Reading; 3]>,
}

/// Share of samples above a target over the session.
#[derive(Clone, PartialEq, Debug)]
pub struct Burn {
    /// Where from.
    pub source: Source,
    /// Samples above the target; a guess where the target lies within a bucket.
    pub over: u64,
    /// All samples.
    pub samples: u64,
    /// Whether `over` is exact.
    pub is_exact: bool,
    /// Since when.
    pub since_ms: Millis,
}

/// Quantiles over the last [`WINDOW_MS`] before `now`, from every source that tells the quantity, the best one first:
/// requests one by one if they are nearly all of them, else histograms. Empty: nobody tells.
pub fn latest(cluster: &Cluster, quantity: Quantity, now: Millis) -> Vec<Times> {
    within(cluster, quantity, now, WINDOW_MS)
}

/// The same over the last `window_ms`.
pub fn within(cluster: &Cluster, quantity: Quantity, now: Millis, window_ms: u64) -> Vec<Times> {
    let exact = requests(cluster, quantity, now, window_ms);
    let after = Millis(now.0.saturating_sub(window_ms));
    let buckets = merged(cluster, quantity.histogram(), |p, kind| p.distribution(kind, after, now));
    let buckets = buckets.map(|(sum, source)| Times {
        source,
        samples: sum.count(),
        quantiles: of_buckets(&sum, quantity.scale()),
    });
    let mut all: Vec<Times> = exact.into_iter().chain(buckets).collect();
    if let [exact, buckets] = all.as_slice()
        && ((exact.samples as f64) < ENOUGH_EXACT * buckets.samples as f64 || exact.source == Source::Told)
    {
        all.reverse();
    }
    all
}

/// Quantiles over requests that were told one by one, within `window_ms` before `until`. `None`: nobody tells.
pub fn requests(cluster: &Cluster, quantity: Quantity, until: Millis, window_ms: u64) -> Option<Times> {
    let (source, values) = exact_values(cluster, quantity, until, window_ms)?;
    let samples = values.len() as u64;
    Some(Times { source, samples, quantiles: of_values(values) })
}

/// Share of the samples of the last [`WINDOW_MS`] before `now` that were above `target`, 0 to 1, by a source that
/// [`latest`] gave; an estimate where the target lies within a bucket. `None` without a sample.
pub fn share_above(
    cluster: &Cluster,
    quantity: Quantity,
    now: Millis,
    target: f64,
    source: &Source,
) -> Option<f64> {
    if matches!(source, Source::Histograms { .. }) {
        let after = Millis(now.0.saturating_sub(WINDOW_MS));
        let (sum, _) = merged(cluster, quantity.histogram(), |p, kind| p.distribution(kind, after, now))?;
        return sum.share_within(target / quantity.scale()).map(|within| 1.0 - within);
    }
    let (_, values) = exact_values(cluster, quantity, now, WINDOW_MS)?;
    let above = values.iter().filter(|&&value| value > target).count();
    (!values.is_empty()).then(|| above as f64 / values.len() as f64)
}

/// How many samples of the session were above `target`, from the same source as [`latest`]'s first one where that is
/// possible.
pub fn burn(cluster: &Cluster, quantity: Quantity, target: f64) -> Option<Burn> {
    let of_histograms = || {
        let (sum, source) = merged(cluster, quantity.histogram(), ProcessState::session)?;
        let samples = sum.count();
        let within = sum.share_within(target / quantity.scale()).unwrap_or(1.0);
        let over = ((1.0 - within) * samples as f64).round().max(0.0) as u64;
        let since_ms = frontends(cluster).map(|p| p.first_ms).min()?;
        Some(Burn { source, over, samples, is_exact: false, since_ms })
    };
    let of_requests = || {
        let decided = cluster.decisions().newest_first().filter_map(|decided| quantity.of(decided));
        let ended = cluster.requests().newest_first().filter_map(|ended| quantity.of_ended(ended));
        let each: Vec<_> = decided.chain(ended).collect();
        let since_ms = each.iter().map(|&(at, ..)| at).min()?;
        let measured = each.iter().all(|&(.., measured)| measured);
        let source = if measured { Source::Measured } else { Source::Told };
        let over = each.iter().filter(|&&(_, value, _)| value > target).count() as u64;
        Some(Burn { source, over, samples: each.len() as u64, is_exact: true, since_ms })
    };
    of_histograms().filter(|burn| burn.samples > 0).or_else(of_requests)
}

/// Values of requests one by one that became known within `window_ms` before `until`.
fn exact_values(
    cluster: &Cluster,
    quantity: Quantity,
    until: Millis,
    window_ms: u64,
) -> Option<(Source, Vec<f64>)> {
    let kept = cluster.decisions().newest_first();
    let ended = cluster.requests().newest_first().filter_map(|ended| quantity.of_ended(ended));
    // An answer ends long after its choice; lengths and times of such are known by what is kept.
    let reach = match quantity {
        Quantity::Ttft | Quantity::InputTokens => window_ms + LONGEST_WAIT_MS,
        _ => u64::MAX,
    };
    let mut source = Source::Measured;
    let mut known = false;
    let mut values = Vec::new();
    let decided = kept.take_while(|decided| until.since(decided.at_ms) <= reach);
    for (at, value, measured) in decided.filter_map(|decided| quantity.of(decided)).chain(ended) {
        known = true;
        if at <= until && until.since(at) < window_ms {
            values.push(value);
            if !measured {
                source = Source::Told;
            }
        }
    }
    known.then_some((source, values))
}

pub(super) fn of_values(mut values: Vec<f64>) -> Option<[Reading; 3]> {
    values.sort_unstable_by(f64::total_cmp);
    let at = |q: f64| {
        let rank = (q * values.len() as f64).ceil().max(1.0) as usize;
        values.get(rank - 1).map(|&value| Reading { value, bucket: None })
    };
    Some([at(0.5)?, at(0.95)?, at(0.99)?])
}

pub(super) fn of_buckets(sum: &Distribution, scale: f64) -> Option<[Reading; 3]> {
    let at = |q: f64| {
        sum.quantile(q).map(|quantile| Reading {
            value: quantile.estimate * scale,
            bucket: Some((quantile.lower * scale, quantile.upper.map(|upper| upper * scale))),
        })
    };
    Some([at(0.5)?, at(0.95)?, at(0.99)?])
}

/// What the processes that see whole requests say, added up. A worker sees its own part of a request only. `None`: no
/// process offers it.
pub fn merged(
    cluster: &Cluster,
    kind: HistogramKind,
    of: impl Fn(&ProcessState, HistogramKind) -> Option<Distribution>,
) -> Option<(Distribution, Source)> {
    let mut sum: Option<Distribution> = None;
    let (mut processes, mut left_out) = (Vec::new(), Vec::new());
    for process in frontends(cluster) {
        let Some(one) = of(process, kind) else { continue };
        let is_in = match &mut sum {
            Some(sum) => sum.merge(&one),
            none => {
                *none = Some(one);
                true
            }
        };
        if is_in { &mut processes } else { &mut left_out }.push(process.name.clone());
    }
    sum.map(|sum| (sum, Source::Histograms { processes, left_out }))
}

/// Processes that take requests or route them.
pub(crate) fn frontends(cluster: &Cluster) -> impl Iterator<Item = &ProcessState> {
    cluster.processes().iter().filter(|process| process.role != ProcessRole::Worker)
}
