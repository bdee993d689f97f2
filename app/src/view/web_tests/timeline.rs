//! The timeline: pointer, wheel, buttons and keys lead to moments of what a server retained.

use js_sys::Uint8Array;
use leptos::prelude::*;
use radixscope_model::id::Millis;
use serde_json::{Value, json};
use wasm_bindgen_test::wasm_bindgen_test;

use super::cluster::{Feed, START, stored};
use super::page::{
    self, Mounted, attribute, mount, place, pointer, press, settle, until, until_eq, until_true,
};
use crate::keys;
use crate::store::Store;
use crate::view::timeline::Timeline;

const FIELD: &str = "[data-testid=timeline-field]";
/// Seconds that are retained; each brings ten blocks.
const SECONDS: u64 = 100;

/// Answers requests for what is retained in the place of a server: what the feed has sent so far, or nothing.
fn retain(feed: &Feed, is_on: bool) {
    let (kept, segments) = match is_on {
        true => (json!({ "from_ms": START.0 }), json!([{ "from_ms": START.0 }])),
        false => (Value::Null, json!([])),
    };
    let at_ms = feed.now().0;
    let index = json!({
        "epoch": "7", "at_ms": at_ms, "replay": false, "kept": kept, "segments": segments, "rows": [],
    });
    let body = "const fetched = window.fetch; \
                window.fetch = of => { const url = String(of.url ?? of); \
                    if (url.includes('history/segment')) return Promise.resolve(new Response(segment.slice())); \
                    if (url.includes('history?')) return Promise.resolve(new Response(index)); \
                    return Promise.reject(new Error('there is no server')); }; \
                return () => { window.fetch = fetched; }";
    let segment = Uint8Array::from(feed.retained().as_slice());
    page::replace("index, segment", body, &[index.to_string().into(), segment.into()]);
}

/// The timeline with the page's keys.
fn mounted() -> Mounted {
    mount("", |store, _| {
        keys::listen(store, RwSignal::new(0));
        store.keep_timeline();
        view! { <div style="flex: 1; min-width: 0"><Timeline store/></div> }
    })
}

/// The timeline over a state that has gone on for [`SECONDS`].
async fn open() -> (Mounted, Feed) {
    let page = mounted();
    let mut feed = Feed::begin(page.store, 2);
    for second in 1..=SECONDS {
        feed.send([stored(0, None, second * 10..=second * 10 + 9)]);
    }
    retain(&feed, true);
    until_eq("what is retained is known", Some((START.0, feed.now().0)), bounds).await;
    settle().await;
    (page, feed)
}

/// The part that the timeline draws.
fn bounds() -> Option<(u64, u64)> {
    let bound = |name| attribute(FIELD, name)?.parse().ok();
    page::find(FIELD)?;
    Some((bound("aria-valuemin")?, bound("aria-valuemax")?))
}

/// Blocks of the state that is shown.
fn blocks(store: Store) -> u64 {
    store.peek(|shown| shown.tree().totals().nodes)
}

/// A second of what is retained, in the window.
fn second(at: f64) -> (f64, f64) {
    place(FIELD, (at / SECONDS as f64, 0.3))
}

fn is_near(at: u64, second: u64) -> bool {
    at.abs_diff(START.0 + second * 1_000) < 500
}

#[wasm_bindgen_test]
async fn a_press_shows_the_moment_under_the_pointer_and_the_state_it_had() {
    let (page, _feed) = open().await;
    let store = page.store;
    assert_eq!(blocks(store), SECONDS * 10);
    pointer(FIELD, "pointerenter", second(50.0), json!({ "buttons": 0 }));
    page::drag(FIELD, &[second(50.4)], &json!({}));
    until_eq("the state of then", 500, || blocks(store)).await;
    assert!(is_near(store.at.get_untracked(), 50), "{}", store.at.get_untracked());
    until_true("the playhead is there", || page::find("[data-testid=playhead]").is_some()).await;
    assert_eq!(attribute(FIELD, "aria-valuenow"), Some(store.at.get_untracked().to_string()));
}

#[wasm_bindgen_test]
async fn a_drag_shows_each_moment_it_passes_and_ends_on_the_last() {
    let (page, _feed) = open().await;
    let store = page.store;
    pointer(FIELD, "pointerdown", second(80.4), json!({}));
    until_eq("the first", 800, || blocks(store)).await;
    pointer(FIELD, "pointermove", second(20.4), json!({}));
    until_eq("one on the way", 200, || blocks(store)).await;
    pointer(FIELD, "pointermove", second(30.4), json!({}));
    pointer(FIELD, "pointerup", second(30.4), json!({}));
    until_eq("the last", 300, || blocks(store)).await;
    pointer(FIELD, "pointermove", second(90.0), json!({ "buttons": 0 }));
    settle().await;
    assert_eq!(blocks(store), 300, "a pointer that is not down moves nothing");
}

#[wasm_bindgen_test]
async fn shift_and_drag_draws_a_part_and_a_double_click_all_of_it() {
    let (page, feed) = open().await;
    pointer(FIELD, "pointerdown", second(20.0), json!({ "shiftKey": true }));
    pointer(FIELD, "pointermove", second(60.0), json!({ "shiftKey": true }));
    until_true("the part is marked", || page::find(".brushed").is_some()).await;
    pointer(FIELD, "pointerup", second(60.0), json!({ "shiftKey": true }));
    let part = until("a part is drawn", || bounds().filter(|(from, _)| *from > START.0)).await;
    // It is of whole seconds.
    let is_at = |at: u64, second: u64| at.abs_diff(START.0 + second * 1_000) <= 1_000;
    assert!(is_at(part.0, 20) && is_at(part.1, 60), "{part:?}");
    assert_eq!(page.store.at.get_untracked(), 0, "no moment was requested");
    assert!(page::find(".brushed").is_none());
    pointer(FIELD, "dblclick", second(50.0), json!({}));
    until_eq("all of it", Some((START.0, feed.now().0)), bounds).await;
}

#[wasm_bindgen_test]
async fn the_wheel_draws_a_shorter_part_around_the_pointer() {
    let (_page, _feed) = open().await;
    assert!(!pointer(FIELD, "wheel", second(50.0), json!({ "deltaY": -400.0 })), "the page does not scroll");
    let (from, until) = until("a part is drawn", || bounds().filter(|(from, _)| *from > START.0)).await;
    let length = until - from;
    let expected = (SECONDS * 1_000) as f64 / 1.0_f64.exp();
    assert!((length as f64 - expected).abs() < 2_000.0, "{length} ms");
    assert!(is_near((from + until) / 2, 50), "around the pointer: {from} to {until}");
}

#[wasm_bindgen_test]
async fn the_button_pauses_then_plays_from_the_moment_shown_then_stops() {
    let (page, _feed) = open().await;
    let store = page.store;
    let name = || attribute("[data-testid=timeline-play]", "aria-label").unwrap_or_default();
    let press = || page::get("[data-testid=timeline-play]").click();
    press();
    until_true("a moment is held", || store.at.get_untracked() != 0).await;
    assert_eq!(store.speed.get_untracked(), 0);
    page::drag(FIELD, &[second(40.4)], &json!({}));
    until_eq("an earlier one", 400, || blocks(store)).await;
    until_eq("it can be played", "Play (Space)".to_owned(), name).await;
    press();
    let began = store.at.get_untracked();
    until_true("it goes on", || store.at.get_untracked() > began + 200).await;
    press();
    until_eq("it stands", 0, || store.speed.get_untracked()).await;
    let stands = store.at.get_untracked();
    settle().await;
    settle().await;
    assert_eq!(store.at.get_untracked(), stands);
}

#[wasm_bindgen_test]
async fn the_button_live_leads_back_and_rests_while_the_present_is_shown() {
    let (page, mut feed) = open().await;
    let store = page.store;
    let is_resting = || page::get("[data-testid=timeline-live]").has_attribute("disabled");
    assert!(is_resting());
    page::drag(FIELD, &[second(40.4)], &json!({}));
    until_eq("the state of then", 400, || blocks(store)).await;
    feed.send([stored(0, None, 5_000..=5_009)]);
    settle().await;
    assert_eq!(blocks(store), 400, "what comes changes nothing of it");
    page::get("[data-testid=timeline-live]").click();
    until_eq("the present, with what came meanwhile", SECONDS * 10 + 10, || blocks(store)).await;
    until_true("it rests", is_resting).await;
}

#[wasm_bindgen_test]
async fn keys_pause_step_go_to_both_ends_and_back_to_live() {
    let (page, feed) = open().await;
    let store = page.store;
    let at = || store.at.get_untracked();
    page::get(FIELD).focus().unwrap();
    assert!(press("ArrowRight") && press("Home"), "of the present there is nothing later");
    assert!(!press(" "), "space is taken");
    until_eq("it is paused", feed.now().0, at).await;
    press("ArrowLeft");
    until_eq("a second back", feed.now().0 - 1_000, at).await;
    page::press_with("ArrowLeft", json!({ "shiftKey": true }));
    until_eq("ten more", feed.now().0 - 11_000, at).await;
    until_eq("with the state of then", (SECONDS - 11) * 10, || blocks(store)).await;
    press("ArrowRight");
    until_eq("a second on", feed.now().0 - 10_000, at).await;
    press("Home");
    until_eq("the beginning", START.0, at).await;
    press("l");
    until_eq("live", 0, at).await;
    assert!(press("l"), "then the key is not the timeline's");
}

#[wasm_bindgen_test]
async fn keys_in_a_button_are_the_buttons() {
    let (page, _feed) = open().await;
    page::get("[data-testid=timeline-back]").focus().unwrap();
    assert!(press(" ") && press("ArrowLeft"));
    settle().await;
    assert_eq!(page.store.at.get_untracked(), 0);
}

#[wasm_bindgen_test]
async fn without_anything_retained_it_says_why() {
    let page = mounted();
    let feed = Feed::begin(page.store, 1);
    retain(&feed, false);
    until_true("it says so", || page::find("[data-testid=timeline-none]").is_some()).await;
    assert!(page::find(FIELD).is_none());
    page.store.go(Millis(START.0 + 5));
    assert_eq!(page.store.at.get_untracked(), 0, "there is nowhere to go");
}
