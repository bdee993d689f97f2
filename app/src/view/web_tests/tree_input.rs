//! Wheel, pointer and keyboard on the tree's picture: the camera moves, blocks are selected.

use leptos::prelude::*;
use radixscope_model::id::BlockHash;
use serde_json::json;
use wasm_bindgen_test::wasm_bindgen_test;

use super::cluster::{Feed, stored, worker};
use super::page::{
    self, Mounted, attribute, mount, place, pointer, press, press_with, settle, until, until_eq, until_true,
};
use crate::draw::annotations::GUTTER;
use crate::view::TreePanel;

/// What the camera shows: left, right, above, below.
type Region = [f64; 4];

/// The panel with a tree that is drawn, and the region that shows all of it.
async fn drawn() -> (Mounted, Feed, Region) {
    let page = mount("?view=tree", |store, dark| view! { <TreePanel store dark/> });
    let feed = Feed::two_prompts(page.store);
    until("the tree is drawn", || page::find("#tree[data-region]")).await;
    settle().await;
    (page, feed, region())
}

fn region() -> Region {
    let text = attribute("#tree", "data-region").unwrap();
    let numbers: Vec<f64> = text.split(' ').map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

fn zoom() -> String {
    attribute("#tree", "data-zoom").unwrap_or_default()
}

fn selected() -> Option<String> {
    attribute("#tree", "data-focus-hash")
}

fn hash(block: u64) -> String {
    BlockHash(block).to_string()
}

/// A place of the picture, its axis excluded.
fn on_picture(across: f64, down: f64) -> (f64, f64) {
    let rect = page::get("#tree").get_bounding_client_rect();
    let x = rect.left() + GUTTER + across * (rect.width() - GUTTER);
    (x.round(), (rect.top() + down * rect.height()).round())
}

fn close(a: f64, b: f64, of: f64) -> bool {
    (a - b).abs() < of.abs() * 0.01
}

async fn until_region(what: &str, is_so: impl Fn(Region) -> bool) -> Region {
    until(what, || Some(region()).filter(|now| is_so(*now))).await
}

#[wasm_bindgen_test]
async fn the_wheel_zooms_around_the_pointer_and_back_to_everything() {
    let (_page, _feed, all) = drawn().await;
    assert_eq!((all[0], all[2], zoom().as_str()), (0.0, 0.0, "all"));
    let at = on_picture(0.25, 0.5);
    assert!(!pointer("#tree", "wheel", at, json!({ "deltaY": -240.0 })), "the page does not scroll");
    let now = until_region("closer", |now| now[1] - now[0] < all[1] * 0.9).await;
    assert!(close(now[1] - now[0], all[1] / 0.5_f64.exp(), all[1]), "{now:?}");
    let fixed = |[x0, x1, top, bottom]: Region| (x0 + 0.25 * (x1 - x0), top + 0.5 * (bottom - top));
    let (before, after) = (fixed(all), fixed(now));
    assert!(close(before.0, after.0, all[1]) && close(before.1, after.1, all[3]), "{before:?} {after:?}");
    assert_eq!(zoom(), "free");
    for _ in 0..2 {
        pointer("#tree", "wheel", at, json!({ "deltaY": 5_000.0 }));
    }
    until_region("everything and no more", |now| now == all).await;
    until_eq("which is said", "all".to_owned(), zoom).await;
}

#[wasm_bindgen_test]
async fn a_drag_moves_the_picture_with_the_hand_and_selects_nothing() {
    let (_page, _feed, _) = drawn().await;
    let (x, y) = on_picture(0.5, 0.5);
    pointer("#tree", "wheel", (x, y), json!({ "deltaY": -300.0 }));
    let before = until_region("closer", |now| now[0] > 0.0).await;
    let rect = page::get("#tree").get_bounding_client_rect();
    page::drag("#tree", &[(x, y), (x - 40.0, y - 10.0), (x - 100.0, y - 30.0)], &json!({}));
    pointer("#tree", "click", (x - 100.0, y - 30.0), json!({}));
    let now = until_region("it follows", |now| now[0] > before[0]).await;
    let right = before[0] + 100.0 / (rect.width() - GUTTER) * (before[1] - before[0]);
    let down = before[2] + 30.0 / rect.height() * (before[3] - before[2]);
    assert!(close(now[0], right, before[1] - before[0]), "{before:?} {now:?}");
    assert!(close(now[2], down, before[3] - before[2]), "{before:?} {now:?}");
    settle().await;
    assert_eq!(selected(), None, "it was no click");
    assert!(page::find("#tree.dragging").is_none(), "the hand let go");
}

#[wasm_bindgen_test]
async fn a_short_press_selects_the_block_under_it_and_moves_nothing() {
    let (_page, _feed, all) = drawn().await;
    let (x, y) = on_picture(0.2, 0.02);
    pointer("#tree", "pointerdown", (x, y), json!({}));
    pointer("#tree", "pointermove", (x + 2.0, y + 1.0), json!({}));
    pointer("#tree", "pointerup", (x + 2.0, y + 1.0), json!({}));
    pointer("#tree", "click", (x + 2.0, y + 1.0), json!({}));
    until_eq("the block is selected", Some(hash(1)), selected).await;
    assert_eq!((region(), zoom().as_str()), (all, "all"));
}

#[wasm_bindgen_test]
async fn what_is_under_the_pointer_is_named_and_no_longer_when_it_leaves() {
    let (_page, _feed, _) = drawn().await;
    pointer("#tree", "pointermove", on_picture(0.2, 0.02), json!({ "buttons": 0 }));
    let hovered = || attribute("#tree", "data-hover-hash");
    until_eq("the shared block", Some(hash(1)), hovered).await;
    let owners = format!("{} {}", worker(0), worker(1));
    assert_eq!(attribute("#tree", "data-hover-workers"), Some(owners));
    pointer("#tree", "pointerleave", on_picture(0.2, 0.02), json!({ "buttons": 0 }));
    until_eq("nothing", None, hovered).await;
}

#[wasm_bindgen_test]
async fn a_double_click_zooms_to_a_box_and_the_path_leads_back() {
    let (_page, _feed, all) = drawn().await;
    pointer("#tree", "dblclick", on_picture(0.2, 0.9), json!({}));
    let now = until_region("it is zoomed", |now| now[1] - now[0] < all[1]).await;
    assert!(close(now[1] - now[0], 8.0, 8.0), "the box of worker 1: {now:?}");
    until_true("the path has it and what is above", || page::all("[data-testid=path] button").len() == 3)
        .await;
    page::all("[data-testid=path] button")[0].click();
    until_region("everything", |now| now == all).await;
    until_eq("the path is at its beginning", 1, || page::all("[data-testid=path] button").len()).await;
}

#[wasm_bindgen_test]
async fn escape_goes_up_box_by_box_then_lets_go_of_the_selection_then_of_the_worker() {
    let (page, _feed, all) = drawn().await;
    page.store.address.update(|address| address.worker = Some(worker(1)));
    pointer("#tree", "dblclick", on_picture(0.2, 0.9), json!({}));
    until_region("it is zoomed", |now| now[1] - now[0] < all[1]).await;
    page::get("#tree").focus().unwrap();
    until_true("the path is known", || page::all("[data-testid=path] button").len() == 3).await;
    assert!(!press("Escape"));
    until_region("the box above", |now| close(now[1] - now[0], 18.0, 18.0)).await;
    until_true("the path is shorter", || page::all("[data-testid=path] button").len() == 2).await;
    press("Escape");
    until_region("everything", |now| now == all).await;
    assert!(selected().is_some());
    press("Escape");
    until_eq("nothing is selected", None, selected).await;
    press("Escape");
    until_true("no worker is picked out", || page.store.address.with_untracked(|a| a.worker.is_none())).await;
    assert!(press("Escape"), "there is nothing left to leave: the key keeps its meaning");
}

#[wasm_bindgen_test]
async fn arrow_keys_move_from_box_to_box_and_enter_zooms_to_one() {
    let (_page, _feed, all) = drawn().await;
    page::get("#tree").focus().unwrap();
    for (key, block) in [
        ("ArrowDown", 1),
        ("ArrowDown", 20),
        ("ArrowRight", 10),
        ("ArrowLeft", 20),
        ("ArrowUp", 1),
        ("ArrowRight", 40),
    ] {
        assert!(!press(key), "{key} does not scroll");
        until_eq(key, Some(hash(block)), selected).await;
    }
    assert_eq!(region(), all, "all of them are in sight");
    press("Enter");
    until_region("the box", |now| close(now[1] - now[0], 4.0, 4.0)).await;
    until_eq("which is said", hash(40), zoom).await;
    press("Home");
    until_region("everything", |now| now == all).await;
}

#[wasm_bindgen_test]
async fn plus_and_minus_zoom_by_a_step_and_keys_of_the_browser_are_left_alone() {
    let (_page, _feed, all) = drawn().await;
    page::get("#tree").focus().unwrap();
    press("+");
    let closer = until_region("closer", |now| now[1] - now[0] < all[1] * 0.9).await;
    assert!(close(closer[1] - closer[0], all[1] / 1.8, all[1]), "{closer:?}");
    for key in ["+", "-", "ArrowDown", "Home"] {
        assert!(press_with(key, json!({ "ctrlKey": true })), "{key} with Ctrl is the browser's");
    }
    settle().await;
    assert_eq!(region(), closer);
    press("-");
    until_region("back", |now| now == all).await;
}

#[wasm_bindgen_test]
async fn buttons_zoom_like_keys_and_rest_where_everything_is_seen() {
    let (_page, _feed, all) = drawn().await;
    let is_disabled = |id: &str| page::get(&format!("[data-testid={id}]")).has_attribute("disabled");
    until_true("there is nothing to zoom out to", || is_disabled("zoom-out") && is_disabled("zoom-fit"))
        .await;
    page::get("[data-testid=zoom-in]").click();
    until_region("closer", |now| now[1] - now[0] < all[1] * 0.9).await;
    until_true("there is", || !is_disabled("zoom-out") && !is_disabled("zoom-fit")).await;
    page::get("[data-testid=zoom-fit]").click();
    until_region("everything", |now| now == all).await;
    until_true("it rests again", || is_disabled("zoom-fit")).await;
}

#[wasm_bindgen_test]
async fn blocks_that_come_wait_while_the_pointer_rests_on_the_picture() {
    let (_page, mut feed, all) = drawn().await;
    let at = on_picture(0.2, 0.02);
    pointer("#tree", "pointermove", at, json!({ "buttons": 0 }));
    settle().await;
    feed.send([stored(0, None, 60..=79)]);
    settle().await;
    settle().await;
    assert_eq!(region(), all, "nothing moves under the pointer");
    pointer("#tree", "pointerleave", at, json!({ "buttons": 0 }));
    until_region("they are drawn", |now| now[1] > all[1]).await;
}

#[wasm_bindgen_test]
async fn a_press_on_the_small_picture_moves_the_window_there() {
    let (_page, _feed, _) = drawn().await;
    pointer("#tree", "wheel", on_picture(0.0, 0.0), json!({ "deltaY": -300.0 }));
    let before = until_region("closer", |now| now[1] < 21.0).await;
    let map = "[data-testid=minimap] .minimap-all";
    pointer(map, "pointerdown", place(map, (0.9, 0.5)), json!({}));
    let now = until_region("the window is elsewhere", |now| now[0] > before[0]).await;
    assert!(
        close(now[1] - now[0], before[1] - before[0], before[1]),
        "as wide as before: {before:?} {now:?}"
    );
    pointer(map, "pointerup", place(map, (0.9, 0.5)), json!({}));
}
