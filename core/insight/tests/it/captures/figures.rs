//! Figures of each capture, computed from the raw messages by other means, against the folded state.

use radixscope_state::cluster::{Cluster, SnapshotReader};
use serde_json::Value;

use crate::captures::replay::fold;

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
    let sum = |f: fn(&radixscope_state::cluster::WorkerState) -> u64| -> u64 {
        cluster.workers().iter().map(f).sum()
    };
    assert_eq!(sum(|w| w.stored_total), want.stored, "{name}: stored");
    assert_eq!(sum(|w| w.removed_total), want.removed, "{name}: removed");
    assert_eq!(sum(|w| w.unknown_removed_total), want.unknown_removed, "{name}: unknown removals");
    assert_eq!(sum(|w| w.empty_stores_total), want.empty_stores, "{name}: empty stores");
    let totals = cluster.totals();
    assert_eq!((totals.nodes, totals.shared), (want.nodes, want.shared), "{name}: tree");
    let decided = cluster.decisions().totals();
    let decisions = (decided.count, decided.isl_blocks, decided.overlap_blocks);
    assert_eq!(decisions, want.decisions, "{name}: decisions");
    assert_eq!(cluster.missed_total(), 0, "{name}: nothing was lost");
    assert_eq!(cluster.rejected_total(), 0, "{name}: everything was understood");
    assert_eq!(cluster.digest(), far.digest(), "{name}: the same after the frames' codec");
    assert_eq!(cluster.digest(), through_snapshot(&cluster).digest(), "{name}: the same from a snapshot");
}

pub(crate) fn through_snapshot(cluster: &Cluster) -> Cluster {
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

/// What `expected.jsonl` says of a capture, counted independently of this code.
fn expected(name: &str) -> Value {
    let text = std::fs::read_to_string(radixscope_captures::fixtures().join("expected.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter_map(|mut line| Some(line.get_mut(name)?.take()))
        .next()
        .unwrap_or_else(|| panic!("no {name}"))
}

fn as_expected(name: &str) {
    let want = expected(name);
    let workers = want["workers"].as_array().unwrap();
    let (cluster, far) = fold(name);
    let order = cluster.workers_by_id();
    assert_eq!(order.len(), workers.len(), "{name}: workers");
    for (ix, want) in order.into_iter().zip(workers) {
        let state = cluster.worker(ix).unwrap();
        let count = |field: &str| want.get(field).map_or(0, |count| count.as_u64().unwrap());
        assert_eq!(state.id.id.to_string(), want["worker_id"].as_str().unwrap(), "{name}");
        assert_eq!(cluster.blocks(ix), Some(count("blocks")), "{name}: blocks of {}", state.id);
        for (what, is, should) in [
            ("stored events", state.store_events_total, count("stored_events")),
            ("stored blocks", state.stored_total, count("stored_blocks")),
            ("removed events", state.remove_events_total, count("removed_events")),
            ("removed blocks", state.removed_total, count("removed_blocks")),
            ("unknown removals", state.unknown_removed_total, count("unknown_removals")),
            ("empty stores", state.empty_stores_total, count("empty_stores")),
            ("unknown parents", state.unknown_parents_total, count("unknown_parent")),
        ] {
            assert_eq!(is, should, "{name}: {what} of {}", state.id);
        }
    }
    let totals = cluster.totals();
    for (what, is) in [("nodes", totals.nodes), ("shared", totals.shared), ("resident", totals.resident)] {
        assert_eq!(Some(is), want[what].as_u64(), "{name}: {what}");
    }
    let decided = cluster.decisions().totals();
    // `null`: NATS does not tell it.
    for (what, is) in [
        ("decisions", decided.count),
        ("isl_blocks", decided.isl_blocks),
        ("overlap_blocks", decided.overlap_blocks),
    ] {
        assert!(
            want[what].is_null() || want[what].as_u64() == Some(is),
            "{name}: {what} {is}, not {}",
            want[what]
        );
    }
    assert_eq!((cluster.missed_total(), cluster.rejected_total()), (0, 0), "{name}: lost, not understood");
    assert_eq!(cluster.digest(), far.digest(), "{name}: the same after the frames' codec");
    assert_eq!(cluster.digest(), through_snapshot(&cluster).digest(), "{name}: the same from a snapshot");
}

macro_rules! as_expected {
    ($($test:ident $capture:literal)*) => {$(
        #[test]
        fn $test() {
            as_expected($capture);
        }
    )*};
}

as_expected! {
    healthy_of_0_8_1 "0.8.1.post3-healthy"
    healthy_of_1_0_2 "1.0.2-healthy"
    healthy_of_1_1_1 "1.1.1-healthy"
    mismatch_of_1_1_1 "1.1.1-mismatch"
    healthy_of_1_2_1 "1.2.1-healthy"
    healthy_of_1_3_1 "1.3.1-healthy"
    mismatch_of_1_3_1 "1.3.1-mismatch"
    healthy_of_1_4_2 "1.4.2-healthy"
    replicas_of_1_4_2 "1.4.2-replicas"
    healthy_of_1_5_1 "1.5.1-healthy"
    mismatch_of_1_5_1 "1.5.1-mismatch"
    healthy_of_1_7 "1.7.0.dev20261026-healthy"
    mismatch_of_1_7 "1.7.0.dev20261026-mismatch"
    replicas_of_1_7 "1.7.0.dev20261026-replicas"
    restart_of_1_7 "1.7.0.dev20261026-restart"
}
