//! A chart with a time axis: a drag chooses a shorter time, and there is a way back.

use leptos::prelude::*;
use serde_json::json;
use wasm_bindgen_test::wasm_bindgen_test;

use super::cluster::Feed;
use super::page::{self, Mounted, mount, place, pointer, press, settle, until_true};
use crate::draw::theme::Insets;
use crate::store::Store;
use crate::time_range::TimeRange;
use crate::view::time_chart::{TimeChart, shown_span};
use crate::view::time_menu::TimeMenu;

const AREA: &str = ".time-area";

/// A chart that draws nothing, and the menu of its time.
async fn open() -> (Mounted, Feed) {
    let page = mount("", |store, dark| {
        let span = shown_span(store);
        let insets = Insets { left: 40, right: 10, bottom: 20 };
        view! {
            <div style="width: 600px; height: 200px; position: relative">
                <TimeMenu store span/>
                <TimeChart store dark id="chart" description=Signal::derive(String::new) insets span option=|_| None/>
            </div>
        }
    });
    page::get(".time-chart").set_attribute("style", "position: relative; height: 150px").unwrap();
    let feed = Feed::two_prompts(page.store);
    settle().await;
    (page, feed)
}

fn range(store: Store) -> TimeRange {
    store.address.with_untracked(|address| address.range)
}

fn drag(from: f64, to: f64) {
    page::drag(AREA, &[place(AREA, (from, 0.5)), place(AREA, (to, 0.5))], &json!({}));
}

#[wasm_bindgen_test]
async fn a_drag_chooses_a_part_and_escape_leaves_it() {
    let (page, _feed) = open().await;
    let before = range(page.store);
    pointer(AREA, "pointerdown", place(AREA, (0.25, 0.5)), json!({}));
    pointer(AREA, "pointermove", place(AREA, (0.75, 0.5)), json!({}));
    until_true("the part is marked", || page::find("[data-testid=time-brush]").is_some()).await;
    pointer(AREA, "pointerup", place(AREA, (0.75, 0.5)), json!({}));
    until_true("it is chosen", || range(page.store) != before).await;
    until_true("there is a way back", || page::find("[data-testid=time-range-back]").is_some()).await;
    assert!(page::find("[data-testid=time-brush]").is_none());
    press("Escape");
    until_true("the time before", || range(page.store) == before).await;
    until_true("the way back is gone", || page::find("[data-testid=time-range-back]").is_none()).await;
}

#[wasm_bindgen_test]
async fn the_button_leaves_a_part_and_a_press_without_a_drag_chooses_none() {
    let (page, _feed) = open().await;
    let before = range(page.store);
    drag(0.5, 0.5);
    settle().await;
    assert!(range(page.store) == before, "a press is no drag");
    drag(0.8, 0.3);
    until_true("it is chosen, whichever way the hand went", || range(page.store) != before).await;
    until_true("there is a way back", || page::find("[data-testid=time-range-back]").is_some()).await;
    page::get("[data-testid=time-range-back]").click();
    until_true("the time before", || range(page.store) == before).await;
}

#[wasm_bindgen_test]
async fn the_pointers_time_is_shared_with_other_charts_until_it_leaves() {
    let (page, _feed) = open().await;
    let pointed = || page.store.pointed.get_untracked().map(|(_, chart)| chart);
    pointer(AREA, "pointermove", place(AREA, (0.5, 0.5)), json!({ "buttons": 0 }));
    until_true("it is known", || pointed().as_deref() == Some("chart")).await;
    let leave = page::get(".time-chart");
    page::dispatch(&leave, "PointerEvent", "pointerleave", json!({ "bubbles": false }));
    until_true("it is gone", || pointed().is_none()).await;
}
