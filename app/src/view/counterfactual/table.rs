//! What happened, as recorded beside what was tried, figure by figure; every number with its unit.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::counterfactual::{ModelReport, OfflineReplayReport};
use radixscope_model::id::WorkerIx;
use radixscope_panels::counterfactual::{COLUMNS, ComparisonRow, ComparisonTable};

use crate::format;
use crate::store::Store;
use crate::view::chip::Chip;
use crate::view::control::view;

/// The comparison.
#[component]
pub(super) fn Comparison(
    store: Store,
    replay: Memo<Option<Arc<OfflineReplayReport>>>,
    model: Memo<Option<Arc<ModelReport>>>,
) -> impl IntoView {
    move || {
        let replay = replay.get()?;
        let ComparisonTable { columns, rows, shares } = ComparisonTable::of(&replay, model.get().as_deref());
        let head = COLUMNS.into_iter().take(columns).map(|(_, name, title)| {
            view! { <th scope="col" class="n" title=title>{name}</th> }
        });
        let row = |ComparisonRow { id, name, meaning, cells }: ComparisonRow| {
            let cells = cells.into_iter().zip(COLUMNS).take(columns);
            let cells = cells
                .map(|(text, (column, ..))| view! { <td class="n" data-testid=format!("cf-{id}-{column}")>{text}</td> });
            view! { <tr><th scope="row" title=meaning>{name}</th>{cells.collect_view()}</tr> }
        };
        let bars = |of: Vec<(Option<WorkerIx>, f64)>| {
            let bar = |(worker, share)| view! { <ShareBar store worker share/> };
            view! { <td>{of.into_iter().map(bar).collect_view()}</td> }
        };
        Some(view! {
            <table class="cf-table" data-testid="cf-table">
                <thead><tr>
                    <th scope="col">"Figure"</th>
                    {head.collect_view()}
                </tr></thead>
                <tbody>
                    {rows.into_iter().map(row).collect_view()}
                    <tr class="cf-shares">
                        <th scope="row" title="Requests of each worker, in % of all. The model's workers are not the real ones: most loaded first">"Requests by worker"</th>
                        {shares.into_iter().map(bars).collect_view()}
                    </tr>
                </tbody>
            </table>
        })
    }
}

#[component]
fn ShareBar(store: Store, #[prop(into)] worker: Option<WorkerIx>, share: f64) -> impl IntoView {
    view! {
        <span class="cf-share">
            {worker.map(|worker| view! { <Chip store worker/> })}
            <span class="meter" aria-hidden="true"><i style=format!("width:{}", format::width(share))></i></span>
            <span class="n">{format::tenths(share)}</span>
        </span>
    }
}
