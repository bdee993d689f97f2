//! A table of many lines of which only those in sight are in the document.

use std::ops::Range;

use leptos::prelude::*;
use wasm_bindgen_test::wasm_bindgen_test;
use web_sys::{HtmlElement, KeyboardEvent};

use super::page::{self, Mounted, attribute, focused_id, mount, press, settle, until_eq, until_true};
use crate::view::virtual_table::{Scroll, VirtualTable};

/// Lines in all.
const LINES: usize = 1_000;
/// Height of a line as the table has it, CSS pixels.
const LINE_PX: i32 = 26;

/// What the test changes.
#[derive(Clone, Copy)]
struct Table {
    count: RwSignal<usize>,
    /// Written beside each line's number.
    note: RwSignal<&'static str>,
}

/// A table of numbers, with the focus on it. Its cursor follows the arrow keys.
async fn open() -> (Mounted, Table) {
    let made = std::rc::Rc::new(std::cell::Cell::new(None));
    let given = made.clone();
    let page = mount("", move |_, _| {
        let table = Table { count: RwSignal::new(LINES), note: RwSignal::new("") };
        given.set(Some(table));
        numbers(table)
    });
    page::get("#numbers").set_attribute("style", "height: 286px; width: 300px; --line-height: 26px").unwrap();
    until_eq("ten lines and what is cut", 13, || rows().len()).await;
    page::get("#numbers").focus().unwrap();
    (page, made.get().unwrap())
}

fn numbers(Table { count, note }: Table) -> impl IntoView {
    let (scroll, cursor) = (Scroll::new(), RwSignal::new(None::<usize>));
    let rows = move |lines: Range<usize>| {
        let (count, note) = (count.get(), note.get());
        lines.map(|at| (at < count).then_some((at, note))).collect::<Vec<_>>()
    };
    let line = |row: RwSignal<Option<(usize, &'static str)>>| {
        let text = move || row.get().map(|(at, note)| format!("{at}{note}"));
        view! { <div class="virtual-row line" class:vacant=move || row.get().is_none()>{text}</div> }
            .into_any()
    };
    let key = move |event: KeyboardEvent| {
        if let Some(at) = scroll.line_after(&event.key(), cursor.get_untracked(), count.get_untracked()) {
            event.prevent_default();
            cursor.set(Some(at));
            scroll.show(at);
        }
    };
    let active = Signal::derive(move || cursor.get().map(|at| format!("line-{at}")));
    view! {
        <VirtualTable scroll id="numbers" role="grid" label="Numbers" columns=1 count active head=().into_any() rows line
            on_scroll=move |()| scroll.follow() on_key=key/>
    }
}

fn rows() -> Vec<HtmlElement> {
    page::all("#numbers .line")
}

/// Texts of the lines in the document, without the empty ones.
fn texts() -> Vec<String> {
    rows().iter().filter_map(|row| row.text_content().filter(|text| !text.is_empty())).collect()
}

#[wasm_bindgen_test]
async fn only_lines_in_sight_are_in_the_document_and_it_scrolls_as_if_all_were() {
    let (_page, _table) = open().await;
    let table = page::get("#numbers");
    assert_eq!(texts()[..3], ["0", "1", "2"]);
    assert_eq!(table.scroll_height(), LINES as i32 * LINE_PX + LINE_PX);
    assert_eq!(attribute("#numbers", "aria-rowcount").as_deref(), Some("1001"));
}

#[wasm_bindgen_test]
async fn scrolling_shows_other_lines_in_the_same_elements() {
    let (_page, _table) = open().await;
    let before = rows();
    page::get("#numbers").set_scroll_top(500 * LINE_PX + 5);
    until_eq("others are there", Some("500".to_owned()), || texts().first().cloned()).await;
    assert_eq!(rows(), before);
    let above = page::get("#numbers").get_bounding_client_rect().top();
    let first = rows()[0].get_bounding_client_rect().top();
    // Below the head, cut by five pixels.
    assert!((first - above - f64::from(LINE_PX) + 5.0).abs() < 1.0, "{first} in a table at {above}");
    page::get("#numbers").set_scroll_top(LINES as i32 * LINE_PX);
    until_true("the last is there", || texts().last().is_some_and(|text| text == "999")).await;
}

#[wasm_bindgen_test]
async fn keys_bring_the_cursors_line_into_sight() {
    let (_page, _table) = open().await;
    let is_seen = |line: usize| {
        let table = page::get("#numbers").get_bounding_client_rect();
        rows().iter().any(|row| {
            let rect = row.get_bounding_client_rect();
            row.text_content() == Some(line.to_string())
                && rect.top() >= table.top() + f64::from(LINE_PX) - 1.0
                && rect.bottom() <= table.bottom() + 1.0
        })
    };
    for (key, line) in [
        ("ArrowDown", 0),
        ("PageDown", 10),
        ("PageDown", 20),
        ("ArrowDown", 21),
        ("End", 999),
        ("PageUp", 989),
        ("Home", 0),
    ] {
        assert!(!press(key), "{key} is the table's");
        until_true(&format!("{key} shows line {line}"), || is_seen(line)).await;
        let active = || attribute("#numbers", "aria-activedescendant");
        until_eq(key, Some(format!("line-{line}")), active).await;
    }
    assert!(press("Tab"), "other keys are not");
}

#[wasm_bindgen_test]
async fn an_update_keeps_elements_place_and_focus() {
    let (_page, table) = open().await;
    page::get("#numbers").set_scroll_top(100 * LINE_PX);
    until_eq("it is scrolled", Some("100".to_owned()), || texts().first().cloned()).await;
    let before = rows();
    table.note.set(" new");
    until_eq("it is updated", Some("100 new".to_owned()), || texts().first().cloned()).await;
    assert_eq!(rows(), before);
    assert_eq!(focused_id(), "numbers");
    assert_eq!(page::get("#numbers").scroll_top(), 100 * LINE_PX);
}

#[wasm_bindgen_test]
async fn lines_beyond_the_last_are_empty() {
    let (_page, table) = open().await;
    table.count.set(3);
    until_eq("three are left", vec!["0".to_owned(), "1".to_owned(), "2".to_owned()], texts).await;
    assert_eq!(page::all("#numbers .line:not(.vacant)").len(), 3);
    assert_eq!(attribute("#numbers", "aria-rowcount").as_deref(), Some("4"));
}

#[wasm_bindgen_test]
async fn a_taller_table_has_more_lines_in_the_document() {
    let (_page, _table) = open().await;
    page::get("#numbers").set_attribute("style", "height: 546px; width: 300px; --line-height: 26px").unwrap();
    until_eq("twenty and what is cut", 23, || rows().len()).await;
    settle().await;
    assert_eq!(texts().last().map(String::as_str), Some("22"));
}
