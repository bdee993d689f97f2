//! Processes whose metrics are scraped: their present values, and what they counted over the last minutes.
//!
//! The fold keeps scrapes as they came; everything shown of them is derived when somebody asks. Counters never fall
//! here: whoever writes the records adds up over restarts.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::quantile::Distribution;
use super::{HISTORY_S, hash};
use crate::redact::{self, Pseudonyms};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{
    Counter, Engine, Gauge, Histogram, HistogramKind, ModelFigures, ProcessRole, RankFigures, Scrape,
    WorkerFigures,
};

/// Most processes kept apart: frontends and workers of a large deployment.
pub const MAX_PROCESSES: usize = 256;
/// How long what was counted is kept scrape by scrape.
pub const SCRAPE_WINDOW_MS: u64 = 300_000;
/// Most scrapes kept of a process: one a second over the window.
const MAX_STEPS: usize = 300;
/// Of the scrapes before, up to [`HISTORY_S`] ago, those are kept that are at least this far apart.
const OLDER_STEP_MS: u64 = 30_000;
/// So many of them at most.
const MAX_OLDER: usize = (HISTORY_S * 1_000 / OLDER_STEP_MS) as usize;

/// A process as its metrics show it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessState {
    /// As the operator named it.
    pub name: String,
    /// What it turned out to be.
    pub role: ProcessRole,
    /// The engine that it runs, see [`Scrape::engine`].
    pub engine: Option<Engine>,
    /// First scrape.
    pub first_ms: Millis,
    /// Last scrape.
    pub last_ms: Millis,
    /// Restarts seen.
    pub restarts: u32,
    /// When the last restart was noticed.
    pub restarted_ms: Option<Millis>,
    instance: Option<u64>,
    gauges: Vec<(Gauge, f64)>,
    models: Vec<ModelFigures>,
    workers: Vec<WorkerFigures>,
    ranks: Vec<RankFigures>,
    /// Bounds of the histograms, as of the last scrape.
    bounds: Vec<(HistogramKind, Vec<f64>)>,
    /// What had been counted at the first scrape.
    first: Sums,
    /// What had been counted at the later ones.
    steps: VecDeque<(Millis, Sums)>,
    /// The same of the hour before, thinned.
    older: VecDeque<(Millis, Sums)>,
    /// Sum of the hashes of `steps` and `older`, so that the state's digest need not read them all. Not written: it follows from them.
    #[serde(skip)]
    steps_digest: u64,
}

/// What a process counted until a scrape.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Sums {
    counters: Vec<(Counter, f64)>,
    /// Samples by bucket, and their sum.
    histograms: Vec<(HistogramKind, Vec<u64>, f64)>,
}

impl Sums {
    fn of(scrape: &Scrape) -> Self {
        let histogram = |of: &Histogram| (of.kind, of.counts.clone(), of.sum);
        Self {
            counters: scrape.counters.clone(),
            histograms: scrape.histograms.iter().map(histogram).collect(),
        }
    }

    fn counter(&self, counter: Counter) -> Option<f64> {
        self.counters.iter().find(|(known, _)| *known == counter).map(|&(_, value)| value)
    }

    fn histogram(&self, kind: HistogramKind) -> Option<(&[u64], f64)> {
        let (_, counts, sum) = self.histograms.iter().find(|(known, ..)| *known == kind)?;
        Some((counts, *sum))
    }
}

impl ProcessState {
    /// Replaces names and ids.
    pub(super) fn redact(&mut self, names: &mut dyn Pseudonyms) {
        self.name = redact::name("process", &self.name, names);
        self.instance = self.instance.map(|instance| names.number(instance));
    }

    pub(super) fn new(at: Millis, scrape: &Scrape) -> Self {
        let mut state = Self {
            name: scrape.process.clone(),
            role: scrape.role,
            engine: scrape.engine,
            first_ms: at,
            last_ms: at,
            restarts: scrape.restarts,
            restarted_ms: None,
            instance: None,
            gauges: Vec::new(),
            models: Vec::new(),
            workers: Vec::new(),
            ranks: Vec::new(),
            bounds: Vec::new(),
            first: Sums::of(scrape),
            steps: VecDeque::new(),
            older: VecDeque::new(),
            steps_digest: 0,
        };
        state.take_present(at, scrape);
        state
    }

    pub(super) fn scraped(&mut self, at: Millis, scrape: &Scrape) {
        if scrape.restarts != self.restarts {
            self.restarts = scrape.restarts;
            self.restarted_ms = Some(at);
        }
        self.take_present(at, scrape);
        let step = (at, Sums::of(scrape));
        self.steps_digest = self.steps_digest.wrapping_add(hash(&step));
        self.steps.push_back(step);
        let is_old = |(first, _): &(Millis, Sums)| at.since(*first) > SCRAPE_WINDOW_MS;
        while self.steps.len() > MAX_STEPS || self.steps.front().is_some_and(is_old) {
            let Some(step) = self.steps.pop_front() else { break };
            self.thin(step);
        }
        let is_old = |(first, _): &(Millis, Sums)| at.since(*first) > HISTORY_S * 1_000;
        while self.older.len() > MAX_OLDER || self.older.front().is_some_and(is_old) {
            let Some(step) = self.older.pop_front() else { break };
            self.forget(&step);
        }
    }

    /// Keeps a scrape that leaves the window if the one kept before it is long enough ago.
    fn thin(&mut self, step: (Millis, Sums)) {
        match self.older.back().is_none_or(|(last, _)| step.0.since(*last) >= OLDER_STEP_MS) {
            true => self.older.push_back(step),
            false => self.forget(&step),
        }
    }

    fn forget(&mut self, step: &(Millis, Sums)) {
        self.steps_digest = self.steps_digest.wrapping_sub(hash(step));
    }

    /// Applies the current values of a scrape.
    fn take_present(&mut self, at: Millis, scrape: &Scrape) {
        self.role = scrape.role;
        self.engine = scrape.engine.or(self.engine);
        self.last_ms = at;
        self.instance = scrape.instance;
        self.gauges.clone_from(&scrape.gauges);
        self.models.clone_from(&scrape.models);
        self.workers.clone_from(&scrape.workers);
        self.ranks.clone_from(&scrape.ranks);
        self.bounds = scrape.histograms.iter().map(|of| (of.kind, of.bounds.clone())).collect();
    }

    /// A worker is forgotten, with its figures.
    pub(super) fn forget_worker(&mut self, worker: WorkerIx) {
        self.workers.retain(|figures| figures.worker != worker);
    }

    /// Equal for equal ones.
    pub(super) fn digest(&self) -> u64 {
        let Self { name, role, engine, first_ms, last_ms, restarts, restarted_ms, first, .. } = self;
        let Self { instance, gauges, models, workers, ranks, bounds, steps_digest, .. } = self;
        let counted = (role, engine, first_ms, last_ms, restarts, restarted_ms, first, steps_digest);
        hash(&(name, counted, instance, gauges, models, workers, ranks, bounds))
    }

    /// Works out what is not written into a snapshot.
    pub(super) fn restored(&mut self) {
        self.steps_digest = self.older.iter().chain(&self.steps).map(hash).fold(0, u64::wrapping_add);
    }

    /// Sums at the last scrape.
    fn last(&self) -> &Sums {
        self.steps.back().map_or(&self.first, |(_, sums)| sums)
    }

    /// Sums at the last scrape that was not after `at`; of times of which not every scrape is kept, at the nearest one kept.
    fn sums(&self, at: Millis) -> &Sums {
        if at < self.first_ms {
            return &self.first;
        }
        let by_time = |(step, _): &&(Millis, Sums)| *step <= at;
        if let Some((_, sums)) = self.steps.iter().rev().find(by_time) {
            return sums;
        }
        if self.older.is_empty() {
            return &self.first;
        }
        let retained = self.older.iter().chain(self.steps.front());
        retained.min_by_key(|(step, _)| step.0.abs_diff(at.0)).map_or(&self.first, |(_, sums)| sums)
    }

    /// Its connection id where its metrics carry it, see [`Scrape::instance`].
    pub fn instance(&self) -> Option<u64> {
        self.instance
    }

    /// A frontend's metrics of its models.
    pub fn models(&self) -> &[ModelFigures] {
        &self.models
    }

    /// A frontend's metrics of workers.
    pub fn workers(&self) -> &[WorkerFigures] {
        &self.workers
    }

    /// A worker's metrics of its ranks.
    pub fn ranks(&self) -> &[RankFigures] {
        &self.ranks
    }

    /// A present value; `None`: the process does not offer it.
    pub fn gauge(&self, gauge: Gauge) -> Option<f64> {
        self.gauges.iter().find(|(known, _)| *known == gauge).map(|&(_, value)| value)
    }

    /// What a counter rose by since it was first scraped; `None`: the process does not offer it.
    pub fn counted(&self, counter: Counter) -> Option<f64> {
        Some(self.counter_value(counter)? - self.first.counter(counter).unwrap_or(0.0))
    }

    /// What a counter stands at by the process's own count, restarts added up; `None`: the process does not offer it.
    pub fn counter_value(&self, counter: Counter) -> Option<f64> {
        self.last().counter(counter)
    }

    /// What a counter rose by after `since`; `None`: the process does not offer it.
    pub fn counted_since(&self, counter: Counter, since: Millis) -> Option<f64> {
        Some(self.counter_value(counter)? - self.sums(since).counter(counter).unwrap_or(0.0))
    }

    /// The samples that came after `after` and not after `until`; `None`: the process does not offer it.
    pub fn distribution(&self, kind: HistogramKind, after: Millis, until: Millis) -> Option<Distribution> {
        let later = if until >= self.last_ms { self.last() } else { self.sums(until) };
        self.between(kind, self.sums(after), later)
    }

    /// The samples of the session: all since the first scrape.
    pub fn session(&self, kind: HistogramKind) -> Option<Distribution> {
        self.between(kind, &self.first, self.last())
    }

    fn between(&self, kind: HistogramKind, before: &Sums, after: &Sums) -> Option<Distribution> {
        let (_, bounds) = self.bounds.iter().find(|(known, _)| *known == kind)?;
        let (counts, sum) = after.histogram(kind)?;
        let mut rise = Distribution::empty(bounds);
        match before.histogram(kind).filter(|(before, _)| before.len() == counts.len()) {
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
