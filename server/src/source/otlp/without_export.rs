//! `--otlp-export`, in a binary that was built without it.

use crate::config::{InvalidOption, OtlpExportArgs};
use crate::hub::{Hub, SourceHandle};
use crate::shutdown::Shutdown;

/// There is none.
pub enum OtlpExport {}

impl OtlpExport {
    /// Refuses to send.
    ///
    /// # Errors
    /// The command line asks for it.
    pub fn of(args: &OtlpExportArgs) -> Result<Option<Self>, InvalidOption> {
        match &args.otlp_export {
            Some(_) => Err(InvalidOption::needs_feature("--otlp-export", "otlp-export")),
            None => Ok(None),
        }
    }

    /// Its name among the sources.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// Sends until the process ends.
    pub async fn run(self, _: Hub, _: SourceHandle, _: Shutdown) {
        match self {}
    }
}

#[cfg(test)]
mod tests {
    use super::OtlpExport;
    use crate::config::OtlpExportArgs;

    #[test]
    fn sending_decisions_is_refused_and_the_missing_feature_named() {
        let of =
            |otlp_export| OtlpExport::of(&OtlpExportArgs { otlp_export, otlp_export_headers: Vec::new() });
        assert!(of(None).is_ok_and(|export| export.is_none()));
        let error = of(Some("http://collector:4318".parse().unwrap())).err().unwrap().to_string();
        assert!(error.contains("cargo feature otlp-export, which the released one has"), "{error}");
    }
}
