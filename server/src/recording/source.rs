//! The recording among the sources: whether it is written, in words that everybody sees, and what checks look at.

use std::time::Duration;

use radixscope_model::record::LinkState;

use super::RecordingWatch;
use crate::hub::SourceHandle;
use crate::shutdown::{Shutdown, over};

/// How often it is looked at.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Tells the hub how recording goes, until the end.
pub(crate) async fn run(watch: RecordingWatch, to: SourceHandle, mut stopped: Shutdown) {
    let mut reported = None;
    loop {
        let error = watch.status().error;
        if reported.as_ref() != Some(&error) {
            let (state, words) = match &error {
                Some(error) => (LinkState::Connecting, error.as_str()),
                None => (LinkState::Live, "everything received is written"),
            };
            if to.state(state, words).await.is_err() {
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
