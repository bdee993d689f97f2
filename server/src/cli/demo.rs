//! `radixscope demo`: the simulated cluster inside this process.

use radixscope_core::record::SourceKind;
use radixscope_core::{capacity, sim};

use super::server::Feed;
use super::{Failure, server};
use crate::config::{Demo, Router, Simulation};
use crate::shutdown::Shutdown;
use crate::source::demo;

/// Runs until asked to stop.
pub(super) async fn run(options: Demo, stopped: Shutdown) -> Result<(), Failure> {
    let config = simulated(&options.simulation)?;
    let pace = pace(&options.simulation);
    let name = "simulated cluster".to_owned();
    let feed =
        Feed::new(name, SourceKind::Simulator, move |to, stopped| demo::run(config, pace, to, stopped));
    server::run(options.http, &options.limits, vec![feed], stopped).await
}

pub(super) fn pace(options: &Simulation) -> demo::Pace {
    demo::Pace { warm_up_ms: options.warm_up * 1_000, speed: options.speed }
}

/// The simulator's own configuration.
pub(super) fn simulated(options: &Simulation) -> Result<sim::Config, Failure> {
    let block_size_tokens = options.block_size;
    let blocks_of_an_h200 = || capacity::reference_blocks_per_worker(block_size_tokens);
    let config = sim::Config {
        seed: options.seed,
        workers: options.workers,
        blocks_per_worker: options.blocks.unwrap_or_else(blocks_of_an_h200),
        block_size_tokens,
        concurrency: options.concurrency,
        router: match options.router {
            Router::Kv => {
                sim::RouterMode::Kv { overlap_score_weight: options.weight, temperature: options.temperature }
            }
            Router::RoundRobin => sim::RouterMode::RoundRobin,
        },
        ..sim::Config::default()
    };
    config.validate().map_err(|error| Failure::Usage(error.into()))?;
    Ok(config)
}
