//! Reports the recording's status as a source.

use std::time::Duration;

use radixscope_model::number_format::plural;
use radixscope_model::record::LinkState;

use super::RecordingWatch;
use crate::hub::SourceHandle;
use crate::shutdown::{Shutdown, over};

/// Poll interval.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Reports the status to the hub until shutdown.
pub(crate) async fn run(watch: RecordingWatch, to: SourceHandle, mut stopped: Shutdown) {
    let mut reported = None;
    loop {
        let status = watch.status();
        let lost = status.stored.map_or(0, |stored| stored.lost_files);
        let lost = match lost {
            0 => String::new(),
            lost => format!("; {} deleted before the store took them", plural(lost, "file", "files")),
        };
        let now = match status.error {
            Some(error) => (LinkState::Connecting, error + &lost),
            None => (LinkState::Live, format!("recording{lost}")),
        };
        if reported.as_ref() != Some(&now) {
            if to.state(now.0, &now.1).await.is_err() {
                return;
            }
            reported = Some(now);
        }
        tokio::select! {
            () = over(&mut stopped) => return,
            () = tokio::time::sleep(POLL_EVERY) => {}
        }
    }
}
