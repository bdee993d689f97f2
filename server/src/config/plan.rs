//! Options of `radixscope plan`.

use std::path::PathBuf;

use clap::Args;
use url::Url;

use super::{Limits, Log, Sources};

/// `radixscope plan`.
#[derive(Args, Debug)]
pub struct Plan {
    /// Sources.
    #[command(flatten)]
    pub from: Sources,
    /// The experiment.
    #[command(flatten)]
    pub experiment: Experiment,
    /// Write the commands to this new file instead of printing them; it is not run
    #[arg(long, env = "RADIXSCOPE_SCRIPT", value_name = "FILE", help_heading = "Experiment")]
    pub script: Option<PathBuf>,
    /// Limits of memory.
    #[command(flatten)]
    pub limits: Limits,
    /// Log.
    #[command(flatten)]
    pub log: Log,
}

/// What is measured, and where.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Experiment")]
pub struct Experiment {
    /// Model to measure [default: the deployment's, if it has only one]
    #[arg(long, env = "RADIXSCOPE_MODEL", value_name = "NAME")]
    pub model: Option<String>,
    /// Frontend to send requests to; can be repeated [default: the scraped frontends]
    #[arg(long, env = "RADIXSCOPE_URL", value_name = "URL", value_delimiter = ',')]
    pub url: Vec<Url>,
    /// Tokenizer, as aiperf takes it: a name or a folder [default: the model's]
    #[arg(long, env = "RADIXSCOPE_TOKENIZER", value_name = "NAME")]
    pub tokenizer: Option<String>,
    /// Levels of concurrency: requests in flight
    #[arg(long, env = "RADIXSCOPE_LEVELS", value_name = "N,…", value_delimiter = ',', default_value = "60,80,100,120,140,160,180", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub levels: Vec<u32>,
    /// Runs of each level; from two on their spread is known
    #[arg(long, env = "RADIXSCOPE_REPEATS", value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub repeats: u32,
    /// Length of a run after its warm-up, in seconds
    #[arg(long, env = "RADIXSCOPE_RUN_SECONDS", value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub run_seconds: u32,
    /// Warm-up of each run, in seconds
    #[arg(long, env = "RADIXSCOPE_RUN_WARM_UP", value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub run_warm_up: u32,
    /// Conversation starters that conversations share
    #[arg(long, env = "RADIXSCOPE_STARTERS", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub starters: u32,
    /// Length of a starter, in tokens
    #[arg(long, env = "RADIXSCOPE_STARTER_TOKENS", value_name = "TOKENS", default_value_t = 3_800, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub starter_tokens: u32,
    /// Turns of a conversation on average, one more or less; each turn sends all before it again
    #[arg(long, env = "RADIXSCOPE_TURNS", value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub turns: u32,
    /// What a user adds in a turn, in tokens
    #[arg(long, env = "RADIXSCOPE_USER_TOKENS", value_name = "TOKENS", default_value_t = 900, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub user_tokens: u32,
    /// Length of a response, in tokens
    #[arg(long, env = "RADIXSCOPE_OUTPUT_TOKENS", value_name = "TOKENS", default_value_t = 830, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub output_tokens: u32,
    /// New folder for the results
    #[arg(long, env = "RADIXSCOPE_RESULTS", value_name = "FOLDER", default_value = "radixscope-experiment")]
    pub results: PathBuf,
}
