//! How a cost comes about, by the example that everybody knows, in a dialog.

use crate::view::control::view;
use leptos::html;
use leptos::prelude::*;
use radixscope_panels::whatif::{ExampleRow, example_rows};

/// The button and its dialog.
#[component]
pub(in crate::view) fn Explained() -> impl IntoView {
    let dialog = NodeRef::<html::Dialog>::new();
    let open = move |_| {
        if let Some(dialog) = dialog.get_untracked().filter(|dialog| !dialog.open()) {
            let _ = dialog.show_modal();
        }
    };
    let row = |ExampleRow { number, cached, prefill, decode, cost, wins }: ExampleRow| {
        let wins = if wins { " ← selected" } else { "" };
        view! {
            <tr><th scope="row">{number}</th><td class="n">{cached}</td><td class="n">{prefill}</td><td class="n">{decode}</td>
                <td class="n"><b>{cost}</b>{wins}</td></tr>
        }
    };
    let rows = example_rows().into_iter().map(row);
    view! {
        <button class="plain" on:click=open data-testid="whatif-help">"How the cost is computed"</button>
        <dialog node_ref=dialog class="help" aria-labelledby="whatif-help-title">
            <form method="dialog"><header>
                <h2 id="whatif-help-title">"How the cost is computed"</h2>
                <button class="plain" aria-label="Close">"Close"</button>
            </header></form>
            <p>"A worker costs what it would have to compute and what it already carries, in blocks; the lowest cost wins. 100
                blocks are requested, the weight is 1:"</p>
            <table>
                <thead><tr><th>"Worker"</th><th>"Cached"</th><th>"Prefill = 100 − cached"</th><th>"Decode blocks"</th><th>"Cost"</th></tr></thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
            <p>"Prefill also counts prompt tokens queued on the worker; decode counts the blocks
                of its running requests and those that this prompt would add. Dynamo 0.8 to 1.1 multiply prefill by
                overlap_score_weight. From 1.2 on the cache is a credit taken off prefill, and prefill_load_scale multiplies what
                is left. From 1.4 on active requests may cost extra. Above temperature 0 the worker is drawn: the higher its
                cost, the lower its probability."</p>
        </dialog>
    }
}
