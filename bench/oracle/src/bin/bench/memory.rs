//! Memory per resident block, counted by the allocator around building each tree from the same events; and how large
//! and how quick the tree's bytes are.

use std::time::Instant;

use dynamo_kv_router::RadixTree;
use radixscope_model::id::Slot;
use radixscope_oracle::{Event, ours, theirs};
use radixscope_state::tree::{Tree, TreePart, TreeReader};
use serde::Serialize;

use crate::counting::live_bytes;

/// Memory of one set of events.
#[derive(Serialize)]
pub(crate) struct Memory {
    pub(crate) what: String,
    /// Distinct blocks.
    pub(crate) nodes: u64,
    /// Sum over workers.
    pub(crate) resident: u64,
    pub(crate) ours_bytes: usize,
    /// What `Tree::heap_bytes` says.
    pub(crate) ours_heap_bytes: usize,
    pub(crate) theirs_bytes: usize,
    pub(crate) ours_per_block: f64,
    pub(crate) theirs_per_block: f64,
    /// Ours as a share of theirs.
    pub(crate) share: f64,
}

/// The tree as bytes.
#[derive(Serialize)]
pub(crate) struct SnapshotCost {
    pub(crate) what: String,
    pub(crate) nodes: u64,
    pub(crate) bytes: usize,
    pub(crate) parts: usize,
    pub(crate) encode_ms: f64,
    pub(crate) restore_ms: f64,
}

pub(crate) fn measure(what: &str, events: &[Event]) -> Memory {
    let (ours, ours_bytes) = live_bytes(|| {
        let mut tree = Tree::with_limit(u32::MAX >> 2);
        events.iter().for_each(|event| ours::apply(&mut tree, event));
        tree
    });
    let (theirs, theirs_bytes) = live_bytes(|| {
        let mut tree = RadixTree::new();
        for (id, event) in (0..).zip(events) {
            let _ = tree.apply_event(theirs::router_event(event, id));
        }
        tree
    });
    let totals = ours.totals();
    // Where chains have holes, theirs has forgotten blocks: each is measured by what it holds itself.
    let per_block = |bytes: usize, blocks: u64| bytes as f64 / blocks.max(1) as f64;
    let ours_per_block = per_block(ours_bytes, totals.resident);
    let theirs_per_block = per_block(theirs_bytes, theirs.current_size() as u64);
    Memory {
        what: what.to_owned(),
        nodes: totals.nodes,
        resident: totals.resident,
        ours_bytes,
        ours_heap_bytes: ours.heap_bytes(),
        theirs_bytes,
        ours_per_block,
        theirs_per_block,
        share: ours_per_block / theirs_per_block,
    }
}

pub(crate) fn snapshot(what: &str, events: &[Event]) -> anyhow::Result<SnapshotCost> {
    let mut tree = Tree::with_limit(u32::MAX >> 2);
    events.iter().for_each(|event| ours::apply(&mut tree, event));
    let start = Instant::now();
    let mut parts: Vec<Vec<u8>> = Vec::new();
    tree.snapshot(|part| -> Result<(), postcard::Error> {
        parts.push(postcard::to_allocvec(part)?);
        Ok(())
    })?;
    let encode_ms = start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let mut reader = TreeReader::new(tree.limit());
    for bytes in &parts {
        let part: TreePart = postcard::from_bytes(bytes)?;
        reader.part(&part, 0)?;
    }
    let again = reader.finish(std::iter::empty::<(Slot, u64)>())?;
    let restore_ms = start.elapsed().as_secs_f64() * 1e3;
    anyhow::ensure!(again.digest() == tree.digest(), "the restored tree differs");
    Ok(SnapshotCost {
        what: what.to_owned(),
        nodes: tree.totals().nodes,
        bytes: parts.iter().map(Vec::len).sum(),
        parts: parts.len(),
        encode_ms,
        restore_ms,
    })
}
