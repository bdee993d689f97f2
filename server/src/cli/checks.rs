//! Builds the checks from the options: SLO targets, and baselines read from files.

use std::path::Path;

use anyhow::{Context as _, anyhow};

use radixscope_insight::baseline::{Baseline, Import, MAX_BYTES, import};
use radixscope_insight::check::{Checks, Targets};

use super::Failure;
use crate::config::SloTargets;

/// Checks with these targets and baselines.
pub(super) fn checks(slo: &SloTargets) -> Result<Checks, Failure> {
    let targets = Targets { ttft_ms: slo.slo_ttft_ms, tpot_ms: slo.slo_itl_ms };
    let mut baselines = Vec::new();
    for path in &slo.baseline {
        let read = read(path).with_context(|| format!("--baseline {}", path.display()));
        baselines.extend(read.map_err(Failure::Usage)?);
    }
    Ok(Checks::new(targets).with_baselines(baselines).with_engine(slo.engine))
}

fn read(path: &Path) -> anyhow::Result<Vec<Baseline>> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes > MAX_BYTES as u64 {
        return Err(anyhow!("the file has {bytes} bytes; the maximum is {MAX_BYTES}"));
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

    fn slo(file: &Path) -> SloTargets {
        SloTargets { slo_ttft_ms: 500.0, slo_itl_ms: 50.0, baseline: vec![file.to_owned()], engine: None }
    }

    #[test]
    fn a_sweep_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sweep.csv");
        let error = |failure| match failure {
            Err(Failure::Usage(error)) => format!("{error:#}"),
            _ => panic!("it cannot be used"),
        };
        assert!(error(checks(&slo(&file)).map(drop)).contains("sweep.csv"));
        std::fs::write(&file, "a,b\n1,2\n").unwrap();
        assert!(error(checks(&slo(&file)).map(drop)).contains("concurrency"));
        std::fs::write(&file, "concurrency,ttft_p95_ms\n60,400\n").unwrap();
        assert!(checks(&slo(&file)).is_ok());
    }
}
