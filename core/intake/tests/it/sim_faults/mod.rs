//! Every fault of the simulated cluster as an observer sees it: through the decoders and the fold that hear a real one.
//! The signatures are those that were measured on a real Dynamo 0.9.1 (reference §9.1).

mod block_size;
mod events;
mod lifecycle;
mod load;
mod observer;

use radixscope_sim::{Config, ConfigError, Fault, FaultPlan};

use observer::{run, small};

#[test]
fn a_healthy_cluster_complains_of_nothing() {
    let seen = run(small(None), 60);
    assert_eq!(seen.complaints(), 0);
    assert_eq!((seen.cluster.missed_total(), seen.cluster.rejected_total()), (0, 0));
    assert!(seen.sum(|w| w.stored_total) > 1_000 && seen.sum(|w| w.removed_total) > 1_000);
    let faults = |w: &radixscope_state::cluster::WorkerState| {
        w.empty_stores_total + w.unknown_parents_total + w.unknown_removed_total
    };
    assert_eq!(seen.sum(faults), 0);
    assert!(seen.overlap() > 0.7 && (seen.overlap() - seen.engine_hits()).abs() < 0.05);
}

#[test]
fn names_are_distinguished_and_serialised_alike() {
    let mut names: Vec<&str> = Fault::ALL.iter().map(|fault| fault.name()).collect();
    for fault in Fault::ALL {
        assert_eq!(serde_json::to_value(fault).expect("a name"), fault.name());
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Fault::ALL.len());
}

#[test]
fn what_cannot_go_wrong_is_refused_with_the_reason() {
    let refused = |workers, fault, after_ms| {
        let fault = Some(FaultPlan { fault, after_ms });
        Config { workers, fault, ..Config::default() }.validate().expect_err("refused")
    };
    assert_eq!(refused(1, Fault::HotWorker, 0), ConfigError::FaultWorkers { name: "hot-worker" });
    assert_eq!(refused(3, Fault::BlockSize, 1), ConfigError::FaultLater { name: "block-size" });
    let early = ConfigError::FaultEarly { name: "kill-worker", after_ms: 9_999, least_ms: 10_000 };
    assert_eq!(refused(3, Fault::KillWorker, 9_999), early);
    assert_eq!(refused(0, Fault::NoEvents, 0), ConfigError::Workers(0));
    let halves = Config { block_size_tokens: 3, ..Config::default() };
    let fault = Some(FaultPlan { fault: Fault::BlockSizePartial, after_ms: 0 });
    assert_eq!(Config { fault, ..halves }.validate(), Err(ConfigError::BlockSize(1)));
}
