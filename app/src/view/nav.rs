//! The way to every panel: a rail of links at the left, a menu where the window is narrow.

use leptos::prelude::*;
use radixscope_core::record::{Phase, Severity};
use web_sys::MouseEvent;

use crate::store::Store;
use crate::url::Panel;

/// Id of the list, for the button that opens it as a menu.
const NAV_ID: &str = "nav";

/// Links to all panels. They are true links: they can be copied and opened in another tab.
#[component]
pub(super) fn Nav(store: Store) -> impl IntoView {
    let current = Memo::new(move |_| store.address.with(|a| a.panel));
    let found = Memo::new(move |_| {
        store.on_beat(|cluster| {
            let held =
                cluster.finding_heads().filter(|f| f.phase != Phase::Cleared && f.severity > Severity::Info);
            held.fold((0, false), |(n, bad), f| (n + 1, bad || f.severity == Severity::Critical))
        })
    });
    // In one attribute, drawn by the style sheet: so it costs the first bundle little.
    let badge = move |panel| {
        let (n, bad) = found.get();
        (panel == Panel::Findings && n > 0).then(|| format!("{}{n}", if bad { "◆ " } else { "▲ " }))
    };
    let link = |&panel: &Panel| {
        let address = move || format!("./{}", store.address.with(|a| a.with_panel(panel).query()));
        let open = move |event: MouseEvent| {
            if event.ctrl_key() || event.meta_key() || event.shift_key() {
                return;
            }
            event.prevent_default();
            store.address.update(|a| a.panel = panel);
            crate::keys::close(NAV_ID);
        };
        // Fixed text of ours.
        let inner = format!(
            "<svg viewBox='0 0 16 16' aria-hidden='true'><path d='{}'/></svg><span>{}</span>",
            icon(panel),
            panel.title()
        );
        view! {
            <a href=address on:click=open aria-current=move || (current.get() == panel).then_some("page")
                class:group=matches!(panel, Panel::Latency | Panel::WhatIf) data-found=move || badge(panel)
                data-testid=format!("nav-{}", panel.as_str()) inner_html=inner>
            </a>
        }
    };
    view! {
        <button class="menu" popovertarget=NAV_ID aria-label="Panels" data-testid="menu">
            {move || current.get().title()}
        </button>
        <nav id=NAV_ID class="nav" popover="auto" aria-label="Panels">{Panel::ALL.iter().map(link).collect_view()}</nav>
    }
}

/// Marks by the address's word; a panel without one has a plain box.
const ICONS: [(&str, &str); 11] = [
    ("overview", "M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z"),
    ("findings", "M8 2l6.5 12h-13zM8 6.5v3.5M8 12v.2"),
    ("latency", "M8 3a6 6 0 1 1 0 12a6 6 0 1 1 0-12M8 9V5.5M6 1h4"),
    ("memory", "M3 4h10v8H3zM6 1.5V4M10 1.5V4M6 12v2.5M10 12v2.5"),
    ("tree", "M2 2h12v3H2zM2 7h7v3H2zM11 7h3v3h-3zM2 12h3v2H2z"),
    ("workers", "M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.2M4.5 11h.2"),
    ("rates", "M1.5 13l4-6 3 3 5.5-7"),
    ("decisions", "M2 8h4l4-5h4M6 8l4 5h4"),
    ("whatif", "M5.5 6a2.5 2.5 0 1 1 3.5 2.3c-.7.4-1 .8-1 1.7M8 12.8v.2"),
    ("counterfactual", "M2 5h11l-3-3M14 11H3l3 3"),
    ("compare", "M3 14V6M7 14V2M11 14V9M14.5 14h-13"),
];

fn icon(panel: Panel) -> &'static str {
    let known = ICONS.iter().find(|(name, _)| *name == panel.as_str());
    known.map_or("M3 3h10v10H3z", |&(_, path)| path)
}
