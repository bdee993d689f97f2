//! Our own log on standard error, for people or for machines.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::LogFormat;

/// What is logged unless `RADIXSCOPE_LOG` says otherwise. Our own log tells in words what the NATS client
/// tells of its connection.
pub(crate) const DEFAULT_FILTER: &str = "info,async_nats=off";

/// Starts the log.
///
/// # Errors
/// `filter` is not a list of `target=level`.
pub(crate) fn start(format: LogFormat, filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter)?;
    let to_stderr = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => {
            to_stderr.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init()
        }
        LogFormat::Json => to_stderr.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("the log cannot be started: {error}"))
}
