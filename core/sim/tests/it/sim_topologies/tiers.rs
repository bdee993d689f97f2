//! Host memory: a second set of holders, never counted on the device.

use radixscope_sim::Topology;

use crate::sim_topologies::seen::{Folded, run, small};

#[test]
fn a_block_in_host_memory_is_never_counted_on_the_device() {
    let (simulation, messages) = run(small(Topology::Tiers), 200);
    let seen = Folded::of(&messages);
    for held in seen.held.values() {
        assert!(held.most_device <= 900, "the device holds what fits");
        assert!(held.most_host <= 2_700, "and host memory three times as much");
        let only_on_host = held.host.difference(&held.device).count();
        assert!(only_on_host > 500, "host memory holds what left the device: {only_on_host}");
    }
    for worker in 0..simulation.workers() {
        let id = simulation.worker_id(worker);
        let used = seen.loads.iter().filter(|load| load.worker == id).map(|load| load.used_blocks);
        assert!(used.max().is_some_and(|most| most <= 900), "load is that of the device");
        assert!(simulation.cached_blocks(worker).count() <= 900);
    }
}

#[test]
fn full_host_memory_drops_what_was_used_least() {
    let (_, messages) = run(small(Topology::Tiers), 350);
    let seen = Folded::of(&messages);
    for held in seen.held.values() {
        assert!(held.host_removed > 100, "{}", held.host_removed);
        assert!(held.most_host > 2_400 && held.most_host <= 2_700, "{}", held.most_host);
    }
}

#[test]
fn a_prompt_in_host_memory_is_not_computed_again() {
    let cached = |topology| {
        let mut config = small(topology);
        // Users of workers with host memory are given more and shorter starters; here the others get them, too.
        if topology == Topology::AggregatedV0_9 {
            config.workload.starters *= 15;
            config.workload.starter_tokens = (200, 300);
        }
        let (simulation, _) = run(config, 300);
        let requests = &simulation.report().requests;
        let sum = |of: fn(&radixscope_sim::RequestRecord) -> u32| requests.iter().map(of).sum::<u32>();
        f64::from(sum(|r| r.cached_tokens)) / f64::from(sum(|r| r.isl_tokens))
    };
    let (without, with) = (cached(Topology::AggregatedV0_9), cached(Topology::Tiers));
    assert!(with > without + 0.02, "{without} {with}");
}
