//! Builds the checks from the options: SLO targets, and baselines read from files.

use std::sync::Arc;
use std::time::Duration;

use radixscope_insight::baseline::Baseline;
use radixscope_insight::check::Checks;
use radixscope_model::record::LatencyTargets;

use tokio::time::MissedTickBehavior;

use super::Failure;
use crate::baselines::BaselineFiles;
use crate::config::SloTargets;
use crate::hub::Hub;
use crate::shutdown::{Shutdown, over};

/// Growing results are read again this often.
const READ_EVERY: Duration = Duration::from_secs(10);

/// Reads the baselines again whenever their files have changed, and gives them to the checks. One that cannot be read, as a file that
/// is being written, stays as it was.
pub(super) async fn follow_baselines(files: Arc<BaselineFiles>, hub: Hub, mut stopped: Shutdown) {
    let mut known: Vec<Vec<Baseline>> = Vec::new();
    let mut stamp = None;
    let mut every = tokio::time::interval(READ_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = over(&mut stopped) => return,
            _ = every.tick() => {}
        }
        let (files, before) = (files.clone(), stamp);
        let look = tokio::task::spawn_blocking(move || {
            let stamp = Some(files.stamp());
            (stamp, (stamp != before).then(|| files.read_each()))
        });
        let Ok((now, read)) = look.await else { return };
        stamp = now;
        let Some(read) = read else { continue };
        if !update(&mut known, read) {
            continue;
        }
        if let Err(error) = hub.set_baselines(known.concat()).await {
            tracing::warn!(%error, "the checks did not get new baselines");
            // They get them with the next look.
            (known, stamp) = (Vec::new(), None);
        }
    }
}

/// Puts what was read into what is known; whether that changed.
fn update(known: &mut Vec<Vec<Baseline>>, read: Vec<Option<Vec<Baseline>>>) -> bool {
    let before = known.clone();
    known.resize(read.len(), Vec::new());
    for (known, read) in known.iter_mut().zip(read) {
        if let Some(read) = read {
            *known = read;
        }
    }
    *known != before
}

/// Checks with these targets and baselines.
pub(super) fn checks(slo: &SloTargets) -> Result<Checks, Failure> {
    let targets = LatencyTargets { ttft_ms: slo.slo_ttft_ms, itl_ms: slo.slo_itl_ms };
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
    fn baselines_that_cannot_be_read_now_stay_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sweep.csv");
        std::fs::write(&file, "concurrency,ttft_p95_ms\n60,400\n").unwrap();
        let files = BaselineFiles::new(slo(&file).baseline);
        let stamp = files.stamp();
        assert_eq!(files.stamp(), stamp);
        let mut known = Vec::new();
        assert!(update(&mut known, files.read_each()));
        assert!(!update(&mut known, files.read_each()), "nothing changed");
        std::fs::write(&file, "concurrency,ttft_p95_ms\n60,4").unwrap();
        assert_ne!(files.stamp(), stamp);
        assert!(update(&mut known, files.read_each()));
        std::fs::remove_file(&file).unwrap();
        assert!(!update(&mut known, files.read_each()));
        assert_eq!(known.concat()[0].rows().len(), 1);
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
