//! The tree's picture: what it is made of, and when it is drawn.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use leptos::prelude::*;
use radixscope_icicle::palette::{Palette, Rgb};
use radixscope_model::id::Slot;
use wasm_bindgen::JsCast;
use wasm_bindgen_test::wasm_bindgen_test;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use super::cluster::{Feed, removed, stored};
use super::page::{self, Mounted, mount, settle, until, until_eq, until_true};
use crate::theme;
use crate::view::TreePanel;

/// The panel with a tree that is drawn.
async fn drawn() -> (Mounted, Feed) {
    let page = mount("?view=tree", |store, dark| view! { <TreePanel store dark/> });
    let feed = Feed::two_prompts(page.store);
    until("the tree is drawn", || page::find("#tree[data-region]")).await;
    settle().await;
    (page, feed)
}

/// How many pixels of the picture have each colour.
fn colours() -> HashMap<Rgb, usize> {
    let canvas: HtmlCanvasElement = page::get("#tree canvas.picture").unchecked_into();
    let context = canvas.get_context("2d").unwrap().unwrap().unchecked_into::<CanvasRenderingContext2d>();
    let (width, height) = (f64::from(canvas.width()), f64::from(canvas.height()));
    assert!(width > 300.0 && height > 200.0, "{width} × {height}");
    let bytes = context.get_image_data(0.0, 0.0, width, height).unwrap().data();
    let mut counts = HashMap::new();
    for pixel in bytes.chunks_exact(4) {
        *counts.entry([pixel[0], pixel[1], pixel[2]]).or_default() += 1;
    }
    counts
}

fn palette() -> Palette {
    Palette::read(theme::token, true, 2)
}

/// Counts pictures put onto the tree's canvas.
fn count_pictures() {
    let body = "const of = CanvasRenderingContext2D.prototype, put = of.putImageData; window.counted = 0; \
                of.putImageData = function (...given) { \
                    if (this.canvas.closest('#tree')) window.counted += 1; \
                    return put.apply(this, given); }; \
                return () => { of.putImageData = put; }";
    page::replace("", body, &[]);
}

/// Counts questions for the size or place of anything in the tree's picture, each of which makes the browser lay out the page.
fn count_layouts() {
    let body = "window.counted = 0; const back = []; \
                for (const [of, name] of [[Element, 'clientWidth'], [Element, 'clientHeight'], [HTMLElement, 'offsetLeft'], \
                        [HTMLElement, 'offsetWidth'], [Element, 'scrollTop']]) { \
                    const was = Object.getOwnPropertyDescriptor(of.prototype, name); \
                    Object.defineProperty(of.prototype, name, {...was, get() { \
                        if (this.closest('.icicle-box')) window.counted += 1; return was.get.call(this); }}); \
                    back.push(() => Object.defineProperty(of.prototype, name, was)); } \
                const rect = Element.prototype.getBoundingClientRect; \
                Element.prototype.getBoundingClientRect = function () { \
                    if (this.closest('.icicle-box')) window.counted += 1; return rect.call(this); }; \
                return () => { back.forEach(one => one()); Element.prototype.getBoundingClientRect = rect; }";
    page::replace("", body, &[]);
}

fn counted() -> usize {
    page::script("", "return window.counted", &[]).as_f64().unwrap() as usize
}

#[wasm_bindgen_test]
async fn boxes_have_the_colours_of_their_workers_and_the_ground_is_around_them() {
    let (_page, _feed) = drawn().await;
    let (colours, palette) = (colours(), palette());
    let count = |colour: Rgb| colours.get(&colour).copied().unwrap_or_default();
    let [ground, shared] = [palette.ground, palette.shared].map(count);
    let [first, second] = [Slot(0), Slot(1)].map(|slot| count(palette.worker(slot)));
    assert!(ground > 1_000 && shared > 1_000, "ground {ground}, shared {shared}");
    assert!(first > 1_000 && second > 1_000, "worker 0 {first}, worker 1 {second}");
    // Eight blocks of worker 1 under eight across; worker 0 has six under six, and four under four.
    assert!(second > first * 9 / 10, "worker 0 {first}, worker 1 {second}");
}

#[wasm_bindgen_test]
async fn what_is_evicted_is_no_longer_painted() {
    let (_page, mut feed) = drawn().await;
    let second = palette().worker(Slot(1));
    assert!(colours().contains_key(&second));
    feed.send([removed(1, 20..=27), removed(1, 1..=4)]);
    until_true("worker 1 has no box", || !colours().contains_key(&second)).await;
}

#[wasm_bindgen_test]
async fn a_change_is_painted_once_and_nothing_is_painted_without_one() {
    let (_page, mut feed) = drawn().await;
    count_pictures();
    settle().await;
    settle().await;
    assert_eq!(counted(), 0, "nothing changed");
    feed.send([]);
    settle().await;
    assert_eq!(counted(), 0, "time went on, and nothing else");
    feed.send([stored(0, None, 60..=63)]);
    until_true("it is painted", || counted() > 0).await;
    settle().await;
    assert_eq!(counted(), 1);
}

#[wasm_bindgen_test]
async fn changes_within_a_frame_are_painted_together() {
    let (_page, mut feed) = drawn().await;
    count_pictures();
    for first in [100, 110, 120, 130] {
        feed.send([stored(0, None, first..=first + 3)]);
    }
    until_true("they are painted", || counted() > 0).await;
    settle().await;
    assert_eq!(counted(), 1);
}

#[wasm_bindgen_test]
async fn frames_ask_nothing_of_the_layout_while_sizes_stay() {
    let (_page, mut feed) = drawn().await;
    count_pictures();
    feed.send([stored(0, None, 60..=63)]);
    until_true("it is painted", || counted() > 0).await;
    page::restore();
    count_layouts();
    feed.send([stored(0, None, 70..=73)]);
    settle().await;
    settle().await;
    assert_eq!(counted(), 0);
}

#[wasm_bindgen_test]
async fn another_size_is_fitted_and_painted() {
    let (_page, _feed) = drawn().await;
    let width = || page::get("#tree canvas.picture").unchecked_into::<HtmlCanvasElement>().width();
    let before = width();
    page::get(".icicle-box").set_attribute("style", "flex: none; width: 400px").unwrap();
    until_true("the canvas is narrower", || width() < before && width() > 300).await;
    until_true("and painted", || colours().contains_key(&palette().worker(Slot(1)))).await;
}

#[wasm_bindgen_test]
async fn a_hidden_page_draws_no_frame_and_is_current_when_it_is_seen_again() {
    let frames = Rc::new(Cell::new(0));
    let count = frames.clone();
    let page = mount("", move |store, _| {
        Effect::new(move |_| {
            store.on_frame(|_| ());
            count.set(count.get() + 1);
        });
    });
    let mut feed = Feed::two_prompts(page.store);
    settle().await;
    let hide = "Object.defineProperty(document, 'hidden', {configurable: true, get: () => window.isHidden}); \
                window.isHidden = true; return () => { delete document.hidden; }";
    page::replace("", hide, &[]);
    let before = frames.get();
    feed.send([stored(0, None, 60..=63)]);
    settle().await;
    settle().await;
    assert_eq!(frames.get(), before);
    page::script("", "window.isHidden = false", &[]);
    page.store.shown_again();
    until_eq("a frame", before + 1, || frames.get()).await;
    assert_eq!(page.store.peek(|shown| shown.tree().totals().nodes), 26);
}

#[wasm_bindgen_test]
async fn the_picture_in_the_light_theme_has_other_colours() {
    let (light, set_light) = signal(false);
    let page = mount("?view=tree", move |store, _| {
        let dark = Memo::new(move |_| !light.get());
        view! { <TreePanel store dark/> }
    });
    let _feed = Feed::two_prompts(page.store);
    until("the tree is drawn", || page::find("#tree[data-region]")).await;
    settle().await;
    let dark_ground = palette().ground;
    assert!(colours().contains_key(&dark_ground));
    let root = document().document_element().unwrap();
    root.set_attribute("data-theme", "light").unwrap();
    set_light.set(true);
    settle().await;
    let ground = Palette::read(theme::token, false, 2).ground;
    until_true("it is painted anew", || colours().contains_key(&ground)).await;
    root.set_attribute("data-theme", "dark").unwrap();
    assert_ne!(ground, dark_ground);
}
