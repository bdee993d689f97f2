//! The checks as the command line wants them: targets, and sweeps read from files.

use std::path::Path;

use anyhow::{Context as _, anyhow};

use radixscope_insight::baseline::{Baseline, Import, MAX_BYTES, import};
use radixscope_insight::check::{Checks, Targets};

use super::Failure;
use crate::config::Judged;

/// Checks against what the operator gives.
pub(super) fn checks(judged: &Judged) -> Result<Checks, Failure> {
    let targets = Targets { ttft_ms: judged.slo_ttft_ms, tpot_ms: judged.slo_itl_ms };
    let mut baselines = Vec::new();
    for path in &judged.baseline {
        let read = read(path).with_context(|| format!("--baseline {}", path.display()));
        baselines.extend(read.map_err(Failure::Usage)?);
    }
    Ok(Checks::new(targets).with_baselines(baselines).with_engine(judged.engine))
}

fn read(path: &Path) -> anyhow::Result<Vec<Baseline>> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes > MAX_BYTES as u64 {
        return Err(anyhow!("it has {bytes} bytes; at most {MAX_BYTES} are read"));
    }
    let text = std::fs::read_to_string(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let Import { baselines, notices } = import(&text, &name)?;
    for notice in notices {
        tracing::warn!(file = %path.display(), "{notice}");
    }
    Ok(baselines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(file: &Path) -> Judged {
        Judged { slo_ttft_ms: 500.0, slo_itl_ms: 50.0, baseline: vec![file.to_owned()], engine: None }
    }

    #[test]
    fn a_sweep_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sweep.csv");
        let error = |failure| match failure {
            Err(Failure::Usage(error)) => format!("{error:#}"),
            _ => panic!("it cannot be used"),
        };
        assert!(error(checks(&judged(&file)).map(drop)).contains("sweep.csv"));
        std::fs::write(&file, "a,b\n1,2\n").unwrap();
        assert!(error(checks(&judged(&file)).map(drop)).contains("concurrency"));
        std::fs::write(&file, "concurrency,ttft_p95_ms\n60,400\n").unwrap();
        assert!(checks(&judged(&file)).is_ok());
    }
}
