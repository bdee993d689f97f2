//! What fits, with units, sentences as text and the difference to what runs.

use leptos::prelude::*;
use radixscope_insight::capacity::{Capacity, FieldFault, FitSentence, against_live, fit_sentences};
use radixscope_insight::memory::live_facts;

use super::Calculator;
use crate::format;
use crate::view::control::view;

#[component]
pub(super) fn Results(calculator: Calculator, faults: Memo<Vec<FieldFault>>) -> impl IntoView {
    let computed = Memo::new(move |_| {
        calculator.read.with(|read| {
            let inputs = read.as_ref().ok()?;
            Some((*inputs, inputs.capacity().ok()?))
        })
    });
    let store = calculator.store;
    let live_blocks =
        Memo::new(move |_| store.on_beat(|cluster| live_facts(cluster, cluster.pool).blocks_per_worker));
    let body = move || match computed.get() {
        None => {
            let status_text =
                faults.with(|faults| faults.iter().map(|fault| fault.message.clone()).collect::<Vec<_>>());
            view! {
                <p class="cap-no" data-testid="cap-error" role="status">
                    "Nothing can be computed until this is changed: " {status_text.join("; ")} "."
                </p>
            }
        }
        Some((inputs, capacity)) => {
            let status_text = fit_sentences(&inputs, &capacity);
            view! {
                <dl class="cap-figures">{figures(&capacity).into_iter().map(|(id, label, value, unit)| view! {
                    <div><dt>{label}</dt><dd><b data-testid=id>{value}</b>" "{unit}</dd></div>
                }).collect_view()}</dl>
                <ul class="cap-verdicts" data-testid="cap-verdicts">{status_text.into_iter().map(line).collect_view()}</ul>
                <p class="cap-live" data-testid="cap-live">{move || match inputs.blocks_per_worker {
                    Some(_) => GIVEN.to_owned(),
                    None => against(&capacity, live_blocks.get()),
                }}</p>
            }
        }
    };
    view! { <section class="cap-results" aria-label="What fits">{move || body()}</section> }
}

/// Beside figures that rest on a number of blocks, not on memory.
const GIVEN: &str = "KV blocks per worker, as the deployment reports them or as typed, stand for GPU memory, weights and \
    fraction. Empty that field to compute the blocks from those.";

fn figures(capacity: &Capacity) -> [(&'static str, &'static str, String, &'static str); 6] {
    [
        ("cap-gib", "KV cache per worker", format!("{:.1}", capacity.kv_gib_per_worker()), "GiB"),
        ("cap-tokens", "Tokens per worker", format::count(capacity.tokens_per_worker), "tokens"),
        ("cap-blocks-each", "Blocks per worker", format::count(capacity.blocks_per_worker), "blocks"),
        ("cap-blocks-all", "Blocks of all workers", format::count(capacity.blocks), "blocks"),
        ("cap-token-bytes", "One token", format::count(capacity.kv_bytes_per_token), "bytes"),
        ("cap-block-bytes", "One block", format::count(capacity.bytes_per_block), "bytes"),
    ]
}

fn line(verdict: FitSentence) -> impl IntoView {
    let (icon, word, class) = match verdict.fits {
        Some(true) => ("✓", "Fits.", "fits"),
        Some(false) => ("✕", "Does not fit.", "too-much"),
        None => ("·", "", "neither"),
    };
    view! {
        <li class=class><span class="cap-icon" aria-hidden="true">{icon}</span>
            <span><b>{word}</b>" "{verdict.text}</span></li>
    }
}

fn against(capacity: &Capacity, live: Option<(u64, u64)>) -> String {
    match live {
        Some((least, most)) if least == most => against_live(capacity, least),
        Some((least, most)) => format!(
            "{} Workers differ: {} to {} blocks.",
            against_live(capacity, least),
            format::count(least),
            format::count(most)
        ),
        None => "No live capacity to compare with: a model card from discovery or --prometheus frontend=http://HOST:8000/metrics reports it.".to_owned(),
    }
}
