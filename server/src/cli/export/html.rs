//! A report: one HTML file with the page and a recording, which a browser opens without a server.

use std::fs::File;
use std::io::{BufWriter, Read, Seek};
use std::path::Path;

use anyhow::Context as _;

use radixscope_model::id::Millis;
use radixscope_recording::{Meta, RecordingError, Reduced, Series, Writer};

use crate::http::{Assets, IncidentReport, View};

/// Writes the part of the recording from `from` to `to`, Unix milliseconds.
pub(in crate::cli) fn write<R: Read + Seek>(
    path: &Path,
    series: &mut Series<R>,
    (from, to): (Option<u64>, Option<u64>),
) -> anyhow::Result<()> {
    let (begin, end) = series.range();
    let (from, to) = (from.map_or(begin, Millis), to.map_or(end, Millis));
    if from > to || from > end || to < begin {
        anyhow::bail!("the recording covers {begin} to {end}, which does not overlap {from} to {to}");
    }
    let first = series.files().first().context("no file")?.meta();
    let meta = Meta { began_ms: begin.max(from).0, ..first.clone() };
    let report = IncidentReport::around(
        &Assets::new(),
        &format!("radixscope-{}.mcap", meta.began_ms),
        &View::default(),
    )?;
    let mut write = || -> Result<(), RecordingError> {
        let file = BufWriter::new(File::create(path)?);
        report.write(file, |encoded| {
            let mut writer = Writer::small(encoded, &meta)?;
            let mut reduced = Reduced::new(&mut writer, from);
            series.copy(from, to, &mut reduced)?;
            reduced.finish()?;
            writer.finish()
        })?;
        Ok(())
    };
    write().with_context(|| path.display().to_string())
}
