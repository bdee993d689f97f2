//! The simulated cluster through the decoders and the fold of a real one: nothing may be lost, rejected or
//! misread on the way, on either event line.

use std::collections::HashMap;

use radixscope_model::id::{BlockHash, Millis, PoolIx, Worker};
use radixscope_router::RouterSettings;
use radixscope_sim::{Config, EventTransport, Simulation};
use radixscope_state::cluster::Cluster;

use crate::simulated::{Observer, START};

fn observe(config: Config, seconds: u64) -> (Simulation, Cluster) {
    let mut simulation = Simulation::new(config, START).expect("valid");
    let mut observer = Observer::new();
    let until = Millis(START.0 + seconds * 1_000);
    simulation.run_until(until, &mut |message| observer.handle(&message));
    observer.flush(until);
    (simulation, observer.cluster)
}

fn assert_same(simulation: &Simulation, cluster: &Cluster) {
    assert_eq!((cluster.missed_total(), cluster.rejected_total()), (0, 0));
    assert_eq!(cluster.workers().len(), 3);
    let mut holders: HashMap<BlockHash, u32> = HashMap::new();
    for number in 0..3 {
        let ix = cluster.worker_ix(Worker::new(simulation.worker_id(number), 0)).expect("a known worker");
        let state = cluster.worker(ix).expect("a known worker");
        assert_eq!(state.capacity_blocks, Some(u64::from(simulation.config().blocks_per_worker)));
        assert_eq!(state.block_size_tokens, Some(simulation.config().block_size_tokens));
        let report = simulation.report();
        assert_eq!(state.stored_total, report.stored_blocks_total[usize::from(number)]);
        assert_eq!(state.removed_total, report.evicted_blocks_total[usize::from(number)]);
        let faults = (state.unknown_removed_total, state.unknown_parents_total, state.empty_stores_total);
        assert_eq!(faults, (0, 0, 0));
        let mut held = 0;
        for hash in simulation.cached_blocks(number) {
            let node =
                cluster.tree(PoolIx(0)).find(ix.slot(), hash).expect("a cached block is in the mirror");
            assert_eq!(cluster.tree(PoolIx(0)).block_hash(node), hash);
            *holders.entry(hash).or_default() += 1;
            held += 1;
        }
        assert_eq!(cluster.blocks(ix), Some(held), "and nothing else");
        let used = i64::from(simulation.used_blocks(number));
        let reported = state.engine_used_blocks.expect("the engine spoke") as i64;
        assert!((used - reported).abs() < 60, "the last report is at most 100 ms old: {reported} of {used}");
    }
    let totals = cluster.tree(PoolIx(0)).totals();
    assert_eq!(totals.nodes, holders.len() as u64);
    assert_eq!(totals.shared, holders.values().filter(|&&n| n > 1).count() as u64);
}

#[test]
fn the_mirror_equals_the_engines_caches() {
    for events in [EventTransport::JetStream, EventTransport::LocalIndexer] {
        let config = Config { events, ..Config::default() };
        let (simulation, cluster) = observe(config, 600);
        assert!(simulation.report().evicted_blocks_total.iter().all(|&n| n > 0), "the caches are full");
        assert_same(&simulation, &cluster);
        let totals = cluster.decisions().totals();
        assert_eq!(totals.count, simulation.report().routed_total);
        let last = cluster.decisions().newest_first().next().expect("decisions were made");
        let record = simulation.report().decisions.back().expect("decisions were made");
        assert_eq!(last.decision.isl_blocks, Some(u64::from(record.isl_tokens.div_ceil(32))));
        let chosen = &record.candidates[usize::from(record.worker)];
        assert_eq!(last.decision.overlap_blocks, Some(u64::from(chosen.candidate.overlap_blocks)));
    }
}

#[test]
fn round_robin_is_seen_without_decisions() {
    let config = Config { router: RouterSettings::round_robin(), ..Config::default() };
    let (simulation, cluster) = observe(config, 120);
    assert_same(&simulation, &cluster);
    assert_eq!(cluster.decisions().totals().count, 0);
    assert!(cluster.workers().iter().all(|w| w.router_loads.is_empty()));
}
