//! Builds the checks from the options: SLO targets, and baselines read from files.

use radixscope_insight::check::{Checks, Targets};

use super::Failure;
use crate::baselines::BaselineFiles;
use crate::config::SloTargets;

/// Checks with these targets and baselines.
pub(super) fn checks(slo: &SloTargets) -> Result<Checks, Failure> {
    let targets = Targets { ttft_ms: slo.slo_ttft_ms, tpot_ms: slo.slo_itl_ms };
    let baselines = BaselineFiles::new(slo.baseline.clone()).open().map_err(Failure::Usage)?;
    Ok(Checks::new(targets).with_baselines(baselines).with_engine(slo.engine))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::BaselineAt;

    fn slo(file: &Path) -> SloTargets {
        let baseline = vec![BaselineAt { router: None, path: file.to_owned() }];
        SloTargets { slo_ttft_ms: 500.0, slo_itl_ms: 50.0, baseline, engine: None }
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
