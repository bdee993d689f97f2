//! Requests in flight on the workers that are shown: figures of each, the gap between the most and the least loaded worker of
//! a pool, and spikes that moved. The same for the page and for pictures; knows no screen.

use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::percentile::nearest_rank;
use radixscope_state::cluster::RATE_WINDOW_S;

use crate::in_flight::{self, Episode, Gap, Series, Spike};
use crate::view_context::ViewContext;

/// How requests in flight lie on the workers shown, over the last minutes.
#[derive(Clone, PartialEq, Default)]
pub struct Imbalance {
    /// Each worker second by second.
    pub series: Series,
    /// Of each second the widest gap within a pool.
    gaps: Vec<Option<Gap>>,
    /// The workers of each pool.
    pools: Vec<(PoolIx, Vec<WorkerIx>)>,
    /// Most sequences in a batch of a worker.
    pub limit: Option<u64>,
    /// Workers that were too full, in order of time.
    pub spikes: Vec<Spike>,
    /// Spikes that moved.
    pub episodes: Vec<Episode>,
    /// What routers say of workers whose requests are not known: worker, active decode blocks now.
    pub estimates: Vec<(WorkerIx, Option<u64>)>,
}

impl Imbalance {
    /// As it is at `now`.
    pub fn of(cluster: &ViewContext<'_>, now: Millis) -> Self {
        let mut series = in_flight::series(cluster, now, RATE_WINDOW_S);
        let pool_of = |worker: WorkerIx| cluster.pool_of(worker).unwrap_or_default();
        series.workers.retain(|(worker, _)| cluster.has(pool_of(*worker)));
        // A router has the choice among the workers of a pool: only they are full or empty beside each other.
        let mut pools: Vec<(PoolIx, Series)> = Vec::new();
        for (worker, values) in &series.workers {
            let of = (*worker, values.clone());
            match pools.iter_mut().find(|(pool, _)| *pool == pool_of(*worker)) {
                Some((_, series)) => series.workers.push(of),
                None => pools.push((pool_of(*worker), Series { first_s: series.first_s, workers: vec![of] })),
            }
        }
        let limit = in_flight::batch_limit(cluster);
        let mut spikes: Vec<Spike> =
            pools.iter().flat_map(|(_, series)| in_flight::spikes(series, limit)).collect();
        spikes.sort_by_key(|spike| (spike.from_s, spike.worker));
        let mut episodes: Vec<Episode> =
            pools.iter().flat_map(|(_, series)| in_flight::episodes(series, limit)).collect();
        episodes.sort_by_key(|episode| episode.spikes.first().map(|spike| spike.from_s));
        let estimates = cluster.worker_list().filter_map(|worker| {
            let state = cluster.worker(worker)?;
            let is_meant = state.departure.is_none() && state.in_flight.now().is_none();
            is_meant.then(|| (worker, state.router_loads.first().and_then(|load| load.decode_blocks)))
        });
        let gaps = widest(&pools);
        let of_pool = |(pool, series): (PoolIx, Series)| {
            (pool, series.workers.into_iter().map(|(worker, _)| worker).collect())
        };
        let pools = pools.into_iter().map(of_pool).collect();
        Self { gaps, pools, spikes, episodes, estimates: estimates.collect(), limit, series }
    }

    fn widths(&self) -> Vec<Option<u32>> {
        self.gaps.iter().map(|gap| gap.map(Gap::width)).collect()
    }

    /// Present and greatest value of a worker.
    pub fn figures(&self, worker: WorkerIx) -> [Option<u32>; 2] {
        let values = self.series.workers.iter().find(|(w, _)| *w == worker).map(|(_, values)| values);
        let most = values.and_then(|values| values.iter().copied().flatten().max());
        [values.and_then(|values| values.last().copied().flatten()), most]
    }

    /// Present, greatest and 95th-percentile gap.
    pub fn gap_figures(&self) -> [Option<u32>; 3] {
        let widths = self.widths();
        let mut known: Vec<u32> = widths.iter().copied().flatten().collect();
        known.sort();
        let p95 = nearest_rank(&known, 95);
        [widths.last().copied().flatten(), known.last().copied(), p95]
    }

    /// Times in which a worker was too full.
    pub fn spikes_of(&self, worker: WorkerIx) -> impl Iterator<Item = &Spike> {
        self.spikes.iter().filter(move |spike| spike.worker == worker)
    }

    /// What the batch limit is, or what would report it.
    pub fn limit_text(&self) -> String {
        match self.limit {
            Some(limit) => format!("dashed: batch limit {limit}, by the model's max_num_seqs"),
            None => "batch limit unknown: a scraped frontend reports max_num_seqs".to_owned(),
        }
    }

    /// Of each time the widest gap within a pool, where `workers` have a value at each.
    pub fn gaps_of(&self, workers: &[(WorkerIx, Vec<Option<u32>>)]) -> Vec<Option<u32>> {
        let values = |of: WorkerIx| {
            let known = workers.iter().find(|(worker, _)| *worker == of);
            known.map(|(_, values)| values.clone()).unwrap_or_default()
        };
        let series = |(pool, of): &(PoolIx, Vec<WorkerIx>)| {
            let workers = of.iter().map(|&worker| (worker, values(worker))).collect();
            (*pool, Series { first_s: 0, workers })
        };
        let pools: Vec<(PoolIx, Series)> = self.pools.iter().map(series).collect();
        widest(&pools).into_iter().map(|gap| gap.map(Gap::width)).collect()
    }
}

/// In each second the widest gap within a pool.
fn widest(pools: &[(PoolIx, Series)]) -> Vec<Option<Gap>> {
    let gaps: Vec<Vec<Option<Gap>>> = pools.iter().map(|(_, series)| series.gaps()).collect();
    let seconds = gaps.iter().map(Vec::len).max().unwrap_or(0);
    let at = |at: usize| gaps.iter().filter_map(|of| *of.get(at)?).max_by_key(|gap| gap.width());
    (0..seconds).map(at).collect()
}
