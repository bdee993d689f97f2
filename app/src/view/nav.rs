//! The way to every panel: a rail of links at the left, a menu where the window is narrow.

use leptos::prelude::*;
use radixscope_model::record::{Finding, Phase, Severity};
use web_sys::MouseEvent;

use crate::store::Store;
use crate::url::Panel;

/// Id of the list, for the button that opens it as a menu.
const NAV_ID: &str = "nav";

/// The address of a panel, looking as this view does. Tracked.
pub(super) fn href(store: Store, panel: Panel) -> String {
    ["./", &store.address.with(|a| a.with_panel(panel).query())].concat()
}

/// Shows a panel, unless the click asks for another tab or window; says whether it did.
pub(super) fn open(store: Store, panel: Panel, event: &MouseEvent) -> bool {
    if event.ctrl_key() || event.meta_key() || event.shift_key() {
        return false;
    }
    event.prevent_default();
    store.address.update(|a| a.panel = panel);
    true
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
        // The marks are in a file of their own, by the address's words; a panel without one there has none.
        let mark = format!("nav.svg#{}", panel.as_str());
        let group = if matches!(panel, Panel::Latency | Panel::WhatIf) { "group" } else { "" };
        view! {
            <a href=address on:click=open aria-current=move || (current() == panel).then_some("page")
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
