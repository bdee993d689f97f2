//! The list of keys, and how to read what is shown, in a dialog.

use leptos::html;
use leptos::prelude::*;

use crate::keys::KEYS;

/// Opens whenever `raised` rises.
#[component]
pub(super) fn Help(raised: RwSignal<u32>) -> impl IntoView {
    let dialog = NodeRef::<html::Dialog>::new();
    Effect::new(move |_| {
        if raised.get() > 0
            && let Some(dialog) = dialog.get_untracked()
            && !dialog.open()
        {
            let _ = dialog.show_modal();
        }
    });
    let row = |(key, does)| view! { <tr><th scope="row"><kbd>{key}</kbd></th><td>{does}</td></tr> };
    view! {
        <dialog node_ref=dialog class="help" aria-labelledby="help-title" data-testid="help">
            <form method="dialog">
                <header>
                    <h2 id="help-title">"Keys"</h2>
                    <button class="plain" aria-label="Close">"Close"</button>
                </header>
            </form>
            <table>{KEYS.map(row).into_iter().collect_view()}</table>
            <h2>"How to read the tree"</h2>
            <p>
                "Every box is a run of prompt blocks. Downward is the position in the prompt; a box's share of the
                width is its share of the cached blocks. A box in a worker's colour is held by that worker alone. A
                grey box is held by several, with one tick per holder along its upper edge."
            </p>
            <h2>"How a worker is chosen"</h2>
            <p>
                "A worker costs the prompt blocks it would have to compute plus the blocks it already carries; the lowest
                cost wins. For 100 blocks: 80 + 10 = 90, "<b>"25 + 5 = 30"</b>", 90 + 9 = 99. "
                <a href="./?view=whatif&example=1" data-testid="help-example">"Try it with other settings"</a>
            </p>
        </dialog>
    }
}
