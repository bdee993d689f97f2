//! `radixscope demo`: the simulated cluster inside this process.

use radixscope_insight::capacity;
use radixscope_model::record::SourceKind;
use radixscope_router::RouterSettings;
use radixscope_sim::{Fault, FaultPlan, Topology};

use super::server::{Feed, Feeds};
use super::{Failure, server};
use crate::config::{Demo, Router, Simulation};
use crate::shutdown::Shutdown;
use crate::source::demo;
use crate::stage::{simulator, stage};

/// Runs until stopped.
pub(super) async fn run(options: Demo, stopped: Shutdown) -> Result<(), Failure> {
    let config = simulated(&options.simulation)?;
    let pace = pace(&options.simulation);
    let name = "simulated cluster".to_owned();
    let (controls, driver) = stage(simulator::report(&config));
    let feed = Feed::new(name, SourceKind::Simulator, move |to, stopped| {
        demo::run(config, pace, driver, to, stopped)
    });
    let (feeds, record) = (
        Feeds { stage: (!options.no_stage).then_some(controls), ..Feeds::only(vec![feed]) },
        options.recorded.options().map_err(|error| Failure::Usage(error.into()))?,
    );
    server::run(options.http, &options.limits, &options.slo, feeds, record, stopped).await
}

pub(super) fn pace(options: &Simulation) -> demo::Pace {
    demo::Pace { warm_up_ms: warm_up_s(options) * 1_000, speed: options.speed }
}

/// Some faults and host memory show in evictions alone, and the caches of an H200 are full after about 260 s.
fn warm_up_s(options: &Simulation) -> u64 {
    let evictions =
        options.fault.is_some_and(Fault::shows_in_evictions) || options.topology == Topology::Tiers;
    options.warm_up.unwrap_or(if evictions { 300 } else { 120 })
}

/// The fault, and when it begins. Faults that stop a process begin shortly before the end of the warm-up, so that the first
/// viewer sees them.
fn fault_plan(options: &Simulation) -> Option<FaultPlan> {
    let fault = options.fault?;
    let usual_s = if fault.ends_something() { warm_up_s(options).saturating_sub(30).max(10) } else { 0 };
    Some(FaultPlan { fault, after_ms: options.fault_after.unwrap_or(usual_s) * 1_000 })
}

/// The simulator's own configuration.
pub(super) fn simulated(options: &Simulation) -> Result<radixscope_sim::Config, Failure> {
    let block_size_tokens = options.block_size;
    let blocks_of_an_h200 = capacity::reference_blocks_per_worker(block_size_tokens);
    // Host memory only has an effect if device memory is too small for all prefixes.
    let (usual_blocks, usual_users) = match options.topology {
        Topology::Tiers => (blocks_of_an_h200 / 2, 90),
        _ => (blocks_of_an_h200, 120),
    };
    let config = radixscope_sim::Config {
        seed: options.seed,
        topology: options.topology,
        // Dynamo 0.9 has no traces.
        traces: options.topology != Topology::AggregatedV0_9,
        session_affinity: options.session_affinity,
        workers: options.workers,
        blocks_per_worker: options.blocks.unwrap_or(usual_blocks),
        block_size_tokens,
        concurrency: options.concurrency.unwrap_or(usual_users),
        router: match options.router {
            Router::Kv => RouterSettings {
                overlap_score_weight: options.overlap_score_weight,
                router_temperature: options.router_temperature,
                ..RouterSettings::default()
            },
            Router::RoundRobin => RouterSettings::round_robin(),
        },
        fault: fault_plan(options),
        fault_pool: options.fault_pool.clone(),
        ..radixscope_sim::Config::default()
    };
    config.validate().map_err(|error| Failure::Usage(error.into()))?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::config::{Cli, Command};

    fn planned(args: &[&str]) -> (u64, Result<radixscope_sim::Config, Failure>) {
        let cli = Cli::try_parse_from(["radixscope", "demo"].iter().chain(args)).unwrap();
        let Command::Demo(demo) = cli.command else { panic!("not demo") };
        (pace(&demo.simulation).warm_up_ms, simulated(&demo.simulation))
    }

    #[test]
    fn a_fault_has_begun_when_the_first_viewer_comes() {
        let after = |args: &[&str]| {
            let (warm_up_ms, config) = planned(args);
            (warm_up_ms, config.unwrap().fault.map(|plan| plan.after_ms))
        };
        assert_eq!(after(&[]), (120_000, None));
        assert_eq!(after(&["--topology", "tiers"]), (300_000, None));
        assert_eq!(after(&["--fault", "slow"]), (120_000, Some(0)));
        assert_eq!(after(&["--fault", "block-size"]), (300_000, Some(0)));
        assert_eq!(after(&["--fault", "kill-worker"]), (120_000, Some(90_000)));
        assert_eq!(after(&["--fault", "kill-worker", "--warm-up", "0"]), (0, Some(10_000)));
        assert_eq!(after(&["--fault", "gap", "--warm-up", "5"]), (5_000, Some(0)));
        assert_eq!(after(&["--fault", "slow", "--fault-after", "150"]), (120_000, Some(150_000)));
    }

    #[test]
    fn without_options_the_cluster_is_the_reference_scenario() {
        let (_, config) = planned(&[]);
        let (topology, traces) = (Topology::Aggregated, true);
        let reference = radixscope_sim::Config { topology, traces, ..radixscope_sim::Config::default() };
        assert_eq!(config.unwrap(), reference);
        let (_, config) = planned(&["--topology", "tiers"]);
        let config = config.unwrap();
        assert_eq!((config.blocks_per_worker, config.concurrency), (5_369, 90));
    }

    #[test]
    fn every_topology_can_be_simulated_with_every_fault() {
        for topology in Topology::ALL {
            for fault in Fault::ALL {
                let (_, config) = planned(&["--topology", topology.name(), "--fault", fault.name()]);
                assert_eq!(config.unwrap().topology, topology);
            }
        }
    }

    #[test]
    fn a_fault_can_hit_another_pool_in_which_it_shows() {
        let hits = |fault: &str, pool: &str| {
            let topology = ["--topology", "disaggregated", "--fault", fault, "--fault-pool", pool];
            planned(&topology).1
        };
        assert_eq!(hits("kill-worker", "backend").unwrap().fault_pool.as_deref(), Some("backend"));
        for (fault, pool) in [("no-events", "backend"), ("slow", "encode"), ("replicas", "prefill")] {
            let Err(Failure::Usage(error)) = hits(fault, pool) else { panic!("not refused") };
            assert!(error.to_string().contains("none of prefill, backend"), "{error}");
        }
    }

    #[test]
    fn a_mistake_in_the_set_up_cannot_come_later() {
        let (_, refused) = planned(&["--fault", "churn", "--fault-after", "60"]);
        let Err(Failure::Usage(error)) = refused else { panic!("not refused") };
        assert!(error.to_string().contains("fault churn is a mistake in the set-up"), "{error}");
    }
}
