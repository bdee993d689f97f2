//! Text for other programs: copied by a button that says whether it worked.

use std::time::Duration;

use leptos::prelude::*;

/// How long a button says what became of it.
const SAID_FOR: Duration = Duration::from_secs(3);

/// A button that copies what `text` gives.
#[component]
pub(super) fn CopyButton(
    /// What is copied, in words.
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
    let said = RwSignal::new(None);
    let press = move |_| {
        let worked = copy(&text.run(()));
        said.set(Some(if worked { "Copied" } else { "Not allowed by this browser: select the text" }));
        // The button may be gone by then.
        let silent = move || {
            said.try_set(None);
        };
        set_timeout(silent, SAID_FOR);
    };
    view! {
        <span class="copy">
            <button class="plain" data-testid=id aria-label=name title=name on:click=press>{label}</button>
            <span role="status" class="copied">{said}</span>
        </span>
    }
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
