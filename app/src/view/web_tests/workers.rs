//! The table of workers: rows keep their elements while numbers change, and pick out a worker.

use leptos::prelude::*;
use wasm_bindgen_test::wasm_bindgen_test;
use web_sys::HtmlElement;

use super::cluster::{Feed, new_worker, stored, worker};
use super::page::{self, Mounted, mount, until_eq};
use crate::view::workers::WorkersPanel;

async fn open() -> (Mounted, Feed) {
    let page = mount("", |store, _| view! { <WorkersPanel store/> });
    let feed = Feed::two_prompts(page.store);
    until_eq("two workers", 2, || rows().len()).await;
    until_eq("with what they hold", "26".to_owned(), || page::text("[data-testid=resident]")).await;
    (page, feed)
}

fn rows() -> Vec<HtmlElement> {
    page::all("[data-testid=worker]")
}

/// What each row says its worker holds.
fn held() -> Vec<String> {
    page::all("[data-testid=worker] [data-testid=held]")
        .iter()
        .filter_map(|cell| cell.text_content())
        .collect()
}

fn pressed() -> Vec<String> {
    page::all("[data-testid=worker] .pick")
        .iter()
        .filter_map(|pick| pick.get_attribute("aria-pressed"))
        .collect()
}

#[wasm_bindgen_test]
async fn rows_keep_their_elements_and_the_focus_while_numbers_change() {
    let (_page, mut feed) = open().await;
    let before = (rows(), page::all("[data-testid=worker] [data-testid=held]"), held());
    let button = page::all("[data-testid=worker] .pick")[1].clone();
    button.focus().unwrap();
    feed.send([stored(1, None, 500..=599)]);
    until_eq("the other's number is as before", before.2[0].clone(), || held()[0].clone()).await;
    page::until_true("one number is another", || held()[1] != before.2[1]).await;
    assert_eq!((rows(), page::all("[data-testid=worker] [data-testid=held]")), (before.0, before.1));
    assert!(document().active_element().is_some_and(|focused| focused == *button));
}

#[wasm_bindgen_test]
async fn a_worker_that_comes_adds_a_row_and_replaces_none() {
    let (_page, mut feed) = open().await;
    let before = rows();
    feed.send([new_worker(2)]);
    until_eq("a row more", 3, || rows().len()).await;
    assert_eq!(rows()[..2], before[..]);
}

#[wasm_bindgen_test]
async fn a_row_picks_out_its_worker_and_lets_go_of_it() {
    let (page, _feed) = open().await;
    let picked = || page.store.address.with_untracked(|address| address.worker);
    rows()[1].click();
    until_eq("it is picked out", Some(worker(1)), picked).await;
    until_eq("its button says so", vec!["false".to_owned(), "true".to_owned()], pressed).await;
    until_eq("the other one stands back", 1, || page::all("[data-testid=worker].other").len()).await;
    rows()[0].click();
    until_eq("the other one", Some(worker(0)), picked).await;
    rows()[0].click();
    until_eq("none", None, picked).await;
    until_eq("none stands back", 0, || page::all("[data-testid=worker].other").len()).await;
}
