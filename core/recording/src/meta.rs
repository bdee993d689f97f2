//! The metadata of a file.

use std::collections::BTreeMap;

use radixscope_model::record::RECORD_VERSION;

use crate::error::RecordingError;
use crate::upgrade;

/// What a recording is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meta {
    /// The release that wrote it.
    pub by: String,
    /// The run of the server: numbers of records of another run mean something else.
    pub epoch: u64,
    /// The recording that this file is a part of: files of one go together, also after a restart.
    pub recording: u64,
    /// When the file was begun, Unix time in milliseconds.
    pub began_ms: u64,
    /// Where it came from, a line each: the kind of a source and its name.
    pub sources: String,
    /// Whether ids and names are pseudonyms.
    pub redacted: bool,
}

/// Name of the metadata.
pub(crate) const NAME: &str = "radixscope";

impl Meta {
    /// As it stands in the file.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let Self { by, epoch, recording, began_ms, sources, redacted } = self;
        let entries = [
            ("version", by.clone()),
            ("record_version", RECORD_VERSION.to_string()),
            ("epoch", epoch.to_string()),
            ("recording", recording.to_string()),
            ("began_ms", began_ms.to_string()),
            ("sources", sources.clone()),
            ("redacted", redacted.to_string()),
        ];
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// From what stands in the file, with the version of its records.
    ///
    /// # Errors
    /// It is not ours, or of a version that is not read.
    pub(crate) fn of(map: &BTreeMap<&str, &str>) -> Result<(Self, u8), RecordingError> {
        let text = |key: &str| map.get(key).copied().unwrap_or_default();
        let number = |key: &str| text(key).parse::<u64>().ok();
        let theirs = text("record_version").parse::<u8>().map_err(|_| RecordingError::NotARecording)?;
        let by: String = text("version").chars().take(40).collect();
        if !(upgrade::OLDEST..=RECORD_VERSION).contains(&theirs) {
            return Err(RecordingError::Version { by, theirs });
        }
        let (Some(epoch), Some(recording)) = (number("epoch"), number("recording")) else {
            return Err(RecordingError::NotARecording);
        };
        let meta = Self {
            by,
            epoch,
            recording,
            began_ms: number("began_ms").unwrap_or_default(),
            sources: text("sources").to_owned(),
            redacted: text("redacted") == "true",
        };
        Ok((meta, theirs))
    }
}
