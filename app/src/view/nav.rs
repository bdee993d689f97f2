//! The way to every panel: a rail of links at the left, a menu where the window is narrow.

use leptos::prelude::*;
use radixscope_panels::findings::FindingBadge;
use web_sys::MouseEvent;

use super::lazy;
use crate::store::Store;
use crate::url::{Address, Panel};
use crate::view::control::view;

/// Id of the list, for the button that opens it as a menu.
const NAV_ID: &str = "nav";

/// The marks, by the names in the address.
const MARKS: &str = "nav.svg#";

/// The address of a panel, looking as this view does. Tracked.
pub(super) fn href(store: Store, panel: Panel) -> String {
    let moment = match store.debounced_at.get() {
        0 => String::new(),
        at => format!("#t={at}"),
    };
    format!("./{}{moment}", store.address.with(|a| a.with_panel(panel).query()))
}

/// Whether a click on a link changes this view, and then keeps the browser from following it; else it asks for another tab
/// or window.
pub(super) fn stays_here(event: &MouseEvent) -> bool {
    let stays = !(event.ctrl_key() || event.meta_key() || event.shift_key());
    if stays {
        event.prevent_default();
    }
    stays
}

/// Shows a panel, unless the click asks for another tab or window; says whether it did.
pub(super) fn open(store: Store, panel: Panel, event: &MouseEvent) -> bool {
    let stays = stays_here(event);
    if stays {
        store.address.update(|a| a.panel = panel);
    }
    stays
}

/// A link within the page: a true one, that changes the view at once.
#[component]
pub(super) fn Goes(
    store: Store,
    #[prop(into)] to: Callback<Address, Address>,
    id: &'static str,
    children: Children,
) -> impl IntoView {
    let href = move || format!("./{}", store.address.with(|address| to.run(address.clone()).query()));
    let open = move |event: MouseEvent| {
        if stays_here(&event) {
            store.address.update(|address| *address = to.run(address.clone()));
        }
    };
    view! { <a href=move || href() on:click=open data-testid=id>{children()}</a> }
}

/// Links to all panels. They are true links: they can be copied and opened in another tab.
#[component]
pub(super) fn Nav(store: Store) -> impl IntoView {
    let current = move || store.address.with(|a| a.panel);
    let found = Memo::new(move |_| store.on_beat(|cluster| FindingBadge::of(cluster)));
    // In attributes, drawn by the style sheet.
    let badge = move |panel| found.get().filter(|_| panel == Panel::Findings);
    let count = move |panel| badge(panel).map(|badge| badge.count.to_string());
    let worst = move |panel| badge(panel).map(|badge| badge.worst.as_str());
    let link = |&panel: &Panel| {
        let address = move || href(store, panel);
        let open = move |event: MouseEvent| {
            if open(store, panel, &event) {
                crate::keys::close(NAV_ID);
            }
        };
        // A panel without a mark has none.
        let mark = format!("{}{}", crate::asset::address(MARKS), panel.as_str());
        let group = if matches!(panel, Panel::Latency | Panel::WhatIf) { "group" } else { "" };
        view! {
            <a href=move || address() on:click=open on:pointerenter=move |_| lazy::preload(panel)
                on:focus=move |_| lazy::preload(panel) aria-current=move || (current() == panel).then_some("page")
                class=group data-found=move || count(panel) data-worst=move || worst(panel)
                data-testid=format!("nav-{}", panel.as_str())>
                <svg aria-hidden="true"><use_ href=mark/></svg>
                <span>{panel.title()}</span>
            </a>
        }
    };
    view! {
        <button class="menu" popovertarget=NAV_ID aria-label=move || format!("Panels: {}", current().title()) data-testid="menu">
            {move || current().title()}
        </button>
        <nav id=NAV_ID class="nav" popover="auto" aria-label="Panels">{Panel::ALL.iter().map(link).collect_view()}</nav>
    }
}
