//! `radixscope check FILE`: what was found while a recording was made.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;

use super::answer::Answer;
use super::{Listened, failed, print};
use crate::cli::Failure;
use crate::config::Check;
use crate::recording::open;

/// Folds the whole recording and says what was found in it.
pub(super) fn run(options: &Check) -> Result<ExitCode, Failure> {
    let mut series = open(&options.recordings).map_err(Failure::Usage)?;
    let (from, to) = series.range();
    let folded = series.play(&mut |_| {}).map_err(failed)?;
    if let Some(damaged) = folded.damaged {
        tracing::warn!(%damaged, "the recording is not whole");
    }
    if folded.missing > 0 {
        tracing::warn!(records = folded.missing, "records are missing in the recording");
    }
    let listened =
        Listened { any_live: true, whole: Duration::from_millis(to.since(from)), is_recorded: true };
    let answer = Answer::of(&folded.cluster, folded.at_ms, listened, options.look.output);
    let answer = answer.map_err(|error| Failure::Failed(anyhow!(error)))?;
    print(&answer)
}
