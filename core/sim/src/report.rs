//! What the users and an all-seeing observer measured: one record a request, samples of the spread of load, and the
//! last decisions, all in bounded rings. Must not know how any of it came about.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::router::SimulatedCandidate;
use radixscope_model::id::{BlockHash, Millis};
use radixscope_model::percentile;

/// Finished requests retained: half an hour of the busiest reference level.
pub const REQUESTS_KEPT: usize = 8_192;
/// Samples of load retained: half an hour at one every [`IN_FLIGHT_EVERY_MS`].
pub const SPREADS_KEPT: usize = 8_192;
/// Decisions retained with all their inputs.
pub const DECISIONS_KEPT: usize = 64;
/// Time between two samples of the load, in milliseconds.
pub const IN_FLIGHT_EVERY_MS: u64 = 250;

/// A finished request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestRecord {
    /// Number of the user, who has one request at a time.
    pub user: u32,
    /// When the user sent it.
    pub sent_at_ms: Millis,
    /// When the last token came.
    pub finished_at_ms: Millis,
    /// Number of the worker that served it.
    pub worker: u16,
    /// Number of the worker that computed its prompt, where that was another.
    pub prefill_worker: Option<u16>,
    /// Prompt tokens.
    pub isl_tokens: u32,
    /// Output tokens.
    pub osl_tokens: u32,
    /// Prompt tokens found in the engine's cache.
    pub cached_tokens: u32,
    /// Sent to first token, in microseconds.
    pub ttft_us: u64,
    /// Of both, what lies between the user and the router, in microseconds.
    pub outside_us: u64,
    /// Wait for a place in the engine's batch, in microseconds.
    pub queued_us: u64,
    /// Sent to last token, in microseconds.
    pub e2e_us: u64,
}

impl RequestRecord {
    /// Mean time between two output tokens, in microseconds; `None` if it has only one.
    pub fn itl_us(&self) -> Option<u64> {
        let gaps = u64::from(self.osl_tokens).checked_sub(1).filter(|&gaps| gaps > 0)?;
        Some((self.e2e_us - self.ttft_us) / gaps)
    }
}

/// Requests in flight at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InFlightSample {
    /// When.
    pub at_ms: Millis,
    /// On the worker with the fewest.
    pub least: u32,
    /// On the worker with the most.
    pub most: u32,
    /// Waiting for a place in a batch, over all workers.
    pub queued: u32,
}

/// A decision and all that the router knew.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DecisionRecord {
    /// When.
    pub at_ms: Millis,
    /// Number of the user whose request it is.
    pub user: u32,
    /// Number of the worker chosen.
    pub worker: u16,
    /// Whether the conversation was bound to that worker, whatever it costs.
    pub is_bound: bool,
    /// Number of the first worker of the pool chosen from.
    pub first_worker: u16,
    /// Prompt tokens.
    pub isl_tokens: u32,
    /// Chain hashes of the prompt's full blocks.
    pub prompt: Vec<BlockHash>,
    /// By worker of that pool.
    pub candidates: Vec<SimulatedCandidate>,
    /// What the workers of that pool really were then, whatever the router knew.
    pub truth: Vec<CandidateTruth>,
    /// Blocks of the prompt, from its beginning without a hole, each of which some worker had on its device.
    pub cached_anywhere_blocks: u32,
}

/// What a worker really was when a decision was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CandidateTruth {
    /// Whether the router knew it and could reach it, as far as it knew.
    pub is_eligible: bool,
    /// Blocks of the prompt, from its beginning without a hole, that it had: on its device, and beyond that in host memory.
    pub cached_blocks: u32,
}

/// Running account of a simulation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SimulationReport {
    /// The last [`REQUESTS_KEPT`] finished requests, oldest first.
    pub requests: VecDeque<RequestRecord>,
    /// The last [`SPREADS_KEPT`] samples of the load, oldest first.
    pub spreads: VecDeque<InFlightSample>,
    /// The last [`DECISIONS_KEPT`] decisions by cost, oldest first; none in round-robin.
    pub decisions: VecDeque<DecisionRecord>,
    /// Requests routed since the start.
    pub routed_total: u64,
    /// Requests finished since the start.
    pub finished_total: u64,
    /// Requests that failed since the start.
    pub failed_total: u64,
    /// Blocks stored since the start, by worker.
    pub stored_blocks_total: Vec<u64>,
    /// Blocks evicted since the start, by worker.
    pub evicted_blocks_total: Vec<u64>,
}

/// What a stretch of time was like for the users; [`SimulationReport::summary`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Summary {
    /// Requests finished.
    pub requests: usize,
    /// Requests finished per second.
    pub requests_per_s: f64,
    /// Output tokens of finished requests per second.
    pub output_tokens_per_s: f64,
    /// Cached prompt tokens ÷ prompt tokens, 0 to 1; 0 if nothing finished.
    pub hit_rate: f64,
    /// Prompt tokens.
    pub isl_tokens: Percentiles,
    /// Time to first token, in milliseconds.
    pub ttft_ms: Percentiles,
    /// Mean time between tokens of a request, in milliseconds.
    pub itl_ms: Percentiles,
    /// Time to last token, in milliseconds.
    pub e2e_ms: Percentiles,
    /// Wait for a place in a batch, in milliseconds.
    pub queued_ms: Percentiles,
    /// Most minus fewest requests in flight on a worker, at one moment.
    pub spread: Percentiles,
    /// Requests in flight on the fullest worker, at one moment.
    pub fullest: Percentiles,
}

/// Mean, and percentiles by nearest rank; 0 where there was nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// The mean.
    pub mean: f64,
    /// Half are at or below.
    pub p50: f64,
    /// 95 of 100 are at or below.
    pub p95: f64,
    /// 99 of 100 are at or below.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

impl Percentiles {
    /// Of a sample, by nearest rank; all 0 of none.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        let at = |percent| percentile::nearest_rank(&values, percent).unwrap_or_default();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        Self { mean, p50: at(50), p95: at(95), p99: at(99), max: at(100) }
    }
}

impl SimulationReport {
    pub(super) fn new(workers: u16) -> Self {
        let zeros = vec![0; usize::from(workers)];
        Self { stored_blocks_total: zeros.clone(), evicted_blocks_total: zeros, ..Self::default() }
    }

    /// Requests that finished, and load sampled, in `from..until`, as far as the rings reach back.
    pub fn summary(&self, from: Millis, until: Millis) -> Summary {
        let within = |at: Millis| from <= at && at < until;
        let requests = || self.requests.iter().filter(|r| within(r.finished_at_ms));
        let spreads = || self.spreads.iter().filter(|s| within(s.at_ms));
        let sum = |of: fn(&RequestRecord) -> u32| requests().map(|r| u64::from(of(r))).sum::<u64>() as f64;
        let seconds = (until.since(from) as f64 / 1e3).max(f64::MIN_POSITIVE);
        let isl = sum(|r| r.isl_tokens);
        let ms = |us: u64| us as f64 / 1e3;
        Summary {
            requests: requests().count(),
            requests_per_s: requests().count() as f64 / seconds,
            output_tokens_per_s: sum(|r| r.osl_tokens) / seconds,
            hit_rate: if isl > 0.0 { sum(|r| r.cached_tokens) / isl } else { 0.0 },
            isl_tokens: Percentiles::of(requests().map(|r| f64::from(r.isl_tokens))),
            ttft_ms: Percentiles::of(requests().map(|r| ms(r.ttft_us))),
            itl_ms: Percentiles::of(requests().filter_map(RequestRecord::itl_us).map(ms)),
            e2e_ms: Percentiles::of(requests().map(|r| ms(r.e2e_us))),
            queued_ms: Percentiles::of(requests().map(|r| ms(r.queued_us))),
            spread: Percentiles::of(spreads().map(|s| f64::from(s.most - s.least))),
            fullest: Percentiles::of(spreads().map(|s| f64::from(s.most))),
        }
    }

    pub(super) fn finished(&mut self, request: RequestRecord) {
        self.finished_total += 1;
        push_bounded(&mut self.requests, REQUESTS_KEPT, request);
    }

    pub(super) fn sampled(&mut self, sample: InFlightSample) {
        push_bounded(&mut self.spreads, SPREADS_KEPT, sample);
    }

    /// Keeps a decision, in the memory of the oldest one when the ring is full; `fill` gets it empty.
    pub(super) fn decided(&mut self, fill: impl FnOnce(&mut DecisionRecord)) {
        let full = self.decisions.len() >= DECISIONS_KEPT;
        let mut decision =
            if full { self.decisions.pop_front().unwrap_or_default() } else { Default::default() };
        decision.prompt.clear();
        decision.candidates.clear();
        decision.truth.clear();
        fill(&mut decision);
        self.decisions.push_back(decision);
    }
}

fn push_bounded<T>(ring: &mut VecDeque<T>, bound: usize, value: T) {
    if ring.len() >= bound {
        ring.pop_front();
    }
    ring.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let p = Percentiles::of((1..=20).map(f64::from));
        assert_eq!(p, Percentiles { mean: 10.5, p50: 10.0, p95: 19.0, p99: 20.0, max: 20.0 });
        let alone = Percentiles { mean: 3.0, p50: 3.0, p95: 3.0, p99: 3.0, max: 3.0 };
        assert_eq!(Percentiles::of(std::iter::once(3.0)), alone);
        assert_eq!(Percentiles::of(std::iter::empty()), Percentiles::default());
    }

    #[test]
    fn rings_stay_bounded() {
        let mut report = SimulationReport::new(1);
        for at in 0..SPREADS_KEPT as u64 + 3 {
            report.sampled(InFlightSample { at_ms: Millis(at), least: 0, most: 0, queued: 0 });
            report.decided(|d| d.worker = 1);
        }
        assert_eq!((report.spreads.len(), report.decisions.len()), (SPREADS_KEPT, DECISIONS_KEPT));
        assert_eq!(report.spreads[0].at_ms, Millis(3));
    }
}
