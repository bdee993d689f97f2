//! A generated tree reaches a server as it was generated.

use radixscope_bench::synthetic_tree::{Change, SUBJECT, SyntheticTree, Wire, worker_id};
use radixscope_tests::figures::{by_id, number, sum};
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;

#[tokio::test]
async fn a_synthetic_tree_is_received_to_the_last_block_and_goes_on() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let client = nats.client().await;
    let (mut tree, mut wire) = (SyntheticTree::new(20_000, 3, 1), Wire::new(3));
    let (mut stored, mut removed, mut messages) = (0, 0, 0);
    let events: Vec<_> = tree.by_ref().collect();
    let live: Vec<_> = std::iter::repeat_with(|| tree.live()).take(2_000).collect();
    for event in events.into_iter().chain(live) {
        match &event.change {
            Change::Stored { blocks, .. } => stored += blocks.len() as u64,
            Change::Removed(hashes) => removed += hashes.len() as u64,
        }
        if let Some(message) = wire.take(event) {
            client.publish(SUBJECT, message.into()).await.unwrap();
            messages += 1;
        }
    }
    for message in wire.flush() {
        client.publish(SUBJECT, message.into()).await.unwrap();
        messages += 1;
    }
    client.flush().await.unwrap();
    let cluster = server.until_quiet(messages).await;
    let workers = cluster["workers"].as_array().expect("workers");
    assert_eq!((sum(workers, "stored_total"), sum(workers, "missed")), (stored, 0));
    let ids: Vec<_> = by_id(workers).iter().map(|w| w["worker_id"].clone()).collect();
    assert_eq!(ids, (0..3).map(|worker| worker_id(worker).to_string()).collect::<Vec<_>>());
    let held = (number(&cluster["tree"], "resident"), number(&cluster["tree"], "unattached"));
    assert_eq!(held, (stored - removed, 0), "{cluster}");
}
