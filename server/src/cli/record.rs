//! `radixscope record`: writes everything received to one file, without serving anything.

use std::process::ExitCode;
use std::time::Duration;

use tokio::sync::watch;

use radixscope_model::number_format::count;

use super::checks::checks;
use super::server::listen;
use super::{Failure, in_kubernetes, sources};
use crate::config::Record;
use crate::recording::{RecordOptions, RecordTo, RecordingStatus};
use crate::shutdown::{Shutdown, over};

/// How often the recording is checked for write errors.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Records until the time is over or the process is stopped.
pub(super) async fn run(options: Record, mut stopped: Shutdown) -> Result<ExitCode, Failure> {
    let Record { file, redact, record_for, mut from, slo, limits, .. } = options;
    // The hub must still write its data after the stop signal, so it has a signal of its own.
    let (end, ended) = watch::channel(false);
    let record = Some(RecordOptions { to: RecordTo::File(file), redact });
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
            if let Ok(Some(RecordingStatus { error: Some(error), .. })) = status {
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
    if let Some(status) = watch.map(|watch| watch.status()) {
        say(&status, received.unwrap_or_default());
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "the result, whatever the log's filter")]
fn say(status: &RecordingStatus, received: u64) {
    let (bytes, received) = (count(status.bytes), count(received));
    eprintln!("{}: {bytes} bytes, {received} messages received", status.path);
    if status.gaps > 0 {
        eprintln!("{} gaps, because the disk was too slow", status.gaps);
    }
}
