//! What a re-simulation runs on, and what it assumes.
//! Must not know how it is run.

use serde::{Deserialize, Serialize};

use super::{Arrival, MAX_REQUEST_TOKENS, ResimulationError};
use crate::cache::EvictionOrder;
use crate::config::{Config, ConfigError, Fleet, WorkerSelection};
use crate::timing::Timing;
use radixscope_router::{Formula, Role, RouterMode, RouterSettings};

/// Share of the arrivals that fill the caches and are not counted, in percent, by default.
pub const WARM_UP_PERCENT: u32 = 20;

/// The fleet, the router and the assumptions that can be chosen. [`Default`] is the fleet of the reference scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResimulationSettings {
    /// Number of workers.
    pub workers: u16,
    /// KV blocks each worker holds.
    pub blocks_per_worker: u32,
    /// Tokens per block; that of the recorded hashes.
    pub block_size_tokens: u32,
    /// Most requests a worker runs at once.
    pub max_batch: u32,
    /// Most tokens a worker computes in one step, prefill and decode together.
    pub max_num_tokens: u32,
    /// How requests find a worker.
    pub router: RouterSettings,
    /// Decides ties and draws.
    pub seed: u64,
    /// Output tokens of a request whose length is not recorded; at least 1.
    pub mean_output_tokens: u32,
    /// Share of the arrivals that only warm the caches and are not counted, in percent, below 100.
    pub warm_up_percent: u32,
    /// Durations of steps.
    pub timing: Timing,
}

impl Default for ResimulationSettings {
    fn default() -> Self {
        let Config {
            workers, blocks_per_worker, block_size_tokens, max_batch, max_num_tokens, router, ..
        } = Config::default();
        Self {
            workers,
            blocks_per_worker,
            block_size_tokens,
            max_batch,
            max_num_tokens,
            router,
            seed: 1,
            mean_output_tokens: 500,
            warm_up_percent: WARM_UP_PERCENT,
            timing: Timing::REFERENCE,
        }
    }
}

impl ResimulationSettings {
    /// Whether anything can be run on this.
    ///
    /// # Errors
    /// The first thing that cannot be, with the value given and what is allowed.
    pub fn validate(&self) -> Result<(), ResimulationError> {
        self.router.validate().map_err(ConfigError::from)?;
        self.fleet().validate()?;
        let within = |name, value, least, most| {
            let option = ResimulationError::Option { name, value, least, most };
            if (least..=most).contains(&value) { Ok(()) } else { Err(option) }
        };
        within("mean_output_tokens", self.mean_output_tokens, 1, MAX_REQUEST_TOKENS)?;
        within("warm_up_percent", self.warm_up_percent, 0, 99)
    }

    /// What every figure of an outcome rests on, as whole sentences with the numbers of these settings.
    pub fn assumptions(&self) -> Vec<String> {
        let Self { blocks_per_worker, block_size_tokens, max_batch, max_num_tokens, .. } = self;
        let mut sentences = vec![
            "Requests arrive when they were recorded, however long outputs take here: users neither wait nor \
             give up (open loop)."
                .to_owned(),
            self.steps_to_text(),
            format!(
                "Every worker has {blocks_per_worker} blocks of {block_size_tokens} tokens, runs at most {max_batch} \
                 requests at once and computes at most {max_num_tokens} tokens a step, prompts in chunks."
            ),
            format!(
                "What lies outside the engines takes {} ms and {} µs for each prompt token; it is part of TTFT and E2E.",
                self.timing.outside_us as f64 / 1e3,
                self.timing.outside_per_token_us
            ),
            "An engine evicts the least recently used block that no running request needs, and admits a request only \
             when all its blocks will fit: nothing is preempted or swapped out."
                .to_owned(),
            "No speculative decoding, no disaggregated prefill, no tiers below GPU memory, no worker that comes or \
             goes, and the router receives KV events at once."
                .to_owned(),
            "The blocks of an output are those with which the next recorded prompt that continues its request goes \
             on; where none does, they are not used again."
                .to_owned(),
            format!(
                "An output of unknown length has {} tokens.",
                self.mean_output_tokens
            ),
            format!(
                "Caches are empty at the beginning: the first {} % of the arrivals fill them and are not counted.",
                self.warm_up_percent
            ),
        ];
        sentences.push(match self.router.router_mode {
            RouterMode::Kv => format!(
                "The router is that of Dynamo 0.9: cost = {} × prefill blocks + decode blocks, router_temperature {}.",
                self.router.prefill_factor(),
                self.router.router_temperature
            ),
            RouterMode::RoundRobin => "The router chooses workers round-robin.".to_owned(),
        });
        sentences
    }

    fn steps_to_text(&self) -> String {
        let takes = self.timing.in_text();
        if self.timing == Timing::REFERENCE {
            format!(
                "Every worker is an engine of the reference scenario, Llama 70B in FP8 on one H200: a step takes {takes}, \
                 whatever the recorded hardware was."
            )
        } else {
            format!("A step takes {takes}: fitted to what was measured of the recorded requests.")
        }
    }

    pub(super) fn fleet(&self) -> Fleet {
        // The model's router is that of 0.9, whichever the recorded one was.
        let mut router = RouterSettings::new(Formula::A);
        router.router_mode = self.router.router_mode;
        router.router_temperature = self.router.router_temperature;
        router.set_prefill_factor(self.router.prefill_factor());
        Fleet {
            workers: self.workers,
            blocks_per_worker: self.blocks_per_worker,
            block_size_tokens: self.block_size_tokens,
            max_batch: self.max_batch,
            max_num_tokens: self.max_num_tokens,
            router,
            router_block_size_tokens: self.block_size_tokens,
            frontends: 1,
            predicts: false,
            role: Role::Aggregated,
            host_blocks: 0,
            selection: WorkerSelection::Cost,
            eviction: EvictionOrder::EndsFirst,
            leaves_out_unreachable: false,
            timing: self.timing,
        }
    }

    /// Output tokens of an arrival.
    pub(super) fn osl_tokens(&self, arrival: &Arrival<'_>) -> u32 {
        arrival.osl_tokens.unwrap_or(self.mean_output_tokens).max(1)
    }
}
