//! The way to every panel: links in the bar, a menu where the window is narrow.

use leptos::prelude::*;
use web_sys::MouseEvent;

use crate::store::Store;
use crate::url::Panel;

/// Id of the list, for the button that opens it as a menu.
const NAV_ID: &str = "nav";

/// Links to all panels. They are true links: they can be copied and opened in another tab.
#[component]
pub(super) fn Nav(store: Store) -> impl IntoView {
    let current = Memo::new(move |_| store.address.with(|a| a.panel));
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
        view! {
            <a href=address on:click=open aria-current=move || (current.get() == panel).then_some("page")
                data-testid=format!("nav-{}", panel.as_str())>
                {panel.title()}
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
