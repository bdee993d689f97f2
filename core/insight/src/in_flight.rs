//! How evenly requests lie on the workers, second by second: each worker's requests in flight, the gap between the
//! fullest and the emptiest, and spikes that move from worker to worker. Knows no screen and no finding.
//!
//! Averages hide this: with the same mean load a burst of long conversations fills one worker past its batch limit,
//! its requests queue, the router turns to the next worker, and that one fills.

use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::{Cluster, RATE_BUCKET_MS, TimeSteps, WorkerState};

/// A worker is too full only if it stays so for this many seconds.
pub const HOLD_S: u64 = 3;
/// A spike belongs to the one before if it begins within this many seconds of that one's peak.
pub const FOLLOW_S: u64 = 90;
/// Requests above the mean of all workers at which a worker is too full, where no batch limit is known: more than
/// round-robin's spread, less than a spike's.
pub const ABOVE_MEAN: f64 = 12.0;
/// The same as a share of the batch limit, where that is known.
pub const ABOVE_MEAN_SHARE: f64 = 0.2;

/// Requests in flight on each worker.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Series {
    /// Unix second of the first value.
    pub first_s: u64,
    /// Workers whose requests are known, by slot, with the most requests at once in each second from
    /// `first_s` on; `None`: not known in that second, or the worker had left.
    pub workers: Vec<(WorkerIx, Vec<Option<u32>>)>,
}

/// The fullest and the emptiest worker in one second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// Requests on the fullest.
    pub most: u32,
    /// Requests on the emptiest.
    pub least: u32,
}

impl Gap {
    /// The difference.
    pub const fn width(self) -> u32 {
        self.most - self.least
    }
}

/// A time in which a worker was too full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spike {
    /// Which worker.
    pub worker: WorkerIx,
    /// Unix second in which it began.
    pub from_s: u64,
    /// Unix second of its highest value.
    pub peak_s: u64,
    /// Last Unix second of it.
    pub until_s: u64,
    /// Requests at its highest.
    pub peak: u32,
}

/// A spike that moved: two spikes or more, each on another worker than the one before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Episode {
    /// In order of time.
    pub spikes: Vec<Spike>,
}

/// The `seconds` full seconds before `now`, as far as they are kept ([`radixscope_state::cluster::RATE_WINDOW_S`]).
pub fn series(cluster: &Cluster, now: Millis, seconds: u64) -> Series {
    let steps = TimeSteps::seconds(now, seconds);
    let first_s = steps.begins().next().unwrap_or(now).0 / RATE_BUCKET_MS;
    Series { first_s, workers: per_worker(cluster, steps) }
}

/// Workers whose requests are known, in the order in which they were first seen, with the most requests at once in each of
/// `steps`; `None`: not known in that step, or the worker had left.
pub fn per_worker(cluster: &Cluster, steps: TimeSteps) -> Vec<(WorkerIx, Vec<Option<u32>>)> {
    let of = |state: &WorkerState| {
        let left = state.departure.map(|departure| departure.at_ms);
        let there =
            |at: Millis| left.is_none_or(|left| Millis(at.0 + steps.len_s() * RATE_BUCKET_MS) <= left);
        let known = steps.begins().zip(state.in_flight.most_in_steps(steps));
        known.map(|(at, most)| most.filter(|_| there(at))).collect()
    };
    let known = cluster.workers().indexed().filter(|(_, state)| state.in_flight.now().is_some());
    known.map(|(worker, state)| (worker, of(state))).collect()
}

/// Most requests at once on a worker in the second of a time; `None`: not known, or too long ago.
pub fn most_at(cluster: &Cluster, worker: WorkerIx, at: Millis) -> Option<u32> {
    let second = TimeSteps::seconds(Millis((at.0 / RATE_BUCKET_MS + 1) * RATE_BUCKET_MS), 1);
    cluster.worker(worker)?.in_flight.most_in_steps(second).next()?
}

/// Most sequences in a batch of one worker, as the frontends' metrics give it; `None`: not reported, or models differ.
pub fn batch_limit(cluster: &Cluster) -> Option<u64> {
    let models = cluster.processes().iter().flat_map(|process| process.models());
    let mut limits = models.filter_map(|model| model.max_num_seqs);
    let first = limits.next()?;
    limits.all(|limit| limit == first).then_some(first)
}

impl Series {
    /// Fullest and emptiest worker in each second; `None` where fewer than two are known.
    pub fn gaps(&self) -> Vec<Option<Gap>> {
        (0..self.seconds()).map(|at| self.gap(at)).collect()
    }

    /// Seconds that it spans.
    pub fn seconds(&self) -> usize {
        self.workers.first().map_or(0, |(_, values)| values.len())
    }

    fn at(&self, at: usize) -> impl Iterator<Item = u32> + '_ {
        self.workers.iter().filter_map(move |(_, values)| values.get(at).copied().flatten())
    }

    fn gap(&self, at: usize) -> Option<Gap> {
        if self.at(at).count() < 2 {
            return None;
        }
        Some(Gap { most: self.at(at).max()?, least: self.at(at).min()? })
    }

    /// What is too much in one second: above the batch limit, or well above the mean.
    fn is_too_full(&self, at: usize, value: u32, limit: Option<u64>) -> bool {
        let known = self.at(at).count();
        let mean = self.at(at).map(f64::from).sum::<f64>() / known.max(1) as f64;
        let above = limit.map_or(ABOVE_MEAN, |limit| (limit as f64 * ABOVE_MEAN_SHARE).max(1.0));
        limit.is_some_and(|limit| u64::from(value) > limit) || (known > 1 && f64::from(value) > mean + above)
    }

    fn spikes_of(&self, worker: WorkerIx, values: &[Option<u32>], limit: Option<u64>) -> Vec<Spike> {
        let mut spikes: Vec<Spike> = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let Some(value) = value.filter(|&value| self.is_too_full(at, value, limit)) else { continue };
            let second = self.first_s + at as u64;
            match spikes.last_mut().filter(|last| second - last.until_s <= HOLD_S) {
                // A shorter break than it takes to be a spike is none.
                Some(last) => {
                    last.until_s = second;
                    if value > last.peak {
                        (last.peak, last.peak_s) = (value, second);
                    }
                }
                None => spikes.push(Spike {
                    worker,
                    from_s: second,
                    peak_s: second,
                    until_s: second,
                    peak: value,
                }),
            }
        }
        spikes.retain(|spike| spike.until_s - spike.from_s + 1 >= HOLD_S);
        spikes
    }
}

/// Times in which one worker was too full for [`HOLD_S`] seconds or longer: above `limit`, or well above the mean.
/// In order of their beginning.
pub fn spikes(series: &Series, limit: Option<u64>) -> Vec<Spike> {
    let of = |(worker, values): &(WorkerIx, Vec<Option<u32>>)| series.spikes_of(*worker, values, limit);
    let mut spikes: Vec<Spike> = series.workers.iter().flat_map(of).collect();
    spikes.sort_by_key(|spike| (spike.from_s, spike.worker));
    spikes
}

/// Spikes that moved from worker to worker: each begins after the one before has peaked and within [`FOLLOW_S`]
/// seconds of that, on another worker, and that one is over when this one peaks. In order of time.
pub fn episodes(series: &Series, limit: Option<u64>) -> Vec<Episode> {
    let mut chains: Vec<Episode> = Vec::new();
    for spike in spikes(series, limit) {
        let follows = |last: &Spike| {
            last.worker != spike.worker
                && spike.from_s > last.peak_s
                && spike.from_s - last.peak_s <= FOLLOW_S
                && last.until_s < spike.peak_s
        };
        match chains.iter_mut().rev().find(|chain| chain.spikes.last().is_some_and(follows)) {
            Some(chain) => chain.spikes.push(spike),
            None => chains.push(Episode { spikes: vec![spike] }),
        }
    }
    chains.retain(|chain| chain.spikes.len() > 1);
    chains
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: u64 = 1_000;

    /// Workers that hold 20 requests but for the given bumps: worker, from, length, height.
    fn with_bumps(workers: u32, seconds: u64, bumps: &[(u32, u64, u64, u32)]) -> Series {
        let value = |worker: u32, at: u64| {
            let bump =
                bumps.iter().find(|&&(w, from, len, _)| w == worker && (from..from + len).contains(&at));
            Some(bump.map_or(20, |bump| bump.3))
        };
        let of = |w: u32| (WorkerIx(w), (0..seconds).map(|at| value(w, at)).collect());
        Series { first_s: START, workers: (0..workers).map(of).collect() }
    }

    #[test]
    fn a_spike_that_moves_is_one_episode() {
        let series = with_bumps(3, 200, &[(0, 20, 15, 70), (2, 80, 10, 66), (1, 130, 5, 72)]);
        let found = episodes(&series, Some(64));
        assert_eq!(found.len(), 1);
        let workers: Vec<u32> = found[0].spikes.iter().map(|spike| spike.worker.0).collect();
        assert_eq!(workers, [0, 2, 1]);
        assert_eq!(found[0].spikes[1].peak, 66);
    }

    #[test]
    fn a_short_bump_is_no_spike() {
        let series = with_bumps(3, 100, &[(0, 20, 2, 70)]);
        assert!(spikes(&series, Some(64)).is_empty());
        assert_eq!(spikes(&with_bumps(3, 100, &[(0, 20, 3, 70)]), Some(64)).len(), 1);
    }

    #[test]
    fn spikes_far_apart_or_on_one_worker_are_no_cascade() {
        let far = with_bumps(2, 250, &[(0, 10, 5, 70), (1, 150, 5, 70)]);
        assert_eq!((spikes(&far, Some(64)).len(), episodes(&far, Some(64)).len()), (2, 0));
        let same = with_bumps(2, 250, &[(0, 10, 5, 70), (0, 50, 5, 70)]);
        assert_eq!((spikes(&same, Some(64)).len(), episodes(&same, Some(64)).len()), (2, 0));
    }

    #[test]
    fn workers_that_are_full_together_are_no_cascade() {
        let series = with_bumps(3, 100, &[(0, 20, 30, 70), (1, 25, 30, 70), (2, 30, 30, 70)]);
        // The first ends at 49; the others peak before.
        assert!(episodes(&series, Some(64)).is_empty());
    }

    #[test]
    fn without_a_limit_the_mean_tells() {
        let series = with_bumps(3, 100, &[(0, 10, 5, 45), (1, 40, 5, 45)]);
        assert_eq!(episodes(&series, None).len(), 1);
        // Everybody is as full as everybody else.
        let level = with_bumps(2, 100, &[(0, 10, 5, 45), (1, 10, 5, 45)]);
        assert!(spikes(&level, None).is_empty());
    }

    #[test]
    fn a_worker_alone_has_no_gap_and_no_spike_without_a_limit() {
        let series = with_bumps(1, 50, &[(0, 10, 5, 99)]);
        assert!(series.gaps().iter().all(Option::is_none));
        assert!(spikes(&series, None).is_empty());
        assert_eq!(spikes(&series, Some(64)).len(), 1);
    }

    #[test]
    fn gaps_leave_out_who_is_not_known() {
        let mut series = with_bumps(3, 4, &[(0, 1, 1, 50)]);
        series.workers[2].1[1] = None;
        series.workers[1].1[3] = None;
        series.workers[2].1[3] = None;
        let widths: Vec<_> = series.gaps().into_iter().map(|gap| gap.map(Gap::width)).collect();
        assert_eq!(widths, [Some(0), Some(30), Some(0), None]);
    }

    proptest! {
        #[test]
        fn an_episode_moves_between_workers_and_forward_in_time(
            values in prop::collection::vec(prop::collection::vec(prop::option::of(0u32..120), 120), 1..5),
            limit in prop::option::of(10u64..100),
        ) {
            let workers = values.into_iter().enumerate().map(|(w, v)| (WorkerIx(w as u32), v)).collect();
            let series = Series { first_s: START, workers };
            for episode in episodes(&series, limit) {
                prop_assert!(episode.spikes.len() > 1);
                for pair in episode.spikes.windows(2) {
                    prop_assert_ne!(pair[0].worker, pair[1].worker);
                    prop_assert!(pair[1].from_s > pair[0].peak_s && pair[1].from_s - pair[0].peak_s <= FOLLOW_S);
                    prop_assert!(pair[0].until_s < pair[1].peak_s);
                }
            }
        }
    }
}
