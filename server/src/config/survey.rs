//! Options of `radixscope sources`.

use clap::Args;

use super::{Limits, Log, Sources};

/// `radixscope sources`.
#[derive(Args, Debug)]
pub struct Survey {
    /// Where we look.
    #[command(flatten)]
    pub from: Sources,
    /// Print JSON
    #[arg(long, env = "RADIXSCOPE_JSON", help_heading = "Sources")]
    pub json: bool,
    /// How much we keep.
    #[command(flatten)]
    pub limits: Limits,
    /// How we log.
    #[command(flatten)]
    pub log: Log,
}
