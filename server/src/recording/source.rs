//! Reports the recording's status as a source.

use std::time::Duration;

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
        let error = watch.status().error;
        if reported.as_ref() != Some(&error) {
            let (state, detail) = match &error {
                Some(error) => (LinkState::Connecting, error.as_str()),
                None => (LinkState::Live, "recording"),
            };
            if to.state(state, detail).await.is_err() {
                return;
            }
            reported = Some(error);
        }
        tokio::select! {
            () = over(&mut stopped) => return,
            () = tokio::time::sleep(POLL_EVERY) => {}
        }
    }
}
