//! `radixscope replay`: serves the page with a recording. It starts at the recording's end and can go back from there.

use anyhow::Context as _;

use super::{Failure, server};
use crate::baselines::BaselineFiles;
use crate::config::Replay;
use crate::hub::{Hub, Replayed};
use crate::recording::open;
use crate::shutdown::Shutdown;

const MIB: usize = 1024 * 1024;

/// Runs until stopped.
pub(super) async fn run(options: Replay, stopped: Shutdown) -> Result<(), Failure> {
    let Replay { recordings, history_mib, http, .. } = options;
    let read = tokio::task::spawn_blocking(move || -> anyhow::Result<Replayed> {
        let mut series = open(&recordings)?;
        Ok(Replayed::read(&mut series, history_mib as usize * MIB)?)
    });
    let replayed = read.await.context("reading the recording").map_err(Failure::Failed)?;
    let replayed = replayed.map_err(Failure::Usage)?;
    let hub = Hub::replay(replayed, stopped.clone());
    server::show(http, hub, BaselineFiles::default(), stopped).await
}
