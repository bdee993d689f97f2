//! Holds what a server shows against what workers held in truth.

use std::collections::{BTreeMap, BTreeSet};

use radixscope_captures::{HeldBlocks, TrueBlock};
use radixscope_state::cluster::Cluster;
use serde_json::Value;

use crate::radixscope::Radixscope;
use crate::wait;

/// Waits until a server shows as many blocks of each worker as there are and says that it knows them all, and compares
/// everything. Gives what it then says of the cluster.
///
/// `gone` are workers that have left.
pub async fn agrees(server: &Radixscope, truth: &BTreeMap<u64, HeldBlocks>, gone: &[u64]) -> Value {
    let present: BTreeMap<u64, &HeldBlocks> =
        truth.iter().map(|(id, held)| (*id, held)).filter(|(id, _)| !gone.contains(id)).collect();
    let cluster = server
        .until_cluster("every worker is complete", |cluster| {
            let workers = cluster["workers"].as_array().expect("workers");
            let left: BTreeSet<u64> = workers.iter().filter(|one| !one["gone"].is_null()).map(id).collect();
            wait::expect(left == gone.iter().copied().collect(), || format!("gone: {left:?} of {gone:?}"))?;
            let mut there = workers.iter().filter(|one| one["gone"].is_null());
            wait::expect(there.clone().count() == present.len(), || cluster["workers"].to_string())?;
            there.try_for_each(|one| is_complete(one, &present))
        })
        .await;
    let viewer = server.viewer().await;
    viewer.agrees_with(server).await;
    viewer.with(|seen| {
        let state = seen.state.as_ref().expect("a state");
        for (&worker, held) in &present {
            let shown = shown(state, worker);
            assert_eq!(shown.len(), held.blocks.len(), "blocks of {worker}");
            assert!(shown == held.blocks, "blocks, parents or tokens of {worker} differ");
        }
    });
    let tree = server.json("/api/v1/tree?depth=10000&limit=100000").await;
    rows_agree(&tree, &present);
    cluster
}

fn id(worker: &Value) -> u64 {
    worker["worker_id"].as_str().and_then(|id| id.parse().ok()).expect("an id")
}

fn is_complete(worker: &Value, present: &BTreeMap<u64, &HeldBlocks>) -> Result<(), String> {
    let blocks = present.get(&id(worker)).map(|held| held.blocks.len());
    let is_so = worker["knowledge"]["state"] == "complete"
        && worker["blocks"].as_u64().map(|blocks| blocks as usize) == blocks
        && worker["unattached_blocks"] == 0;
    wait::expect(is_so, || format!("{blocks:?} blocks expected: {worker}"))
}

/// What a state says that a worker holds, in order.
fn shown(state: &Cluster, worker: u64) -> Vec<TrueBlock> {
    let ix = state.worker_ix(radixscope_model::id::Worker::new(worker, 0)).expect("it is there");
    let held = state.tree_of(ix).held_by(ix.slot()).into_iter();
    let mut held: Vec<TrueBlock> = held
        .map(|(parent, block, _)| (block.block_hash.0, parent.map(|parent| parent.0), block.tokens_hash.0))
        .collect();
    held.sort_unstable();
    held
}

/// Each row is a run of blocks below the end of the row that it hangs on, in the truth of each worker that it names; together
/// they are all blocks.
fn rows_agree(tree: &Value, present: &BTreeMap<u64, &HeldBlocks>) {
    let blocks: BTreeMap<u64, BTreeMap<u64, (Option<u64>, u64)>> = present
        .iter()
        .map(|(&worker, held)| {
            (worker, held.blocks.iter().map(|&(hash, parent, tokens)| (hash, (parent, tokens))))
        })
        .map(|(worker, blocks)| (worker, blocks.collect()))
        .collect();
    let number = |row: &Value, name: &str| -> u64 {
        row[name].as_str().and_then(|hash| hash.parse().ok()).unwrap_or_else(|| panic!("no {name} in {row}"))
    };
    assert_eq!(tree["truncated"], false);
    let mut ends: Vec<u64> = Vec::new();
    let mut counted: BTreeMap<u64, usize> = BTreeMap::new();
    for row in tree["rows"].as_array().expect("rows") {
        ends.truncate(row["level"].as_u64().expect("a level") as usize);
        let (first, tokens) = (number(row, "block_hash"), number(row, "tokens_hash"));
        let (last, len) = (number(row, "last_block_hash"), row["len"].as_u64().expect("a length"));
        for worker in row["workers"].as_array().expect("workers").iter().map(id) {
            let truth = &blocks[&worker];
            let start = (1..len).fold(last, |hash, _| truth[&hash].0.expect("a parent"));
            assert_eq!((start, truth[&first]), (first, (ends.last().copied(), tokens)), "{worker}: {row}");
            *counted.entry(worker).or_default() += len as usize;
        }
        ends.push(last);
    }
    let expected = present.iter().map(|(&worker, held)| (worker, held.blocks.len())).collect();
    assert_eq!(counted, expected, "blocks of all rows");
}

/// How long what is wrong has to show until it is found, in milliseconds, of all that losses and blocks that are not known
/// could raise (`docs/findings.md`), and a look more.
const FOUND_WITHIN_MS: u64 = 6_000;

/// Codes of everything that was ever found, once whatever showed until now would have been found.
pub async fn found(server: &Radixscope) -> BTreeSet<String> {
    let at_ms = |cluster: &Value| cluster["at_ms"].as_u64().expect("a time");
    let over_ms = at_ms(&server.cluster().await) + FOUND_WITHIN_MS;
    server
        .until_cluster("everything is found", |cluster| {
            wait::expect(at_ms(cluster) >= over_ms, || "not yet".to_owned())
        })
        .await;
    let response = server.json("/api/v1/findings?state=all").await;
    let findings = response["findings"].as_array().expect("findings").iter();
    findings.map(|finding| finding["code"].as_str().expect("a code").to_owned()).collect()
}
