//! Text for other programs: copied by a button that says whether it worked.

use std::time::Duration;

use crate::view::control::view;
use leptos::html;
use leptos::prelude::*;

use crate::store::Store;

/// How long a button says what became of it.
const SAID_FOR: Duration = Duration::from_secs(3);

/// A button that copies what `text` gives.
#[component]
pub(super) fn CopyButton(
    /// What is copied, as text.
    label: &'static str,
    /// For tests.
    id: &'static str,
    /// What is copied, where the label does not say it.
    #[prop(optional)]
    name: Option<&'static str>,
    /// Called at each press.
    #[prop(into)]
    text: Callback<(), String>,
) -> impl IntoView {
    let status_text = RwSignal::new(None);
    let press = move |_| {
        let worked = copy(&text.run(()));
        status_text.set(Some(if worked { "Copied" } else { "Not allowed by this browser: select the text" }));
        // The button may be gone by then.
        let silent = move || {
            status_text.try_set(None);
        };
        set_timeout(silent, SAID_FOR);
    };
    view! {
        <span class="copy">
            <button class="plain" data-testid=id aria-label=name title=name on:click=press>{label}</button>
            <span role="status" class="copied">{status_text}</span>
        </span>
    }
}

/// A button that copies the address of the view as it is. Where the browser refuses, the address stands selected in a field.
#[component]
pub(super) fn CopyLink(store: Store) -> impl IntoView {
    let status_text = RwSignal::new("");
    let refused = RwSignal::new(None::<String>);
    let field = NodeRef::<html::Input>::new();
    Effect::new(move |_| {
        if let Some(field) = field.get() {
            // In the next frame it is in the document.
            request_animation_frame(move || {
                let _ = field.focus();
                field.select();
            });
        }
    });
    let press = move |_| {
        let address = address(store);
        leptos::task::spawn_local(async move {
            let copied = is_copied(&address).await;
            // The button may be gone by then.
            refused.try_set((!copied).then_some(address));
            status_text.try_set(if copied { "Link copied" } else { "" });
            let silent = move || {
                status_text.try_set("");
            };
            set_timeout(silent, SAID_FOR);
        });
    };
    let name = move || match store.at.get() {
        0 => "Copy link to this view",
        _ => "Copy link to this moment",
    };
    view! {
        <span class="copy-link">
            <button class="icon" title=move || name() aria-label=move || name() data-testid="copy-link" on:click=press>
                <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M7 5l2-2a2.8 2.8 0 0 1 4 4l-2 2M9 11l-2 2a2.8 2.8 0 0 1-4-4l2-2M6 10l4-4"/></svg>
            </button>
            <span role="status" class="copied" data-testid="copy-link-status">{status_text}</span>
            {move || refused.get().map(|address| view! {
                <input node_ref=field readonly prop:value=address aria-label="Link to this view: copy it by hand"
                    data-testid="copy-link-text" on:blur=move |_| refused.set(None)/>
            })}
        </span>
    }
}

/// The address of the view as it is, with the moment that is shown if that is not the present.
pub(super) fn address(store: Store) -> String {
    let address = window().location().href().unwrap_or_default();
    let view = address.split('#').next().unwrap_or_default();
    match untrack(|| store.at.get()) {
        0 => view.to_owned(),
        at => format!("{view}#t={at}"),
    }
}

/// Copies text and waits for what became of it. Pages from other machines must come by HTTPS to be allowed to.
async fn is_copied(text: &str) -> bool {
    if !window().is_secure_context() {
        return false;
    }
    let written = window().navigator().clipboard().write_text(text);
    wasm_bindgen_futures::JsFuture::from(written).await.is_ok()
}

/// Copies text; says whether the browser lets pages do so. Pages from other machines must come by HTTPS for that.
pub(super) fn copy(text: &str) -> bool {
    if !window().is_secure_context() {
        return false;
    }
    // The promise fails where the reader forbids it; the text is in the page as well.
    let _ = window().navigator().clipboard().write_text(text);
    true
}
