//! What routers count on workers, second by second, so that two of them can be held against each other: one message or
//! scrape is of its own time, and those of two routers never are of the same one. Knows no threshold of a rule.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::ProcessRole;
use radixscope_state::cluster::Cluster;

/// How far back they reach: ten scrapes at the usual interval.
pub(super) const REACH_MS: u64 = 30_000;
/// A router that reported nothing for so long is not asked any more: it may be gone. One that counts the same reports nothing new.
const HOLDS_MS: u64 = 10_000;
/// Most counts kept at a time: all workers of a large deployment by two routers. With more, the later ones are not compared.
const MAX_COUNTS: usize = 8_192;

/// Who counts, and how we know: like is compared with like only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum LoadReporter {
    /// A router by its messages; its publisher id. A process may have others for other topics.
    Messages(u64),
    /// A frontend by its metrics; its place among the processes.
    Metrics(usize),
}

impl LoadReporter {
    const fn is_like(self, other: Self) -> bool {
        matches!((self, other), (Self::Messages(_), Self::Messages(_)) | (Self::Metrics(_), Self::Metrics(_)))
    }
}

/// Active blocks of a worker as one router counts them.
type Count = (WorkerIx, LoadReporter, u64);

/// Counts of the last seconds: of every worker by every router, oldest first.
#[derive(Default)]
pub(super) struct LoadHistory {
    counts: BTreeMap<(WorkerIx, LoadReporter), VecDeque<(Millis, u64)>>,
}

/// What one router counted over some seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mean {
    pub(super) by: LoadReporter,
    pub(super) blocks: f64,
    /// How far the mean may be off by chance.
    pub(super) error: f64,
    /// Seconds in which it counted.
    pub(super) seconds: usize,
}

impl LoadHistory {
    pub(super) fn sample(&mut self, cluster: &Cluster, now: Millis) {
        for (worker, by, blocks) in counts(cluster, now) {
            let seconds = self.counts.entry((worker, by)).or_default();
            // A second call in a millisecond returns the same.
            if seconds.back().is_none_or(|(last, _)| *last < now) {
                seconds.push_back((now, blocks));
            }
        }
        self.counts.retain(|(worker, _), seconds| {
            // Another worker may have had the place before.
            let since = cluster.worker(*worker).map_or(now, |worker| worker.first_ms);
            while seconds.front().is_some_and(|(at, _)| now.since(*at) > REACH_MS || *at < since) {
                seconds.pop_front();
            }
            !seconds.is_empty()
        });
    }

    /// Means over the last `ms` of each router that counts on a worker, those by messages first.
    pub(super) fn means(&self, worker: WorkerIx, now: Millis, ms: u64) -> Vec<Mean> {
        let routers = self
            .counts
            .range((worker, LoadReporter::Messages(0))..=(worker, LoadReporter::Metrics(usize::MAX)));
        let recent = |seconds: &VecDeque<(Millis, u64)>| {
            let recent = seconds.iter().filter(|(at, _)| now.since(*at) < ms);
            recent.map(|(_, blocks)| *blocks as f64).collect::<Vec<_>>()
        };
        let means = routers.map(|(&(_, by), seconds)| mean(by, &recent(seconds)));
        means.filter(|mean| mean.seconds > 0).collect()
    }

    /// Most routers of one kind that counted in the last seconds. A process's messages and metrics are of one router, and
    /// publishers' ids do not identify them.
    pub(super) fn most_routers(&self) -> usize {
        let routers: BTreeSet<LoadReporter> = self.counts.keys().map(|(_, by)| *by).collect();
        let messages = routers.iter().filter(|by| matches!(by, LoadReporter::Messages(_))).count();
        messages.max(routers.len() - messages)
    }

    /// The two routers that differ most on a worker by the same kind of word, the one that counts more first. Only routers
    /// that counted for nearly all of the last `ms`.
    pub(super) fn apart(&self, worker: WorkerIx, now: Millis, ms: u64) -> Option<(Mean, Mean)> {
        let mut means = self.means(worker, now, ms);
        means.retain(|mean| mean.seconds as u64 * 1_000 * 10 >= ms * 8);
        let pairs = means.iter().flat_map(|more| means.iter().map(move |less| (*more, *less)));
        let likes = pairs.filter(|(more, less)| more.by != less.by && more.by.is_like(less.by));
        likes.max_by(|a, b| (a.0.blocks - a.1.blocks).total_cmp(&(b.0.blocks - b.1.blocks)))
    }
}

fn counts(cluster: &Cluster, now: Millis) -> Vec<Count> {
    let is_fresh = |at: Millis| now.since(at) <= HOLDS_MS;
    let workers = cluster.workers().indexed().filter(|(_, state)| state.departure.is_none());
    let by_messages = workers.flat_map(|(worker, state)| {
        let loads = state.router_loads.iter().filter(|load| is_fresh(load.at_ms));
        loads
            .filter_map(move |load| Some((worker, LoadReporter::Messages(load.router?), load.decode_blocks?)))
    });
    let frontends = cluster.processes().iter().enumerate();
    let frontends = frontends.filter(|(_, p)| p.role == ProcessRole::Frontend && is_fresh(p.last_ms));
    let by_metrics = frontends.flat_map(|(at, process)| {
        process
            .workers()
            .iter()
            .filter_map(move |of| Some((of.worker, LoadReporter::Metrics(at), of.decode_blocks?)))
    });
    by_messages.chain(by_metrics).take(MAX_COUNTS).collect()
}

/// The mean, and its standard error: a count that did not change is one sample, however often it was seen.
fn mean(by: LoadReporter, blocks: &[f64]) -> Mean {
    let seconds = blocks.len();
    let mean = blocks.iter().sum::<f64>() / seconds.max(1) as f64;
    let variance = blocks.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / seconds.max(1) as f64;
    let changes = blocks.windows(2).filter(|pair| pair[0] != pair[1]).count();
    Mean { by, blocks: mean, error: (variance / (changes + 1) as f64).sqrt(), seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_few_changes_is_less_certain() {
        let often = mean(LoadReporter::Messages(1), &[0.0, 100.0, 0.0, 100.0, 0.0, 100.0]);
        let once = mean(LoadReporter::Messages(1), &[0.0, 0.0, 0.0, 100.0, 100.0, 100.0]);
        assert_eq!((often.blocks, once.blocks), (50.0, 50.0));
        assert!(once.error > 1.5 * often.error, "{once:?} {often:?}");
        assert_eq!(mean(LoadReporter::Messages(1), &[7.0; 10]).error, 0.0);
    }
}
