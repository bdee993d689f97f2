//! Moments of the past: what the server retains of them, folded here, and what the page shows.

use crate::browser::Page;
use crate::figures::number;
use crate::radixscope::Radixscope;
use crate::scripted_workers::ScriptedWorkers;
use crate::wait;
use radixscope_model::frame::Frame;
use radixscope_model::id::Millis;
use radixscope_state::cluster::{Cluster, SnapshotReader};

/// The worker that stores and evicts.
pub const WORKER: u64 = 1;

/// Blocks are stored; waits until the tree has `nodes`, and gives the server's time then.
pub async fn store(stage: &mut ScriptedWorkers, blocks: impl IntoIterator<Item = u64>, nodes: u64) -> u64 {
    stage.store(WORKER, blocks).await;
    time_of(stage, nodes).await
}

/// The same of blocks that are evicted.
pub async fn remove(stage: &mut ScriptedWorkers, blocks: impl IntoIterator<Item = u64>, nodes: u64) -> u64 {
    stage.remove(WORKER, blocks).await;
    time_of(stage, nodes).await
}

/// Waits until the tree has `nodes` and the second is over; gives the time then.
pub async fn time_of(stage: &ScriptedWorkers, nodes: u64) -> u64 {
    let at = number(&stage.until_nodes(nodes).await, "at_ms");
    // Published it is at the latest when a row of the timeline later says what its second brought.
    wait::until("the second is over", async || {
        let rows = stage.server.json(&format!("/history?after_ms={at}")).await;
        rows["rows"].get(1).map(|row| number(row, "at_ms")).ok_or_else(|| "not yet".to_owned())
    })
    .await
}

/// The state at a moment: what the server keeps, folded here. `None`: that moment is not kept.
pub async fn state_at(server: &Radixscope, at: u64) -> Cluster {
    let response = server.get(&format!("/history/segment?at_ms={at}")).await;
    assert_eq!(response.status, 200, "{:?}", response.body);
    let (mut rest, mut reader, mut cluster) =
        (&response.body[..], SnapshotReader::default(), Cluster::default());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (frame, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        rest = after;
        match Frame::decode(frame).expect("a frame of ours") {
            Frame::Snapshot { bytes, .. } => {
                cluster = reader.part(bytes.0).expect("a sound keyframe").unwrap_or(cluster);
            }
            Frame::Batch(batch) if batch.at_ms <= Millis(at) => {
                for entry in batch.entries() {
                    let (seq, entry) = entry.expect("a record of ours");
                    cluster.fold(seq, &entry);
                }
            }
            _ => {}
        }
    }
    cluster
}

/// Waits until a moment stands, and checks that page and history agree on it; gives the moment.
pub async fn agrees_on_the_past(page: &Page, server: &Radixscope) -> u64 {
    let (at, shown) = page
        .until("a moment stands", async |page| {
            let shown = page.eval("({...document.body.dataset})").await;
            let at = page.address().await.fragment().and_then(|f| f.strip_prefix("t=")?.parse::<u64>().ok());
            let is_standing = shown["moment"] == "paused" && shown["seq"] == shown["digestSeq"];
            at.filter(|at| is_standing && shown["at"].as_str() == Some(&at.to_string()))
                .map(|at| (at, shown.clone()))
                .ok_or_else(|| shown.to_string())
        })
        .await;
    let past = state_at(server, at).await;
    assert_eq!(shown["seq"], past.seq().to_string(), "at {at}");
    assert_eq!(shown["digest"], past.digest().to_string(), "at {at}");
    at
}

/// Waits until the page shows the present, and agrees with the server on it.
pub async fn is_live(page: &Page, server: &Radixscope) {
    page.until_true("it is live", "document.body.dataset.moment === 'live'").await;
    page.agrees_with(server).await;
    assert_eq!(page.text("connection").await.as_deref(), Some("Live"));
    assert_eq!(page.address().await.fragment().filter(|fragment| !fragment.is_empty()), None);
}

/// Waits until the page shows so many distinct blocks.
pub async fn until_nodes(page: &Page, nodes: u64) {
    page.until("the tree has so many blocks", async |page| {
        let text = page.text("nodes").await.unwrap_or_default();
        wait::expect(text == nodes.to_string(), || format!("{text}, not {nodes}"))
    })
    .await;
}

/// Opens the page and waits until it knows what is kept.
pub async fn open(page: &Page, server: &Radixscope, path: &str) {
    page.open(&server.url(path)).await;
    page.until_true(
        "the timeline is there",
        "!!document.querySelector('[data-testid=timeline-says]')?.textContent",
    )
    .await;
}
