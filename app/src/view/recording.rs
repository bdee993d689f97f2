//! Recordings: one that is dropped anywhere or chosen is shown in the place of the server; a window of time is saved as one.

use js_sys::Array;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{DragEvent, Event, HtmlInputElement};

use crate::store::{Store, time_of_day};
use crate::time_range::TimeSpan;
use crate::url::Panel;
use crate::view::clipboard::address;
use crate::view::control::view;

/// Id of the menu.
const MENU_ID: &str = "recording";
/// Class of the body while a file is dragged over the page.
const DRAGGED: &str = "recording-over";

/// Takes recordings that are dropped on the page, for as long as it is open; not what a panel takes itself.
pub(super) fn take_drops(store: Store) {
    let mark = |is_over: bool| {
        if let Some(body) = document().body() {
            let _ = body.class_list().toggle_with_force(DRAGGED, is_over);
        }
    };
    let listen = |name: &'static str, what: fn(Store, &DragEvent) -> bool| {
        let handle = window_event_listener_untyped(name, move |event| {
            if let Ok(event) = event.dyn_into::<DragEvent>() {
                mark(what(store, &event));
            }
        });
        on_cleanup(move || handle.remove());
    };
    listen("dragover", |_, event| {
        let has_files = event.data_transfer().is_some_and(|data| data.types().includes(&"Files".into(), 0));
        let is_ours = has_files && !event.default_prevented();
        if is_ours {
            event.prevent_default();
        }
        is_ours
    });
    // It ends where it leaves the window; from one element to another it goes on.
    listen("dragleave", |_, event| event.related_target().is_some() && is_over());
    listen("drop", |store, event| {
        let files = event.data_transfer().and_then(|data| data.files()).filter(|files| files.length() > 0);
        if let Some(files) = files.filter(|_| !event.default_prevented()) {
            event.prevent_default();
            // There one has something to compare it with.
            let is_second = store.address.with_untracked(|address| address.panel == Panel::Changes);
            store.open_files(Array::from(&files), is_second);
        }
        false
    });
}

fn is_over() -> bool {
    document().body().is_some_and(|body| body.class_list().contains(DRAGGED))
}

/// Opens a recording that is chosen, in the place of what is shown or, to compare with that, as B.
pub(super) fn open(store: Store, is_second: bool) -> AnyView {
    let choose = move |event: Event| {
        let Some(input) = event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok()) else {
            return;
        };
        if let Some(files) = input.files().filter(|files| files.length() > 0) {
            crate::keys::close(MENU_ID);
            store.open_files(Array::from(&files), is_second);
        }
        // The same file once more is a change, too: it may have been written anew.
        input.set_value("");
    };
    let (text, id) =
        if is_second { ("Open as B…", "second-file") } else { ("Open recording…", "recording-file") };
    view! {
        <label class="plain">
            {text}
            <input type="file" multiple accept=".mcap" class="hidden" data-testid=id on:change=choose/>
        </label>
    }
    .into_any()
}

/// The button and its menu; `span` is the window that is saved.
#[component]
pub(super) fn RecordingMenu(
    store: Store,
    #[prop(into)] span: Callback<(), Option<TimeSpan>>,
) -> impl IntoView {
    let window = move || {
        store.history_version.track();
        span.run(())
    };
    let text = move || match window() {
        _ if store.file.with(Option::is_some) => {
            "Saving a window needs a server: this is a recording".to_owned()
        }
        None => "No history is retained that could be saved".to_owned(),
        Some(span) => {
            format!("Save this window, {} to {}:", time_of_day(span.from), time_of_day(span.until))
        }
    };
    let save = move |path: &'static str, is_page: bool, id: &'static str, name: &'static str| {
        let link = move || {
            let span = window().filter(|_| store.file.with(Option::is_none))?;
            let mut link = format!("{path}?from_ms={}&to_ms={}", span.from.0, span.until.0);
            if is_page {
                // It opens with what is shown.
                store.at.track();
                let address = address(store);
                let view = address.find(['?', '#']).map_or("", |from| &address[from..]);
                link.push_str("&view=");
                link.push_str(&String::from(js_sys::encode_uri_component(view)));
            }
            Some(link)
        };
        view! { <a class="plain" download="" href=move || link() data-testid=id>{name}</a> }
    };
    view! {
        <button class="icon" popovertarget=MENU_ID title="Open a recording, or save this window as one"
            aria-label="Open a recording, or save this window as one" data-testid="recording-menu">
            <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M8 2v7M5 6.5l3 3l3-3M2.5 11v2.5h11V11"/></svg>
        </button>
        <div id=MENU_ID class="popover recording" popover="auto" aria-label="Recordings">
            {open(store, false)}
            <p class="quiet" data-testid="recording-window">{move || text()}</p>
            {save("api/v1/recording", false, "save-recording", "Recording (.mcap)")}
            {save("api/v1/report", true, "save-report", "Page with the recording inside (.html)")}
        </div>
    }
}
