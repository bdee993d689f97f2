//! Processes whose metrics are scraped: their present values, what their counters rose by, and distributions over the
//! last minutes. A counter that falls belongs to a process that restarted: it counts from 0 again.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::quantile::Distribution;
use crate::id::Millis;
use crate::record::{
    Counter, Gauge, Histogram, HistogramKind, ModelFigures, ProcessRole, RankFigures, Scrape, WorkerFigures,
};

/// Most processes kept apart: frontends and workers of a large deployment.
pub const MAX_PROCESSES: usize = 256;
/// How long what happened is kept scrape by scrape.
pub const SCRAPE_WINDOW_MS: u64 = 300_000;
/// Most scrapes kept of a process: one a second over the window.
const MAX_STEPS: usize = 300;

/// A process as its metrics show it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessState {
    /// As the operator named it.
    pub name: String,
    /// What it turned out to be.
    pub role: ProcessRole,
    /// Its connection id where its metrics carry it, see [`Scrape::instance`].
    pub instance: Option<u64>,
    /// First scrape.
    pub first_ms: Millis,
    /// Last scrape.
    pub last_ms: Millis,
    /// Times it was seen to have restarted.
    pub restarts: u32,
    /// When the last restart was noticed.
    pub restarted_ms: Option<Millis>,
    /// What a frontend says of its models.
    pub models: Vec<ModelFigures<'static>>,
    /// What a frontend says of workers.
    pub workers: Vec<WorkerFigures>,
    /// What a worker says of its ranks.
    pub ranks: Vec<RankFigures>,
    gauges: Vec<(Gauge, f64)>,
    counters: Vec<CounterSeries>,
    histograms: Vec<HistogramSeries>,
    /// Whether the last scrape was whole: a counter that it did not have stood at 0, because Dynamo shows some counters
    /// only once they have counted.
    was_whole: bool,
}

/// What a counter rose by.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct CounterSeries {
    counter: Counter,
    last: f64,
    total: f64,
    steps: VecDeque<(Millis, f64)>,
}

/// What a histogram grew by.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct HistogramSeries {
    kind: HistogramKind,
    bounds: Vec<f64>,
    last: Vec<u64>,
    last_sum: f64,
    total: Vec<u64>,
    total_sum: f64,
    steps: VecDeque<Step>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Step {
    at_ms: Millis,
    counts: Vec<u32>,
    sum: f64,
}

impl ProcessState {
    pub(super) fn new(name: String, role: ProcessRole, at: Millis) -> Self {
        Self {
            name,
            role,
            instance: None,
            first_ms: at,
            last_ms: at,
            restarts: 0,
            restarted_ms: None,
            models: Vec::new(),
            workers: Vec::new(),
            ranks: Vec::new(),
            gauges: Vec::new(),
            counters: Vec::new(),
            histograms: Vec::new(),
            was_whole: false,
        }
    }

    pub(super) fn scraped(&mut self, at: Millis, scrape: &Scrape<'_>) {
        if self.has_restarted(scrape) {
            self.restarts = self.restarts.saturating_add(1);
            self.restarted_ms = Some(at);
            self.forget_last();
        }
        self.role = scrape.role;
        self.instance = scrape.instance;
        self.last_ms = at;
        self.gauges = scrape.gauges.to_vec();
        self.models = scrape.models.iter().map(owned).collect();
        self.workers = scrape.workers.to_vec();
        self.ranks = scrape.ranks.to_vec();
        for &(counter, value) in scrape.counters.iter() {
            match self.counters.iter_mut().find(|series| series.counter == counter) {
                Some(series) => series.rise(at, value),
                None => {
                    let last = if self.was_whole { 0.0 } else { value };
                    let mut series = CounterSeries { counter, last, total: 0.0, steps: VecDeque::new() };
                    series.rise(at, value);
                    self.counters.push(series);
                }
            }
        }
        for histogram in scrape.histograms.iter().filter(|h| h.counts.len() == h.bounds.len() + 1) {
            match self.histograms.iter_mut().find(|series| series.kind == histogram.kind) {
                Some(series) if series.bounds == *histogram.bounds => series.grow(at, histogram),
                // Other buckets: what came before cannot be added to what comes now.
                Some(series) => *series = HistogramSeries::new(histogram, false),
                None => {
                    let mut series = HistogramSeries::new(histogram, self.was_whole);
                    series.grow(at, histogram);
                    self.histograms.push(series);
                }
            }
        }
        self.was_whole = scrape.is_whole;
    }

    /// Another process under the same name: it has another id, a shorter uptime, or a counter fell.
    fn has_restarted(&self, scrape: &Scrape<'_>) -> bool {
        let other = self.instance.is_some() && scrape.instance.is_some() && self.instance != scrape.instance;
        let uptime = |gauges: &[(Gauge, f64)]| {
            gauges.iter().find(|(gauge, _)| *gauge == Gauge::UptimeSeconds).map(|&(_, seconds)| seconds)
        };
        let younger = uptime(&self.gauges).zip(uptime(&scrape.gauges)).is_some_and(|(old, new)| new < old);
        let fell = scrape.counters.iter().any(|&(counter, value)| {
            self.counters.iter().any(|series| series.counter == counter && value < series.last)
        });
        other || younger || fell
    }

    /// What a new process counts, it counts from 0.
    fn forget_last(&mut self) {
        self.counters.iter_mut().for_each(|series| series.last = 0.0);
        for series in &mut self.histograms {
            series.last.fill(0);
            series.last_sum = 0.0;
        }
    }

    /// A present value; `None`: the process does not offer it.
    pub fn gauge(&self, gauge: Gauge) -> Option<f64> {
        self.gauges.iter().find(|(known, _)| *known == gauge).map(|&(_, value)| value)
    }

    /// What a counter rose by since it was first scraped; `None`: the process does not offer it.
    pub fn counted(&self, counter: Counter) -> Option<f64> {
        self.counter(counter).map(|series| series.total)
    }

    /// What a counter stands at by the process's own count, which begins with the process.
    pub fn counter_value(&self, counter: Counter) -> Option<f64> {
        self.counter(counter).map(|series| series.last)
    }

    /// What a counter rose by after `since`; `None`: the process does not offer it.
    pub fn counted_since(&self, counter: Counter, since: Millis) -> Option<f64> {
        let steps = &self.counter(counter)?.steps;
        // From 0.0: an empty f64 sum is −0.
        Some(steps.iter().rev().take_while(|(at, _)| *at > since).fold(0.0, |sum, (_, rise)| sum + rise))
    }

    fn counter(&self, counter: Counter) -> Option<&CounterSeries> {
        self.counters.iter().find(|series| series.counter == counter)
    }

    /// The samples that came after `after` and not after `until`; `None`: the process does not offer it.
    pub fn distribution(&self, kind: HistogramKind, after: Millis, until: Millis) -> Option<Distribution> {
        let series = self.histograms.iter().find(|series| series.kind == kind)?;
        let mut sum = Distribution::empty(&series.bounds);
        for step in series.steps.iter().rev().skip_while(|step| step.at_ms > until) {
            if step.at_ms <= after {
                break;
            }
            sum.add(step.counts.iter().map(|&count| u64::from(count)), step.sum);
        }
        Some(sum)
    }

    /// The samples of the session: all since the first scrape.
    pub fn session(&self, kind: HistogramKind) -> Option<Distribution> {
        let series = self.histograms.iter().find(|series| series.kind == kind)?;
        let mut sum = Distribution::empty(&series.bounds);
        sum.add(series.total.iter().copied(), series.total_sum);
        Some(sum)
    }

    /// When it was scraped, as far as it is kept, oldest first.
    pub fn scraped_ms(&self) -> impl Iterator<Item = Millis> + '_ {
        let longest = self.histograms.iter().max_by_key(|series| series.steps.len());
        longest.into_iter().flat_map(|series| series.steps.iter().map(|step| step.at_ms))
    }
}

impl CounterSeries {
    fn rise(&mut self, at: Millis, value: f64) {
        let rise = (value - self.last).max(0.0);
        self.last = value;
        self.total += rise;
        self.steps.push_back((at, rise));
        while self.steps.len() > MAX_STEPS
            || self.steps.front().is_some_and(|(first, _)| at.since(*first) > SCRAPE_WINDOW_MS)
        {
            self.steps.pop_front();
        }
    }
}

impl HistogramSeries {
    /// `from_zero`: what it holds already is new.
    fn new(histogram: &Histogram<'_>, from_zero: bool) -> Self {
        let (last, last_sum) = match from_zero {
            true => (vec![0; histogram.counts.len()], 0.0),
            false => (histogram.counts.to_vec(), histogram.sum),
        };
        Self {
            kind: histogram.kind,
            bounds: histogram.bounds.to_vec(),
            last,
            last_sum,
            total: vec![0; histogram.counts.len()],
            total_sum: 0.0,
            steps: VecDeque::new(),
        }
    }

    fn grow(&mut self, at: Millis, histogram: &Histogram<'_>) {
        let rise = |(&now, &last): (&u64, &u64)| now.saturating_sub(last);
        let counts: Vec<u64> = histogram.counts.iter().zip(&self.last).map(rise).collect();
        let sum = histogram.sum - self.last_sum;
        self.last.copy_from_slice(&histogram.counts);
        self.last_sum = histogram.sum;
        for (total, count) in self.total.iter_mut().zip(&counts) {
            *total = total.saturating_add(*count);
        }
        self.total_sum += sum;
        let counts = counts.iter().map(|&count| u32::try_from(count).unwrap_or(u32::MAX)).collect();
        self.steps.push_back(Step { at_ms: at, counts, sum });
        while self.steps.len() > MAX_STEPS
            || self.steps.front().is_some_and(|first| at.since(first.at_ms) > SCRAPE_WINDOW_MS)
        {
            self.steps.pop_front();
        }
    }
}

fn owned(model: &ModelFigures<'_>) -> ModelFigures<'static> {
    ModelFigures { name: model.name.clone().into_owned().into(), ..*model }
}
