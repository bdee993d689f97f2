//! Results of load generators as baselines: each file is recognised by its content, runs of one concurrency become a level with
//! their spread. Must not know files or folders.
//!
//! aiperf writes a file for each run and, at the end of a sweep, one with confidence intervals; both may be given together, and
//! runs that are given twice count once. No tool writes how its requests were routed: the caller says so.

mod aiperf;
mod guidellm;
#[cfg(test)]
mod tests;
mod vllm;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::problem::{MAX_NAMED, quoted};
use super::{
    Baseline, Bounds, Figure, Figures, Import, ImportError, MAX_ROWS, Notice, Router, Runs, SpreadKind,
    SweepLevel, is_concurrency,
};

/// Largest file of results that is read, in bytes: guidellm writes every request into it.
pub const MAX_RESULT_BYTES: usize = 64 << 20;
/// Most files of one import: ten runs, as many as aiperf takes, of each of 200 levels.
pub const MAX_RESULT_FILES: usize = 2_000;

/// Longest end of the name of a file that a notice repeats, in characters.
const MAX_NAME_CHARS: usize = 80;

/// Whether `text` is to be read as results rather than as CSV.
pub fn is_results(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '['])
}

/// What one file says.
enum Content {
    /// Runs, each of one level.
    Runs(Vec<Run>),
    /// Levels of which the tool itself aggregated the runs.
    Levels(Vec<SweepLevel>),
}

/// A run, finished or begun.
#[derive(Debug)]
struct Run {
    /// What tells it from others, if the tool writes that.
    id: Option<String>,
    concurrency: f64,
    /// `None`: it has begun, no figures are there yet.
    measured: Option<Measured>,
    /// What else the experiment of this run has.
    plan: Option<Plan>,
}

/// Figures of a finished run.
#[derive(Clone, Debug, Default)]
struct Measured {
    figures: Figures,
    duration_s: Option<f64>,
    samples: Option<u64>,
}

/// Levels of an experiment and how often each is run.
#[derive(Clone, PartialEq, Debug)]
struct Plan {
    levels: Vec<f64>,
    runs: u64,
}

/// The fields by which tools are told apart.
#[derive(Deserialize)]
struct Signs {
    aiperf_version: Option<IgnoredAny>,
    aggregation_type: Option<IgnoredAny>,
    per_combination_metrics: Option<IgnoredAny>,
    run_info: Option<IgnoredAny>,
    artifact_dir: Option<IgnoredAny>,
    cfg: Option<IgnoredAny>,
    benchmarks: Option<IgnoredAny>,
    metadata: Option<IgnoredAny>,
    backend: Option<IgnoredAny>,
    request_throughput: Option<IgnoredAny>,
    metrics: Option<IgnoredAny>,
    completed: Option<IgnoredAny>,
}

fn content(text: &str) -> Result<Content, ImportError> {
    let signs: Signs = json(text)?;
    if signs.per_combination_metrics.is_some() && signs.aggregation_type.is_some() {
        return aiperf::sweep(text).map(Content::Levels);
    }
    if signs.aiperf_version.is_some() {
        return match signs.metrics {
            Some(_) => aiperf::aggregate(text).map(|level| Content::Levels(vec![level])),
            None => aiperf::run(text).map(|run| Content::Runs(vec![run])),
        };
    }
    if signs.cfg.is_some() && signs.artifact_dir.is_some() {
        return aiperf::run_config(text).map(|run| Content::Runs(vec![run]));
    }
    if signs.benchmarks.is_some() && signs.metadata.is_some() {
        return guidellm::report(text).map(Content::Runs);
    }
    if signs.backend.is_some() && signs.completed.is_some() && signs.request_throughput.is_some() {
        return vllm::run(text).map(|run| Content::Runs(vec![run]));
    }
    // An old aiperf or its predecessor: the shape of a run without the version.
    if signs.run_info.is_some() || signs.request_throughput.is_some() {
        return Err(ImportError::Version { tool: "aiperf", found: "none".to_owned(), known: aiperf::KNOWN });
    }
    Err(ImportError::UnknownResults)
}

/// `text` as JSON of the wanted shape.
fn json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ImportError> {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
        let what = error.to_string();
        let what = what.rsplit_once(" at line ").map_or(what.as_str(), |(what, _)| what);
        ImportError::Json { line: error.line(), column: error.column(), what: quoted(what) }
    })
}

/// The figures of files, added one after the other.
#[derive(Default)]
pub struct Results {
    /// By bits of the concurrency, which order as the positive numbers do.
    levels: BTreeMap<u64, Level>,
    ids: BTreeSet<String>,
    plans: Vec<Plan>,
    /// Runs without an id of their own, told apart by their number.
    unnamed: u64,
    left_out: Vec<String>,
    more_left_out: usize,
}

#[derive(Default)]
struct Level {
    runs: Vec<Measured>,
    begun: u64,
    /// As the tool aggregated it.
    aggregated: Option<SweepLevel>,
}

impl Results {
    /// Adds a file.
    ///
    /// # Errors
    /// What is wrong with it; nothing of it is taken then.
    pub fn add(&mut self, text: &str) -> Result<(), ImportError> {
        if text.len() > MAX_RESULT_BYTES {
            return Err(ImportError::ResultBytes(text.len()));
        }
        let content = content(text)?;
        let concurrencies: Vec<f64> = match &content {
            Content::Runs(runs) => runs.iter().map(|run| run.concurrency).collect(),
            Content::Levels(levels) => levels.iter().map(|level| level.concurrency).collect(),
        };
        let new = concurrencies.iter().filter(|at| !self.levels.contains_key(&at.to_bits())).count();
        if concurrencies.iter().any(|&at| !is_concurrency(at)) {
            return Err(ImportError::NoLevel);
        }
        if self.levels.len() + new > MAX_ROWS {
            return Err(ImportError::ResultLevels);
        }
        match content {
            Content::Runs(runs) => runs.into_iter().for_each(|run| self.add_run(run)),
            Content::Levels(levels) => {
                for level in levels {
                    self.levels.entry(level.concurrency.to_bits()).or_default().aggregated = Some(level);
                }
            }
        }
        Ok(())
    }

    /// Notes a file that was not taken, and why.
    pub fn leave_out(&mut self, name: &str, why: &ImportError) {
        if self.left_out.len() < MAX_NAMED {
            // Of a path the end tells it from others.
            let cut = name.chars().count().saturating_sub(MAX_NAME_CHARS);
            let end: String = name.chars().skip(cut).collect();
            let dots = if cut > 0 { "…" } else { "" };
            self.left_out.push(format!("{dots}{end}: {why}"));
        } else {
            self.more_left_out += 1;
        }
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    fn add_run(&mut self, run: Run) {
        let Run { id, concurrency, measured, plan } = run;
        if let Some(plan) = plan
            && !self.plans.contains(&plan)
        {
            self.plans.push(plan);
        }
        // A run is there as begun and as finished, and aiperf writes each phase again.
        let state = if measured.is_some() { "finished" } else { "begun" };
        let id = id.unwrap_or_else(|| {
            self.unnamed += 1;
            format!("#{}", self.unnamed)
        });
        let is_first = self.ids.insert(id.clone());
        let is_new = self.ids.insert(format!("{id} {state}"));
        let level = self.levels.entry(concurrency.to_bits()).or_default();
        level.begun += u64::from(is_first);
        if is_new {
            level.runs.extend(measured);
        }
    }

    /// The levels as one baseline, called `name`, and routed by `router`.
    pub fn finish(mut self, name: &str, router: Router) -> Import {
        let planned = self.plans.iter().fold(BTreeMap::new(), |mut planned, plan| {
            for level in &plan.levels {
                *planned.entry(level.to_bits()).or_insert(0_u64) += plan.runs;
            }
            planned
        });
        for &level in planned.keys().take(MAX_ROWS.saturating_sub(self.levels.len())) {
            self.levels.entry(level).or_default();
        }
        let mut baseline = Baseline::new(name, "Measured by the load generator", router);
        for (bits, level) in self.levels {
            let mut row = level.row(f64::from_bits(bits));
            row.runs.planned = planned.get(&bits).copied();
            baseline.set_row(row);
        }
        let notices = match self.left_out.is_empty() {
            true => Vec::new(),
            false => vec![Notice::FilesLeftOut { files: self.left_out, more: self.more_left_out }],
        };
        Import { baselines: vec![baseline], notices }
    }
}

impl Level {
    fn row(&self, concurrency: f64) -> SweepLevel {
        let mut row = SweepLevel::new(concurrency);
        row.duration_s = mean(&self.runs.iter().filter_map(|run| run.duration_s).collect::<Vec<_>>());
        let samples: Option<Vec<u64>> = self.runs.iter().map(|run| run.samples).collect();
        row.samples =
            samples.filter(|all| !all.is_empty()).map(|all| all.iter().copied().fold(0, u64::saturating_add));
        let finished = self.runs.len() as u64;
        row.runs = Runs { finished: Some(finished), begun: Some(self.begun.max(finished)), planned: None };
        for figure in Figure::ALL {
            let values: Vec<f64> = self.runs.iter().filter_map(|run| run.figures.get(figure)).collect();
            row.figures.set(figure, mean(&values));
            row.bounds.set(figure, min_max(&values));
        }
        row.spread =
            Figure::ALL.iter().any(|&figure| row.bounds.get(figure).is_some()).then_some(SpreadKind::MinMax);
        if let Some(aggregated) = &self.aggregated {
            // The tool's own figures and intervals count, where it has them; a row has one kind of bounds.
            if aggregated.spread.is_some() {
                (row.spread, row.bounds) = (aggregated.spread, aggregated.bounds);
            }
            for figure in Figure::ALL {
                row.figures.set(figure, aggregated.figures.get(figure).or(row.figures.get(figure)));
            }
            row.duration_s = row.duration_s.or(aggregated.duration_s);
            row.samples = row.samples.or(aggregated.samples);
            if self.runs.is_empty() {
                row.runs = aggregated.runs;
            }
        }
        row
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// `None` for less than two: a run alone has no spread.
fn min_max(values: &[f64]) -> Option<Bounds> {
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    (values.len() > 1).then_some(Bounds { low, high })
}

/// Figures that can be; others are unknown.
fn allowed(mut figures: Figures) -> Figures {
    for figure in Figure::ALL {
        figures.set(figure, figures.get(figure).filter(|&value| figure.allows(value)));
    }
    figures
}

/// Whether anything is known.
fn is_known(figures: &Figures) -> bool {
    Figure::ALL.iter().any(|&figure| figures.get(figure).is_some())
}

/// A count that a tool writes as a number with a decimal point.
fn count(value: Option<f64>) -> Option<u64> {
    value.filter(|value| (0.0..=1e15).contains(value)).map(|value| value.round() as u64)
}
