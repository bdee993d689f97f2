//! What takes minutes, and runs before an issue is resolved.

use radixscope_sim::{Fault, Topology};

use crate::consistency::compare;

fn compare_all(topology: Topology) {
    let compared = compare(topology, Fault::ALL);
    assert!(compared > 10, "{compared} faults of {topology:?}");
}

#[test]
fn exhaustive_figures_agree_in_every_place_aggregated() {
    compare_all(Topology::AggregatedV0_9);
}

#[test]
fn exhaustive_figures_agree_in_every_place_disaggregated() {
    compare_all(Topology::Disaggregated);
}

#[test]
fn exhaustive_figures_agree_in_every_place_with_two_models() {
    compare_all(Topology::TwoModels);
}

#[test]
fn exhaustive_figures_agree_in_every_place_with_tiers() {
    compare_all(Topology::Tiers);
}
