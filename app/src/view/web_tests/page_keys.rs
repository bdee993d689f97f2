//! Keys of the page as a whole.

use leptos::prelude::*;
use serde_json::json;
use wasm_bindgen_test::wasm_bindgen_test;

use super::cluster::{Feed, worker};
use super::page::{self, Mounted, focused_id, mount, press, press_with, until_eq};
use crate::keys;
use crate::url::Panel;

/// A page with a field, a place for the tree, and the number of times that help was requested.
fn open() -> (Mounted, Feed, RwSignal<i32>) {
    let asked = ArcRwSignal::new(0);
    let count = asked.clone();
    let page = mount("", move |store, _| {
        let help = RwSignal::new(0);
        keys::listen(store, help);
        Effect::new(move |_| count.set(i32::try_from(help.get()).unwrap()));
        view! { <input id="field"/><div id="tree" tabindex="0"></div> }
    });
    let feed = Feed::two_prompts(page.store);
    (page, feed, asked.into())
}

#[wasm_bindgen_test]
async fn keys_open_help_panels_and_the_kiosk_and_focus_the_tree() {
    let (page, _feed, help) = open();
    assert!(!press("?"));
    until_eq("help is requested", 1, || help.get_untracked()).await;
    press("v");
    assert!(page.store.address.with_untracked(|address| address.panel) != Panel::Overview);
    press("k");
    assert!(page.store.address.with_untracked(|address| address.kiosk));
    press("k");
    press("f");
    assert_eq!(focused_id(), "tree");
}

#[wasm_bindgen_test]
async fn digits_pick_out_workers_and_nought_lets_go() {
    let (page, _feed, _help) = open();
    let picked = || page.store.address.with_untracked(|address| address.worker);
    press("2");
    assert_eq!(picked(), Some(worker(1)));
    press("1");
    assert_eq!(picked(), Some(worker(0)));
    press("9");
    assert_eq!(picked(), Some(worker(0)), "there is no ninth");
    press("0");
    assert_eq!(picked(), None);
}

#[wasm_bindgen_test]
async fn keys_in_a_field_and_keys_of_the_browser_are_left_alone() {
    let (page, _feed, help) = open();
    assert!(press_with("k", json!({ "ctrlKey": true })) && press_with("?", json!({ "altKey": true })));
    page::get("#field").focus().unwrap();
    assert!(press("k") && press("2") && press("?") && press("f"));
    assert_eq!(focused_id(), "field");
    assert_eq!(help.get_untracked(), 0);
    let address = page.store.address.get_untracked();
    assert!(!address.kiosk && address.worker.is_none());
}
