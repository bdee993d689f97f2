//! Buttons that copy.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen_test::wasm_bindgen_test;
use web_sys::HtmlInputElement;

use super::page::{self, mount, text, until_eq, until_true};
use crate::view::clipboard::{CopyButton, CopyLink};

/// Stands in for the clipboard, which a browser without a window may refuse.
fn replace_clipboard(is_allowed: bool) {
    let body = "window.copied = []; Object.defineProperty(navigator, 'clipboard', {configurable: true, value: { \
                    writeText: text => { window.copied.push(text); \
                        return allows ? Promise.resolve() : Promise.reject(new Error('refused')); }}}); \
                return () => { delete navigator.clipboard; }";
    page::replace("allows", body, &[is_allowed.into()]);
}

fn copied() -> Vec<String> {
    let copied: js_sys::Array = page::script("", "return window.copied", &[]).unchecked_into();
    copied.iter().filter_map(|text| text.as_string()).collect()
}

#[wasm_bindgen_test]
async fn a_copy_button_copies_what_there_is_when_it_is_pressed_and_says_so() {
    let (value, set_value) = signal("one");
    let _page = mount("", move |_, _| {
        view! { <CopyButton label="Copy" id="copy" text=move |()| value.get_untracked().to_owned()/> }
    });
    replace_clipboard(true);
    assert_eq!(text(".copied"), "");
    page::get("[data-testid=copy]").click();
    until_eq("it says so", "Copied".to_owned(), || text(".copied")).await;
    set_value.set("two");
    page::get("[data-testid=copy]").click();
    assert_eq!(copied(), ["one", "two"]);
}

#[wasm_bindgen_test]
async fn a_link_is_copied_with_the_moment_that_is_shown() {
    let page = mount("", |store, _| view! { <CopyLink store/> });
    replace_clipboard(true);
    page.store.at.set(1_767_225_600_123);
    page::get("[data-testid=copy-link]").click();
    until_eq("it says so", "Link copied".to_owned(), || text("[data-testid=copy-link-status]")).await;
    let all = copied();
    assert!(all.len() == 1 && all[0].ends_with("#t=1767225600123"), "{all:?}");
}

#[wasm_bindgen_test]
async fn where_the_browser_refuses_the_link_stands_selected_in_a_field() {
    let _page = mount("", |store, _| view! { <CopyLink store/> });
    replace_clipboard(false);
    page::get("[data-testid=copy-link]").click();
    until_true("a field has it", || page::find("[data-testid=copy-link-text]").is_some()).await;
    let field: HtmlInputElement = page::get("[data-testid=copy-link-text]").unchecked_into();
    assert!(field.value().starts_with("http"), "{}", field.value());
    let selected = || page::script("", "return String(getSelection())", &[]).as_string().unwrap_or_default();
    until_eq("all of it is selected", field.value(), selected).await;
    field.blur().unwrap();
    until_true("it goes when it is left", || page::find("[data-testid=copy-link-text]").is_none()).await;
}
