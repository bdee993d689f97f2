//! Names of objects under a recording's prefix. The id of the recording is in each, which is random: writers that share a prefix never use the
//! same name.

use std::path::Path;

/// Folder of the recordings, one in it for each.
pub(super) const RECORDINGS: &str = "recordings";
/// Folder of the decisions of all recordings, so that one pattern names them.
pub(super) const DECISIONS: &str = "decisions";
/// Ending of a recording's files.
pub(super) const MCAP: &str = "mcap";

/// The names of a file's objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ObjectNames {
    pub(super) recording: String,
    pub(super) decisions: String,
}

impl ObjectNames {
    /// For a file of a recording; `copy` counts up where another object has the name.
    pub(super) fn of(file: &Path, recording: u64, copy: u32) -> Self {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let again = if copy == 0 { String::new() } else { format!("-{copy}") };
        Self {
            recording: format!("{RECORDINGS}/{recording:016x}/{stem}{again}.{MCAP}"),
            decisions: format!("{DECISIONS}/{recording:016x}-{stem}{again}.parquet"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_the_recording() {
        let names = |copy| ObjectNames::of(Path::new("/buffer/radixscope-1800.mcap"), 0xab, copy);
        assert_eq!(names(0).recording, "recordings/00000000000000ab/radixscope-1800.mcap");
        assert_eq!(names(0).decisions, "decisions/00000000000000ab-radixscope-1800.parquet");
        assert_eq!(names(2).recording, "recordings/00000000000000ab/radixscope-1800-2.mcap");
    }
}
