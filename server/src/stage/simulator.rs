//! The simulator as a driver of the stage: what of it can be steered, and a change of the stage as one of the simulation.

use radixscope_export::stage::{
    Restart, StageChange, StageDriver, StageFault, StageReport, StageRouter, Steered,
};
use radixscope_model::id::Decimal;
use radixscope_sim::{Change, Config, Fault};

/// Most users that the page offers, unless more were asked for at the start.
const MAX_USERS: u32 = 200;
/// Largest overlap weight: with it load hardly counts.
const MAX_WEIGHT: f64 = 10.0;
/// Largest temperature: with it cost hardly counts.
const MAX_TEMPERATURE: f64 = 2.0;

/// What can be steered in a simulation of this configuration.
pub fn report(asked: &Config) -> StageReport {
    let max = MAX_USERS.max(asked.concurrency);
    let weight = asked.router.overlap_score_weight;
    let temperature = asked.router.router_temperature;
    StageReport {
        driver: StageDriver::Simulator,
        is_ready: false,
        concurrency: Steered { value: asked.concurrency, min: 1, max },
        paused: false,
        router: Some(StageRouter {
            mode: asked.router.router_mode,
            overlap_score_weight: Steered { value: weight, min: 0.0, max: MAX_WEIGHT.max(weight) },
            router_temperature: Steered {
                value: temperature,
                min: 0.0,
                max: MAX_TEMPERATURE.max(temperature),
            },
        }),
        faults: faults(asked),
        fault: asked.fault.map(|plan| plan.fault.name().to_owned()),
        seed: Some(Decimal(asked.seed)),
        latest: None,
    }
}

/// The values of what is simulated now.
pub(crate) fn set(report: &mut StageReport, asked: &Config) {
    report.concurrency.value = asked.concurrency;
    if let Some(router) = &mut report.router {
        router.mode = asked.router.router_mode;
        router.overlap_score_weight.value = asked.router.overlap_score_weight;
        router.router_temperature.value = asked.router.router_temperature;
    }
    report.fault = asked.fault.map(|plan| plan.fault.name().to_owned());
    report.seed = Some(Decimal(asked.seed));
}

/// A change as the simulation takes it; `None`: it is one of the pace.
pub(crate) fn change(change: &StageChange) -> Result<Option<Change>, String> {
    Ok(Some(match change {
        StageChange::Paused(_) => return Ok(None),
        StageChange::Concurrency(users) => Change::Concurrency(*users),
        StageChange::RouterMode(mode) => Change::RouterMode(*mode),
        StageChange::OverlapScoreWeight(weight) => Change::OverlapScoreWeight(*weight),
        StageChange::RouterTemperature(temperature) => Change::RouterTemperature(*temperature),
        StageChange::Break(name) => Change::Break(fault(name)?),
        StageChange::Mend(_) => Change::Mend,
        StageChange::Restart(Restart { seed, fault: with }) => {
            let fault = with.as_deref().map(fault).transpose()?;
            Change::Restart { seed: seed.0, fault }
        }
    }))
}

fn fault(name: &str) -> Result<Fault, String> {
    let found = Fault::ALL.into_iter().find(|fault| fault.name() == name);
    found.ok_or_else(|| "the simulator knows no such fault".to_owned())
}

/// The faults that can be in this deployment.
fn faults(asked: &Config) -> Vec<StageFault> {
    let can_be = |fault: &Fault| asked.with_fault(*fault).validate().is_ok();
    let of = |fault: Fault| StageFault {
        name: fault.name().to_owned(),
        summary: fault.summary().to_owned(),
        shows: shows(fault).to_owned(),
        needs_restart: fault.is_set_up(),
    };
    Fault::ALL.into_iter().filter(can_be).map(of).collect()
}

/// What the page should show of a fault.
const fn shows(fault: Fault) -> &'static str {
    match fault {
        Fault::BlockSize | Fault::BlockSizeOversize | Fault::BlockSizePartial => {
            "Finding block_size_mismatch, with both sizes; the tree stays empty"
        }
        Fault::BlockSizeCard => "Finding block_size_mismatch; full trees, and no prompt matches",
        Fault::NoEvents | Fault::NoEventsOne => {
            "Finding no_events; Workers: no blocks, although requests run there"
        }
        Fault::HotWorker => "Finding hot_worker; Workers: one has most in flight and queues",
        Fault::StarvedWorker => "Finding starved_worker; Workers: one has next to nothing in flight",
        Fault::Gap => "Finding event_gaps; Lost counts what is missing, Coverage falls",
        Fault::KillWorker => "Finding worker_gone; its blocks leave the tree",
        Fault::GhostWorker => "Finding ghost_worker: it left, and requests are still sent there",
        Fault::RouterRestart => "Finding cold_tree; KV hit rate falls for a minute",
        Fault::HashSeed => "Finding engine_hashes_differ",
        Fault::MixedPlanes => "Finding event_planes_mixed; one worker's blocks are never matched",
        Fault::UnknownParents => "Finding unknown_parents; blocks wait for a parent that does not come",
        Fault::UnknownRemovals => "Finding unknown_removals",
        Fault::Churn => "Finding churn; Memory: blocks leave before their prompt comes again",
        Fault::MemoryFull => "Finding memory_full; Memory: active blocks fill the cache, requests queue",
        Fault::Slow => "Finding prefill_slower; TTFT rises above its target",
        Fault::Replicas => "Finding replicas_disagree",
        Fault::Approximate => "Finding approximate_mode: the router predicts what workers hold",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_sim::Topology;

    #[test]
    fn every_fault_that_is_offered_can_be_caused() {
        for topology in Topology::ALL {
            let config = Config { topology, ..Config::default() };
            assert_eq!(report(&config).faults.len(), Fault::ALL.len(), "{}", topology.name());
        }
        let alone = report(&Config { workers: 1, ..Config::default() });
        assert!(alone.fault_named("kill-worker").is_none() && alone.fault_named("slow").is_some());
    }

    #[test]
    fn more_users_than_usual_stay_within_the_bounds() {
        assert_eq!(report(&Config::default()).concurrency, Steered { value: 120, min: 1, max: 200 });
        let many = report(&Config { concurrency: 500, ..Config::default() });
        assert_eq!(many.concurrency, Steered { value: 500, min: 1, max: 500 });
    }
}
