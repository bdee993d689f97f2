//! Opens the help: terms, how to read what is shown, keys. Its text is `help.html`, a part of the page's document.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlDialogElement, MouseEvent};

use super::nav;
use crate::store::Store;
use crate::url::Panel;

fn dialog() -> Option<HtmlDialogElement> {
    document().get_element_by_id("help")?.dyn_into().ok()
}

/// Opens it whenever `raised` rises, and follows its links without loading the page again.
pub(super) fn open_when(raised: RwSignal<u32>, store: Store) {
    Effect::new(move |_| {
        if raised.get() > 0
            && let Some(dialog) = dialog().filter(|dialog| !dialog.open())
        {
            let _ = dialog.show_modal();
        }
    });
    let links = window_event_listener(leptos::ev::click, move |event| {
        if let Some(panel) = panel_of(&event)
            && nav::open(store, panel, &event)
            && let Some(dialog) = dialog()
        {
            dialog.close();
        }
    });
    on_cleanup(move || links.remove());
}

/// The panel that the clicked link of the help leads to.
fn panel_of(event: &MouseEvent) -> Option<Panel> {
    let link = event.target()?.dyn_into::<Element>().ok()?.closest("#help a[data-panel]").ok()??;
    let name = link.get_attribute("data-panel")?;
    Panel::ALL.iter().copied().find(|panel| panel.as_str() == name)
}
