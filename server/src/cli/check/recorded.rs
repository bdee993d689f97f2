//! `radixscope check FILE`: the findings of a recording.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;

use super::report::CheckReport;
use super::{ObservedPeriod, failed, print};
use crate::cli::Failure;
use crate::config::Check;
use crate::recording::open;

/// Folds the whole recording and prints its findings.
pub(super) fn run(options: &Check) -> Result<ExitCode, Failure> {
    let mut series = open(&options.recordings).map_err(Failure::Usage)?;
    let (from, to) = series.range();
    let folded = series.play(&mut |_| {}).map_err(failed)?;
    if let Some(damaged) = folded.damaged {
        tracing::warn!(%damaged, "the recording is damaged; the readable part is used");
    }
    if folded.missing > 0 {
        tracing::warn!(records = folded.missing, "the recording has missing records");
    }
    let period =
        ObservedPeriod { any_live: true, duration: Duration::from_millis(to.since(from)), is_recorded: true };
    let report = CheckReport::of(&folded.cluster, folded.at_ms, period, options.mode.output);
    let report = report.map_err(|error| Failure::Failed(anyhow!(error)))?;
    print(&report)
}
