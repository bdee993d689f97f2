//! The tree's own panel: wheel, hand and fingers move the camera as computed, the keyboard alone reaches everything, and
//! the picture stays under the reader's eyes while blocks arrive.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::Message;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::replay::{publish_one, replayed};
use radixscope_tests::wait;
use serde_json::{Value, json};

const CAPTURE: &str = "0.9.1-healthy";
/// Width of the axis at the left of the picture, CSS pixels.
const AXIS: f64 = 46.0;

/// What the camera shows: units from the left, blocks from the top.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Region {
    x0: f64,
    x1: f64,
    top: f64,
    bottom: f64,
}

impl Region {
    fn across(self) -> f64 {
        self.x1 - self.x0
    }

    fn down(self) -> f64 {
        self.bottom - self.top
    }
}

async fn zoom(page: &Page) -> String {
    page.attribute("#tree", "data-zoom").await.unwrap_or_default()
}

async fn region(page: &Page) -> Result<Region, String> {
    let announced = page.attribute("#tree", "data-region").await.ok_or("no picture yet")?;
    let numbers: Vec<f64> = announced.split(' ').filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [x0, x1, top, bottom] => Ok(Region { x0, x1, top, bottom }),
        _ => Err(announced),
    }
}

/// The region once a movement is over.
async fn at_rest(page: &Page) -> Region {
    page.until("the camera rests", async |page| {
        let before = region(page).await?;
        // Two frames later it would be another one on a journey.
        let frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done))))";
        page.devtools("Runtime.evaluate", json!({"expression": frames, "awaitPromise": true})).await;
        let after = region(page).await?;
        wait::expect(before == after, || format!("{before:?} {after:?}")).map(|()| after)
    })
    .await
}

/// The region once `done` is content with it.
async fn until_region(page: &Page, what: &str, done: impl Fn(Region) -> bool) -> Region {
    page.until(what, async |page| {
        let now = region(page).await?;
        wait::expect(done(now), || format!("{now:?}")).map(|()| now)
    })
    .await;
    at_rest(page).await
}

async fn open(page: &Page, server: &Radixscope, path: &str) -> Region {
    page.open(&server.url(path)).await;
    page.until("the tree is drawn", async |page| {
        let colours = page.colours("#tree canvas.picture").await;
        wait::expect(colours > 4, || format!("{colours} colours"))
    })
    .await;
    at_rest(page).await
}

/// A place on the picture without its axis, as shares of its width and height.
async fn place(page: &Page, across: f64, down: f64) -> (f64, f64) {
    let (x, y, width, height) = page.rectangle("#tree").await;
    (x + AXIS + (width - AXIS) * across, y + height * down)
}

fn close(a: f64, b: f64, of: f64) -> bool {
    (a - b).abs() < of * 0.005
}

#[tokio::test]
async fn wheel_and_hand_move_the_camera_as_computed_and_a_drag_is_no_click() {
    let (_nats, server, _) = replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        let all = open(page, &server, "/?view=tree").await;
        assert_eq!((all.x0, all.top, zoom(page).await.as_str()), (0.0, 0.0, "all"));
        let at = place(page, 0.25, 0.5).await;
        page.wheel(at, (0.0, -240.0), 0).await;
        let half_e = 0.5f64.exp();
        let zoomed =
            until_region(page, "the wheel zooms by its turn", |r| close(r.across(), all.x1 / half_e, all.x1))
                .await;
        assert_eq!(zoom(page).await, "free");
        let fixed = |r: Region| (r.x0 + 0.25 * r.across(), r.top + 0.5 * r.down());
        let (before, after) = (fixed(all), fixed(zoomed));
        assert!(
            close(before.0, after.0, all.x1) && close(before.1, after.1, all.bottom),
            "{before:?} {after:?}"
        );
        assert!(zoomed.down() < all.down(), "downward too: {zoomed:?}");

        let (_, _, width, height) = page.rectangle("#tree").await;
        page.drag(&[at, (at.0 - 40.0, at.1 - 10.0), (at.0 - 100.0, at.1 - 30.0)]).await;
        let dragged = until_region(page, "the picture follows the hand", |r| r.x0 > zoomed.x0).await;
        let (dx, dy) = (100.0 / (width - AXIS) * zoomed.across(), 30.0 / height * zoomed.down());
        assert!(close(dragged.x0, zoomed.x0 + dx, zoomed.across()), "{zoomed:?} {dragged:?}");
        assert!(close(dragged.top, zoomed.top + dy, zoomed.down()), "{zoomed:?} {dragged:?}");
        assert_eq!(page.attribute("#tree", "data-focus-hash").await, None, "a drag is no click");

        page.wheel(at, (0.0, -100.0), 1).await;
        let narrow = until_region(page, "Alt zooms across", |r| r.across() < dragged.across() * 0.9).await;
        assert_eq!((narrow.top, narrow.bottom), (dragged.top, dragged.bottom));
        page.wheel(at, (-100.0, 0.0), 8).await;
        let left = until_region(page, "Shift goes sideways", |r| r.x0 < narrow.x0).await;
        assert!(close(left.across(), narrow.across(), narrow.across()), "{left:?}");
        page.wheel(at, (0.0, 5000.0), 0).await;
        page.wheel(at, (0.0, 5000.0), 0).await;
        until_region(page, "everything and no more", |r| r == all).await;
        page.until_true("which is announced", "document.querySelector('#tree').dataset.zoom === 'all'").await;
    })
    .await;
}

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

#[tokio::test]
async fn a_click_selects_a_double_click_zooms_and_the_path_leads_back() {
    let (_nats, server, _) = replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        let all = open(page, &server, "/?view=tree").await;
        let (x, y) = place(page, 0.2, 0.02).await;
        page.hover(x, y).await;
        let hovered = page
            .until("a block is under the mouse", async |page| {
                page.attribute("#tree", "data-hover-hash").await.ok_or_else(|| "none".to_owned())
            })
            .await;
        let known = server.block(&hovered).await;
        let blocks = page.attribute("#tree", "data-hover-blocks").await;
        assert_eq!(blocks, Some(known["subtree_blocks"].to_string()));
        page.click_at(x, y).await;
        let focus = format!("document.querySelector('#tree').dataset.focusHash === '{hovered}'");
        page.until_true("the block is selected", &focus).await;
        assert_eq!(zoom(page).await, "all", "a click moves nothing");
        page.double_click_at(x, y).await;
        let zoomed = until_region(page, "it is zoomed", |r| r.across() < all.across()).await;
        let goal = zoom(page).await;
        let known = server.block(&goal).await;
        assert_eq!(zoomed.across().round() as u64, known["subtree_blocks"].as_u64().unwrap());
        assert!(page.texts("[data-testid=path] button").await.len() >= 2, "the path shows where we are");
        page.screenshot("tree-zoomed").await;
        let (x, y) = page.centre("[data-testid=path] li:first-child button").await;
        page.click_at(x, y).await;
        until_region(page, "everything is shown again", |r| r == all).await;
        assert_eq!(page.texts("[data-testid=path] button").await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn the_keyboard_alone_reaches_everything() {
    let (_nats, server, _) = replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        let all = open(page, &server, "/?view=tree").await;
        let tab_to = async |what: &str, is_there: &str| {
            for _ in 0..80 {
                if page.eval(is_there).await == json!(true) {
                    return;
                }
                page.press("Tab").await;
            }
            panic!("the key Tab does not lead to {what}");
        };
        let announced = async |expected: &str| {
            page.until(expected, async |page| {
                let now = page.eval("document.getElementById('tree-status').textContent").await;
                wait::expect(now.as_str().unwrap().contains(expected), || now.to_string())
            })
            .await;
        };
        tab_to("the widths", "document.activeElement.dataset.testid === 'width-blocks'").await;
        page.press("ArrowRight").await;
        page.until_true("widths are hits", "new URL(location).searchParams.get('tree.width') === 'hits'")
            .await;
        page.press("ArrowLeft").await;
        page.until_true("widths are blocks", "!new URL(location).searchParams.has('tree.width')").await;
        tab_to("the order", "document.activeElement.dataset.testid === 'order-size'").await;
        page.press("ArrowRight").await;
        page.until_true("the order is fixed", "new URL(location).searchParams.get('order') === 'stable'")
            .await;

        tab_to("the picture", "document.activeElement.id === 'tree'").await;
        let focused = async || page.attribute("#tree", "data-focus-hash").await;
        page.press("ArrowDown").await;
        let first =
            page.until("a box is selected", async |_| focused().await.ok_or_else(|| "none".to_owned())).await;
        server.block(&first).await;
        announced(&first).await;
        page.press("ArrowDown").await;
        let second = page
            .until("the selection moves down", async |_| {
                focused().await.filter(|now| *now != first).ok_or_else(|| "still there".to_owned())
            })
            .await;
        announced(&second).await;
        page.press("Enter").await;
        let to_second = format!("document.querySelector('#tree').dataset.zoom === '{second}'");
        page.until_true("Enter zooms to it", &to_second).await;
        announced("of the tree's blocks across").await;
        page.press("Escape").await;
        let to_first = format!("document.querySelector('#tree').dataset.zoom === '{first}'");
        page.until_true("Escape goes up", &to_first).await;
        page.press("Home").await;
        until_region(page, "Home shows everything", |r| r == all).await;
        page.press("+").await;
        let closer = until_region(page, "plus zooms in", |r| close(r.across(), all.x1 / 1.8, all.x1)).await;
        page.press("+").await;
        until_region(page, "and again", |r| r.across() < closer.across() * 0.6).await;
        page.press("-").await;
        page.press("-").await;
        until_region(page, "minus zooms out", |r| r == all).await;
        page.press("Escape").await;
        page.until("Escape lets go of the selection", async |_| {
            let now = focused().await;
            wait::expect(now.is_none(), || format!("{now:?}"))
        })
        .await;
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
