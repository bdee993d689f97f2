//! Metrics of each present worker. Beyond [`MOST_LISTED`] workers they are summed, so that the number of series is bounded.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use radixscope_model::id::{PoolIx, Worker, WorkerIx};
use radixscope_model::record::TreeKnowledge;
use radixscope_state::cluster::{Cluster, PoolState, WorkerState};

use super::{Families, Labels, labels};

/// Maximum workers with their own series: about 20 series each, 10,000 in all.
const MOST_LISTED: usize = 512;
/// `worker_id` and `dp_rank` of all others.
const OTHERS: &str = "other";

/// Workers with their own series. Sticky, because a sum that a worker leaves would look like a counter reset.
#[derive(Debug, Default)]
pub(in crate::http) struct Listed {
    listed: HashSet<Worker>,
    /// Workers beyond the limit, also after they left.
    summed: HashSet<Worker>,
}

/// The series of one worker, or of all others of a pool.
struct WorkerSeries {
    labels: Labels,
    members: Vec<WorkerIx>,
}

impl Listed {
    /// Replaces workers that left by new ones.
    fn follow(&mut self, cluster: &Cluster, most: usize) {
        let workers = cluster.workers();
        let known: HashSet<Worker> = workers.iter().map(|worker| worker.id).collect();
        let present = || workers.iter().filter(|worker| worker.departure.is_none()).map(|worker| worker.id);
        let here: HashSet<Worker> = present().collect();
        self.listed.retain(|worker| here.contains(worker));
        self.summed.retain(|worker| known.contains(worker));
        for worker in present() {
            if self.listed.contains(&worker) || self.summed.contains(&worker) {
                continue;
            }
            let to = if self.listed.len() < most { &mut self.listed } else { &mut self.summed };
            to.insert(worker);
        }
    }

    fn rows(&self, cluster: &Cluster) -> Vec<WorkerSeries> {
        let mut rows = Vec::new();
        let mut others: BTreeMap<PoolIx, Vec<WorkerIx>> = BTreeMap::new();
        for ix in cluster.workers_by_id() {
            let Some(worker) = cluster.worker(ix) else { continue };
            if self.listed.contains(&worker.id) {
                let (id, rank) = (worker.id.id.to_string(), worker.id.dp_rank.to_string());
                rows.push(WorkerSeries {
                    labels: of_row(cluster, &id, &rank, worker.pool),
                    members: vec![ix],
                });
            } else if self.summed.contains(&worker.id) {
                others.entry(worker.pool).or_default().push(ix);
            }
        }
        let summed = others
            .into_iter()
            .map(|(pool, members)| WorkerSeries { labels: of_row(cluster, OTHERS, OTHERS, pool), members });
        rows.extend(summed);
        rows
    }
}

fn of_row(cluster: &Cluster, id: &str, rank: &str, pool: PoolIx) -> Labels {
    let pool = cluster.pool(pool).map(PoolState::name).unwrap_or_default();
    labels([("worker_id", id), ("dp_rank", rank), ("pool", &pool)])
}

/// The workers of a row with their state.
fn members<'a>(
    cluster: &'a Cluster,
    row: &WorkerSeries,
) -> impl Iterator<Item = (WorkerIx, &'a WorkerState)> {
    row.members.iter().filter_map(|ix| Some((*ix, cluster.worker(*ix)?)))
}

type SeriesValue = fn(&Cluster, WorkerIx, &WorkerState) -> Option<u64>;

/// A sample per row: the sum over its present workers with a known value.
fn known(cluster: &Cluster, rows: &[WorkerSeries], value: SeriesValue) -> Vec<(Labels, f64)> {
    let of = |row: &WorkerSeries| {
        let present = members(cluster, row).filter(|(_, worker)| worker.departure.is_none());
        let known: Vec<u64> = present.filter_map(|(ix, worker)| value(cluster, ix, worker)).collect();
        (!known.is_empty()).then(|| (Arc::clone(&row.labels), known.iter().sum::<u64>() as f64))
    };
    rows.iter().filter_map(of).collect()
}

/// A sample per row: the sum over all its workers.
fn counted(
    cluster: &Cluster,
    rows: &[WorkerSeries],
    count: impl Fn(WorkerIx, &WorkerState) -> u64,
) -> Vec<(Labels, u64)> {
    let of = |row: &WorkerSeries| members(cluster, row).map(|(ix, worker)| count(ix, worker)).sum();
    rows.iter().map(|row| (Arc::clone(&row.labels), of(row))).collect()
}

impl Families {
    pub(super) fn of_workers(&mut self, cluster: &Cluster, listed: &mut Listed) {
        listed.follow(cluster, MOST_LISTED);
        let rows = &listed.rows(cluster);
        let summed =
            cluster.workers().iter().filter(|w| w.departure.is_none() && listed.summed.contains(&w.id));
        let help = "Workers beyond the first 512, whose series are summed as far as known, with \"other\" for worker_id";
        self.gauge("workers_summed", help, summed.count() as f64);
        self.of_blocks(cluster, rows);
        self.of_completeness(cluster, rows);
        let mut counters = |name, help, count: fn(&WorkerState) -> u64| {
            self.counters(name, help, counted(cluster, rows, |_, worker| count(worker)));
        };
        counters("worker_stored_blocks", "Blocks in its stored events", |w| w.stored_total);
        counters("worker_removed_blocks", "Blocks in its removed events", |w| w.removed_total);
        counters("worker_cleared", "Times it cleared all blocks", |w| w.cleared_total);
        let help = "Its messages or events known to be lost; a lower bound where worker_missed_at_least is 1";
        counters("worker_missed", help, |w| w.missed_total);
        counters("worker_recovered", "Of those, the ones recovered by queries to it", |w| w.recovered_total);
        let help = "1 where more of its events may be lost than worker_missed counts; else 0";
        let bounds = known(cluster, rows, |cluster, ix, _| Some(u64::from(cluster.is_missed_at_least(ix))));
        self.gauges("worker_missed_at_least", help, bounds);
        let decisions = counted(cluster, rows, |ix, _| cluster.decisions().totals_of(ix).count);
        self.counters("worker_decisions", "Routing decisions that chose it", decisions);
        let in_flight = known(cluster, rows, |_, _, worker| worker.in_flight.now().map(u64::from));
        let help =
            "Requests in flight, from decision to end; absent where no source reports when requests end";
        self.gauges("worker_in_flight_requests", help, in_flight);
    }

    fn of_blocks(&mut self, cluster: &Cluster, rows: &[WorkerSeries]) {
        let mut gauges =
            |name, help, value: SeriesValue| self.gauges(name, help, known(cluster, rows, value));
        gauges("worker_blocks", "Cached blocks of the worker; absent while unknown", |cluster, ix, _| {
            cluster.blocks(ix)
        });
        let help = "Of those, unattached: below a parent that was never received";
        gauges("worker_unattached_blocks", help, |cluster, ix, _| {
            cluster.blocks(ix).map(|_| cluster.holdings(ix).unattached)
        });
        gauges(
            "worker_capacity_blocks",
            "Capacity of its KV cache in blocks, by its model card",
            |cluster, ix, _| cluster.capacity(ix).map(|capacity| capacity.value),
        );
        gauges("worker_used_blocks", "Blocks that running requests use, by its engine", |_, _, worker| {
            worker.engine_used_blocks
        });
    }

    /// How much of the workers' caches is known, and results of queries to them.
    fn of_completeness(&mut self, cluster: &Cluster, rows: &[WorkerSeries]) {
        let complete = rows.iter().filter_map(|row| {
            let publishing =
                members(cluster, row).filter(|(ix, w)| w.departure.is_none() && cluster.publishes(*ix));
            let complete: Vec<bool> = publishing.map(|(_, worker)| worker.knowledge.is_complete()).collect();
            let all = complete.iter().all(|complete| *complete);
            (!complete.is_empty()).then(|| (Arc::clone(&row.labels), f64::from(u8::from(all))))
        });
        let help = "1 while every block of the worker is known, 0 while some or all are not";
        self.gauges("worker_tree_complete", help, complete);
        let mut gauges =
            |name, help, value: SeriesValue| self.gauges(name, help, known(cluster, rows, value));
        let help = "Blocks of the worker that are known; absent while nothing of it is";
        gauges("worker_tree_known_blocks", help, |cluster, ix, worker| {
            let is_known = worker.knowledge.state != TreeKnowledge::Unknown;
            is_known.then(|| cluster.known_of_used(ix).0)
        });
        let help = "Cached blocks of the worker: all known ones where the tree is complete, else its capacity once it removes \
                    blocks; absent while it is unknown";
        gauges("worker_tree_used_blocks", help, |cluster, ix, _| Some(cluster.known_of_used(ix).1?.value));
        let help =
            "Blocks by which two responses of the worker differed from the tree; absent while they do not";
        let divergence: SeriesValue =
            |_, _, worker| worker.knowledge.drift.map(|drift| drift.missing_blocks + drift.surplus_blocks);
        gauges("worker_tree_divergence_blocks", help, divergence);
        gauges("worker_tree_drift_blocks", "Former name of worker_tree_divergence_blocks", divergence);
        let with = |(labels, count): (Labels, u64), outcome: &str| {
            let outcome = ("outcome", outcome.to_owned());
            (labels.iter().cloned().chain([outcome]).collect::<Labels>(), count)
        };
        let queries = |outcome, count: fn(&WorkerState) -> u64| {
            counted(cluster, rows, |_, worker| count(worker))
                .into_iter()
                .map(move |sample| with(sample, outcome))
        };
        let applied = queries("applied", |worker| worker.knowledge.queries.applied);
        let failed = queries("failed", |worker| worker.knowledge.queries.failed);
        let help = "Queries to the worker for its blocks or for lost events, by whether their responses were applied";
        self.counters("tree_queries", help, applied.chain(failed));
    }
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::{Millis, Seq};
    use radixscope_model::record::{DepartureCause, Entry, Record};

    use super::*;

    /// A cluster to which workers come and from which they leave, with room for two of them.
    #[derive(Default)]
    struct Scraped {
        cluster: Cluster,
        seq: u64,
        listed: Listed,
    }

    impl Scraped {
        fn fold(&mut self, record: Record<'_>) {
            self.seq += 1;
            self.cluster.fold(Seq(self.seq), &Entry { at_ms: Millis(self.seq), record });
        }

        fn come(&mut self, at: u16) {
            let id = Worker::new(u64::from(at), 0);
            self.fold(Record::new_worker(WorkerIx(at.into()), id, "dynamo", "backend"));
            self.fold(Record::Cleared { worker: WorkerIx(at.into()), all_ranks: false });
        }

        /// Worker ids of the rows, and how often the row cleared.
        fn rows(&mut self) -> Vec<(String, u64)> {
            self.listed.follow(&self.cluster, 2);
            let rows = self.listed.rows(&self.cluster);
            let cleared = counted(&self.cluster, &rows, |_, worker| worker.cleared_total);
            cleared.into_iter().map(|(labels, count)| (labels[0].1.clone(), count)).collect()
        }
    }

    fn rows<const N: usize>(rows: [(&str, u64); N]) -> Vec<(String, u64)> {
        rows.map(|(id, count)| (id.to_owned(), count)).into()
    }

    #[test]
    fn workers_beyond_the_limit_are_summed_and_stay_so_that_no_sum_falls() {
        let mut scraped = Scraped::default();
        (0..4).for_each(|at| scraped.come(at));
        assert_eq!(scraped.rows(), rows([("0", 1), ("1", 1), ("other", 2)]));
        scraped.fold(Record::Left { worker: WorkerIx(0), why: DepartureCause::Health });
        assert_eq!(scraped.rows(), rows([("1", 1), ("other", 2)]), "none that is in the sum leaves it");
        scraped.come(4);
        assert_eq!(
            scraped.rows(),
            rows([("1", 1), ("4", 1), ("other", 2)]),
            "a new one takes the free place"
        );
        scraped.fold(Record::Left { worker: WorkerIx(2), why: DepartureCause::Health });
        assert_eq!(scraped.rows(), rows([("1", 1), ("4", 1), ("other", 2)]));
    }
}
