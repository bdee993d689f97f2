//! Where the focus goes when panels, dialogs and menus come and go.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen_test::wasm_bindgen_test;
use web_sys::HtmlDialogElement;

use super::cluster::Feed;
use super::page::{self, focused_id, mount, settle, until_eq, until_true};
use crate::url::Panel;
use crate::view::decisions::DecisionsPanel;
use crate::view::workers::WorkersPanel;
use crate::view::{focus_another, losses, nav, whatif};

#[wasm_bindgen_test]
async fn a_panel_that_is_opened_takes_the_focus_with_its_heading() {
    let page = mount("?view=workers", |store, _| {
        let shown = Memo::new(move |_| store.address.with(|address| address.panel));
        focus_another(shown);
        move || match shown.get() {
            Panel::Workers => view! { <WorkersPanel store/> }.into_any(),
            _ => view! { <DecisionsPanel store/> }.into_any(),
        }
    });
    let _feed = Feed::two_prompts(page.store);
    settle().await;
    assert_eq!(focused_id(), "", "the first panel takes nothing");
    page.store.address.update(|address| address.panel = Panel::Decisions);
    until_eq("the heading of the one", "decisions-title".to_owned(), focused_id).await;
    page.store.address.update(|address| address.panel = Panel::Workers);
    until_eq("of the other", "workers-title".to_owned(), focused_id).await;
}

#[wasm_bindgen_test]
async fn a_dialog_that_is_closed_gives_the_focus_back_to_its_button() {
    let _page = mount("", |_, _| view! { <whatif::help::Explained/> });
    let button = page::get("[data-testid=whatif-help]");
    button.set_id("opener");
    button.focus().unwrap();
    button.click();
    let dialog: HtmlDialogElement = page::get("dialog").unchecked_into();
    until_true("it is open", || dialog.open()).await;
    assert!(dialog.contains(document().active_element().as_deref()), "the focus is in it");
    button.click();
    assert!(dialog.open(), "once more opens nothing else");
    page::get("dialog button").click();
    until_true("it is closed", || !dialog.open()).await;
    assert_eq!(focused_id(), "opener");
}

#[wasm_bindgen_test]
async fn the_menu_of_panels_opens_by_its_button_and_closes_with_a_choice() {
    let page = mount("", |store, _| view! { <nav::Nav store/> });
    let is_open = || page::get("#nav").matches(":popover-open").unwrap();
    assert!(!is_open());
    page::get("[data-testid=menu]").click();
    until_true("it is open", is_open).await;
    page::get("[data-testid=nav-tree]").click();
    until_true("it is closed", || !is_open()).await;
    let panel = || page.store.address.with_untracked(|address| address.panel);
    assert!(panel() == Panel::Tree);
    until_eq("the choice is marked", Some("page".to_owned()), || {
        page::attribute("[data-testid=nav-tree]", "aria-current")
    })
    .await;
}

#[wasm_bindgen_test]
async fn a_click_for_another_tab_changes_nothing_here() {
    let page = mount("", |store, _| view! { <nav::Nav store/> });
    // The runner's page stays.
    let stay = window_event_listener(leptos::ev::click, |event| event.prevent_default());
    page::pointer("[data-testid=nav-tree]", "click", (5.0, 5.0), serde_json::json!({ "ctrlKey": true }));
    settle().await;
    stay.remove();
    assert!(page.store.address.with_untracked(|address| address.panel) == Panel::Overview);
}

#[wasm_bindgen_test]
async fn what_a_popover_shows_is_made_while_it_is_open() {
    let page = mount("", |store, _| view! { <losses::Losses store/> });
    let _feed = Feed::begin(page.store, 1);
    settle().await;
    let body = || page::all("#losses p, #losses table").len();
    let closed = body();
    page::script("", "document.getElementById('losses').showPopover()", &[]);
    until_true("it says that nothing was lost", || body() > closed).await;
    page::script("", "document.getElementById('losses').hidePopover()", &[]);
    until_eq("it is empty again", closed, body).await;
}
