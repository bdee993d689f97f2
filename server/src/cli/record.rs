//! `radixscope record`: writes everything received to one file, without serving anything.

use std::process::ExitCode;
use std::time::Duration;

use tokio::sync::watch;

use radixscope_model::number_format::{count, plural};

use super::checks::checks;
use super::server::listen;
use super::{Failure, in_kubernetes, sources};
use crate::config::{Record, RecordingAt};
use crate::recording::{RecordOptions, RecordTo, RecordingStatus};
use crate::shutdown::{Shutdown, over};

/// How often the recording is checked for write errors.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Records until the time is over or the process is stopped.
pub(super) async fn run(options: Record, mut stopped: Shutdown) -> Result<ExitCode, Failure> {
    let Record { to, buffer, record_max_size, redact, record_for, mut from, slo, limits, .. } = options;
    // The hub must still write its data after the stop signal, so it has a signal of its own.
    let (end, ended) = watch::channel(false);
    let to = match to {
        RecordingAt::Path(file) => RecordTo::File(file),
        RecordingAt::Store(at) => {
            buffer.store(at, record_max_size).map_err(|error| Failure::Usage(error.into()))?
        }
    };
    let record = Some(RecordOptions { to, redact });
    let found = in_kubernetes::find(&mut from).await?;
    let listening = listen(&limits, checks(&slo)?, sources::feeds(from, found)?, record, &ended)?;
    let whole = async {
        match record_for {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    let failed = async {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let status = listening.hub.read(|view| view.recording()).await;
            // What a store does not take waits in the buffer.
            if let Ok(Some(RecordingStatus { error: Some(error), is_disk_failing: true, .. })) = status {
                return error;
            }
        }
    };
    let failure = tokio::select! {
        () = over(&mut stopped) => None,
        () = whole => None,
        error = failed => Some(error),
    };
    let received =
        listening.hub.read(|view| view.cluster.sources().iter().map(|s| s.received).sum::<u64>()).await;
    let watch = listening.recording.clone();
    end.send_replace(true);
    listening.end().await;
    if let Some(error) = failure {
        return Err(Failure::Failed(anyhow::anyhow!(error)));
    }
    let Some(status) = watch.map(|watch| watch.status()) else { return Ok(ExitCode::SUCCESS) };
    say(&status, received.unwrap_or_default());
    match status.stored {
        Some(stored) if stored.waiting_files > 0 => Err(Failure::Failed(anyhow::anyhow!(
            "{} not stored: what waits in {} is stored by the next start with this buffer",
            plural(stored.waiting_files, "file is", "files are"),
            status.on_disk.display()
        ))),
        _ => Ok(ExitCode::SUCCESS),
    }
}

#[expect(clippy::print_stderr, reason = "the result, whatever the log's filter")]
fn say(status: &RecordingStatus, received: u64) {
    let written = status.stored.as_ref().map_or(status.bytes, |stored| stored.bytes);
    let (bytes, received) = (count(written), count(received));
    eprintln!("{}: {bytes} bytes, {received} messages received", status.path);
    if status.gaps > 0 {
        eprintln!("{} gaps, because the disk was too slow", status.gaps);
    }
}
