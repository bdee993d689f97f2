//! The tree's own panel: wheel, hand and fingers move the camera as computed, the keyboard alone reaches everything, and
//! the picture stays under the reader's eyes while blocks arrive.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::Message;
use radixscope_tests::nats::Nats;
use radixscope_tests::panels::tree::{CAPTURE, close, open, place, region, until_region};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::replay::{publish_one, replayed};
use radixscope_tests::wait;
use serde_json::{Value, json};

#[tokio::test]
async fn two_fingers_spread_the_tree_and_one_moves_it() {
    let (_nats, server, _) = replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        page.devtools("Emulation.setTouchEmulationEnabled", json!({"enabled": true, "maxTouchPoints": 2}))
            .await;
        let all = open(page, &server, "/?view=tree").await;
        let (x, y) = place(page, 0.5, 0.5).await;
        page.fingers("touchStart", &[(x - 50.0, y), (x + 50.0, y)]).await;
        page.fingers("touchMove", &[(x - 100.0, y), (x + 100.0, y)]).await;
        let spread = until_region(page, "twice as far apart is twice as close", |r| {
            close(r.across(), all.x1 / 2.0, all.x1)
        })
        .await;
        page.fingers("touchEnd", &[]).await;
        page.fingers("touchStart", &[(x, y)]).await;
        page.fingers("touchMove", &[(x + 80.0, y)]).await;
        page.fingers("touchEnd", &[]).await;
        let moved = until_region(page, "one finger moves it", |r| r.x0 < spread.x0).await;
        assert!(close(moved.across(), spread.across(), all.x1));
    })
    .await;
}

/// An event of Dynamo 0.9 on NATS: `worker` stored a prompt's blocks with these hashes.
async fn store(client: &async_nats::Client, worker: u64, event: u64, blocks: impl IntoIterator<Item = u64>) {
    let blocks: Vec<Value> = blocks
        .into_iter()
        .map(|hash| json!({"block_hash": hash, "tokens_hash": hash, "mm_extra_info": null}))
        .collect();
    let payload = json!({
        "worker_id": worker,
        "event": {"event_id": event, "data": {"stored": {"parent_hash": null, "blocks": blocks}}, "dp_rank": 0},
    });
    let payload = radixscope_tests::envelope::envelope(worker, event, "kv-events", &payload);
    let subject = "namespace.dynamo.component.backend.kv-events".to_owned();
    publish_one(client, &Message { at_s: 0.0, subject, reply: None, payload: payload.into() }).await;
    client.flush().await.expect("NATS takes what it is sent");
}

#[tokio::test]
async fn the_picture_stays_under_the_readers_eyes_while_blocks_arrive() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let client = nats.client().await;
    // In the fixed order prompts stand by their first hash.
    for (event, from) in [10_000, 20_000, 30_000].into_iter().enumerate() {
        store(&client, 7, event as u64, from..from + 100).await;
    }
    store(&client, 8, 0, 20_000..20_050).await;
    server
        .until_cluster("it has the blocks", |c| {
            wait::expect(c["tree"]["nodes"] == 300, || c["tree"].to_string())
        })
        .await;
    with_page(async |page| {
        page.open(&server.url("/?view=tree&order=stable")).await;
        page.until("three prompts are shown", async |page| {
            let r = region(page).await?;
            wait::expect(r.x1 == 300.0, || format!("{r:?}"))
        })
        .await;
        let (x, y) = place(page, 0.5, 0.1).await;
        for _ in 0..2 {
            page.wheel((x, y), (0.0, -330.0), 1).await;
        }
        let before = until_region(page, "it is close", |r| r.across() < 100.0).await;
        page.hover(x, y).await;
        let hash = async |page: &Page| page.attribute("#tree", "data-hover-hash").await;
        let under = page
            .until("a block is under the mouse", async |page| {
                hash(page).await.ok_or_else(|| "none".to_owned())
            })
            .await;
        store(&client, 7, 3, 5_000..5_140).await;
        store(&client, 8, 1, 40_000..40_060).await;
        server
            .until_cluster("it has the new blocks", |c| {
                wait::expect(c["tree"]["nodes"] == 500, || c["tree"].to_string())
            })
            .await;
        page.agrees_with(&server).await;
        let held = region(page).await.expect("a region");
        assert!(close(held.x0, before.x0, 1.0), "held under the pointer: {before:?} {held:?}");
        page.hover(2.0, 2.0).await;
        let after =
            until_region(page, "the window moves with its box", |r| close(r.x0, before.x0 + 140.0, 10.0))
                .await;
        assert!(close(after.across(), before.across(), before.across()), "{before:?} {after:?}");
        assert_eq!((after.top, after.bottom), (before.top, before.bottom));
        page.hover(x, y).await;
        page.until("the same block is under the pointer", async |page| {
            let now = hash(page).await;
            wait::expect(now.as_ref() == Some(&under), || format!("{now:?}"))
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn the_tree_stays_when_panels_change_and_the_other_one_is_left() {
    let (_nats, server, _) = replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        open(page, &server, "/?view=tree").await;
        for panel in ["overview", "tree", "overview", "memory", "tree"] {
            page.click(&format!("nav-{panel}")).await;
            if panel == "memory" {
                page.until_true("no tree there", "!document.querySelector('#tree')").await;
                continue;
            }
            page.until("the tree is drawn", async |page| {
                let colours = page.colours("#tree canvas.picture").await;
                wait::expect(colours > 4, || format!("{panel}: {colours} colours"))
            })
            .await;
        }
    })
    .await;
}
