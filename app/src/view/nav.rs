//! The way to every panel: a rail of links at the left, a menu where the window is narrow.

use leptos::prelude::*;
use radixscope_model::record::{Finding, Phase, Severity};
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
    let found = Memo::new(move |_| {
        let is_bad = |f: &&Finding| f.phase != Phase::Cleared && f.severity > Severity::Info;
        store.on_beat(|cluster| {
            let bad = cluster.findings().iter().filter(is_bad).map(|f| f.severity);
            bad.fold((0_u32, Severity::Info), |(count, worst), severity| (count + 1, worst.max(severity)))
        })
    });
    // In attributes, drawn by the style sheet.
    let badge = move |panel| found.with(|(n, _)| (panel == Panel::Findings && *n > 0).then(|| n.to_string()));
    let worst = move |panel| badge(panel).map(|_| found.get().1.as_str());
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
                class=group data-found=move || badge(panel) data-worst=move || worst(panel)
                data-testid=format!("nav-{}", panel.as_str())>
                <svg aria-hidden="true"><use_ href=mark/></svg>
                <span>{panel.title()}</span>
            </a>
        }
    };
    view! {
        <button class="menu" popovertarget=NAV_ID aria-label="Panels" data-testid="menu">
            {move || current().title()}
        </button>
        <nav id=NAV_ID class="nav" popover="auto" aria-label="Panels">{Panel::ALL.iter().map(link).collect_view()}</nav>
    }
}
