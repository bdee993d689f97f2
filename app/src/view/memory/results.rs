//! What fits, with units, sentences as text and the difference to what runs.

use leptos::prelude::*;
use radixscope_insight::memory::live_facts;
use radixscope_panels::memory::{self as panel, CapacityFigure, FitLine, against_live_note};

use super::Calculator;
use crate::view::control::view;

#[component]
pub(super) fn Results(calculator: Calculator) -> impl IntoView {
    let Calculator { store, shown } = calculator;
    let results = Memo::new(move |_| shown.with(panel::Results::of));
    let live_blocks =
        Memo::new(move |_| store.on_beat(|cluster| live_facts(cluster, cluster.pool).blocks_per_worker));
    let note = Memo::new(move |_| shown.with(|shown| against_live_note(shown, live_blocks.get())));
    let body = move || match results.get() {
        panel::Results::Refused(why) => {
            view! { <p class="cap-no" data-testid="cap-error" role="status">{why}</p> }
        }
        panel::Results::Fits { figures, lines } => view! {
            <dl class="cap-figures">{figures.into_iter().map(figure).collect_view()}</dl>
            <ul class="cap-verdicts" data-testid="cap-verdicts">{lines.into_iter().map(line).collect_view()}</ul>
            <p class="cap-live" data-testid="cap-live">{note}</p>
        },
    };
    view! { <section class="cap-results" aria-label="What fits">{move || body()}</section> }
}

fn figure(CapacityFigure { id, label, value, unit }: CapacityFigure) -> impl IntoView {
    view! { <div><dt>{label}</dt><dd><b data-testid=id>{value}</b>" "{unit}</dd></div> }
}

fn line(FitLine { icon, word, class, text }: FitLine) -> impl IntoView {
    view! {
        <li class=class><span class="cap-icon" aria-hidden="true">{icon}</span>
            <span><b>{word}</b>" "{text}</span></li>
    }
}
