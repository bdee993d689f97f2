//! What came of a re-simulation. Must not know how it came about.

use serde::{Deserialize, Serialize};

use super::settings::ResimulationSettings;
use crate::report::{IN_FLIGHT_EVERY_MS, Percentiles};
use crate::router::Choice;
use crate::serving::Served;

/// Most samples of the spread of load; longer recordings are sampled less often.
const MAX_SAMPLES: u64 = 20_000;

/// What came of a re-simulation. Everything but `choices`, `times` and the counts named otherwise is about the requests after
/// the warm-up.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SimulatedOutcome {
    /// Requests served and counted.
    pub requests: u64,
    /// Requests served before, to warm the caches.
    pub warm_up_requests: u64,
    /// Requests no worker could run, warm-up included: empty, longer than a worker's cache, or too much
    /// beside what was in flight.
    pub refused_requests: u64,
    /// From the first counted arrival to the last, in milliseconds.
    pub counted_ms: u64,
    /// Blocks that the router saw on the chosen workers ÷ blocks of the prompts, 0 to 1; `None` where the router
    /// keeps no index (round-robin, weight 0) or nothing was counted.
    pub overlap_share: Option<f64>,
    /// Prompt tokens found in the engines' caches ÷ prompt tokens, 0 to 1; `None` where nothing was counted.
    pub hit_rate: Option<f64>,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Prompt tokens that the engines computed.
    pub prefill_tokens: u64,
    /// Time to first token, in milliseconds; `None` where nothing was counted, as in what follows.
    pub ttft_ms: Option<Percentiles>,
    /// Time to last token, in milliseconds.
    pub e2e_ms: Option<Percentiles>,
    /// Wait for a place in a batch, in milliseconds.
    pub queued_ms: Option<Percentiles>,
    /// How unevenly requests were in flight.
    pub spread: Option<InFlightGap>,
    /// Requests counted, by worker.
    pub requests_by_worker: Vec<u64>,
    /// The worker chosen for each arrival, warm-up included; `None` for those refused.
    pub choices: Vec<Option<u16>>,
    /// How long each arrival took, warm-up included; `None` for those refused.
    pub times: Vec<Option<ServedTimes>>,
}

/// How long a request took, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ServedTimes {
    /// To the first token.
    pub ttft_us: u64,
    /// To the last token.
    pub e2e_us: u64,
    /// Prompt tokens found in the engine's cache; no time, but wanted with them.
    pub cached_tokens: u32,
}

impl SimulatedOutcome {
    /// Share of the requests that went to a worker, 0 to 1; `None` if there is no such worker or nothing was counted.
    pub fn share(&self, worker: u16) -> Option<f64> {
        let requests = *self.requests_by_worker.get(usize::from(worker))?;
        (self.requests > 0).then(|| requests as f64 / self.requests as f64)
    }
}

/// Requests in flight on the fullest worker minus those on the emptiest, over samples in time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct InFlightGap {
    /// Time between two samples, in milliseconds.
    pub every_ms: u64,
    /// Samples.
    pub samples: usize,
    /// Over the samples.
    pub requests: Percentiles,
}

/// Counts while it runs.
pub(super) struct Tally {
    outcome: SimulatedOutcome,
    warm_up: usize,
    sample_every_ms: u64,
    indexes: bool,
    block_size_tokens: u32,
    isl_blocks: u64,
    overlap_blocks: u64,
    cached_tokens: u64,
    ttft_us: Vec<u64>,
    e2e_us: Vec<u64>,
    queued_us: Vec<u64>,
    spreads: Vec<u32>,
}

impl Tally {
    pub(super) fn new(
        settings: &ResimulationSettings,
        warm_up: usize,
        arrivals: usize,
        span_ms: u64,
    ) -> Self {
        Self {
            outcome: SimulatedOutcome {
                requests_by_worker: vec![0; usize::from(settings.workers)],
                choices: vec![None; arrivals],
                times: vec![None; arrivals],
                ..SimulatedOutcome::default()
            },
            warm_up,
            sample_every_ms: IN_FLIGHT_EVERY_MS.max(span_ms / MAX_SAMPLES),
            indexes: settings.router.keeps_index(),
            block_size_tokens: settings.block_size_tokens,
            isl_blocks: 0,
            overlap_blocks: 0,
            cached_tokens: 0,
            ttft_us: Vec::new(),
            e2e_us: Vec::new(),
            queued_us: Vec::new(),
            spreads: Vec::new(),
        }
    }

    /// Arrivals not counted.
    pub(super) fn warm_up(&self) -> usize {
        self.warm_up
    }

    pub(super) fn sample_every_us(&self) -> u64 {
        self.sample_every_ms * 1_000
    }

    pub(super) fn counted_ms(&mut self, counted_ms: u64) {
        self.outcome.counted_ms = counted_ms;
    }

    pub(super) fn refused(&mut self) {
        self.outcome.refused_requests += 1;
    }

    pub(super) fn routed(&mut self, request: usize, isl_tokens: u32, choice: Choice) {
        self.outcome.choices[request] = Some(choice.worker);
        if request < self.warm_up {
            self.outcome.warm_up_requests += 1;
            return;
        }
        self.outcome.requests += 1;
        self.outcome.requests_by_worker[usize::from(choice.worker)] += 1;
        self.isl_blocks += u64::from(isl_tokens.div_ceil(self.block_size_tokens));
        self.overlap_blocks += u64::from(choice.overlap_blocks);
    }

    pub(super) fn finished(&mut self, request: usize, served: &Served) {
        self.outcome.times[request] = Some(ServedTimes {
            ttft_us: served.ttft_us,
            e2e_us: served.e2e_us,
            cached_tokens: served.cached_tokens,
        });
        if request < self.warm_up {
            return;
        }
        self.outcome.prompt_tokens += u64::from(served.job.isl_tokens);
        self.outcome.prefill_tokens += u64::from(served.prefilled_tokens());
        self.cached_tokens += u64::from(served.cached_tokens);
        self.ttft_us.push(served.ttft_us);
        self.e2e_us.push(served.e2e_us);
        self.queued_us.push(served.queued_us);
    }

    /// Requests in flight on each worker at one moment.
    pub(super) fn sampled(&mut self, in_flight: impl Iterator<Item = u32>) {
        let (least, most) = in_flight.fold((u32::MAX, 0), |(least, most), n| (n.min(least), n.max(most)));
        self.spreads.push(most.saturating_sub(least));
    }

    pub(super) fn outcome(self) -> SimulatedOutcome {
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let percentiles =
            |of: &[u64]| (!of.is_empty()).then(|| Percentiles::of(of.iter().map(|&us| us as f64 / 1e3)));
        SimulatedOutcome {
            overlap_share: share(self.overlap_blocks, self.isl_blocks).filter(|_| self.indexes),
            hit_rate: share(self.cached_tokens, self.outcome.prompt_tokens),
            ttft_ms: percentiles(&self.ttft_us),
            e2e_ms: percentiles(&self.e2e_us),
            queued_ms: percentiles(&self.queued_us),
            spread: (!self.spreads.is_empty()).then(|| InFlightGap {
                every_ms: self.sample_every_ms,
                samples: self.spreads.len(),
                requests: Percentiles::of(self.spreads.iter().map(|&n| f64::from(n))),
            }),
            ..self.outcome
        }
    }
}
