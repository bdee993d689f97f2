//! Options of `radixscope sources`.

use clap::Args;

use super::{Limits, Log, Sources};

/// `radixscope sources`.
#[derive(Args, Debug)]
pub struct SourcesProbe {
    /// Sources.
    #[command(flatten)]
    pub from: Sources,
    /// Print JSON
    #[arg(long, env = "RADIXSCOPE_JSON", help_heading = "Sources")]
    pub json: bool,
    /// Limits of memory.
    #[command(flatten)]
    pub limits: Limits,
    /// Log.
    #[command(flatten)]
    pub log: Log,
}
