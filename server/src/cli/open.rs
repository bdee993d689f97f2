//! `radixscope open`: puts together what was collected of a run, prints what was found, and serves the page with it or writes a report.

use std::fs::File;
use std::io::{BufReader, Write as _};

use anyhow::Context as _;

use radixscope_recording::Series;

use super::checks::checks;
use super::export::html;
use super::{Failure, server};
use crate::baselines::BaselineFiles;
use crate::config::Open;
use crate::evidence::{self, Opened, Options};
use crate::hub::{Hub, Replayed};
use crate::shutdown::Shutdown;

const MIB: usize = 1024 * 1024;

/// Runs until stopped, or until the report is written.
pub(super) async fn run(options: Open, stopped: Shutdown) -> Result<(), Failure> {
    let Open { paths, html, save, run, max_size, history_mib, slo, http, .. } = options;
    // Before anything is read: what is there already is not overwritten, and the time is not lost.
    if let Some(path) = html.iter().chain(&save).find(|path| path.exists()) {
        let exists = anyhow::anyhow!("{}: the file exists; choose another name", path.display());
        return Err(Failure::Usage(exists));
    }
    let checks = checks(&slo)?;
    let files = BaselineFiles::new(slo.baseline.clone());
    let is_over = stopped.clone();
    let read = tokio::task::spawn_blocking(move || {
        let options = Options { paths, run, max_bytes: max_size, checks, save };
        evidence::open(options, &|| *is_over.borrow())
    });
    let Opened { mut series, report, baselines } =
        read.await.context("reading the files").map_err(Failure::Failed)?.map_err(Failure::Usage)?;
    print(&report.to_string())?;
    if let Some(path) = html {
        let written = tokio::task::spawn_blocking(move || html::write(&path, &mut series, (None, None)));
        return written
            .await
            .context("writing the report")
            .and_then(|written| written)
            .map_err(Failure::Failed);
    }
    let replayed = tokio::task::spawn_blocking(move || replayed(&mut series, history_mib as usize * MIB));
    let replayed =
        replayed.await.context("reading the recording").and_then(|read| read).map_err(Failure::Failed)?;
    let hub = Hub::replay(replayed, stopped.clone());
    server::show(http, hub, files.and(baselines), stopped).await
}

fn replayed(series: &mut Series<BufReader<File>>, max_bytes: usize) -> anyhow::Result<Replayed> {
    Ok(Replayed::read(series, None, max_bytes)?)
}

fn print(text: &str) -> Result<(), Failure> {
    let written = std::io::stdout().write_all(text.as_bytes());
    written.context("printing what was found").map_err(Failure::Failed)
}
