//! A recording as one file, with names and ids as they are or with pseudonyms.

use std::fs::OpenOptions;
use std::io::{BufWriter, Read, Seek};
use std::path::Path;

use radixscope_model::id::Millis;
use radixscope_recording::{Meta, Series, Writer};

use super::{Redacted, RedactionKey, Redactor};

/// Copies all readable records; damaged parts are skipped.
pub(crate) fn copy<R: Read + Seek>(series: &mut Series<R>, to: &Path, redact: bool) -> anyhow::Result<()> {
    let (from_ms, to_ms) = series.range();
    let Some(last) = series.files().last().map(|file| file.meta().clone()) else { return Ok(()) };
    let is_redacted = last.redacted || redact;
    let mut meta = Meta { began_ms: from_ms.0, redacted: is_redacted, ..last };
    // A redacted copy gets an id of its own, so that it is never combined with files of the original.
    let mut redactor = match redact {
        true => Some(Redactor::new(RedactionKey::random()?)),
        false => None,
    };
    if let Some(redactor) = &mut redactor {
        meta.sources = redactor.sources(&meta.sources);
        meta.recording = crate::time::random();
    }
    let file = OpenOptions::new().write(true).create_new(true).open(to)?;
    let mut writer = Writer::new(BufWriter::new(file), &meta)?;
    match &mut redactor {
        Some(redactor) => series.copy(Millis(0), to_ms, &mut Redacted { redactor, to: &mut writer })?,
        None => series.copy(Millis(0), to_ms, &mut writer)?,
    }
    writer.finish()?.into_inner()?.sync_all()?;
    Ok(())
}
