//! Spikes: seconds in which one worker has far more requests in flight than another one of its pool that has room. Second
//! by second, because averages hide them. Free of what a rule makes of them.

use super::View;
use super::peers::{batch_limit, pools};
use crate::cluster::RATE_BUCKET_MS;
use crate::id::WorkerIx;

/// Fewer requests between the fullest and the emptiest worker are no spike: at a healthy load chance makes 12 to 22.
const MIN_SPREAD: u32 = 16;
/// Of the batch limit, where that is known.
const MIN_SPREAD_SHARE: f64 = 0.35;
/// The emptiest worker has room if it is no fuller than this share of the limit, or of the fullest one.
const ROOM_SHARE: f64 = 0.75;
/// Spikes of one worker that are no further apart are one, seconds.
const JOIN_S: u64 = 5;

/// One worker above the others for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spike {
    /// Who.
    pub(super) worker: WorkerIx,
    /// First Unix second.
    pub(super) first_s: u64,
    /// Last Unix second.
    pub(super) last_s: u64,
    /// Seconds between them in which it held.
    pub(super) seconds: u64,
    /// Most requests in flight there.
    pub(super) most: u32,
    /// Fewest on another worker in the second of the most.
    pub(super) least: u32,
}

/// Whether requests in flight are known for the workers of any pool.
pub(super) fn are_known(view: &View<'_>) -> bool {
    pools(view).iter().any(|pool| known(view, pool))
}

fn known(view: &View<'_>, pool: &[WorkerIx]) -> bool {
    pool.iter().all(|&ix| view.cluster.worker(ix).is_some_and(|w| w.in_flight.now().is_some()))
}

/// Spikes of the last `seconds`, by their first second. With a known batch limit the worker has to be above it; without
/// one the caller has to know that requests wait.
pub(super) fn spikes(view: &View<'_>, seconds: u64) -> Vec<Spike> {
    let limit = batch_limit(view);
    let threshold = limit.map_or(MIN_SPREAD, |limit| {
        MIN_SPREAD.max((limit as f64 * MIN_SPREAD_SHARE).ceil().min(f64::from(u32::MAX)) as u32)
    });
    let end = view.now.0 / RATE_BUCKET_MS;
    let mut spikes: Vec<Spike> = Vec::new();
    for pool in pools(view).iter().filter(|pool| known(view, pool)) {
        for second in end.saturating_sub(seconds)..=end {
            let most_in = |ix: WorkerIx| view.cluster.worker(ix)?.in_flight.most_in(second);
            let in_flight: Vec<_> = pool.iter().filter_map(|&ix| Some((ix, most_in(ix)?))).collect();
            let Some(least) = in_flight.iter().map(|&(_, n)| n).min() else { continue };
            for (worker, n) in in_flight {
                let bound = limit.map_or(f64::from(n), |limit| limit as f64);
                let has_room = f64::from(least) <= ROOM_SHARE * bound;
                let is_above = limit.is_none_or(|limit| u64::from(n) > limit);
                if n.saturating_sub(least) >= threshold && has_room && is_above {
                    extend(&mut spikes, worker, second, n, least);
                }
            }
        }
    }
    spikes.sort_by_key(|spike| (spike.first_s, spike.worker));
    spikes
}

fn extend(spikes: &mut Vec<Spike>, worker: WorkerIx, second: u64, most: u32, least: u32) {
    let is_same = |spike: &&mut Spike| spike.worker == worker && second - spike.last_s <= JOIN_S;
    match spikes.iter_mut().rev().find(is_same) {
        Some(spike) => {
            spike.last_s = second;
            spike.seconds += 1;
            if most > spike.most {
                (spike.most, spike.least) = (most, least);
            }
        }
        None => {
            spikes.push(Spike { worker, first_s: second, last_s: second, seconds: 1, most, least });
        }
    }
}
