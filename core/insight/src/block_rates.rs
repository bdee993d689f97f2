//! Blocks stored and removed per second over time, one band per worker. The same for the page and for pictures.

use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::{Bucket, TimeSteps};

use crate::view_context::ViewContext;

/// More workers than this are one band: they could not be distinguished.
pub const MAX_BANDS: usize = 24;
/// Its name.
pub const OTHERS: &str = "others";
/// Figures are means over so many full seconds.
pub const MEAN_SECONDS: u64 = 10;

/// One band. `None`: not known at that time.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockRates {
    /// Whose; `None`: of all workers beyond [`MAX_BANDS`].
    pub worker: Option<WorkerIx>,
    /// Blocks stored per second, step by step.
    pub stored: Vec<Option<f64>>,
    /// Blocks removed per second.
    pub removed: Vec<Option<f64>>,
}

/// Blocks stored and removed per second, the mean of the last [`MEAN_SECONDS`] summed over the workers shown or of the one
/// that is `picked`. `None`: of no worker is anything known.
pub fn mean(shown: &ViewContext<'_>, picked: Option<WorkerIx>, now: Millis) -> Option<(f64, f64)> {
    shown
        .worker_list()
        .filter(|worker| picked.is_none_or(|picked| picked == *worker))
        .filter_map(|worker| shown.rate_per_second(worker, now, MEAN_SECONDS))
        .reduce(|sum, more| (sum.0 + more.0, sum.1 + more.1))
}

/// The workers of one band.
#[derive(Clone, PartialEq, Debug)]
pub struct BandWorkers {
    /// The one; `None`: all workers beyond [`MAX_BANDS`].
    pub worker: Option<WorkerIx>,
    workers: Vec<WorkerIx>,
}

impl BandWorkers {
    /// Name of the band in addresses: the worker's id, or [`OTHERS`].
    pub fn id(&self, shown: &ViewContext<'_>) -> String {
        let worker = self.worker.and_then(|worker| shown.worker(worker));
        worker.map_or(OTHERS.to_owned(), |state| state.id.to_string())
    }
}

/// Which bands there are from `from` on: of the workers shown, or of the one that is `picked`.
pub fn band_workers(shown: &ViewContext<'_>, picked: Option<WorkerIx>, from: Millis) -> Vec<BandWorkers> {
    let workers = shown.workers_since(from).filter(|&worker| picked.is_none_or(|picked| picked == worker));
    let (alone, others): (Vec<_>, Vec<_>) =
        workers.partition(|worker| worker.slot().at() < MAX_BANDS || picked.is_some());
    let one = |worker| BandWorkers { worker: Some(worker), workers: vec![worker] };
    let others = Some(others).filter(|workers| !workers.is_empty());
    let others = others.map(|workers| BandWorkers { worker: None, workers });
    alone.into_iter().map(one).chain(others).collect()
}

/// The bands of the workers shown, or of the one that is `picked`; without those of which `is_hidden` says so of their
/// [`BandWorkers::id`].
pub fn bands(
    shown: &ViewContext<'_>,
    picked: Option<WorkerIx>,
    steps: TimeSteps,
    is_hidden: impl Fn(&str) -> bool,
) -> Vec<BlockRates> {
    let per_s = |blocks: u32| f64::from(blocks) / steps.len_s() as f64;
    let rates_of = |worker: WorkerIx| {
        let of = |n: fn(Bucket) -> u32| move |bucket: Option<Bucket>| bucket.map(|b| per_s(n(b)));
        shown.rates_in(worker, steps).map(|b| (of(|b| b.stored)(b), of(|b| b.removed)(b))).unzip()
    };
    let band = |BandWorkers { worker, workers }| {
        let rates = workers.into_iter().map(rates_of);
        let sum = rates.reduce(|mut sum: (Vec<_>, Vec<_>), (stored, removed)| {
            add(&mut sum.0, &stored);
            add(&mut sum.1, &removed);
            sum
        });
        let (stored, removed) = sum.unwrap_or_default();
        BlockRates { worker, stored, removed }
    };
    let from = steps.begins().next().unwrap_or_default();
    let all = band_workers(shown, picked, from).into_iter();
    all.filter(|band| !is_hidden(&band.id(shown))).map(band).collect()
}

/// The highest sum of `bands` at any time, of blocks stored or of blocks removed, whichever is more: both directions are drawn on
/// one scale, so that equal rates have equal heights. 0 where nothing is known.
pub fn highest(bands: &[BlockRates]) -> f64 {
    let highest_of = |of: fn(&BlockRates) -> &[Option<f64>]| {
        let times = bands.first().map_or(0, |band| of(band).len());
        let sum = |at: usize| bands.iter().filter_map(|band| of(band).get(at).copied().flatten()).sum();
        (0..times).map(sum).fold(0.0, f64::max)
    };
    highest_of(|band| &band.stored).max(highest_of(|band| &band.removed))
}

/// Adds what is known; a second that is not known of one worker is what the others stored.
fn add(sums: &mut [Option<f64>], more: &[Option<f64>]) {
    for (sum, &n) in sums.iter_mut().zip(more) {
        *sum = sum.zip(n).map(|(sum, n)| sum + n).or(*sum).or(n);
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockRates, highest};
    use radixscope_model::id::WorkerIx;

    #[test]
    fn both_directions_have_the_scale_of_the_higher_one() {
        let band = |worker: u32, stored: [Option<f64>; 2], removed: [Option<f64>; 2]| BlockRates {
            worker: Some(WorkerIx(worker)),
            stored: stored.to_vec(),
            removed: removed.to_vec(),
        };
        let few_removed = [
            band(0, [Some(3.0), Some(40.0)], [Some(1.0), None]),
            band(1, [None, Some(20.0)], [Some(2.0), Some(0.5)]),
        ];
        assert_eq!(highest(&few_removed), 60.0);
        assert_eq!(highest(&[band(0, [Some(3.0), None], [Some(70.0), Some(7.0)])]), 70.0);
        assert_eq!((highest(&[]), highest(&[band(0, [None; 2], [None; 2])])), (0.0, 0.0));
    }
}
