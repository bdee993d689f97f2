//! `radixscope replay`: serves the page with a recording. It starts at the recording's end and can go back from there.

use anyhow::Context as _;

use radixscope_model::id::Millis;

use super::{Failure, server};
use crate::baselines::BaselineFiles;
use crate::config::Replay;
use crate::hub::{Hub, Replayed};
use crate::recording::{log_fetched, open_between};
use crate::shutdown::Shutdown;

const MIB: usize = 1024 * 1024;

/// Runs until stopped.
pub(super) async fn run(options: Replay, stopped: Shutdown) -> Result<(), Failure> {
    let Replay { recordings, from, to, history_mib, http, .. } = options;
    let read = tokio::task::spawn_blocking(move || -> anyhow::Result<Replayed> {
        let (from, to) = (from.map(Millis), to.map(Millis));
        // Without a beginning, what goes into memory is chosen by its size, among all files.
        let between = (from.unwrap_or_default(), to.unwrap_or(Millis(u64::MAX)));
        let mut series = open_between(&recordings, between)?;
        if let Some(to) = to {
            series.leave_out_after(to)?;
        }
        let replayed = Replayed::read(&mut series, from, history_mib as usize * MIB)?;
        log_fetched(&series);
        Ok(replayed)
    });
    let replayed = read.await.context("reading the recording").map_err(Failure::Failed)?;
    let replayed = replayed.map_err(Failure::Usage)?;
    let hub = Hub::replay(replayed, stopped.clone());
    server::show(http, hub, BaselineFiles::default(), stopped).await
}
