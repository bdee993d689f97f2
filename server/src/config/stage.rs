//! Options of `radixscope stage`.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use url::Url;

use super::Serve;
use super::http_base::http_base;
use super::redacted::Redacted;
use crate::stage::load::{LoadOptions, LoadSettings, MAX_CONCURRENCY};

/// `radixscope stage`.
#[derive(Args, Debug)]
pub struct Stage {
    /// What is sent, and where.
    #[command(flatten)]
    pub load: LoadArgs,
    /// What is shown, and to whom.
    #[command(flatten)]
    pub serve: Serve,
}

/// What is sent, and where.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Requests")]
pub struct LoadArgs {
    /// Frontend to send requests to, such as http://frontend:8000; without sources its metrics are read too
    #[arg(long, env = "RADIXSCOPE_TARGET", value_name = "URL", value_parser = Redacted(TargetUrl::from_str))]
    pub target: TargetUrl,
    /// Model, as the frontend's /v1/models names it
    #[arg(long, env = "RADIXSCOPE_MODEL", value_name = "NAME")]
    pub model: String,
    /// Users at a time, each in a conversation with one request in flight
    #[arg(long, env = "RADIXSCOPE_CONCURRENCY", value_name = "USERS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CONCURRENCY)))]
    pub concurrency: u32,
    /// Most requests that are sent, failed ones included
    #[arg(long, env = "RADIXSCOPE_MAX_REQUESTS", value_name = "REQUESTS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max_requests: u64,
    /// How long requests are sent, such as 10m, at most 24h; the page is served until the command is ended
    #[arg(long = "for", env = "RADIXSCOPE_FOR", value_name = "TIME", default_value = "10m", value_parser = run_for)]
    pub run_for: Duration,
    /// Rest of a user between turns, such as 2s, at most 1h
    #[arg(long, env = "RADIXSCOPE_THINK_TIME", value_name = "TIME", default_value = "0s", value_parser = think_time)]
    pub think_time: Duration,
    /// Most tokens of an answer
    #[arg(long, env = "RADIXSCOPE_OUTPUT_TOKENS", value_name = "TOKENS", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub output_tokens: u32,
    /// Seed of the conversations; the same seed gives the same text
    #[arg(long, env = "RADIXSCOPE_SEED", default_value_t = 1)]
    pub seed: u64,
    /// Send without asking first
    #[arg(long, env = "RADIXSCOPE_STAGE_YES")]
    pub yes: bool,
}

impl LoadArgs {
    /// What does not change, and what can be steered.
    pub(crate) fn options(&self) -> (LoadOptions, LoadSettings) {
        let Self {
            target, model, concurrency, max_requests, run_for, think_time, output_tokens, seed, ..
        } = self.clone();
        let options =
            LoadOptions { target: target.0, model, seed, output_tokens, think_time, max_requests, run_for };
        (options, LoadSettings { concurrency, is_paused: false })
    }
}

/// Base address of an endpoint, without a login.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetUrl(Url);

impl FromStr for TargetUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        http_base(text).map(Self)
    }
}

fn run_for(text: &str) -> Result<Duration, String> {
    time_within(text, Duration::from_secs(1), Duration::from_secs(24 * 60 * 60))
}

fn think_time(text: &str) -> Result<Duration, String> {
    time_within(text, Duration::ZERO, Duration::from_secs(60 * 60))
}

fn time_within(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if (least..=most).contains(&time) => Ok(time),
        Ok(_) => {
            let [least, most] = [least, most].map(humantime::format_duration);
            Err(format!("expected {least} to {most}"))
        }
        Err(error) => Err(format!("{error}; expected a time such as 10m")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::config::{Cli, Command};

    fn parse(args: &[&str]) -> Result<LoadArgs, String> {
        let target: &[&str] = if args.contains(&"--target") { &[] } else { &["--target", "frontend:8000"] };
        let given = ["radixscope", "stage", "--model", "m"].iter().chain(target).chain(args);
        match Cli::try_parse_from(given).map_err(|error| error.to_string())?.command {
            Command::Stage(stage) => Ok(stage.load),
            _ => panic!("not stage"),
        }
    }

    #[test]
    fn everything_is_bounded_without_options() {
        let (options, settings) = parse(&[]).unwrap().options();
        assert_eq!(options.endpoint().as_str(), "http://frontend:8000/v1/chat/completions");
        assert_eq!((options.max_requests, options.run_for), (1_000, Duration::from_secs(600)));
        assert_eq!(settings, LoadSettings { concurrency: 8, is_paused: false });
    }

    #[test]
    fn no_option_takes_a_bound_away() {
        for args in [
            ["--max-requests", "0"],
            ["--max-requests", "1000001"],
            ["--for", "0s"],
            ["--for", "25h"],
            ["--concurrency", "201"],
            ["--concurrency", "0"],
            ["--output-tokens", "0"],
            ["--think-time", "2h"],
            ["--target", "ftp://frontend"],
        ] {
            assert!(parse(&args).is_err(), "{args:?}");
        }
        let error = parse(&["--target", "http://user:hidden!@frontend:8000"]).unwrap_err();
        assert!(error.contains("logins in the URL") && !error.contains("hidden!"), "{error}");
    }

    #[test]
    fn a_target_may_end_in_the_version_or_lie_below_a_path() {
        let endpoint = |target: &str| {
            let target = TargetUrl::from_str(target).unwrap();
            LoadArgs { target, ..parse(&[]).unwrap() }.options().0.endpoint().to_string()
        };
        assert_eq!(endpoint("https://a/v1"), "https://a/v1/chat/completions");
        assert_eq!(endpoint("http://a:1/llm/?x=1"), "http://a:1/llm/v1/chat/completions");
    }
}
