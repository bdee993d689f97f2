//! Spikes that make requests wait for nothing: one worker is above what it can run at once while another of its pool has
//! room. A choice among the spikes of [`crate::in_flight`]; free of what a rule makes of them.

use super::View;
use super::latency::Latency;
use crate::in_flight::{self, Gap, HOLD_S, Series, Spike};
use crate::latency::Quantity;
use radixscope_model::id::WorkerIx;
use radixscope_model::range::TargetComparison;
use radixscope_model::record::{Gauge, ProcessRole};

/// Fewer requests between the fullest and the emptiest worker are no spike: at a healthy load chance makes 12 to 22.
const MIN_WIDTH: u32 = 16;
/// Of the batch limit, where that is known.
const MIN_WIDTH_SHARE: f64 = 0.35;
/// The emptiest worker has room if it is no fuller than this share of the limit, or of the fullest one.
const ROOM_SHARE: f64 = 0.75;
/// Shown if the in-flight counts are unknown.
pub(super) const MISSING: &str = "Requests in flight are known for no two workers of one component; they are with \
    --router-replica-sync on the frontends, or with their logs from 1.5 on (--logs)";

/// The part of a spike in which requests waited for nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Harmful {
    /// Whose.
    pub(super) worker: WorkerIx,
    /// First Unix second.
    pub(super) from_s: u64,
    /// Seconds in which it held.
    pub(super) seconds: u64,
    /// Most requests in flight.
    pub(super) most: u32,
    /// Fewest on another worker in the second of the most.
    pub(super) least: u32,
}

/// Of the last `seconds`, by their beginning. `None`: requests in flight are known for no pool.
pub(super) fn harmful(view: &View<'_>, seconds: u64) -> Option<Vec<Harmful>> {
    let all = in_flight::series(view.cluster, view.now, seconds);
    let mut found = Vec::new();
    let mut is_known = false;
    for pool in view.pools() {
        let limit = pool.first().and_then(|&worker| view.batch_limit_of(worker));
        let in_pool = all.workers.iter().filter(|(worker, _)| pool.contains(worker)).cloned();
        let series = Series { first_s: all.first_s, workers: in_pool.collect() };
        if series.workers.len() < pool.len() {
            continue;
        }
        is_known = true;
        let gaps = series.gaps();
        let spikes = in_flight::spikes(&series, limit);
        let parts = spikes.iter().filter_map(|spike| harmful_part(&series, &gaps, spike, limit));
        let harmful: Vec<Harmful> = parts.filter(|harmful| harmful.seconds >= HOLD_S).collect();
        if limit.is_some() || harmful.is_empty() || requests_wait(view) {
            found.extend(harmful);
        }
    }
    found.sort_by_key(|harmful| (harmful.from_s, harmful.worker));
    is_known.then_some(found)
}

fn harmful_part(series: &Series, gaps: &[Option<Gap>], spike: &Spike, limit: Option<u64>) -> Option<Harmful> {
    let (worker, values) = series.workers.iter().find(|(worker, _)| *worker == spike.worker)?;
    let mut part: Option<Harmful> = None;
    for second in spike.from_s..=spike.until_s {
        let at = (second - series.first_s) as usize;
        let value = values.get(at).copied().flatten();
        let Some((most, gap)) = value.zip(gaps.get(at).copied().flatten()) else { continue };
        if !is_harmful(most, gap.least, limit) {
            continue;
        }
        let new = Harmful { worker: *worker, from_s: second, seconds: 0, most, least: gap.least };
        let part = part.get_or_insert(new);
        part.seconds += 1;
        if most > part.most {
            (part.most, part.least) = (most, gap.least);
        }
    }
    part
}

fn is_harmful(most: u32, least: u32, limit: Option<u64>) -> bool {
    let width =
        limit.map_or(f64::from(MIN_WIDTH), |limit| f64::from(MIN_WIDTH).max(MIN_WIDTH_SHARE * limit as f64));
    let room = ROOM_SHARE * limit.map_or(f64::from(most), |limit| limit as f64);
    let is_above = limit.is_none_or(|limit| u64::from(most) > limit);
    is_above && f64::from(most.saturating_sub(least)) >= width && f64::from(least) <= room
}

/// Where no batch limit is known, something else has to say that requests wait.
fn requests_wait(view: &View<'_>) -> bool {
    let is_late = || {
        let judged = Latency::judged(view, Quantity::Ttft, view.criteria.targets.ttft_ms);
        judged.is_some_and(|(_, standing)| standing == TargetComparison::Above)
    };
    view.gauge(ProcessRole::Worker, Gauge::EngineWaitingRequests).is_some_and(|n| n > 0.0) || is_late()
}
