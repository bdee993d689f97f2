//! The tree as a table whose lines open: its keyboard, and that the reader's place stays.

use leptos::prelude::*;
use radixscope_model::id::BlockHash;
use serde_json::json;
use wasm_bindgen_test::wasm_bindgen_test;

use super::cluster::{Feed, stored};
use super::page::{
    self, Mounted, attribute, focused_id, mount, press, press_with, settle, until_eq, until_true,
};
use crate::view::TreePanel;

/// The table with its lines, and the focus on it.
async fn open() -> (Mounted, Feed) {
    let page = mount("?view=tree&tree.table=1", |store, dark| view! { <TreePanel store dark/> });
    let feed = Feed::two_prompts(page.store);
    until_eq("a line for each prompt", hashes(&[1, 40]), lines).await;
    page::get("#tree-grid").focus().unwrap();
    (page, feed)
}

fn hashes(blocks: &[u64]) -> Vec<String> {
    blocks.iter().map(|block| BlockHash(*block).to_string()).collect()
}

/// Hashes of the lines in sight, from above.
fn lines() -> Vec<String> {
    page::all("[data-testid=tree-line]").iter().filter_map(|line| line.get_attribute("data-hash")).collect()
}

/// Hash of the line that the keyboard is on.
fn cursor() -> Option<String> {
    let id = attribute("#tree-grid", "aria-activedescendant")?;
    document().get_element_by_id(&id)?.get_attribute("data-hash")
}

#[wasm_bindgen_test]
async fn arrows_open_a_line_enter_it_leave_it_and_close_it() {
    let (_page, _feed) = open().await;
    press("ArrowDown");
    until_eq("the cursor is on the first line", Some(hashes(&[1])[0].clone()), cursor).await;
    assert!(!press("ArrowRight"));
    until_eq("its two ways on are there", hashes(&[1, 20, 10, 40]), lines).await;
    assert_eq!(attribute(".virtual-row.cursor", "aria-expanded").as_deref(), Some("true"));
    press("ArrowRight");
    until_eq("the first of them", Some(hashes(&[20])[0].clone()), cursor).await;
    let level = |name| attribute(".virtual-row.cursor", name);
    assert_eq!(
        [level("aria-level"), level("aria-posinset"), level("aria-setsize")],
        ["2", "1", "2"].map(|n| Some(n.to_owned()))
    );
    press("ArrowLeft");
    until_eq("the line above", Some(hashes(&[1])[0].clone()), cursor).await;
    press("ArrowLeft");
    until_eq("it is closed", hashes(&[1, 40]), lines).await;
}

#[wasm_bindgen_test]
async fn home_and_end_reach_the_first_and_the_last_line() {
    let (_page, _feed) = open().await;
    press("End");
    until_eq("the last", Some(hashes(&[40])[0].clone()), cursor).await;
    press("ArrowDown");
    settle().await;
    assert_eq!(cursor(), Some(hashes(&[40])[0].clone()), "there is none below");
    press("Home");
    until_eq("the first", Some(hashes(&[1])[0].clone()), cursor).await;
    assert!(press_with("End", json!({ "ctrlKey": true })), "with Ctrl it is the browser's");
    settle().await;
    assert_eq!(cursor(), Some(hashes(&[1])[0].clone()));
}

#[wasm_bindgen_test]
async fn enter_shows_the_line_in_the_picture() {
    let (_page, _feed) = open().await;
    press("End");
    until_eq("the cursor is there", Some(hashes(&[40])[0].clone()), cursor).await;
    press("Enter");
    until_true("the picture is there", || page::find("#tree canvas.picture").is_some()).await;
    until_eq("at this box", Some(hashes(&[40])[0].clone()), || attribute("#tree", "data-zoom")).await;
}

#[wasm_bindgen_test]
async fn focus_and_cursor_stay_when_lines_come_above() {
    let (_page, mut feed) = open().await;
    press("End");
    until_eq("the cursor is there", Some(hashes(&[40])[0].clone()), cursor).await;
    // A prompt that is longer than both stands first.
    feed.send([stored(1, None, 200..=260)]);
    until_eq("a line more", hashes(&[200, 1, 40]), lines).await;
    assert_eq!((focused_id().as_str(), cursor()), ("tree-grid", Some(hashes(&[40])[0].clone())));
    press("ArrowUp");
    until_eq("it goes on from there", Some(hashes(&[1])[0].clone()), cursor).await;
}

#[wasm_bindgen_test]
async fn a_click_on_the_triangle_opens_a_line_and_selects_nothing() {
    let (_page, _feed) = open().await;
    page::get("[data-testid=tree-line] .twist").click();
    until_eq("it is open", hashes(&[1, 20, 10, 40]), lines).await;
    assert_eq!(cursor(), None);
    page::all("[data-testid=tree-line]")[2].click();
    until_eq("a click on a line puts the cursor there", Some(hashes(&[10])[0].clone()), cursor).await;
}
