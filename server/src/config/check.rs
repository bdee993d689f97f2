//! Options of `radixscope check`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use radixscope_model::record::Severity;

use super::{Limits, Log, RecordingAt, SloTargets, Sources};

/// `radixscope check`.
#[derive(Args, Debug)]
pub struct Check {
    /// Recordings to check instead of a deployment: files, a folder of them, or objects in a bucket such as s3://BUCKET/PREFIX; each
    /// finding is reported with its times
    #[arg(env = "RADIXSCOPE_RECORDINGS", value_name = "FILE", value_delimiter = ',')]
    pub recordings: Vec<RecordingAt>,
    /// Sources.
    #[command(flatten)]
    pub from: Sources,
    /// SLO targets and baselines.
    #[command(flatten)]
    pub slo: SloTargets,
    /// Duration and output.
    #[command(flatten)]
    pub mode: CheckMode,
    /// Limits of memory.
    #[command(flatten)]
    pub limits: Limits,
    /// Log.
    #[command(flatten)]
    pub log: Log,
}

/// Duration and output of a check.
#[derive(Args, Debug, Clone, Copy)]
#[command(next_help_heading = "Check")]
pub struct CheckMode {
    /// How long to listen, such as 30s or 5m, counted from when a source is connected and its history is read; also how long
    /// to wait for a source
    #[arg(long = "for", env = "RADIXSCOPE_FOR", value_name = "TIME", default_value = "30s", value_parser = listening_time)]
    pub listen_for: Duration,
    /// Format of the report on standard output
    #[arg(long, env = "RADIXSCOPE_OUTPUT", value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// End as soon as there is a finding of at least this severity [default: only after the time of --for]
    #[arg(long, env = "RADIXSCOPE_UNTIL_FOUND", value_enum, value_name = "SEVERITY")]
    pub until_found: Option<MinSeverity>,
}

/// Output format of a check.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// For people
    Text,
    /// The objects of /api/v1/findings
    Json,
}

/// Severity of a finding.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinSeverity {
    /// Worth knowing
    Info,
    /// Costs time or hides a problem
    Warning,
    /// KV-aware routing does not work, or requests fail
    Critical,
}

impl From<MinSeverity> for Severity {
    fn from(severity: MinSeverity) -> Self {
        match severity {
            MinSeverity::Info => Severity::Info,
            MinSeverity::Warning => Severity::Warning,
            MinSeverity::Critical => Severity::Critical,
        }
    }
}

fn listening_time(text: &str) -> Result<Duration, String> {
    const MOST: Duration = Duration::from_secs(24 * 60 * 60);
    match humantime::parse_duration(text) {
        Ok(time) if (Duration::from_secs(1)..=MOST).contains(&time) => Ok(time),
        Ok(_) => Err("expected from 1s to 24h".to_owned()),
        Err(error) => Err(format!("{error}; expected a time such as 30s or 5m")),
    }
}
