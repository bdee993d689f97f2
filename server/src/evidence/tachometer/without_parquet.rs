//! Tachometer's metrics, in a binary that was built without Parquet.

use std::fs::File;
use std::io;

use radixscope_model::id::Millis;

use crate::config::InvalidOption;
use crate::evidence::file::{FileReport, Reading};
use crate::evidence::kind::Kind;

/// Reads nothing, and says why in the report.
pub(in crate::evidence) fn read(
    _: usize,
    _: File,
    _: Option<Millis>,
    _: &mut Reading<'_>,
    report: &mut FileReport,
) -> io::Result<()> {
    report.kind = Kind::Other;
    report.notes.push(InvalidOption::needs_feature("Parquet", "parquet").to_string());
    Ok(())
}
