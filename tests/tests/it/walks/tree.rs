//! The tree panel: wheel, hand, click and keyboard move the camera and select blocks.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::tree::{AXIS, CAPTURE, Region, close, open, place, until_region};
use radixscope_tests::replay::replayed;
use radixscope_tests::wait;
use serde_json::json;

async fn zoom(page: &Page) -> String {
    page.attribute("#tree", "data-zoom").await.unwrap_or_default()
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
