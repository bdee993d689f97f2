//! How far the experiment of a baseline is: which runs are there, which are running, which are missing.

use super::Baseline;

/// Most levels that a sentence lists.
const MAX_LISTED: usize = 12;

/// Runs of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// Runs whose figures are there.
    pub finished: u64,
    /// Runs of the whole experiment.
    pub planned: u64,
    /// Concurrencies of which a run has begun and not finished.
    pub running: Vec<f64>,
    /// Concurrencies and how many runs each still lacks.
    pub missing: Vec<(f64, u64)>,
}

impl Baseline {
    /// `None` for a baseline of which no plan is known.
    pub fn progress(&self) -> Option<Progress> {
        let planned = self.rows().iter().filter_map(|row| row.runs.planned).reduce(u64::saturating_add)?;
        let finished = self.rows().iter().filter_map(|row| row.runs.finished).fold(0, u64::saturating_add);
        let running =
            self.rows().iter().filter(|row| row.runs.is_running()).map(|row| row.concurrency).collect();
        let missing = self.rows().iter().filter_map(|row| Some((row.concurrency, row.runs.missing()?)));
        let missing = missing.filter(|(_, runs)| *runs > 0).collect();
        Some(Progress { finished, planned, running, missing })
    }
}

impl Progress {
    /// Whether all runs are there.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// As text: "5 of 12 runs. Running: concurrency 100. Missing: 1 at 100, 2 at 120".
    pub fn to_text(&self) -> String {
        let Self { finished, planned, running, missing } = self;
        let mut text = format!("{finished} of {planned} runs");
        if !running.is_empty() {
            let levels = running.iter().take(MAX_LISTED).map(f64::to_string).collect::<Vec<_>>().join(", ");
            text.push_str(&format!(". Running: concurrency {levels}{}", more(running.len())));
        }
        if !missing.is_empty() {
            let levels = missing.iter().take(MAX_LISTED).map(|(level, runs)| format!("{runs} at {level}"));
            let levels = levels.collect::<Vec<_>>().join(", ");
            text.push_str(&format!(". Missing: {levels}{}", more(missing.len())));
        }
        text
    }
}

fn more(of: usize) -> String {
    match of.saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more levels"),
    }
}
