//! Figures of each capture, computed from the raw messages by other means, against the folded state.

use radixscope_core::cluster::{Cluster, SnapshotReader};

use crate::replay::fold;

struct Figures {
    blocks: Vec<Option<u64>>,
    stored: u64,
    removed: u64,
    unknown_removed: u64,
    empty_stores: u64,
    nodes: u64,
    shared: u64,
    /// Decisions, Σ prompt blocks, Σ overlap blocks.
    decisions: (u64, u64, u64),
}

fn held(blocks: &[u64]) -> Vec<Option<u64>> {
    blocks.iter().copied().map(Some).collect()
}

fn check(name: &str, want: &Figures) {
    let (cluster, far) = fold(name);
    let order = cluster.workers_by_id();
    let blocks: Vec<_> = order.iter().map(|&w| cluster.blocks(w)).collect();
    assert_eq!(blocks, want.blocks, "{name}: blocks per worker");
    let sum = |f: fn(&radixscope_core::cluster::WorkerState) -> u64| -> u64 {
        cluster.workers().iter().map(f).sum()
    };
    assert_eq!(sum(|w| w.stored_total), want.stored, "{name}: stored");
    assert_eq!(sum(|w| w.removed_total), want.removed, "{name}: removed");
    assert_eq!(sum(|w| w.unknown_removed_total), want.unknown_removed, "{name}: unknown removals");
    assert_eq!(sum(|w| w.empty_stores_total), want.empty_stores, "{name}: empty stores");
    let totals = cluster.tree().totals();
    assert_eq!((totals.nodes, totals.shared), (want.nodes, want.shared), "{name}: tree");
    let decided = cluster.decisions().totals();
    let decisions = (decided.count, decided.isl_blocks, decided.overlap_blocks);
    assert_eq!(decisions, want.decisions, "{name}: decisions");
    assert_eq!(cluster.missed_total(), 0, "{name}: nothing was lost");
    assert_eq!(cluster.rejected_total(), 0, "{name}: everything was understood");
    assert_eq!(cluster.digest(), far.digest(), "{name}: the same after the frames' codec");
    assert_eq!(cluster.digest(), through_snapshot(&cluster).digest(), "{name}: the same from a snapshot");
}

fn through_snapshot(cluster: &Cluster) -> Cluster {
    let mut parts = Vec::new();
    cluster.snapshot(|part| parts.push(part)).unwrap();
    let mut reader = SnapshotReader::default();
    parts.iter().find_map(|part| reader.part(part).unwrap()).expect("the last part completes the state")
}

fn healthy() -> Figures {
    Figures {
        blocks: held(&[1599, 1598, 1599]),
        stored: 15_624,
        removed: 10_828,
        unknown_removed: 0,
        empty_stores: 0,
        nodes: 3059,
        shared: 1737,
        decisions: (278, 71_721, 57_155),
    }
}

#[test]
fn jetstream_line_of_0_9_1() {
    check("0.9.1-healthy", &healthy());
}

#[test]
fn relay_path_of_0_9_1() {
    let blocks = held(&[1600, 1600, 1600]);
    let decisions = (283, 73_050, 61_427);
    let (stored, removed, nodes, shared) = (12_806, 8006, 3432, 1239);
    check("0.9.1-healthy-vllm", &Figures { blocks, stored, removed, nodes, shared, decisions, ..healthy() });
}

#[test]
fn local_indexer_line_of_0_9_1() {
    let blocks = held(&[1599, 1599, 1598]);
    let decisions = (239, 61_335, 49_834);
    let (stored, removed, nodes, shared) = (12_397, 7601, 3248, 1548);
    check("0.9.1-localindexer", &Figures { blocks, stored, removed, nodes, shared, decisions, ..healthy() });
}

#[test]
fn block_size_mismatch_of_0_9_1_stores_nothing() {
    let figures = Figures {
        blocks: held(&[0, 0, 0]),
        stored: 0,
        removed: 8915,
        unknown_removed: 8915,
        empty_stores: 928,
        nodes: 0,
        shared: 0,
        decisions: (276, 71_192, 0),
    };
    check("0.9.1-mismatch", &figures);
}

#[test]
fn workers_without_events_are_known_from_their_loads_and_their_blocks_are_unknown() {
    let figures = Figures {
        blocks: vec![None; 3],
        stored: 0,
        removed: 0,
        unknown_removed: 0,
        empty_stores: 0,
        nodes: 0,
        shared: 0,
        decisions: (156, 39_357, 0),
    };
    check("0.9.1-no-events", &figures);
}

#[test]
fn a_restarted_worker_of_0_9_1_is_a_fourth_one() {
    let blocks = held(&[1599, 1597, 1599, 1484]);
    let decisions = (282, 72_730, 58_747);
    let (stored, removed, nodes, shared) = (14_978, 8699, 3889, 1676);
    check(
        "0.9.1-worker-restart",
        &Figures { blocks, stored, removed, nodes, shared, decisions, ..healthy() },
    );
}

#[test]
fn endpoint_scope_and_batches_of_1_6_1() {
    let blocks = held(&[1598, 1599, 1599]);
    let decisions = (0, 0, 0);
    let (stored, removed, nodes, shared) = (13_892, 9096, 3190, 1269);
    let figures = Figures { blocks, stored, removed, nodes, shared, decisions, ..healthy() };
    check("1.6.1-healthy", &figures);
}

#[test]
fn router_restart_of_1_6_1_changes_nothing_for_the_workers() {
    let blocks = held(&[1599, 1599, 1599]);
    let (stored, removed, nodes, shared) = (11_178, 6381, 3008, 1316);
    let figures = Figures { blocks, stored, removed, nodes, shared, decisions: (0, 0, 0), ..healthy() };
    check("1.6.1-router-restart", &figures);
}

#[test]
fn block_size_mismatch_of_1_6_1_stores_nothing() {
    let figures = Figures {
        blocks: held(&[0, 0, 0]),
        stored: 0,
        removed: 7013,
        unknown_removed: 7013,
        empty_stores: 762,
        nodes: 0,
        shared: 0,
        decisions: (0, 0, 0),
    };
    check("1.6.1-mismatch", &figures);
}
