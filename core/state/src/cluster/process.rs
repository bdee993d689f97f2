//! Processes whose metrics are scraped: their present values, and what they counted over the last minutes.
//!
//! The fold keeps scrapes as they came; everything shown of them is derived when somebody asks. Counters never fall
//! here: whoever writes the records adds up over restarts.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::quantile::Distribution;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{
    Counter, Gauge, HistogramKind, ModelFigures, Opened, Present, ProcessRole, RankFigures, Scraped, Sealed,
    Sums, WorkerFigures,
};

/// Most processes kept apart: frontends and workers of a large deployment.
pub const MAX_PROCESSES: usize = 256;
/// How long what was counted is kept scrape by scrape.
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
    /// First scrape.
    pub first_ms: Millis,
    /// Last scrape.
    pub last_ms: Millis,
    /// Times it was seen to have restarted.
    pub restarts: u32,
    /// When the last restart was noticed.
    pub restarted_ms: Option<Millis>,
    present: Sealed<'static>,
    /// Places that others may have taken since the last scrape. Left out when it is taken apart, so that the fold need not.
    vacated: Vec<WorkerIx>,
    first: Sealed<'static>,
    steps: VecDeque<(Millis, Sealed<'static>)>,
    #[serde(skip)]
    open_present: Opened<Present>,
    #[serde(skip)]
    open_first: Opened<Sums>,
    #[serde(skip)]
    open_last: Opened<Sums>,
}

impl ProcessState {
    pub(super) fn new(at: Millis, scraped: &Scraped<'_>) -> Self {
        Self {
            name: scraped.process.to_string(),
            role: scraped.role,
            first_ms: at,
            last_ms: at,
            restarts: scraped.restarts,
            restarted_ms: None,
            present: scraped.present.to_static(),
            vacated: Vec::new(),
            first: scraped.sums.to_static(),
            steps: VecDeque::new(),
            open_present: Opened::default(),
            open_first: Opened::default(),
            open_last: Opened::default(),
        }
    }

    pub(super) fn scraped(&mut self, at: Millis, scraped: &Scraped<'_>) {
        if scraped.restarts != self.restarts {
            self.restarts = scraped.restarts;
            self.restarted_ms = Some(at);
        }
        self.role = scraped.role;
        self.last_ms = at;
        self.present = scraped.present.to_static();
        self.vacated.clear();
        self.steps.push_back((at, scraped.sums.to_static()));
        while self.steps.len() > MAX_STEPS
            || self.steps.front().is_some_and(|(first, _)| at.since(*first) > SCRAPE_WINDOW_MS)
        {
            self.steps.pop_front();
        }
        self.open_present = Opened::default();
        self.open_last = Opened::default();
    }

    /// Other workers take these places: the figures are not theirs.
    pub(super) fn vacate(&mut self, workers: &[WorkerIx]) {
        self.vacated.extend(workers);
        self.vacated.sort_unstable();
        self.vacated.dedup();
        self.open_present = Opened::default();
    }

    fn present(&self) -> &Present {
        self.open_present.get(|| {
            let mut present: Present = self.present.open().unwrap_or_default();
            present.workers.retain(|figures| self.vacated.binary_search(&figures.worker).is_err());
            present
        })
    }

    /// Sums at the first scrape.
    fn first(&self) -> &Sums {
        self.open_first.get(|| self.first.open().unwrap_or_default())
    }

    /// Sums at the last scrape.
    fn last(&self) -> &Sums {
        self.open_last.get(|| {
            let last = self.steps.back().map_or(&self.first, |(_, sums)| sums);
            last.open().unwrap_or_default()
        })
    }

    /// Sums at the last scrape that was not after `at`; of times that are no longer kept, those of the first one kept.
    fn sums(&self, at: Millis) -> Sums {
        let step = self.steps.iter().rev().find(|(step, _)| *step <= at);
        let is_forgotten =
            self.steps.len() == MAX_STEPS || self.last_ms.since(self.first_ms) > SCRAPE_WINDOW_MS;
        let oldest = || self.steps.front().filter(|_| is_forgotten && at >= self.first_ms);
        step.or_else(oldest).map_or(&self.first, |(_, sums)| sums).open().unwrap_or_default()
    }

    /// Its connection id where its metrics carry it, see [`radixscope_model::record::Scrape::instance`].
    pub fn instance(&self) -> Option<u64> {
        self.present().instance
    }

    /// What a frontend says of its models.
    pub fn models(&self) -> &[ModelFigures<'static>] {
        &self.present().models
    }

    /// What a frontend says of workers.
    pub fn workers(&self) -> &[WorkerFigures] {
        &self.present().workers
    }

    /// What a worker says of its ranks.
    pub fn ranks(&self) -> &[RankFigures] {
        &self.present().ranks
    }

    /// A present value; `None`: the process does not offer it.
    pub fn gauge(&self, gauge: Gauge) -> Option<f64> {
        self.present().gauges.iter().find(|(known, _)| *known == gauge).map(|&(_, value)| value)
    }

    /// What a counter rose by since it was first scraped; `None`: the process does not offer it.
    pub fn counted(&self, counter: Counter) -> Option<f64> {
        Some(self.counter_value(counter)? - count(self.first(), counter).unwrap_or(0.0))
    }

    /// What a counter stands at by the process's own count, restarts added up; `None`: the process does not offer it.
    pub fn counter_value(&self, counter: Counter) -> Option<f64> {
        count(self.last(), counter)
    }

    /// What a counter rose by after `since`; `None`: the process does not offer it.
    pub fn counted_since(&self, counter: Counter, since: Millis) -> Option<f64> {
        Some(self.counter_value(counter)? - count(&self.sums(since), counter).unwrap_or(0.0))
    }

    /// The samples that came after `after` and not after `until`; `None`: the process does not offer it.
    pub fn distribution(&self, kind: HistogramKind, after: Millis, until: Millis) -> Option<Distribution> {
        let later = if until >= self.last_ms { None } else { Some(self.sums(until)) };
        self.between(kind, &self.sums(after), later.as_ref().unwrap_or_else(|| self.last()))
    }

    /// The samples of the session: all since the first scrape.
    pub fn session(&self, kind: HistogramKind) -> Option<Distribution> {
        self.between(kind, self.first(), self.last())
    }

    fn between(&self, kind: HistogramKind, before: &Sums, after: &Sums) -> Option<Distribution> {
        let (_, bounds) = self.present().bounds.iter().find(|(known, _)| *known == kind)?;
        let (counts, sum) = histogram(after, kind)?;
        let mut rise = Distribution::empty(bounds);
        match histogram(before, kind).filter(|(before, _)| before.len() == counts.len()) {
            Some((before, sum_before)) => rise.add(
                counts.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)),
                sum - sum_before,
            ),
            None => rise.add(counts.iter().copied(), sum),
        }
        Some(rise)
    }

    /// Between which scrapes that is counted which came after `after`: the last one not after it, or the first one, and
    /// the last one of all.
    pub fn covered(&self, after: Millis) -> (Millis, Millis) {
        let began = self.scraped_ms().rfind(|at| *at <= after).unwrap_or(self.first_ms);
        (began, self.last_ms)
    }

    /// When it was scraped, as far as it is kept, oldest first.
    pub fn scraped_ms(&self) -> impl DoubleEndedIterator<Item = Millis> + '_ {
        self.steps.iter().map(|(at, _)| *at)
    }
}

fn count(sums: &Sums, counter: Counter) -> Option<f64> {
    sums.counters.iter().find(|(known, _)| *known == counter).map(|&(_, value)| value)
}

fn histogram(sums: &Sums, kind: HistogramKind) -> Option<(&[u64], f64)> {
    let (_, counts, sum) = sums.histograms.iter().find(|(known, ..)| *known == kind)?;
    Some((counts, *sum))
}
